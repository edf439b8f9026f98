#![no_main]

#[path = "../targets/scenario_parse.rs"]
mod scenario_parse;

libfuzzer_sys::fuzz_target!(|data: &[u8]| scenario_parse::run(data));
