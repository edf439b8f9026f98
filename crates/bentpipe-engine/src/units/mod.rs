//! Quantities with their units in the type: [`Time`], [`Duration`], [`Bytes`], [`Rate`], [`Probability`], [`Decibels`].
//!
//! Inside is a whole number wherever that is possible; where a conversion rounds, its name says how.

mod bytes;
mod decibels;
mod probability;
mod rate;
mod time;

pub use bytes::Bytes;
pub use decibels::Decibels;
pub use probability::Probability;
pub use rate::{Rate, TransmitClock};
pub use time::{Duration, Time};
