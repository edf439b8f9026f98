//! The tunnel's datagrams, byte by byte.
//!
//! ```text
//! init      1  sender(4)    peer(8)      noise message 1, payload of 41 bytes (137)  mac1(16)  mac2(16)
//! response  2  sender(4)    receiver(4)  noise message 2, payload of 10 bytes (58)   mac1(16)
//! data      3  receiver(4)  number(4)    encrypted payload, 16 bytes longer than it; 5 a part, 6 a probe, 7 its
//!                                        acknowledgement, with the first byte as additional data
//! cookie    4  receiver(4)  nonce(24)    encrypted cookie and timestamp (40)
//! ```
//!
//! Numbers are little-endian, like Noise's nonces. Only the lower half of a datagram's number is sent.

pub use bentpipe_engine::gateway::{DATA_HEADER, DATA_OVERHEAD};

pub(super) const TAG: usize = DATA_OVERHEAD - DATA_HEADER;
pub(super) const MAC: usize = 16;
/// A cookie, and the mark by which the responder finds the initiator's keys.
pub(super) const COOKIE: usize = 16;
pub(super) const MARK: usize = 8;
pub(super) const NONCE: usize = 24;
/// Handshake payloads. Init: timestamp, number of the sender's memory, remembered number of the receiver's memory,
/// what the sender says of itself (`carries`), cookie. Response: number of the sender's memory, whether the link continues,
/// what the sender says of itself.
pub(super) const INIT_PAYLOAD: usize = 25 + COOKIE;
pub(super) const RESPONSE_PAYLOAD: usize = 10;
/// Noise IK's messages. First: an ephemeral key, a sealed static key, a sealed payload. Second: an ephemeral key, a
/// sealed payload.
pub(super) const INIT_NOISE: usize = 32 + 32 + TAG + INIT_PAYLOAD + TAG;
pub(super) const RESPONSE_NOISE: usize = 32 + RESPONSE_PAYLOAD + TAG;
pub(super) const INIT_HEADER: usize = 1 + 4 + MARK;
pub(super) const INIT: usize = INIT_HEADER + INIT_NOISE + 2 * MAC;
pub(super) const RESPONSE_HEADER: usize = 1 + 4 + 4;
pub(super) const RESPONSE: usize = RESPONSE_HEADER + RESPONSE_NOISE + MAC;
/// Cookie and timestamp.
pub(super) const COOKIE_TEXT: usize = COOKIE + 8;
pub(super) const COOKIE_HEADER: usize = 1 + 4 + NONCE;
pub(super) const COOKIE_REPLY: usize = COOKIE_HEADER + COOKIE_TEXT + TAG;
/// Length of the first message of version 3, which had neither mark nor cookie.
pub(super) const INIT_3: usize = 142;

/// The kind of a payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum What {
    /// A frame of the link, or nothing.
    #[default]
    Frame,
    /// A part of a frame.
    Part,
    /// A probe of the path's MTU.
    Probe,
    /// The acknowledgement of a probe.
    Ack,
}

impl What {
    /// The first byte of a datagram with this kind of payload.
    pub(super) fn code(self) -> u8 {
        match self {
            What::Frame => 3,
            What::Part => 5,
            What::Probe => 6,
            What::Ack => 7,
        }
    }

    fn of(code: u8) -> Option<What> {
        [What::Frame, What::Part, What::Probe, What::Ack].into_iter().find(|what| what.code() == code)
    }
}

/// The header of a datagram, not yet authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The first message of a handshake.
    Init {
        /// The sender's number for the session.
        sender: u32,
        /// Identifies the sender's keys to the receiver.
        mark: [u8; MARK],
    },
    /// The second message of a handshake.
    Response {
        /// The sender's number for the session.
        sender: u32,
        /// The receiver's number for the session.
        receiver: u32,
    },
    /// An encrypted payload.
    Data {
        /// The kind of the payload.
        what: What,
        /// The receiver's number for the session.
        receiver: u32,
        /// The lower half of the datagram's number.
        number: u32,
    },
    /// A request to repeat a first message with this cookie.
    Cookie {
        /// The receiver's number for the requested session.
        receiver: u32,
    },
    /// The first message of version 3.
    Init3,
}

/// Reads the header of a datagram; `None` if it is not one of the tunnel's.
pub fn classify(datagram: &[u8]) -> Option<Kind> {
    let u32_at = |at: usize| Some(u32::from_le_bytes(*datagram.get(at..)?.first_chunk()?));
    let kind = match (datagram.first()?, datagram.len()) {
        (1, INIT) => Kind::Init { sender: u32_at(1)?, mark: *datagram.get(5..)?.first_chunk()? },
        (1, INIT_3) => Kind::Init3,
        (2, RESPONSE) => Kind::Response { sender: u32_at(1)?, receiver: u32_at(5)? },
        (4, COOKIE_REPLY) => Kind::Cookie { receiver: u32_at(1)? },
        (&code, DATA_OVERHEAD..) => Kind::Data { what: What::of(code)?, receiver: u32_at(1)?, number: u32_at(5)? },
        _ => return None,
    };
    Some(kind)
}

/// Writes the header of a datagram. Returns where its body begins.
pub(super) fn start(kind: Kind, out: &mut [u8]) -> usize {
    let mut end = 0;
    let mut put = |bytes: &[u8]| {
        out[end..end + bytes.len()].copy_from_slice(bytes);
        end += bytes.len();
    };
    match kind {
        Kind::Init { sender, mark } => {
            put(&[1]);
            put(&sender.to_le_bytes());
            put(&mark);
        }
        Kind::Response { sender, receiver } => {
            put(&[2]);
            put(&sender.to_le_bytes());
            put(&receiver.to_le_bytes());
        }
        Kind::Data { what, receiver, number } => {
            put(&[what.code()]);
            put(&receiver.to_le_bytes());
            put(&number.to_le_bytes());
        }
        Kind::Cookie { receiver } => {
            put(&[4]);
            put(&receiver.to_le_bytes());
        }
        Kind::Init3 => unreachable!("this version does not write it"),
    }
    end
}
