//! Connection IDs and seeds, drawn per flow and end.
//!
//! By default, quinn draws them from the system's entropy. Of the random draws of a connection, only those of quinn's
//! own generator change what is sent and when: it skips packet numbers, updates keys, and adds a transport parameter of
//! random length.

use bentpipe_engine::stream::Stream;
use quinn_proto::{ConnectionId, ConnectionIdGenerator};

/// Random bytes, by the name of a stream.
pub(super) fn bytes<const N: usize>(seed: u64, name: &str) -> [u8; N] {
    let mut stream = Stream::named(seed, name);
    [0; N].map(|_| (stream.uniform() * 256.0) as u8)
}

/// Numbered connection IDs: unique within an end, and of constant length.
#[derive(Debug)]
pub(super) struct Ids {
    prefix: [u8; Self::LEN - 4],
    next: u32,
}

impl Ids {
    /// Length of an ID in bytes.
    const LEN: usize = bentpipe_study::scenario::QuicFlow::CONNECTION_ID as usize;

    pub(super) fn new(prefix: [u8; Self::LEN - 4]) -> Self {
        Ids { prefix, next: 0 }
    }
}

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        self.next += 1;
        ConnectionId::new(&[self.prefix, self.next.to_be_bytes()].concat())
    }

    fn cid_len(&self) -> usize {
        Self::LEN
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}
