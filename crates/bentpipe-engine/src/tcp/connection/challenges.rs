//! The limit of challenge ACKs per second (RFC 5961 §7).

use crate::units::Time;

/// Challenge ACKs per second (RFC 5961 §7).
const CHALLENGE_LIMIT: u32 = 100;

/// The challenge ACKs of the current second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Challenges {
    second: u64,
    count: u32,
}

impl Challenges {
    /// Uses up one challenge ACK. Returns false if none is left.
    pub(super) fn take(&mut self, now: Time) -> bool {
        let second = now.as_nanos() / 1_000_000_000;
        if second != self.second {
            *self = Challenges { second, count: 0 };
        }
        let may = self.count < CHALLENGE_LIMIT;
        self.count += may as u32;
        may
    }
}
