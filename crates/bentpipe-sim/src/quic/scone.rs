//! SCONE at one end (draft-ietf-scone-protocol): adds packets to the head of its datagrams, and reads the advice in
//! those of its peer.
//!
//! Advice concerns the other end's data, so this end follows it by flow control, as the draft suggests: it sets the
//! window that fills the advised rate.

use bentpipe_engine::network::LinkId;
use bentpipe_engine::units::{Duration, Rate, Time};
use bentpipe_engine::wire::scone::{self, Signal};
use bentpipe_study::scenario::{PairSpec, QuicFlow, Scenario};
use bytes::BytesMut;

/// How long advice is valid: the draft's monitoring period.
const PERIOD: Duration = Duration::from_secs(67);
/// Number of datagrams at the start of a flow that carry a SCONE packet: the first window, so that a burst of losses
/// does not hit all of them.
const FIRST: u8 = 10;
/// Interval between later SCONE packets: the shorter end of the range that the draft calls likely sufficient.
const INTERVAL: Duration = Duration::from_secs(20);
/// UDP payload of an IPv4 packet of 1500 bytes. A datagram without room for a SCONE packet carries none.
const MAX_PAYLOAD: usize = 1500 - QuicFlow::UDP_HEADERS as usize;
/// The first byte of a packet with a long header. SCONE packets precede packets with short headers, which follow the
/// handshake.
const LONG_HEADER: u8 = 0x80;

/// The minimum of the advice of the network elements before these links and of the gateways that send on them.
pub(super) fn advice(scenario: &Scenario, path: &[LinkId]) -> Signal {
    let rates = path.iter().filter_map(|&link| scenario[link].throughput_advice);
    let sent_on = |pair: &PairSpec| [0, 1].map(|side| pair.advice[side].filter(|_| path.contains(&pair.over[side])));
    let rates = rates.chain(scenario.gateways.pairs.iter().flat_map(sent_on).flatten());
    rates.map(Signal::at_most).min().unwrap_or(Signal::UNKNOWN)
}

/// The state of one end.
#[derive(Debug)]
pub(super) struct Scone {
    /// The signal after the network elements on this end's path. It is constant, so it is already written when the
    /// packet is sent.
    on_path: Signal,
    first: u8,
    due: Time,
    /// The window used without advice, in bytes.
    own_window: u64,
    /// The minimum rate advised in the current period, and when the period ends.
    followed: Option<(Rate, Time)>,
    /// True if the window must be set.
    is_new: bool,
    min_rtt: Duration,
}

impl Scone {
    /// The window until a datagram has shown whether there is advice, in bytes: granted credit cannot be withdrawn.
    pub(super) const FIRST_WINDOW: u64 = QuicFlow::MIN_WINDOW;

    pub(super) fn new(on_path: Signal, own_window: u64) -> Scone {
        Scone {
            on_path,
            first: FIRST,
            due: Time::ZERO,
            own_window,
            followed: None,
            is_new: false,
            min_rtt: Duration::from_secs(3600),
        }
    }

    /// The datagram as it arrives at the peer: preceded by a SCONE packet if one is due.
    pub(super) fn sent(&mut self, now: Time, datagram: BytesMut) -> BytesMut {
        const ID: usize = QuicFlow::CONNECTION_ID as usize;
        let fits = datagram.len() > ID && datagram.len() + scone::length(ID) <= MAX_PAYLOAD;
        if !fits || datagram[0] & LONG_HEADER != 0 || (self.first == 0 && now < self.due) {
            return datagram;
        }
        self.first = self.first.saturating_sub(1);
        self.due = now + INTERVAL;
        let mut both = BytesMut::with_capacity(scone::length(ID) + datagram.len());
        scone::emit(&datagram[1..=ID], &mut both);
        scone::advise(&mut both, self.on_path);
        both.extend_from_slice(&datagram);
        both
    }

    /// Removes the SCONE packet from a datagram that has arrived, and takes its advice.
    pub(super) fn received(&mut self, now: Time, datagram: &mut BytesMut) {
        let Some((signal, length)) = scone::parse(datagram) else { return };
        bytes::Buf::advance(datagram, length);
        self.is_new |= self.followed.is_none();
        let Some(rate) = signal.rate() else { return };
        // As in the draft, the lowest advice of a period counts.
        if self.followed.is_none_or(|(lowest, until)| rate <= lowest || until <= now) {
            self.is_new |= self.followed.is_none_or(|(before, _)| before != rate);
            self.followed = Some((rate, now + PERIOD));
        }
    }

    /// The receive window in bytes that must be set now, if it changes. `rtt` is the connection's estimate.
    pub(super) fn window(&mut self, now: Time, rtt: Duration) -> Option<u64> {
        if self.followed.take_if(|(_, until)| *until <= now).is_some() {
            self.is_new = true;
        }
        if !std::mem::take(&mut self.is_new) {
            return None;
        }
        self.min_rtt = self.min_rtt.min(rtt);
        // quinn announces new credit once it reaches an eighth of the window, so up to that much may be missing.
        let fills = |(rate, _): (Rate, Time)| rate.bytes_in_floor(self.min_rtt) / 7 * 8;
        Some(self.followed.map_or(self.own_window, |advice| fills(advice).min(self.own_window)))
    }

    /// When advice expires.
    pub(super) fn expires(&self) -> Time {
        self.followed.map_or(Time::NEVER, |(_, until)| until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(600);

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn signal(bits: u64) -> Signal {
        Signal::at_most(Rate::from_bits_per_second(bits).expect("above zero"))
    }

    /// A datagram with a short header, after a path with this advice.
    fn datagram(now: Time, on_path: Signal) -> BytesMut {
        let mut sender = Scone::new(on_path, 0);
        sender.sent(now, BytesMut::from(&[0x40; 100][..]))
    }

    #[test]
    fn the_first_datagrams_and_then_one_in_twenty_seconds() {
        let mut end = Scone::new(Signal::UNKNOWN, 0);
        let mut length = |now, datagram: &[u8]| end.sent(now, BytesMut::from(datagram)).len();
        assert_eq!(length(at(0), &[0xc0; 100]), 100, "the handshake");
        assert_eq!(length(at(0), &[0x40; 1460]), 1460, "no room");
        for _ in 0..FIRST {
            assert_eq!(length(at(0), &[0x40; 100]), 115);
        }
        assert_eq!(length(at(19), &[0x40; 100]), 100);
        assert_eq!(length(at(20), &[0x40; 100]), 115);
        assert_eq!(length(at(20), &[0x40; 100]), 100);
    }

    /// 10 Mbit/s for 600 ms is 750 kB; 1 Mbit/s is 75 kB.
    #[test]
    fn the_lowest_advice_of_a_period_is_followed() {
        let mut end = Scone::new(Signal::UNKNOWN, 5_000_000);
        let mut take = |now, on_path| {
            let mut datagram = datagram(now, on_path);
            end.received(now, &mut datagram);
            assert_eq!(&datagram[..], [0x40; 100]);
            end.window(now, RTT)
        };
        assert_eq!(take(at(0), Signal::UNKNOWN), Some(5_000_000), "no advice");
        assert_eq!(take(at(1), signal(10_000_000)), Some(750_000 / 7 * 8));
        assert_eq!(take(at(2), signal(10_000_000)), None);
        assert_eq!(take(at(3), signal(1_000_000)), Some(75_000 / 7 * 8));
        assert_eq!(take(at(69), signal(10_000_000)), None, "within the period of the lower one");
        assert_eq!(take(at(70), signal(10_000_000)), Some(750_000 / 7 * 8));
        assert_eq!(end.expires(), at(137));
        assert_eq!(end.window(at(136), RTT), None);
        assert_eq!(end.window(at(137), RTT), Some(5_000_000));
        assert_eq!(end.expires(), Time::NEVER);
    }
}
