#![no_main]

#[path = "../targets/uplink_parse.rs"]
mod uplink_parse;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    uplink_parse::run(data);
});
