//! One set of keys, from the handshake that made it to the next one.

use std::ops::Range;

use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::wire::seq::{Numbering, SeqNumber};

use super::cipher::{Cipher, Key};
use super::keys::wipe_stack;
use super::noise::Handshake;
use super::packet::{DATA_HEADER, DATA_OVERHEAD, Kind, What, start};
use super::replay::Replay;

/// The age at which the initiator of a session makes a new one (WireGuard's REKEY-AFTER-TIME).
pub(super) const REKEY_AFTER: Duration = Duration::from_secs(120);
/// The age at which the responder makes a new session if the initiator has not, after the initiator has had several
/// attempts.
pub(super) const LATE_REKEY_AFTER: Duration = Duration::from_secs(150);
/// The age from which a session's datagrams are no longer accepted.
pub(super) const REJECT_AFTER: Duration = Duration::from_secs(240);
/// Only the lower half of a number is sent. It stands for the value nearest to the highest so far.
const COUNT: Numbering = Numbering::from_isn(0);
/// Maximum number of datagrams in a session: far below the limit of Noise, 2^64 - 1.
pub(super) const MAX_NUMBER: u64 = 1 << 60;

pub(super) struct Session {
    /// This end's number for the session, and the peer's.
    pub(super) own: u32,
    pub(super) theirs: u32,
    seals: Key,
    opens: Key,
    next: u64,
    replay: Replay,
    pub(super) since: Time,
    ours: bool,
}

/// Frames have no additional data, which saves time. All other kinds include their kind, so that none can pass for
/// another.
fn additional(what: &What) -> &'static [u8] {
    match what {
        What::Frame => &[],
        What::Part => &[5],
        What::Probe => &[6],
        What::Ack => &[7],
    }
}

impl Session {
    /// The session of a completed handshake. `ours`: this end makes the next one.
    pub(super) fn new(own: u32, theirs: u32, ours: bool, handshake: Handshake, cipher: Cipher, since: Time) -> Self {
        let [seals, opens] = handshake.split().map(|secret| Key::new(cipher, &secret));
        wipe_stack();
        Session { own, theirs, seals, opens, next: 0, replay: Replay::new(), since, ours }
    }

    pub(super) fn cipher(&self) -> Cipher {
        self.seals.cipher()
    }

    /// Seals a datagram in place. `out` has `payload` bytes of payload after [`DATA_HEADER`]. Returns the datagram's
    /// length; `None` if there is no room, or no number is left.
    pub(super) fn seal(&mut self, what: What, payload: usize, out: &mut [u8]) -> Option<usize> {
        let number = self.next;
        let datagram = out.get_mut(..payload + DATA_OVERHEAD).filter(|_| number < MAX_NUMBER)?;
        let kind = Kind::Data { what, receiver: self.theirs, number: COUNT.wrap(number).0 };
        let at = start(kind, datagram);
        self.seals.seal(number, additional(&what), &mut datagram[at..])?;
        self.next += 1;
        Some(datagram.len())
    }

    /// Opens a datagram in place. Returns the place of its payload, and whether its number is the highest so far.
    pub(super) fn open(&mut self, what: What, number: u32, datagram: &mut [u8]) -> Option<(Range<usize>, bool)> {
        let number = COUNT.unwrap(SeqNumber(number), self.replay.end());
        if number >= MAX_NUMBER || !self.replay.may_be_new(number) {
            return None;
        }
        let length = self.opens.open(number, additional(&what), &mut datagram[DATA_HEADER..])?;
        Some((DATA_HEADER..DATA_HEADER + length, self.replay.note(number)))
    }

    /// When new keys must be made.
    pub(super) fn old_at(&self) -> Time {
        if self.next >= MAX_NUMBER / 2 {
            return Time::ZERO;
        }
        self.since + if self.ours { REKEY_AFTER } else { LATE_REKEY_AFTER }
    }

    /// When its keys expire.
    pub(super) fn void_at(&self) -> Time {
        self.since + REJECT_AFTER
    }
}

#[cfg(test)]
mod tests;
