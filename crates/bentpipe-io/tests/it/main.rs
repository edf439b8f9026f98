//! The engine over bytes and over real devices.

mod both_ways;
#[path = "../../../../fuzz/targets/flight.rs"]
mod flight;
#[cfg(target_os = "linux")]
mod real_time;
mod seeds;
#[path = "../../../../fuzz/targets/user.rs"]
mod user;
