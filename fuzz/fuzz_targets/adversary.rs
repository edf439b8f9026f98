#![no_main]

#[path = "../targets/adversary.rs"]
mod adversary;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    adversary::run(data);
});
