//! The sequence numbers of one segment.

/// The sequence numbers of one outgoing segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first sequence number.
    pub seq: u64,
    /// Bytes of payload.
    pub len: u16,
    /// The segment is the SYN.
    pub syn: bool,
    /// A FIN follows the payload.
    pub fin: bool,
    /// The payload ends where the written data ends.
    pub push: bool,
    /// The first sequence number has been sent before.
    pub retransmission: bool,
}

impl Span {
    /// A segment without sequence numbers: an ACK.
    pub(crate) const fn empty(seq: u64) -> Span {
        Span { seq, len: 0, syn: false, fin: false, push: false, retransmission: false }
    }

    /// The sequence number after the last one.
    #[inline(always)]
    pub(crate) fn end(&self) -> u64 {
        self.seq + self.len as u64 + self.syn as u64 + self.fin as u64
    }
}
