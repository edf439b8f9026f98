//! Blocks of an erasure code. `blocks` has the sender's blocks, `losses` their number of repair frames, `decoder` the
//! receiver's blocks, and `kept` the number of packets that the receiver keeps.
//!
//! The code is systematic and maximum distance separable: any `count` frames of a block restore the whole block. So
//! this module only counts; the driver does the arithmetic.

mod blocks;
mod decoder;
mod kept;
mod losses;

pub(super) use blocks::{Block, Blocks, Fate};
pub(super) use decoder::Decoder;
