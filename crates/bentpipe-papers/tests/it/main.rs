//! Everything that the papers contain, beside what comes out here.

mod all;
mod minei;
mod scoreboard;
mod stp;
mod transat;
