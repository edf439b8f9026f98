//! Quantities with their units in the type: [`Time`], [`Duration`], [`Bytes`], [`Rate`], [`Probability`], [`Decibels`].
//!
//! Values are whole numbers where possible. A conversion that rounds says so in its name.

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
