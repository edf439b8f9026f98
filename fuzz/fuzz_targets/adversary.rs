#![no_main]

#[path = "../targets/adversary.rs"]
mod adversary;
#[path = "../targets/flight.rs"]
mod flight;
#[path = "../targets/user.rs"]
mod user;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    adversary::run(data);
});
