//! Log messages for the operator: one line each, and at most one of each kind per minute.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::SocketAddr;

use bentpipe_engine::units::{Duration, Time};

use crate::tunnel::carries::Carries;

/// Minimum time between two notes of one kind.
const PAUSE: Duration = Duration::from_secs(60);

/// A problem to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// The peer's timestamp was not above its last one, so the peer had to repeat its first message with a cookie.
    PeersClock,
    /// The same about this end, reported by the peer.
    OwnClock,
    /// A first message of an older version.
    OldVersion {
        /// Where it came from.
        from: SocketAddr,
    },
    /// The response could not be decrypted although its MAC was right.
    Preshared,
    /// No first message to this address has been answered since the start.
    NoAnswer {
        /// The destination of the last one.
        to: SocketAddr,
    },
    /// The packets of a peer that does not say what it carries are not of this box's shape.
    Unreadable,
    /// The peer carries something else than this box.
    OtherShape {
        /// The peer's address.
        at: SocketAddr,
        /// What the peer carries.
        theirs: Carries,
        /// What this box carries.
        ours: Carries,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::PeersClock => f.write_str(
                "the peer's clock is behind its last handshake: it has to prove by a cookie that it is live",
            ),
            Note::OwnClock => f.write_str(
                "this box's clock is behind its last handshake, so the peer asked for a proof; is the time right?",
            ),
            Note::OldVersion { from } => {
                write!(f, "refused a handshake of tunnel version 3 from {from}: update that box")
            }
            Note::Preshared => f.write_str(
                "the peer's response cannot be decrypted: both boxes need the same `preshared_key`, or none",
            ),
            Note::NoAnswer { to } => write!(
                f,
                "no answer from {to} yet: is that the peer's address, does UDP reach it, and does each box have the other's public key?"
            ),
            Note::Unreadable => f.write_str(
                "packets from the peer cannot be read: do both boxes have the same shape, `split` or `link`?",
            ),
            Note::OtherShape { at, theirs, ours } => write!(
                f,
                "the peer at {at} has the shape `{theirs}` and this box has `{ours}`, so the link stays down: replace `[{theirs}]` in the \
                 peer's file by `[{ours}]`, or `[{ours}]` in this one by `[{theirs}]` (in the file of a hub: `shape` of the peer)"
            ),
        }
    }
}

/// Pending notes.
#[derive(Debug, Default)]
pub(super) struct Notes {
    waiting: VecDeque<Note>,
    told: BTreeMap<u8, Time>,
}

impl Notes {
    pub(super) fn add(&mut self, now: Time, note: Note) {
        let kind = match note {
            Note::PeersClock => 0,
            Note::OwnClock => 1,
            Note::OldVersion { .. } => 2,
            Note::Preshared => 3,
            Note::NoAnswer { .. } => 4,
            Note::Unreadable => 5,
            Note::OtherShape { .. } => 6,
        };
        if self.told.get(&kind).is_none_or(|&told| now.saturating_since(told) >= PAUSE) {
            self.told.insert(kind, now);
            self.waiting.push_back(note);
        }
    }

    /// True if there have been no notes so far.
    pub(super) fn were_none(&self) -> bool {
        self.told.is_empty()
    }

    pub(super) fn next(&mut self) -> Option<Note> {
        self.waiting.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each kind per minute, counted from the last that was told.
    #[test]
    fn notes_are_repeated_after_a_minute() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let mut notes = Notes::default();
        for (seconds, note, is_told) in [
            (5, Note::PeersClock, true),
            (6, Note::OwnClock, true),
            (64, Note::PeersClock, false),
            (65, Note::PeersClock, true),
            (66, Note::OwnClock, true),
            (124, Note::PeersClock, false),
            (125, Note::PeersClock, true),
        ] {
            notes.add(at(seconds), note);
            assert_eq!(notes.next(), is_told.then_some(note), "{seconds}");
        }
    }
}
