//! What travels in virtual time.

use bentpipe_engine::link::Wire;
use bentpipe_engine::tcp::Segment;

/// Bytes of an IPv4 header without options (RFC 791).
pub(crate) const IPV4_HEADER: u32 = 20;
/// Bytes of a TCP header without options (RFC 9293 §3.1).
pub(crate) const TCP_HEADER: u32 = 20;

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram, the n-th of its flow.
    Udp(u64),
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// Number of the flow it belongs to.
    pub flow: u32,
    /// Whether it goes from the flow's `from` to its `to`.
    pub forward: bool,
    /// Bytes on the line.
    pub wire_len: u32,
    /// What it carries.
    pub body: Body,
}

impl Packet {
    /// Number of the endpoint it goes to: each flow has two, first that of `from`, then that of `to`.
    #[inline(always)]
    pub(crate) fn endpoint(&self) -> usize {
        2 * self.flow as usize + self.forward as usize
    }
}

impl Wire for Packet {
    #[inline(always)]
    fn wire_len(&self) -> u32 {
        self.wire_len
    }
}

/// Bytes on the line of a segment with its headers.
#[inline]
pub(crate) fn wire_len(segment: &Segment, ns2_lengths: bool) -> u32 {
    let options = if ns2_lengths { 8 * segment.sack.len() as u32 } else { segment.options_len() };
    IPV4_HEADER + TCP_HEADER + options + segment.len as u32
}
