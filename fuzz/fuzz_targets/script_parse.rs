#![no_main]

#[path = "../targets/script_parse.rs"]
mod script_parse;

libfuzzer_sys::fuzz_target!(|data: &[u8]| script_parse::run_script(data));
