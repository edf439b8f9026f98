//! Formulas of the literature that say what a run would give, and the parameters they are valid for.
//!
//! [`window`] is what a window gives. [`transfer`] is how long a transfer takes, roughly. [`hybrid`] is TCP over a
//! terrestrial and a satellite part, the latter with selective-repeat ARQ.

pub mod hybrid;
pub mod transfer;
pub mod window;
