//! The command, called as users call it.

#[cfg(target_os = "linux")]
mod captures;
mod command;
mod docs;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod gateway;
/// Tests that compute for long. `make test` runs them while those in `real_time` wait.
mod long {
    mod examples;
    #[cfg(target_os = "linux")]
    mod hosts;
    mod recommendation;
}
#[cfg(target_os = "linux")]
mod real_time;
