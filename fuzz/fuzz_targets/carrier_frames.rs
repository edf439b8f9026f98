#![no_main]

#[path = "../targets/carrier_frames.rs"]
mod carrier_frames;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    carrier_frames::run(data);
});
