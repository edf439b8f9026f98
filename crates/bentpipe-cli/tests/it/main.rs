//! The command, called as users call it.

#[cfg(target_os = "linux")]
mod captures;
mod command;
mod docs;
mod examples;
mod gateway;
#[cfg(target_os = "linux")]
mod real_time;
