//! Formulas of the literature that say what a run would give, and the parameters they are valid for.
//!
//! [`hybrid`] is TCP over a terrestrial and a satellite part, the latter with selective-repeat ARQ.

pub mod hybrid;
