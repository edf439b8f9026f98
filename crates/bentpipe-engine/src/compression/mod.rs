//! Header compression between the ends of a link: of the headers of TCP and UDP over IP, what both ends know already is
//! left out.
//!
//! The link may lose packets and reorder them. So nothing is said relative to the packet before (as in RFC 1144, where a
//! loss spoils what follows it), but to a *base*: headers that were sent by themselves, and of which the layer below has
//! said that they arrived. A base serves until numbers have gone far from it. Numbers are said by as many of their low
//! bytes as it takes (W-LSB, RFC 5795 and RFC 6846 §7.2); checksums travel as they are, so that the receiving host still
//! judges the whole. What is expanded is what was compressed, to the bit, or nothing.
//!
//! What is passed on as it is: what is neither TCP nor UDP, fragments, IPv4 options, IPv6 extension headers, and the first
//! `BEFORE_BASE` packets of a flow. Not here: encrypted or tunnelled headers, RTP.
//!
//! The wire format is in `docs/specs/compression.md`. [`Compressor`] and [`Decompressor`] are the two ends; `fields` says
//! what of a header changes, `form` how a change is written.

mod compressor;
mod decompressor;
mod fields;
mod form;

pub use compressor::{Announcement, BaseId, Compressor};
pub use decompressor::{Decompressor, ExpandError};

/// Flows that have a context at a time; the one that was quiet for longest gives way.
pub(crate) const CONTEXTS: usize = 1 << (16 - GENERATION_BITS);
/// Packets of a flow before its base is sent: most flows of the web are over by then.
pub(crate) const BEFORE_BASE: u32 = 8;
/// Bases of one context that the receiver remembers. Packets that repetitions have made late may need an older one.
const REMEMBERED: u8 = 8;
/// Numbers of bases count modulo this: several times what is remembered, so that what is forgotten is not taken for another.
const GENERATIONS: u8 = 1 << GENERATION_BITS;
const GENERATION_BITS: u32 = 5;

/// What the upper half of the first byte says. IP packets have their version there.
mod kind {
    pub(super) const BASE: u8 = 1;
    pub(super) const TCP: u8 = 2;
    pub(super) const UDP: u8 = 3;
}

/// Bytes that say which base is meant.
const NAME: usize = 3;

/// Writes what kind of message it is, and of which base.
fn name(kind: u8, bits: u8, slot: u16, generation: u8) -> [u8; NAME] {
    let [high, low] = (slot << GENERATION_BITS | u16::from(generation)).to_be_bytes();
    [kind << 4 | bits, high, low]
}

/// Reads the same: bits, slot, generation.
fn named([first, high, low]: [u8; NAME]) -> (u8, u16, u8) {
    let both = u16::from_be_bytes([high, low]);
    (first & 0x0f, both >> GENERATION_BITS, low % GENERATIONS)
}

/// Whether a message is a base: it is to be learnt as soon as it arrives, in whatever order packets are passed on.
pub fn is_base(message: &[u8]) -> bool {
    message.first().is_some_and(|first| first >> 4 == kind::BASE)
}

#[cfg(test)]
mod tests;
