//! The command as people call it.

mod command;
mod docs;
#[cfg(target_os = "linux")]
mod gateway;
#[cfg(target_os = "linux")]
mod realtime;
