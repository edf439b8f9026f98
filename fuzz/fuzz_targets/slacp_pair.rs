#![no_main]

#[path = "../targets/slacp_pair.rs"]
mod slacp_pair;

libfuzzer_sys::fuzz_target!(|data: &[u8]| slacp_pair::run(data));
