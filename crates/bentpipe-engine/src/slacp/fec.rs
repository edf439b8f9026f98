//! Blocks of an erasure code: `blocks` at the sender, `losses` for their number of repair frames, `decoder` at the receiver, `kept` for
//! the number of packets it keeps.
//!
//! The code is systematic and maximum distance separable: any `count` frames of a block restore the whole block. So
//! this module only counts; the driver does the arithmetic.

mod blocks;
mod decoder;
mod kept;
mod losses;

pub(super) use blocks::{Block, Blocks, Fate};
pub(super) use decoder::Decoder;
