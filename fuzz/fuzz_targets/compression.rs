#![no_main]

#[path = "../targets/compression.rs"]
mod compression;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    compression::run(data);
});
