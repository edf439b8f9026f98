//! State that the connections of all peers share.

use std::collections::BTreeMap;

use bentpipe_engine::mux::StreamId;
use mio::Token;

use super::config::SplitConfig;
use crate::access::Access;
use crate::dialer::Dialer;
use crate::hub::Slot;
use crate::peers::Routes;
use crate::pool::Pool;
use crate::sockets;

/// Settings, limits and buffers.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) config: SplitConfig,
    pub(super) access: Access,
    pub(super) dialer: Dialer,
    /// The destinations behind the peers of this shape.
    pub(super) routes: Routes,
    pub(super) tokens: Tokens,
    /// Memory, in bytes.
    pub(super) memory: Pool,
    /// Number of connections for which there are descriptors.
    pub(super) descriptors: Pool,
    pub(super) draining: bool,
    pub(super) scratch: Box<[u8]>,
    pub(super) packet: Box<[u8]>,
}

impl Common {
    /// `first_token`: the first token of connections.
    pub(super) fn new(config: SplitConfig, first_token: usize) -> Self {
        Common {
            access: Access::new(config.policy.clone()),
            dialer: Dialer::default(),
            routes: Routes::default(),
            tokens: Tokens { next: first_token, of: BTreeMap::new() },
            memory: Pool::new(config.budget),
            descriptors: Pool::new(0),
            draining: false,
            scratch: vec![0; sockets::READ].into(),
            packet: vec![0; 1 << 16].into(),
            config,
        }
    }
}

/// Finds the connection of an epoll event. A token is never used twice, so late events of an ended connection match
/// none.
#[derive(Debug)]
pub(super) struct Tokens {
    next: usize,
    of: BTreeMap<Token, (Slot, StreamId)>,
}

impl Tokens {
    pub(super) fn take(&mut self, slot: Slot, stream: StreamId) -> Token {
        let token = Token(self.next);
        self.next += 1;
        self.of.insert(token, (slot, stream));
        token
    }

    pub(super) fn give_back(&mut self, token: Token) {
        self.of.remove(&token);
    }

    pub(super) fn of(&self, token: Token) -> Option<(Slot, StreamId)> {
        self.of.get(&token).copied()
    }
}
