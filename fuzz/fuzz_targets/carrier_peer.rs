#![no_main]

#[path = "../targets/carrier_peer.rs"]
mod carrier_peer;

libfuzzer_sys::fuzz_target!(|data: &[u8]| carrier_peer::run(data));
