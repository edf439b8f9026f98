//! Blocks of an erasure code: `blocks` the sender's, `losses` how many repair frames they get, `decoder` the receiver's, `kept` how many
//! packets it keeps for them.
//!
//! The code is systematic and maximum distance separable: any `count` frames of a block restore the whole block. So
//! this module only counts; the driver does the arithmetic.

mod blocks;
mod decoder;
mod kept;
mod losses;

pub(super) use blocks::{Block, Blocks, Fate};
pub(super) use decoder::Decoder;
