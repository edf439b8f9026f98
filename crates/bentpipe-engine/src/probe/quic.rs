//! A packet of QUIC, as observers see it.
//!
//! The engine has no QUIC: the simulator drives quinn. This is what a trace records of QUIC packets, read before
//! encryption.

/// The type of a QUIC packet, which determines its keys (RFC 9000 §12.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuicKind {
    /// First packets of the handshake.
    #[default]
    Initial,
    /// Data of a client before the handshake.
    ZeroRtt,
    /// Rest of the handshake.
    Handshake,
    /// Data after the handshake.
    OneRtt,
}

impl QuicKind {
    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            QuicKind::Initial => "initial",
            QuicKind::ZeroRtt => "0-rtt",
            QuicKind::Handshake => "handshake",
            QuicKind::OneRtt => "1-rtt",
        }
    }
}

/// A QUIC packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuicPacket {
    /// Its type.
    pub kind: QuicKind,
    /// Its number.
    pub number: u64,
    /// Its length including header and tag, in bytes.
    pub len: u32,
    /// The largest packet number that it acknowledges, if any.
    pub acknowledges: Option<u64>,
    /// Bytes of stream data.
    pub data: u32,
    /// Stream and offset of the first stream data.
    pub at: Option<(u64, u64)>,
    /// True if some of the data was sent before.
    pub repeats: bool,
}
