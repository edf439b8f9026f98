//! The engine over bytes and over real devices.

mod both_ways;
#[cfg(target_os = "linux")]
mod linux;
mod seeds;
