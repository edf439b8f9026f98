//! Payloads under the keys of a session.

use std::net::SocketAddr;
use std::ops::Range;

use bentpipe_engine::units::Time;

use super::{Answered, Event, Heard, Sealed, Session, Tunnel, What};

impl Tunnel {
    /// Seals a datagram for the peer in place. `out` has `payload` bytes of payload after [`DATA_HEADER`], and room for
    /// [`DATA_OVERHEAD`] bytes in all. Returns `None` while the peer is down.
    ///
    /// [`DATA_HEADER`]: crate::tunnel::DATA_HEADER
    /// [`DATA_OVERHEAD`]: crate::tunnel::DATA_OVERHEAD
    pub fn seal(&mut self, now: Time, what: What, payload: usize, out: &mut [u8]) -> Option<Sealed> {
        self.seal_to(now, self.reach.at()?, what, payload, out)
    }

    /// True if there are keys to seal with.
    pub(crate) fn may_seal(&self, now: Time) -> bool {
        self.current.as_ref().is_some_and(|session| now < session.void_at())
    }

    /// As [`Tunnel::seal`], to this address.
    pub(super) fn seal_to(
        &mut self,
        now: Time,
        to: SocketAddr,
        what: What,
        payload: usize,
        out: &mut [u8],
    ) -> Option<Sealed> {
        let session = self.current.as_mut().filter(|session| now < session.void_at())?;
        let len = session.seal(what, payload, out)?;
        self.reach.sent(to, len);
        self.sent_at = now;
        self.owes_word = false;
        self.stats.sent += 1;
        if payload > 0 && what != What::Ack {
            self.asked_at.get_or_insert(now);
        }
        Some(Sealed { to, len })
    }

    pub(super) fn on_data(
        &mut self,
        now: Time,
        from: SocketAddr,
        (what, receiver, number): (What, u32, u32),
        datagram: &mut [u8],
    ) -> Heard {
        let is_current = |session: &Session| session.own == receiver && now < session.void_at();
        if self.answered.as_ref().is_some_and(|answered| is_current(&answered.session)) {
            let opened = self.answered.as_mut().and_then(|answered| answered.session.open(what, number, datagram));
            let Some((payload, _)) = opened else {
                self.stats.refused += 1;
                return Heard::default();
            };
            // The peer has used the new keys, so they replace the old ones.
            let Answered { to, session, theirs, anew } = self.answered.take().expect("just used");
            self.is_last_live = true;
            self.reach.prove(now, to);
            let event = self.begin(now, session, theirs, anew);
            return self.heard(now, from, event, (what, payload, true), datagram);
        }
        let current = self.current.as_mut().filter(|session| session.own == receiver);
        let session = current.or(self.previous.as_mut().filter(|session| session.own == receiver));
        let Some(session) = session.filter(|session| now < session.void_at()) else {
            self.stats.unknown += 1;
            return Heard::default();
        };
        let Some((payload, highest)) = session.open(what, number, datagram) else {
            self.stats.refused += 1;
            return Heard::default();
        };
        // Under the previous keys, the highest number may be that of an old datagram that somebody kept back.
        let is_newest = highest && self.current.as_ref().is_none_or(|session| session.own == receiver);
        self.heard(now, from, None, (what, payload, is_newest), datagram)
    }

    /// Handles an authentic datagram with this payload. `newest`: no datagram sent later has arrived.
    fn heard(
        &mut self,
        now: Time,
        from: SocketAddr,
        event: Option<Event>,
        (what, payload, newest): (What, Range<usize>, bool),
        datagram: &[u8],
    ) -> Heard {
        self.stats.received += 1;
        self.heard_at = now;
        self.asked_at = None;
        self.reach.heard(now, from, datagram.len(), newest);
        let id = (what == What::Ack).then(|| datagram[payload.clone()].first_chunk().copied()).flatten();
        let is_ours = id.is_some_and(|id| self.reach.on_ack(now, u32::from_le_bytes(id)));
        Heard { event, what, payload: Some(payload).filter(|payload| !payload.is_empty() && !is_ours) }
    }
}
