#![no_main]

#[path = "../targets/tcp_pair.rs"]
mod tcp_pair;

libfuzzer_sys::fuzz_target!(|data: &[u8]| tcp_pair::run(data));
