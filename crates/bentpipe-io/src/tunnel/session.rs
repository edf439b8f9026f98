//! One set of keys, from the handshake that made it to the next one.

use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::wire::seq::{Numbering, SeqNumber};
use snow::StatelessTransportState;

use super::packet::{DATA_HEADER, DATA_OVERHEAD, Kind, start};
use super::replay::Replay;

/// A session's age at which the initiator makes a new one (WireGuard's REKEY-AFTER-TIME), and at which none of its
/// datagrams is taken any more.
pub(super) const REKEY_AFTER: Duration = Duration::from_secs(120);
pub(super) const REJECT_AFTER: Duration = Duration::from_secs(240);
/// How numbers are said: by their lower half, of which the nearest to the highest so far is meant.
const COUNT: Numbering = Numbering::from_isn(0);
/// Datagrams of one session, at most: far below where Noise ends, 2^64 - 1.
pub(super) const MOST_NUMBER: u64 = 1 << 60;

pub(super) struct Session {
    /// Our number for it and the peer's.
    pub(super) own: u32,
    pub(super) theirs: u32,
    keys: StatelessTransportState,
    next: u64,
    replay: Replay,
    pub(super) since: Time,
}

impl Session {
    pub(super) fn new(own: u32, theirs: u32, keys: StatelessTransportState, since: Time) -> Self {
        Session { own, theirs, keys, next: 0, replay: Replay::new(), since }
    }

    /// Seals a payload into `out`, which must be [`DATA_OVERHEAD`] longer; the datagram's length.
    pub(super) fn seal(&mut self, payload: &[u8], out: &mut [u8]) -> Option<usize> {
        if self.next >= MOST_NUMBER || out.len() < payload.len() + DATA_OVERHEAD {
            return None;
        }
        let number = self.next;
        let at = start(Kind::Data { receiver: self.theirs, number: COUNT.wrap(number).0 }, out);
        let sealed = self.keys.write_message(number, payload, &mut out[at..]).ok()?;
        self.next += 1;
        Some(at + sealed)
    }

    /// Opens a datagram into `out`: its payload's length, and whether its number is the highest so far.
    pub(super) fn open(&mut self, number: u32, datagram: &[u8], out: &mut [u8]) -> Option<(usize, bool)> {
        let number = COUNT.unwrap(SeqNumber(number), self.replay.end());
        if number >= MOST_NUMBER || !self.replay.may_be_new(number) {
            return None;
        }
        let length = self.keys.read_message(number, &datagram[DATA_HEADER..], out).ok()?;
        Some((length, self.replay.note(number)))
    }

    /// Whether a datagram of that number has gone out, of the last 2^31.
    pub(super) fn has_sent(&self, number: u32) -> bool {
        COUNT.unwrap(SeqNumber(number), self.next) < self.next
    }

    pub(super) fn is_old(&self, now: Time) -> bool {
        now.saturating_since(self.since) >= REKEY_AFTER || self.next >= MOST_NUMBER / 2
    }

    pub(super) fn is_void(&self, now: Time) -> bool {
        now.saturating_since(self.since) >= REJECT_AFTER
    }
}
