//! Tests of the reproduced papers and of the committed documents.

/// Tests that compute for long. `make test` runs them while those in `real_time` wait.
mod long {
    mod all;
    mod minei;
}
mod scoreboard;
mod stp;
mod transat;
