//! The command as people call it.

mod command;
#[cfg(target_os = "linux")]
mod gateway;
#[cfg(target_os = "linux")]
mod realtime;
