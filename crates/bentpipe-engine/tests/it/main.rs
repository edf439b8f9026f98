//! The engine through its public interface: its parts together.
#![allow(clippy::duplicate_mod, reason = "each fuzz target is a file of its own, with the pair that it plays")]

mod beyond_the_wire;
mod burst;
mod pair;
mod properties;
mod seeds;
mod splice;
mod verdicts;
