//! The tunnel's datagrams, byte by byte.
//!
//! ```text
//! init      1  sender(4)               noise message 1, payload of 25 bytes (121)  mac(16)
//! response  2  sender(4)  receiver(4)  noise message 2, payload of 10 bytes (58)   mac(16)
//! data      3  receiver(4)  number(4)  sealed payload, 16 bytes longer than it
//! unknown   4  receiver(4)  number(4)  mac(16): no session has that number here
//! ```
//!
//! Numbers are little-endian, as Noise's nonces are; of a datagram's number the lower half is said. The mac is BLAKE2s
//! of 16 bytes under the hash of a label and the hearer's public key, over all before it: whoever does not even know whom
//! he talks to is refused by it.

use blake2::digest::consts::U16;
use blake2::digest::{FixedOutput, KeyInit, Update};
use blake2::{Blake2s256, Blake2sMac, Digest};

use super::keys::PublicKey;

/// Bytes that a data datagram has besides its payload.
pub const DATA_OVERHEAD: usize = DATA_HEADER + TAG;

/// Bytes before the payload of a data datagram.
pub const DATA_HEADER: usize = 1 + 4 + 4;
pub(super) const TAG: usize = 16;
pub(super) const MAC: usize = 16;
/// Payloads of the handshake: clock, number of our memory, number of the peer's that we remember, whether we have AES;
/// number of our memory, whether the link goes on, whether we have AES.
pub(super) const INIT_PAYLOAD: usize = 25;
pub(super) const RESPONSE_PAYLOAD: usize = 10;
/// Noise IK's messages: an ephemeral key, a sealed static key, a sealed payload; an ephemeral key, a sealed payload.
pub(super) const INIT_NOISE: usize = 32 + 32 + TAG + INIT_PAYLOAD + TAG;
pub(super) const RESPONSE_NOISE: usize = 32 + RESPONSE_PAYLOAD + TAG;
pub(super) const INIT: usize = 5 + INIT_NOISE + MAC;
pub(super) const RESPONSE: usize = 9 + RESPONSE_NOISE + MAC;
pub(super) const UNKNOWN: usize = DATA_HEADER + MAC;

/// What a datagram says it is; the rest is to be proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The first message of a handshake.
    Init {
        /// The sender's number for the session.
        sender: u32,
    },
    /// The second.
    Response {
        /// The sender's number for the session.
        sender: u32,
        /// The hearer's.
        receiver: u32,
    },
    /// A sealed payload.
    Data {
        /// The hearer's number for the session.
        receiver: u32,
        /// Number of the datagram, its lower half.
        number: u32,
    },
    /// The answer to data of a session that is not there.
    Unknown {
        /// The number that is not known.
        receiver: u32,
        /// Number of the datagram that it stood on, its lower half.
        number: u32,
    },
}

/// What a datagram says it is; `None` if it cannot be any of the tunnel's.
pub fn classify(datagram: &[u8]) -> Option<Kind> {
    let u32_at = |at: usize| Some(u32::from_le_bytes(*datagram.get(at..)?.first_chunk()?));
    let kind = match (datagram.first()?, datagram.len()) {
        (1, INIT) => Kind::Init { sender: u32_at(1)? },
        (2, RESPONSE) => Kind::Response { sender: u32_at(1)?, receiver: u32_at(5)? },
        (3, DATA_OVERHEAD..) => Kind::Data { receiver: u32_at(1)?, number: u32_at(5)? },
        (4, UNKNOWN) => Kind::Unknown { receiver: u32_at(1)?, number: u32_at(5)? },
        _ => return None,
    };
    Some(kind)
}

/// Writes the header of a datagram; where its body begins.
pub(super) fn start(kind: Kind, out: &mut [u8]) -> usize {
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    match kind {
        Kind::Init { sender } => {
            put(0, &[1]);
            put(1, &sender.to_le_bytes());
            5
        }
        Kind::Response { sender, receiver } => {
            put(0, &[2]);
            put(1, &sender.to_le_bytes());
            put(5, &receiver.to_le_bytes());
            9
        }
        Kind::Data { receiver, number } | Kind::Unknown { receiver, number } => {
            put(0, &[if matches!(kind, Kind::Data { .. }) { 3 } else { 4 }]);
            put(1, &receiver.to_le_bytes());
            put(5, &number.to_le_bytes());
            DATA_HEADER
        }
    }
}

/// The key of macs for the owner of a public key.
#[derive(Clone)]
pub(super) struct MacKey([u8; 32]);

impl MacKey {
    pub(super) fn of(hearer: PublicKey) -> Self {
        let mut hash = Blake2s256::new();
        Digest::update(&mut hash, b"bentpipe tunnel mac");
        Digest::update(&mut hash, hearer.0);
        MacKey(hash.finalize().into())
    }

    fn mac(&self, bytes: &[u8]) -> [u8; MAC] {
        let mut mac = Blake2sMac::<U16>::new_from_slice(&self.0).expect("a key of 32 bytes is one of BLAKE2s");
        mac.update(bytes);
        mac.finalize_fixed().into()
    }

    /// Whether the mac at the end of a datagram is right. Its key is public: there is nothing to keep by constant time.
    pub(super) fn fits(&self, datagram: &[u8]) -> bool {
        datagram.split_last_chunk::<MAC>().is_some_and(|(text, mac)| self.mac(text) == *mac)
    }

    /// Writes the mac over the first `at` bytes behind them; where it ends.
    pub(super) fn sign(&self, at: usize, out: &mut [u8]) -> usize {
        let mac = self.mac(&out[..at]);
        out[at..at + MAC].copy_from_slice(&mac);
        at + MAC
    }
}
