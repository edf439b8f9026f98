//! TCP throughput over a terrestrial and a satellite part: end to end over selective-repeat ARQ, and split at the
//! gateway between them.
//!
//! The model is that of the `hybrid` paper ("TCP splitting and end-to-end TCP with link layer support in a hybrid
//! terrestrial-satellite network", 2004), to which all equation numbers refer. Our copy is a damaged scan. Illegible
//! equations were reconstructed from the assumptions in the text; where the print is wrong, the function says so.
//!
//! Reading order: [`Path`] (the parameters); [`delay`] (the delay of a burst over a lossy link with ARQ); [`queueing`]
//! (the wait before it); [`window`] (the round trip of a window and the largest window); [`throughput`] (the average
//! over the windows); [`splitting`] (the other scheme); [`asymptotics`] (their limits and buffers); [`fading`] (bounds
//! for a channel with memory); [`connections`] (several connections at one gateway).
//!
//! Windows, queues and times are means, so they are real numbers, in TCP packets and seconds: rounding them to whole
//! nanoseconds or packets would lose digits that the checks against `validation/hybrid` compare.

pub mod asymptotics;
pub mod connections;
pub mod delay;
mod evaluation;
pub mod fading;
mod path;
pub mod queueing;
pub mod splitting;
pub mod throughput;
pub mod window;

#[cfg(test)]
mod tests;

pub use evaluation::{EndToEndValues, Evaluation, Recommended, SplitValues};
pub use path::{OutOfRange, Path};
