#![no_main]

#[path = "../targets/flight.rs"]
mod flight;
#[path = "../targets/io_pair.rs"]
mod io_pair;
#[path = "../targets/user.rs"]
#[allow(dead_code, reason = "shared with targets that use more of it")]
mod user;

libfuzzer_sys::fuzz_target!(|data: &[u8]| io_pair::run(data));
