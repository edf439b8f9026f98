//! The 32-bit sequence numbers of a connection on the wire, in both directions.

use bentpipe_engine::tcp::FIRST_BYTE;
use bentpipe_engine::wire::seq::{Numbering, SeqNumber};

use super::Endpoint;

/// How far [`Endpoint::begin_above`] goes beyond the old connection's last number: more than any unscaled window.
const GAP: u32 = 1 << 16;

impl Endpoint {
    /// The next sequence number expected from the peer, and our first unacknowledged one. `None` before the peer's SYN.
    pub fn next_numbers(&self) -> Option<(SeqNumber, SeqNumber)> {
        let translation = self.translation.as_ref()?;
        let peer = translation.irs?.wrap(self.connection.rcv_nxt());
        Some((peer, translation.iss.wrap(self.connection.snd_una())))
    }

    /// A number beyond all that this end has sent or will send; `None` before a peer is known.
    pub fn beyond(&self) -> Option<SeqNumber> {
        // One more for a FIN.
        Some(self.translation.as_ref()?.iss.wrap(FIRST_BYTE + self.written + 1))
    }

    /// True if a segment without SYN and RST that has these numbers can come from the current peer. Its number must be
    /// the next expected one, in the receive window, or that of a keep-alive. Its acknowledgement must acknowledge
    /// outstanding data or nothing new.
    ///
    /// This is stricter than RFC 9293 §3.10.7.4. A blind attacker has one chance in 2^32 divided by the receive window,
    /// and for the acknowledgement another in 2^32 divided by the outstanding data.
    pub fn expects(&self, seq: SeqNumber, ack: SeqNumber) -> bool {
        let Some((rcv_nxt, snd_una)) = self.next_numbers() else { return false };
        let (ahead, acked) = (seq.distance_from(rcv_nxt), ack.distance_from(snd_una));
        // SYN and FIN use one number each.
        let outstanding = self.unacknowledged() + 2;
        let window = i64::from(self.connection.config().receive_buffer);
        (-1..=window).contains(&i64::from(ahead)) && u64::try_from(acked).is_ok_and(|acked| acked <= outstanding)
    }

    /// Raises our initial sequence number above `last`, the highest one of an earlier connection between these two
    /// ends. Has no effect if it is already above (RFC 9293 §3.4: compared modulo 2^32).
    ///
    /// # Panics
    /// Panics in debug builds if the peer has acknowledged anything, since the number has then been sent. Call this
    /// before the first [`Endpoint::poll`] after the SYN was received.
    pub fn begin_above(&mut self, last: SeqNumber) {
        debug_assert!(self.connection.snd_una() < FIRST_BYTE, "our SYN has not been sent");
        if let Some(translation) = &mut self.translation
            && translation.iss.wrap(0).distance_from(last) <= 0
        {
            translation.iss = Numbering::from_isn(last.0.wrapping_add(GAP));
        }
    }
}
