//! Formulas of the literature that predict a run, and the parameters for which they are valid.
//!
//! [`window`] relates windows to rates and times. [`transfer`] estimates transfer times. [`hybrid`] is TCP over
//! a terrestrial and a satellite part, the latter with selective-repeat ARQ.

pub mod hybrid;
pub mod transfer;
pub mod window;
