//! Tests of the reproduced papers and of the committed documents.

mod all;
mod minei;
mod scoreboard;
mod stp;
mod transat;
