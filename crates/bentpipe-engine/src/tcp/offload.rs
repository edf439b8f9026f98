//! Segmentation offload: a host passes several segments to its network card in one packet (Linux, tcp_output.c).
//!
//! Two of its effects are visible on the path. The last segment of a packet of several segments has PSH
//! (`__tcp_transmit_skb`), which the receiver may acknowledge at once ([`AckPolicy::pushed`](super::AckPolicy)). And a
//! packet that the window would cut short waits for the next ACK (`tcp_tso_should_defer`), so segments leave in fewer
//! and longer packets.
//!
//! Written data is kept in pieces. A packet that holds the rest of its piece does not wait; it is filled up from the next
//! piece (`tcp_grow_skb`).

use super::FIRST_BYTE;
use super::congestion::PacketRate;
use super::pacing::{MAX_TOGETHER, Pacing};
use crate::units::{Duration, Time};

/// A packet holds at most the data that the rate carries in this time.
const QUANTUM: Duration = Pacing::LINUX.quantum;
/// A packet waits only if the last one left less than this long ago.
const MAX_PAUSE: Duration = Duration::from_millis(1);
/// A packet waits only if the next ACK is expected within this time.
const MAX_WAIT: Duration = Duration::from_millis(1);
/// A packet of at least this fraction of the window does not wait (`tcp_tso_win_divisor`).
const WINDOW_PARTS: u64 = 3;

/// The state that decides on the next packet.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Situation {
    pub(in crate::tcp) now: Time,
    /// When the last segment left, and when the oldest outstanding segment left.
    pub(in crate::tcp) last_sent: Time,
    pub(in crate::tcp) oldest: Option<Time>,
    pub(in crate::tcp) srtt: Option<Duration>,
    /// Payload of a full segment.
    pub(in crate::tcp) full: u64,
    /// The next byte to send.
    pub(in crate::tcp) next: u64,
    /// The largest window that the peer has had.
    pub(in crate::tcp) max_peer: u64,
    /// Where the piece ends, if the send buffer knows, or 0: [`u64::MAX`] if the piece may still grow.
    pub(in crate::tcp) piece_end: u64,
    /// Bytes that wait, bytes that the windows allow to leave now, and the minimum of both.
    pub(in crate::tcp) waiting: u64,
    pub(in crate::tcp) open: u64,
    pub(in crate::tcp) room: u64,
    /// The congestion window, and the minimum of it and the peer's window.
    pub(in crate::tcp) cwnd: u64,
    pub(in crate::tcp) window: u64,
    /// The congestion window, neither rounded nor inflated.
    pub(in crate::tcp) exact_cwnd: f64,
    /// True if the congestion window is the limit: it is below both the peer's window and the host's clamp, and allows
    /// no more than what waits.
    pub(in crate::tcp) is_cwnd_limited: bool,
    /// No data will follow what waits.
    pub(in crate::tcp) is_closing: bool,
}

/// Segments of `full` bytes in a packet that only the sender's rate limits, if the round trip is known.
#[inline(never)]
fn max_segments(full: u64, rate: Option<PacketRate>) -> u64 {
    let max = MAX_TOGETHER / full;
    match rate.and_then(|rate| Some((rate.rate()?, rate.min_segments()))) {
        Some((rate, min)) => (rate.bytes_in_floor(QUANTUM) / full).clamp(min.min(max), max),
        None => max,
    }
    .max(1)
}

/// The length of a piece: whole segments of `full` bytes, up to the maximum of a packet and half of the peer's largest
/// window (`tcp_bound_to_half_wnd`).
pub(in crate::tcp) fn piece(full: u64, max_peer: u64) -> u64 {
    (MAX_TOGETHER.min(max_peer / 2) / full).max(1) * full
}

impl Situation {
    /// True if a packet that is shorter than usual should wait for the next ACK, which allows a longer one. `rest`
    /// bytes are left of the piece in which it begins.
    #[inline(always)]
    fn may_wait(&self, rest: u64) -> bool {
        // Small segments are left to the Nagle algorithm (RFC 9293 §3.7.4).
        if self.waiting <= self.full
            || self.open >= self.window / WINDOW_PARTS
            || self.now.saturating_since(self.last_sent) >= MAX_PAUSE
        {
            return false;
        }
        // The last piece may still grow.
        let is_rest = rest < self.waiting && self.room >= rest;
        if is_rest || self.is_closing && self.room >= self.waiting {
            return false;
        }
        self.next_ack_is_soon()
    }

    /// True if the ACK of the oldest segment, due a round trip after it, is expected within [`MAX_WAIT`] and half a round
    /// trip.
    #[inline(always)]
    fn next_ack_is_soon(&self) -> bool {
        let is_soon = |oldest: Time, srtt: Duration| oldest + srtt <= self.now + MAX_WAIT.min(srtt.div_floor(2));
        self.oldest.zip(self.srtt).is_some_and(|(oldest, srtt)| is_soon(oldest, srtt))
    }

    /// The condition under which a packet of up to `max` bytes that [may wait](Self::may_wait) keeps waiting, with any
    /// congestion window of at least `least`.
    fn hold(&self, max: u64, least: Option<f64>) -> Option<Hold> {
        let room = max.min(self.window / WINDOW_PARTS);
        Some(Hold { room, full: self.full, cwnd: least?, window: self.window, srtt: self.srtt? })
    }
}

/// The condition under which a packet waited. Later packets wait under it too while the path is no worse, so they need
/// no full check.
#[derive(Clone, Copy, Debug)]
struct Hold {
    /// A packet in segments of `full` bytes waits while the windows allow less than this.
    room: u64,
    full: u64,
    /// This holds with windows at least this large and a round trip at most this long.
    cwnd: f64,
    window: u64,
    srtt: Duration,
}

/// The packet that leaves, or waits.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Offload {
    /// One past the piece in which the last packet began: the lower half of the sequence number.
    end: u32,
    /// Segments of the packet that have not left.
    left: u16,
    /// The maximum length of a packet, and the inputs from which it was computed: they seldom change between two ACKs.
    max: u16,
    max_of: (u64, Option<PacketRate>),
    is_long: bool,
    /// The packet waits for the next event because of the congestion window, or waited so for the current one.
    waits: bool,
    waits_for_cwnd: bool,
    waited_for_cwnd: bool,
    hold: Option<Hold>,
}

impl Offload {
    pub(in crate::tcp) const fn new() -> Self {
        Offload {
            end: FIRST_BYTE as u32,
            left: 0,
            max: 0,
            max_of: (0, None),
            is_long: false,
            waits: false,
            waits_for_cwnd: false,
            waited_for_cwnd: false,
            hold: None,
        }
    }

    /// True if the next packet waits for the same reason as an earlier one: [`Offload::begin`] would also return false.
    /// If false, [`Offload::begin`] decides.
    #[inline(always)]
    pub(in crate::tcp) fn holds(&self, at: &Situation) -> bool {
        let Some(hold) = &self.hold else { return false };
        // Without a send buffer it is meaningless if the next piece has not begun.
        let (rest, max) = match at.piece_end {
            0 => (u64::from(self.end.wrapping_sub(at.next as u32)), MAX_TOGETHER),
            end => (end.saturating_sub(at.next), u64::MAX),
        };
        // A full segment could leave, but not a whole packet, nor the rest of its piece, nor all that waits.
        let is_short = at.room >= at.full && at.room < hold.room.min(rest).min(at.waiting) && rest <= max;
        let is_no_worse = at.full == hold.full && at.exact_cwnd >= hold.cwnd && at.window >= hold.window;
        is_short
            && is_no_worse
            && at.now.saturating_since(at.last_sent) < MAX_PAUSE
            && at.srtt.is_some_and(|srtt| srtt <= hold.srtt)
            && at.next_ack_is_soon()
    }

    /// Makes the next packet wait for the next event, because of the congestion window or not.
    #[inline(always)]
    pub(in crate::tcp) fn wait(&mut self, is_cwnd_limited: bool) {
        (self.waits, self.waits_for_cwnd) = (true, is_cwnd_limited);
    }

    /// True if the packet that has begun has segments left. All of them leave at one instant.
    #[inline(always)]
    pub(in crate::tcp) fn goes_on(&self, now: Time, last_sent: Time) -> bool {
        self.left > 0 && last_sent == now
    }

    /// Bytes that are left of the piece in which the next packet begins.
    fn rest(&mut self, situation: &Situation) -> u64 {
        if situation.piece_end > 0 {
            return situation.piece_end.saturating_sub(situation.next);
        }
        loop {
            // No window is as long as half of the number space.
            match self.end.wrapping_sub(situation.next as u32) as i32 {
                rest @ 1.. => return rest as u64,
                _ => self.end = self.end.wrapping_add(piece(situation.full, situation.max_peer) as u32),
            }
        }
    }

    #[inline(always)]
    fn max_segments(&mut self, full: u64, rate: Option<PacketRate>) -> u64 {
        if self.max_of != (full, rate) {
            self.max_of = (full, rate);
            self.max = max_segments(full, rate) as u16;
        }
        u64::from(self.max)
    }

    /// Begins a packet; false if it waits for the next event. `rate` gives the sender's rate, if the round trip is
    /// known. `least` gives the congestion window from which on the rate is not lower, if there is one. Both are called
    /// only if they matter.
    #[inline(always)]
    pub(in crate::tcp) fn begin(
        &mut self,
        situation: &Situation,
        rate: impl FnOnce() -> Option<PacketRate>,
        least: impl FnOnce() -> Option<f64>,
    ) -> bool {
        if self.waits {
            return false;
        }
        let (full, room) = (situation.full, situation.room);
        let rest = self.rest(situation);
        let may_wait = situation.may_wait(rest);
        let max_segments = if may_wait || room >= 2 * full { self.max_segments(full, rate()) } else { 1 };
        if may_wait && situation.open < max_segments * full {
            self.wait(situation.is_cwnd_limited);
            self.hold = situation.hold(max_segments * full, least());
            return false;
        }
        let mut segments = (room / full).min(max_segments);
        // At least two packets are in flight (`tcp_cwnd_test`).
        if 2 * segments * full > situation.cwnd {
            segments = situation.cwnd / full / 2;
        }
        let segments = segments.max(1);
        (self.left, self.is_long) = (segments as u16, segments > 1);
        true
    }

    /// Records that a segment leaves. Returns whether it is the last one of several, and whether it is the last one.
    #[inline(always)]
    pub(in crate::tcp) fn sent(&mut self) -> (bool, bool) {
        self.left = self.left.saturating_sub(1);
        let is_over = self.left == 0;
        (is_over && core::mem::take(&mut self.is_long), is_over)
    }

    /// Looks again at what waits, after an ACK, a write or a timer.
    #[inline(always)]
    pub(in crate::tcp) fn on_event(&mut self) {
        self.waited_for_cwnd = core::mem::take(&mut self.waits_for_cwnd);
        self.waits = false;
    }

    /// True if another event would change nothing.
    pub(in crate::tcp) fn is_at_start(&self) -> bool {
        !self.waited_for_cwnd && !self.waits_for_cwnd && !self.waits
    }

    /// True if a packet has waited for this event because of the congestion window (`is_cwnd_limited` of `tcp_tso_should_defer`).
    #[inline(always)]
    pub(in crate::tcp) fn has_waited_for_cwnd(&self) -> bool {
        self.waited_for_cwnd
    }

    /// Forgets that a packet waited for the window, because the window has been replaced.
    pub(in crate::tcp) fn forget_waiting(&mut self) {
        self.waited_for_cwnd = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;
    use proptest::prelude::*;

    fn ms(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// A window of 100 segments of 1000 bytes, 96 of which are in flight; the last one left half a millisecond ago. 100 segments per
    /// 100 ms, twice as fast, are 16 Mbit/s: two in 1/1024 s. So is eight times as fast: 15.
    const RATE: Option<PacketRate> = paced(128_000_000);
    const WAITS: Situation = Situation {
        now: Time::from_nanos(1_000_000_000),
        last_sent: Time::from_nanos(999_500_000),
        oldest: Some(Time::from_nanos(900_000_000)),
        srtt: Some(Duration::from_millis(100)),
        full: 1000,
        next: 100_001,
        max_peer: 64_000,
        piece_end: 0,
        waiting: 1_000_000,
        open: 0,
        room: 4000,
        cwnd: 100_000,
        window: 100_000,
        exact_cwnd: 100_000.0,
        is_cwnd_limited: true,
        is_closing: false,
    };

    const fn paced(bits: u64) -> Option<PacketRate> {
        match Rate::from_bits_per_second(bits) {
            Some(rate) => Some(PacketRate::Paced(rate)),
            None => None,
        }
    }

    /// The segments of the next packet, and whether its last one is marked.
    fn packet(situation: Situation) -> Option<(u32, bool)> {
        packet_at(situation, RATE)
    }

    fn packet_at(situation: Situation, rate: Option<PacketRate>) -> Option<(u32, bool)> {
        let mut offload = Offload::new();
        let situation = Situation { open: situation.open.max(situation.room), ..situation };
        if !offload.begin(&situation, || rate, || None) {
            return None;
        }
        let (mut segments, mut push) = (0, false);
        while offload.left > 0 {
            push = offload.sent().0;
            segments += 1;
        }
        Some((segments, push))
    }

    #[test]
    fn a_short_packet_waits_for_the_next_ack() {
        assert_eq!(packet(WAITS), None);
        let now = |last_sent| Situation { last_sent, ..WAITS };
        assert_eq!(packet(now(ms(999) + Duration::from_nanos(1))), None);
        assert_eq!(packet(now(ms(999))), Some((4, true)));
        // The packet has the usual length, or a third of the window.
        assert_eq!(packet(Situation { room: 15_000, ..WAITS }), Some((15, true)));
        assert_eq!(packet(Situation { room: 4000, window: 12_000, ..WAITS }), Some((4, true)));
        // The ACK of the oldest segment is expected in 1 ms; in 2 ms, or none at all.
        assert_eq!(packet(Situation { oldest: Some(ms(901)), ..WAITS }), None);
        assert_eq!(packet(Situation { oldest: Some(ms(902)), ..WAITS }), Some((4, true)));
        assert_eq!(packet(Situation { oldest: None, ..WAITS }), Some((4, true)));
        let last = |bytes| Situation { waiting: bytes, ..WAITS };
        // The windows allow a whole packet, but less waits.
        assert_eq!(packet(Situation { open: 14_000, ..last(4000) }), None);
        assert_eq!(packet(Situation { open: 15_000, ..last(4000) }), Some((4, true)));
        // No more data follows.
        assert_eq!(packet(last(4000)), None);
        assert_eq!(packet(Situation { is_closing: true, ..last(4000) }), Some((4, true)));
        assert_eq!(packet(Situation { room: 900, ..last(900) }), Some((1, false)));
    }

    /// A packet uses the congestion window only if that window cuts it short, and only until the next event.
    #[test]
    fn a_packet_that_waits_uses_the_congestion_window_if_that_is_the_least() {
        for is_cwnd_limited in [true, false] {
            let mut offload = Offload::new();
            assert!(!offload.begin(&Situation { is_cwnd_limited, ..WAITS }, || RATE, || None));
            assert!(!offload.has_waited_for_cwnd());
            offload.on_event();
            assert_eq!(offload.has_waited_for_cwnd(), is_cwnd_limited);
            offload.on_event();
            assert!(!offload.has_waited_for_cwnd());
        }
    }

    /// Half of 64 000 bytes are 32 segments: pieces end at 1 + 96 000 and 1 + 128 000 bytes.
    #[test]
    fn the_rest_of_a_piece_does_not_wait() {
        let at = |segments: u64| Situation { next: 1 + 1000 * segments, ..WAITS };
        assert_eq!((packet(at(123)), packet(at(124)), packet(at(125))), (None, Some((4, true)), Some((4, true))));
        assert_eq!(packet(at(128)), None, "the next piece");
        // The last piece may still grow.
        assert_eq!(packet(Situation { waiting: 4000, ..at(124) }), None);
        // No piece is longer than a packet may be.
        let wide = Situation { max_peer: 1_000_000, ..WAITS };
        assert_eq!(packet(Situation { next: 1 + 126_000, ..wide }), Some((4, true)), "two of 65 segments");
        // The send buffer knows the pieces: one that may still grow, and one that ends.
        assert_eq!(packet(Situation { piece_end: u64::MAX, ..at(124) }), None);
        assert_eq!(packet(Situation { piece_end: at(123).next + 4000, ..at(123) }), Some((4, true)));
        // If half of the window is less than a segment, each piece is one segment.
        assert_eq!(packet(Situation { max_peer: 1500, ..WAITS }), Some((4, true)));
    }

    #[test]
    fn packets_are_bounded() {
        let first = Situation { room: 100_000, oldest: None, ..WAITS };
        assert_eq!(packet(first), Some((15, true)));
        // Without a round trip only the card limits a packet. A slow sender's packet has two segments. None exceeds
        // half of the window.
        assert_eq!(packet_at(Situation { cwnd: 1_000_000, ..first }, None), Some((65, true)));
        assert_eq!(packet_at(first, paced(1_000_000)), Some((2, true)));
        // One if its control sets a rate below 1.2 Mbit/s.
        let set = |bits| Rate::from_bits_per_second(bits).map(PacketRate::Set);
        assert_eq!(packet_at(first, set(1_199_999)), Some((1, false)));
        assert_eq!(packet_at(first, set(1_200_000)), Some((2, true)));
        assert_eq!(packet_at(Situation { cwnd: 10_000, room: 10_000, ..first }, None), Some((5, true)));
        assert_eq!(packet(Situation { cwnd: 1000, room: 1000, ..first }), Some((1, false)));
        // A segment may be as long as a packet.
        assert_eq!(packet(Situation { full: 65_495, room: 200_000, cwnd: 400_000, ..first }), Some((1, false)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        /// A packet held because of an earlier one must also wait if it is checked in full. Each value is drawn so that
        /// every second one lets the packet wait; the shortcut then applies in a tenth of all cases.
        #[test]
        fn what_holds_waits(
            (first, factor) in (1u64..11, prop::sample::select(vec![20, 40])),
            (open, cwnd, peer, srtt) in (50u64..250, 45_000u64..75_000, 40_000u64..56_000, 80u64..125),
            (oldest, pause, waiting, sent) in (880u64..1000, 0u64..2000, 0u64..60_000, 0u64..60),
            good in prop::array::uniform7(any::<bool>()),
            is_closing in any::<bool>(),
        ) {
            const CWND: u64 = 60_000;
            const PEER: u64 = 48_000;
            let mut offload = Offload::new();
            // 40 windows of 60 000 bytes per 100 ms are 23 segments in 1/1024 s, and 20 are 11; a third of the window is 16.
            let rate = |cwnd: u64, srtt: Option<Duration>| Some(PacketRate::PerRoundTrip((factor * cwnd) as f64, srtt?));
            let before = Situation { open: 1000 * first, room: 1000 * first, cwnd: CWND, window: PEER, ..WAITS };
            prop_assert!(!offload.begin(&before, || rate(CWND, before.srtt), || Some(CWND as f64)));
            offload.on_event();
            let pick = |n: usize, good_one: u64, any: u64| if good[n] { good_one } else { any };
            let (cwnd, peer) = (pick(0, cwnd.max(CWND), cwnd), pick(1, peer.max(PEER), peer));
            let (srtt, oldest) = (pick(2, srtt.min(100), srtt), pick(3, 880, oldest));
            let (pause, waiting, sent) = (pick(4, pause % 1000, pause), pick(5, waiting + 40_000, waiting), pick(6, sent % 8, sent));
            let (srtt, window) = (Some(Duration::from_millis(srtt)), cwnd.min(peer));
            let last_sent = WAITS.now.saturating_sub(Duration::from_micros(pause));
            let (next, open, oldest) = (WAITS.next + 1000 * sent, 100 * open, Some(ms(oldest)));
            let (room, exact_cwnd) = (open.min(waiting), cwnd as f64);
            let after =
                Situation { last_sent, oldest, srtt, next, waiting, open, room, cwnd, exact_cwnd, window, is_closing, ..WAITS };
            let holds = offload.holds(&after);
            let begins = offload.begin(&after, || rate(cwnd, srtt), || None);
            prop_assert!(!holds || !begins);
        }
    }
}
