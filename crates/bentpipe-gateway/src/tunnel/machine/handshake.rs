//! The handshake: the first message, its answer, and the cookie between them.
//!
//! Either end may begin. If both begin at once, the first message of the end that [`Tunnel::leads`] wins: the other end
//! drops its own handshake when it answers. The leading end answers too but keeps its own handshake, since one of the
//! two messages may be lost.
//!
//! A first message is fresh if its timestamp is above the last one, or if it has a cookie that was given to its address
//! within the last minutes. Otherwise its sender gets a cookie, together with the timestamp to exceed. So clocks need
//! not be right. An end that does not yet know a timestamp of a live peer also asks for a cookie before it drops its
//! own handshake.

use std::net::SocketAddr;

use bentpipe_engine::units::{Duration, Time};

use super::note::Note;
use super::{Answered, Begun, Event, Given, Heard, MAX_REPLIES, PROLOGUE, RETRY, Sealed, Tunnel, draw};
use crate::tunnel::carries::Says;
use crate::tunnel::guard::mac2;
use crate::tunnel::keys::PresharedKey;
use crate::tunnel::noise::{Handshake, PATTERN, Parties};
use crate::tunnel::packet::{
    COOKIE, INIT, INIT_HEADER, INIT_NOISE, INIT_PAYLOAD, Kind, MAC, RESPONSE, RESPONSE_HEADER, RESPONSE_NOISE,
    RESPONSE_PAYLOAD, start,
};
use crate::tunnel::session::Session;

/// How long a cookie from the peer is used (WireGuard's COOKIE-REFRESH-TIME).
const COOKIE_LIFE: Duration = Duration::from_secs(120);
/// A second cookie within this time does not cause the first message to be repeated at once.
const COOKIE_PAUSE: Duration = Duration::from_secs(1);
/// Number of unanswered first messages since the start after which the operator is told: those of half a minute.
const UNANSWERED: u64 = 15;
/// Where mac1 begins in a first message.
const MAC1: usize = INIT_HEADER + INIT_NOISE;

impl Tunnel {
    fn handshake(&self, is_initiator: bool) -> Handshake {
        Handshake::new(&Parties {
            pattern: PATTERN,
            prologue: PROLOGUE,
            private: &self.config.private,
            peer: is_initiator.then_some(&self.config.peer),
            preshared: Some(self.config.preshared.as_ref().unwrap_or(&PresharedKey::none())),
            ephemeral: None,
        })
    }

    /// Sets the key for later handshakes. Existing sessions continue for as long as sessions live.
    pub(crate) fn set_preshared(&mut self, preshared: Option<PresharedKey>) {
        self.config.preshared = preshared;
    }

    /// Returns `None` if the message is refused, otherwise the change of the tunnel that it causes, if any.
    pub(super) fn on_init(
        &mut self,
        now: Time,
        from: SocketAddr,
        sender: u32,
        datagram: &[u8],
    ) -> Option<Option<Event>> {
        if !self.guard.fits(datagram, MAC1 + MAC) {
            self.stats.garbage += 1;
            return Some(None);
        }
        // From here on, the message is known to come from the peer, but it may be a copy.
        let ephemeral = datagram[INIT_HEADER..].first_chunk().expect("it begins with a key");
        if self.seen.has(ephemeral) {
            self.stats.replayed += 1;
            return Some(None);
        }
        let is_proven = self.cookies.proves(now, from, datagram);
        // The sender makes a new ephemeral key for each try, so a repeated one is a copy, unless it proves its address.
        if !is_proven && self.asked.has(ephemeral) {
            self.stats.replayed += 1;
            return Some(None);
        }
        if !self.tokens[usize::from(is_proven)].take(now) {
            self.stats.throttled += 1;
            if !is_proven {
                self.asked.note(ephemeral);
                self.give_cookie(now, from, sender, datagram);
            }
            return Some(None);
        }
        let mut handshake = self.handshake(false);
        let mut payload = [0; INIT_NOISE];
        let length = handshake.read(&datagram[INIT_HEADER..MAC1], &mut payload)?;
        let payload: [u8; INIT_PAYLOAD] = payload[..length].try_into().ok()?;
        if handshake.peer() != Some(self.config.peer) {
            return None;
        }
        self.seen.note(ephemeral);
        let [stamp, theirs, ours] =
            [0, 8, 16].map(|at| u64::from_le_bytes(*payload[at..].first_chunk().expect("three numbers")));
        let cookie = payload.last_chunk::<COOKIE>().expect("it ends with a cookie");
        let is_live = self.cookies.fits(now, from, cookie);
        let is_late = self.last.is_some_and(|last| stamp <= last);
        if is_late && !is_live {
            self.notes.add(now, Note::PeersClock);
        }
        let (says, peer_says) = (self.says(), Says::of_byte(payload[24]));
        let differs = says.differs(peer_says);
        // After a restart, any recording looks new. A recording must not end this end's own handshake, nor the tunnel.
        let ends_own = !self.leads() && self.begun.is_some();
        let ends_tunnel = self.is_up && differs.is_some();
        if !is_live && (is_late || (ends_own || ends_tunnel) && !self.is_last_live) {
            self.give_cookie(now, from, sender, datagram);
            return None;
        }
        self.is_last_live |= is_live;
        self.last = self.last.max(Some(stamp));
        let event = differs.and_then(|theirs| self.refuse(now, from, theirs));
        let goes_on = self.bound == Some(theirs) && ours == self.memory;
        let anew = (!goes_on).then(draw);
        let mut answer = [0; RESPONSE_PAYLOAD];
        answer[..8].copy_from_slice(&anew.unwrap_or(self.memory).to_le_bytes());
        answer[8] = u8::from(goes_on);
        answer[9] = says.to_byte();
        let own = self.new_number();
        let mut reply = vec![0; RESPONSE];
        let at = start(Kind::Response { sender: own, receiver: sender }, &mut reply);
        let length = handshake.write(&answer, &mut reply[at..])?;
        self.guard.sign(at + length, &mut reply);
        if differs.is_none() {
            let session = Session::new(own, sender, false, handshake, says.cipher(peer_says), now);
            self.answered = Some(Answered { to: from, session, theirs, anew });
        }
        self.reach.on_handshake(from, datagram.len(), reply.len());
        self.reply(from, reply);
        if !self.leads() && self.begun.take().is_some() {
            self.begin_at = now + retry();
        }
        Some(event)
    }

    /// Asks the sender of a first message to repeat it with a cookie.
    fn give_cookie(&mut self, now: Time, from: SocketAddr, sender: u32, datagram: &[u8]) {
        if self.cookie_tokens.take(now) {
            self.stats.cookies += 1;
            let cookie = self.cookies.give(now, from);
            let mac1 = &datagram[MAC1..MAC1 + MAC];
            let reply = self.guard.write_cookie(sender, mac1, &cookie, self.last.unwrap_or(0));
            self.reply(from, reply);
        }
    }

    /// Sends a datagram at the next poll. On a busy line that may take a while: if too many wait, the oldest are dropped, and
    /// their senders ask again.
    fn reply(&mut self, to: SocketAddr, reply: Vec<u8>) {
        if self.replies.len() == MAX_REPLIES {
            self.replies.pop_front();
        }
        self.replies.push_back((to, reply));
    }

    pub(super) fn on_cookie(&mut self, now: Time, receiver: u32, datagram: &[u8]) -> Option<()> {
        let begun = self.begun.as_ref().filter(|begun| begun.own == receiver)?;
        let (cookie, last) = self.guard.read_cookie(datagram, &begun.mac1)?;
        if last >= begun.stamp {
            self.notes.add(now, Note::OwnClock);
        }
        // Only one reply is processed per first message.
        self.begun = None;
        self.stamp = self.stamp.max(last);
        let is_first = self.given.is_none_or(|given| now.saturating_since(given.since) >= COOKIE_PAUSE);
        self.given = Some(Given { cookie, since: now });
        if is_first {
            self.begin_at = now;
        }
        Some(())
    }

    pub(super) fn on_response(
        &mut self,
        now: Time,
        from: SocketAddr,
        sender: u32,
        receiver: u32,
        datagram: &[u8],
    ) -> Option<Heard> {
        // Only a valid response ends the handshake; a forged one must not.
        let begun = self.begun.as_mut().filter(|begun| begun.own == receiver)?;
        if !self.guard.fits(datagram, RESPONSE) {
            return None;
        }
        let mut payload = [0; RESPONSE_NOISE];
        // A refused message leaves the handshake unchanged.
        let length = begun.handshake.read(&datagram[RESPONSE_HEADER..RESPONSE - MAC], &mut payload);
        let Some(payload) = length.and_then(|length| <[u8; RESPONSE_PAYLOAD]>::try_from(&payload[..length]).ok())
        else {
            self.notes.add(now, Note::Preshared);
            return None;
        };
        let Begun { to, handshake, own, .. } = self.begun.take()?;
        let (says, peer_says) = (self.says(), Says::of_byte(payload[9]));
        if let Some(theirs) = says.differs(peer_says) {
            let event = self.refuse(now, from, theirs);
            return Some(Heard { event, ..Heard::default() });
        }
        let theirs = u64::from_le_bytes(*payload.first_chunk().expect("a number and a flag"));
        let goes_on = payload[8] == 1 && self.bound == Some(theirs);
        if payload[8] == 1 && !goes_on {
            // The peer continues a link that this end has given up in the meantime, so the handshake is repeated.
            return Some(Heard::default());
        }
        let session = Session::new(own, sender, true, handshake, says.cipher(peer_says), now);
        // The peer has just received the number of this end's memory, so the number need not change.
        let event = self.begin(now, session, theirs, (!goes_on).then_some(self.memory));
        self.reach.prove(now, to);
        self.reach.heard(now, from, datagram.len(), true);
        // The peer waits for a first datagram under the new keys.
        self.owes_word = true;
        Some(Heard { event, ..Heard::default() })
    }

    /// The destination of the next first message. While the peer is lost, its last address and its configured one
    /// alternate.
    fn where_to_begin(&self) -> Option<SocketAddr> {
        match (self.reach.at(), self.config.endpoint) {
            (Some(_), Some(configured)) if !self.is_up && self.attempts.is_multiple_of(2) => Some(configured),
            (learned, configured) => learned.or(configured),
        }
    }

    pub(super) fn write_init(&mut self, now: Time, wall: u64, out: &mut [u8]) -> Option<Sealed> {
        let to = self.where_to_begin()?;
        let own = self.new_number();
        self.stamp = wall.max(self.stamp.saturating_add(1));
        let given = self.given.filter(|given| now.saturating_since(given.since) < COOKIE_LIFE);
        let mut payload = [0; INIT_PAYLOAD];
        payload[..8].copy_from_slice(&self.stamp.to_le_bytes());
        payload[8..16].copy_from_slice(&self.memory.to_le_bytes());
        payload[16..24].copy_from_slice(&self.bound.unwrap_or(0).to_le_bytes());
        payload[24] = self.says().to_byte();
        if let Some(given) = given {
            payload[25..].copy_from_slice(&given.cookie);
        }
        let mut handshake = self.handshake(true);
        let at = start(Kind::Init { sender: own, mark: self.guard.mark_to_peer() }, out);
        let length = handshake.write(&payload, &mut out[at..])?;
        let at = self.guard.sign(at + length, out);
        let mac1 = *out[..at].last_chunk().expect("just written");
        let mac2 = given.map_or([0; MAC], |given| mac2(&given.cookie, &out[..at]));
        out[at..INIT].copy_from_slice(&mac2);
        self.begun = Some(Begun { to, handshake, own, mac1, stamp: self.stamp });
        self.reach.sent(to, INIT);
        self.attempts += 1;
        if self.attempts == UNANSWERED && self.stats.handshakes == 0 && self.notes.were_none() {
            self.notes.add(now, Note::NoAnswer { to });
        }
        self.begin_at = now + retry();
        Some(Sealed { to, len: INIT })
    }
}

/// Up to an eighth longer, so that not all ends retry at the same instant after an outage.
fn retry() -> Duration {
    RETRY + Duration::from_nanos(draw() % (RETRY.as_nanos() / 8))
}
