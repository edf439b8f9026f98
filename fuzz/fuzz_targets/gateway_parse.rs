#![no_main]

#[path = "../targets/gateway_parse.rs"]
mod gateway_parse;

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_parse::run(data));
