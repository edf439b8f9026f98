//! The handshake: the first message, its answer, and what is said to an unknown session.

use std::net::SocketAddr;

use bentpipe_engine::units::{Duration, Time};
use snow::Builder;

use super::draw;
use super::{Answered, Begun, Heard, PROLOGUE, RETRY, Sealed, Tunnel};
use crate::tunnel::cipher::Cipher;
use crate::tunnel::keys::PATTERN;
use crate::tunnel::packet::{INIT_NOISE, INIT_PAYLOAD, Kind, MAC, RESPONSE_NOISE, RESPONSE_PAYLOAD, start};
use crate::tunnel::session::Session;

impl Tunnel {
    pub(super) fn builder(&self) -> Builder<'_> {
        let params = PATTERN.parse().expect("a pattern that snow knows");
        let builder = Builder::new(params).local_private_key(self.config.private.secret());
        builder.and_then(|builder| builder.prologue(PROLOGUE)).expect("each is set once")
    }

    pub(super) fn on_init(&mut self, now: Time, from: SocketAddr, sender: u32, datagram: &[u8]) -> Option<()> {
        // Whoever knows our public key can use up what strangers have, and not what the peer has at its old address.
        let is_stranger = self.endpoint.is_none_or(|at| at.ip() != from.ip());
        if !self.tokens[usize::from(is_stranger)].take(now) {
            self.stats.throttled += 1;
            return Some(());
        }
        let mut state = self.builder().build_responder().ok()?;
        let mut payload = [0; INIT_NOISE];
        let length = state.read_message(&datagram[5..datagram.len() - MAC], &mut payload).ok()?;
        let payload: [u8; INIT_PAYLOAD] = payload[..length].try_into().ok()?;
        let known = state.get_remote_static().is_some_and(|key| key == self.config.peer.0);
        let [clock, theirs, ours] =
            [0, 8, 16].map(|at| u64::from_le_bytes(*payload[at..].first_chunk().expect("three numbers")));
        if !known || clock <= self.clock {
            return None;
        }
        self.clock = clock;
        let goes_on = self.is_up && self.bound == Some(theirs) && ours == self.memory;
        let anew = (!goes_on).then(draw);
        let mut answer = [0; RESPONSE_PAYLOAD];
        answer[..8].copy_from_slice(&anew.unwrap_or(self.memory).to_le_bytes());
        answer[8] = u8::from(goes_on);
        answer[9] = u8::from(self.has_aes);
        let cipher = Cipher::between([payload[24] == 1, self.has_aes]);
        let own = self.new_number();
        let mut reply = vec![0; 9 + RESPONSE_NOISE + MAC];
        let at = start(Kind::Response { sender: own, receiver: sender }, &mut reply);
        let length = state.write_message(&answer, &mut reply[at..]).ok()?;
        self.speaks.sign(at + length, &mut reply);
        let session = Session::new(own, sender, state, cipher, now);
        self.answered = Some(Answered { session, theirs, anew });
        self.replies.push((from, reply));
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
        // A forged response must not end the handshake: it is taken out only by a right one.
        self.begun.as_ref().filter(|begun| begun.own == receiver)?;
        let Begun { mut state, own } = self.begun.take()?;
        let mut payload = [0; RESPONSE_NOISE];
        let length = state.read_message(&datagram[9..datagram.len() - MAC], &mut payload).ok();
        let payload: Option<[u8; RESPONSE_PAYLOAD]> = length.and_then(|length| payload[..length].try_into().ok());
        let Some(payload) = payload else {
            // snow leaves a state that refused a message as it was; the handshake may go on.
            self.begun = Some(Begun { state, own });
            return None;
        };
        let theirs = u64::from_le_bytes(*payload.first_chunk().expect("a number and a flag"));
        let goes_on = payload[8] == 1 && self.is_up && self.bound == Some(theirs);
        if payload[8] == 1 && !goes_on {
            // The peer goes on with a link that we have given up in the meantime: once more.
            return Some(Heard::default());
        }
        let cipher = Cipher::between([self.has_aes, payload[9] == 1]);
        let session = Session::new(own, sender, state, cipher, now);
        // The number of our memory is the one that the peer has just been told: it need not change.
        let event = self.begin(now, session, theirs, (!goes_on).then_some(self.memory));
        self.endpoint = Some(from);
        // The peer waits for a first datagram under the new keys.
        self.sent_at = Time::ZERO;
        Some(Heard { event, payload: None })
    }

    /// The peer knows nothing of a session, or somebody says so: a handshake is cheap, and will tell.
    pub(super) fn on_unknown(&mut self, now: Time, receiver: u32, number: u32) -> Option<()> {
        self.current.as_ref().filter(|session| session.theirs == receiver && session.has_sent(number))?;
        if self.is_initiator() && !self.wants_keys {
            self.wants_keys = true;
            self.begin_at = self.begin_at.max(now);
        }
        Some(())
    }

    pub(super) fn write_init(&mut self, now: Time, wall: u64, out: &mut [u8]) -> Option<Sealed> {
        let to = self.endpoint?;
        let own = self.new_number();
        let builder = self.builder().remote_public_key(&self.config.peer.0).ok()?;
        let mut state = builder.build_initiator().ok()?;
        let mut payload = [0; INIT_PAYLOAD];
        payload[..8].copy_from_slice(&wall.to_le_bytes());
        payload[8..16].copy_from_slice(&self.memory.to_le_bytes());
        payload[16..24].copy_from_slice(&self.bound.unwrap_or(0).to_le_bytes());
        payload[24] = u8::from(self.has_aes);
        let at = start(Kind::Init { sender: own }, out);
        let length = state.write_message(&payload, &mut out[at..]).ok()?;
        let len = self.speaks.sign(at + length, out);
        self.begun = Some(Begun { state, own });
        // Not all at the same instant after an outage: up to an eighth more.
        self.begin_at = now + RETRY + Duration::from_nanos(draw() % (RETRY.as_nanos() / 8));
        Some(Sealed { to, len })
    }
}
