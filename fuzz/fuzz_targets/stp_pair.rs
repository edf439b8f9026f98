#![no_main]

#[path = "../targets/stp_pair.rs"]
mod stp_pair;

libfuzzer_sys::fuzz_target!(|data: &[u8]| stp_pair::run(data));
