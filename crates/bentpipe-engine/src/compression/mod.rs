//! Compression of TCP and UDP headers over IP between the ends of a link: fields that both ends know are omitted.
//!
//! The link may lose and reorder packets. So a header is coded relative to a *base*, not to the previous packet (as
//! in RFC 1144, where a loss spoils the packets after it). A base is a header that was sent in full and that the layer
//! below has reported as arrived. It is used until the numbers have moved far from it. A number is coded by as many of
//! its low bytes as needed (W-LSB, RFC 5795 and RFC 6846 §7.2). Checksums are sent unchanged, so the receiving host
//! still checks the whole packet. An expanded packet equals the original bit by bit; otherwise no packet is delivered.
//!
//! Sent uncompressed: everything but TCP and UDP, fragments, packets with IPv4 options or IPv6 extension headers, and
//! the first `BEFORE_BASE` packets of a flow. Not implemented: encrypted or tunnelled headers, RTP.
//!
//! The wire format is in `docs/specs/compression.md`. [`Compressor`] and [`Decompressor`] are the two ends; `fields`
//! knows which fields change, `form` how a change is coded.

mod compressor;
mod decompressor;
mod fields;
mod form;
mod headers;

pub use compressor::{Announcement, BaseId, Compressor};
pub use decompressor::{Decompressor, ExpandError};
pub use headers::Headers;

/// Maximum number of flows with a context. When all are used, the clock algorithm replaces one that has been idle
/// for long.
pub(crate) const CONTEXTS: usize = 1 << (16 - GENERATION_BITS);
/// Packets of a flow before its base is sent: most web flows are over by then.
pub(crate) const BEFORE_BASE: u32 = 8;
/// Bases per context that the receiver stores. Packets delayed by retransmission may need an older one.
const REMEMBERED: u8 = 8;
/// Modulus of base numbers: several times the stored bases, so that a forgotten base is not mistaken for another.
const GENERATIONS: u8 = 1 << GENERATION_BITS;
const GENERATION_BITS: u32 = 5;

/// Memory of an allocation besides its bytes, or of a place in a map.
const PLACE: usize = 32;

/// Values of the upper half of the first byte. IP packets have their version there.
mod kind {
    pub(super) const BASE: u8 = 1;
    pub(super) const TCP: u8 = 2;
    pub(super) const UDP: u8 = 3;
}

/// Bytes that identify the base.
const NAME: usize = 3;

/// Writes the kind of message, and its base.
fn name(kind: u8, bits: u8, slot: u16, generation: u8) -> [u8; NAME] {
    let [high, low] = (slot << GENERATION_BITS | u16::from(generation)).to_be_bytes();
    [kind << 4 | bits, high, low]
}

/// Reads the same: bits, slot, generation.
fn named([first, high, low]: [u8; NAME]) -> (u8, u16, u8) {
    let both = u16::from_be_bytes([high, low]);
    (first & 0x0f, both >> GENERATION_BITS, low % GENERATIONS)
}

/// True if a message is a base. A base is stored as soon as it arrives, independent of the order in which packets are
/// passed on.
fn is_base(message: &[u8]) -> bool {
    message.first().is_some_and(|first| first >> 4 == kind::BASE)
}

#[cfg(test)]
mod tests;
