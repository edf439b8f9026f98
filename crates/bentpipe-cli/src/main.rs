//! The `bentpipe` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

/// All threads share one lock in musl's allocator, so two made a sweep no faster than one.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(bentpipe_cli::main_with(std::env::args_os().collect()))
}
