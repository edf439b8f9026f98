#![no_main]

#[path = "../targets/io_pair.rs"]
mod io_pair;

libfuzzer_sys::fuzz_target!(|data: &[u8]| io_pair::run(data));
