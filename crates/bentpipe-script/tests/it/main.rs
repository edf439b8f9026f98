//! The language of packet scripts and the host that they play against. The scripts themselves are in `scripts.rs`.

mod expectations;
mod host;
mod language;
mod seeds;
