#![no_main]

#[path = "../targets/fit_capture.rs"]
mod fit_capture;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fit_capture::run(data));
