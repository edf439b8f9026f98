//! One set of keys, from the handshake that made it to the next one.

use std::ops::Range;

use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::wire::seq::{Numbering, SeqNumber};
use snow::HandshakeState;

use super::cipher::{Cipher, Key};
use super::packet::{DATA_HEADER, DATA_OVERHEAD, Kind, start};
use super::replay::Replay;

/// A session's age at which the initiator makes a new one (WireGuard's REKEY-AFTER-TIME), and at which none of its
/// datagrams is taken any more.
pub(super) const REKEY_AFTER: Duration = Duration::from_secs(120);
pub(super) const REJECT_AFTER: Duration = Duration::from_secs(240);
/// How numbers are said: by their lower half, of which the nearest to the highest so far is meant.
const COUNT: Numbering = Numbering::from_isn(0);
/// Datagrams of one session, at most: far below where Noise ends, 2^64 - 1.
pub(super) const MAX_NUMBER: u64 = 1 << 60;

pub(super) struct Session {
    /// Our number for it and the peer's.
    pub(super) own: u32,
    pub(super) theirs: u32,
    seals: Key,
    opens: Key,
    next: u64,
    replay: Replay,
    pub(super) since: Time,
}

impl Session {
    /// The session of a handshake that is done.
    pub(super) fn new(own: u32, theirs: u32, mut handshake: HandshakeState, cipher: Cipher, since: Time) -> Self {
        assert!(handshake.is_handshake_finished(), "before, the keys are nobody's");
        let (from_initiator, from_responder) = handshake.dangerously_get_raw_split();
        let [seals, opens] =
            if handshake.is_initiator() { [from_initiator, from_responder] } else { [from_responder, from_initiator] };
        let [seals, opens] = [seals, opens].map(|secret| Key::new(cipher, &secret));
        Session { own, theirs, seals, opens, next: 0, replay: Replay::new(), since }
    }

    pub(super) fn cipher(&self) -> Cipher {
        self.seals.cipher()
    }

    /// Makes a datagram of `out`, in which a payload of so many bytes lies behind [`DATA_HEADER`]; its length. `None` where
    /// there is no room, or no number left.
    pub(super) fn seal(&mut self, payload: usize, out: &mut [u8]) -> Option<usize> {
        let number = self.next;
        let datagram = out.get_mut(..payload + DATA_OVERHEAD).filter(|_| number < MAX_NUMBER)?;
        let at = start(Kind::Data { receiver: self.theirs, number: COUNT.wrap(number).0 }, datagram);
        self.seals.seal(number, &mut datagram[at..])?;
        self.next += 1;
        Some(datagram.len())
    }

    /// Opens a datagram in place: where its payload lies, and whether its number is the highest so far.
    pub(super) fn open(&mut self, number: u32, datagram: &mut [u8]) -> Option<(Range<usize>, bool)> {
        let number = COUNT.unwrap(SeqNumber(number), self.replay.end());
        if number >= MAX_NUMBER || !self.replay.may_be_new(number) {
            return None;
        }
        let length = self.opens.open(number, &mut datagram[DATA_HEADER..])?;
        Some((DATA_HEADER..DATA_HEADER + length, self.replay.note(number)))
    }

    /// Whether a datagram of that number has gone out, of the last 2^31.
    pub(super) fn has_sent(&self, number: u32) -> bool {
        COUNT.unwrap(SeqNumber(number), self.next) < self.next
    }

    pub(super) fn is_old(&self, now: Time) -> bool {
        now.saturating_since(self.since) >= REKEY_AFTER || self.next >= MAX_NUMBER / 2
    }

    pub(super) fn is_void(&self, now: Time) -> bool {
        now.saturating_since(self.since) >= REJECT_AFTER
    }
}
