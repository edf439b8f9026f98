//! TCP throughput over a terrestrial and a satellite part: end to end over selective-repeat ARQ, and split at the
//! gateway between them.
//!
//! The model is that of the `hybrid` paper ("TCP splitting and end-to-end TCP with link layer support in a hybrid
//! terrestrial-satellite network", 2004), to which all numbers of equations refer. Our copy of it is a damaged scan;
//! where the print is illegible, an equation was rebuilt from the assumptions that the text states, and where it is
//! wrong, the function says so.
//!
//! Reading order: [`Path`] holds the parameters; [`delay`] is the time that a burst takes over a lossy link with ARQ;
//! [`queueing`] the wait before it; [`window`] the round trip of a window and the largest window; [`throughput`] the
//! average over the windows; [`splitting`] the other scheme; [`asymptotics`] what they tend to and how much buffer
//! they need; [`fading`] bounds for a channel with memory; [`connections`] several connections at one gateway.
//!
//! Windows, queues and times are means, so they are real numbers, in TCP packets and seconds: rounding them to whole
//! nanoseconds or packets would cost the digits that the checks against `validation/hybrid` compare.

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
