//! The command as people call it.

mod command;
mod docs;
mod gateway;
#[cfg(target_os = "linux")]
mod realtime;
