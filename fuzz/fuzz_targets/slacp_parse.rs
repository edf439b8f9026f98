#![no_main]

#[path = "../targets/slacp_parse.rs"]
mod slacp_parse;

libfuzzer_sys::fuzz_target!(|data: &[u8]| slacp_parse::run(data));
