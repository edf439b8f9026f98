//! STP worked by hand on the path of the `stp` paper: 1 Mbit/s, 0.53 s, frames of 1048 bytes that last 8.384 ms.

mod polls;

use super::*;
use crate::probe::{NoProbe, Who};
use crate::tcp::sending::Half;
use crate::tcp::{FIRST_BYTE, Flags};
use crate::units::{Bytes, Duration, Rate, Time};
use crate::{Context, Machine, Step};

const FRAME: u64 = 8_384_000;
const RTO: u64 = 550_000_000;
/// A control frame without options, and one with the segment size: 48 and 52 bytes.
const BARE: u64 = 384_000;
const SYN: u64 = 416_000;

fn config() -> StpConfig {
    let rate = Rate::from_bits_per_second(1_000_000).expect("not zero");
    StpConfig::for_path(rate, Duration::from_millis(530))
}

/// An end whose peer is the test.
struct End(Connection);

impl End {
    /// What goes out at `nanos`, notifications left aside, and when the end wants to be asked again.
    fn poll(&mut self, nanos: u64) -> (Vec<Segment>, Option<u64>) {
        let (mut out, mut probe) = (Vec::new(), NoProbe);
        let mut cx = Context { now: Time::from_nanos(nanos), who: Who(0), probe: &mut probe };
        loop {
            match self.0.poll(&mut cx) {
                Step::Do(Output::Transmit(segment)) => out.push(segment),
                Step::Do(Output::Closed(result)) => assert_eq!(result, Err(Abort::RetriesExhausted)),
                Step::Do(_) => {}
                Step::Wait(until) => return (out, until.map(Time::as_nanos)),
            }
        }
    }

    fn give(&mut self, nanos: u64, input: Input) -> (Vec<Segment>, Option<u64>) {
        let mut probe = NoProbe;
        let mut cx = Context { now: Time::from_nanos(nanos), who: Who(0), probe: &mut probe };
        self.0.handle(&mut cx, input);
        self.poll(nanos)
    }

    /// An established end with this much to send, and what it sends at the start of its second second.
    fn sending(config: StpConfig, bytes: u64, window: u32) -> (End, Vec<Segment>, Option<u64>) {
        let mut end = End(Connection::new(config, Role::Active));
        let (syn, timer) = end.give(0, Input::Open);
        assert_eq!((syn.len(), syn[0].flags, syn[0].syn.mss), (1, Flags::SYN, Some(config.mss)));
        let (from, wait) =
            (if config.arming == Arming::Departure { SYN } else { 0 }, config.polls.map_or(RTO, Duration::as_nanos));
        assert_eq!(timer, Some(from + wait));
        end.give(1000, Input::Write(bytes));
        let mut answer = Segment { ack: 1, window, ..Segment::new(Flags::SYN | Flags::ACK) };
        answer.syn.mss = Some(config.mss);
        let (out, timer) = end.give(1_000_000_000, Input::Segment(answer));
        (end, out, timer)
    }

    fn ack(&mut self, nanos: u64, ack: u64, blocks: &[(u64, u64)], window: u32) -> (Vec<u64>, Option<u64>) {
        let mut segment = Segment { seq: 1, ack, window, ..Segment::new(Flags::ACK) };
        for &(start, end) in blocks {
            segment.sack.push(ack, start, end);
        }
        let (out, timer) = self.give(nanos, Input::Segment(segment));
        (out.iter().map(|segment| segment.seq).collect(), timer)
    }
}

const WIDE: u32 = 1 << 30;
/// Sequence number of the n-th segment of 1000 bytes.
const fn nth(n: u64) -> u64 {
    FIRST_BYTE + 1000 * n
}

/// `stp` paper, figure 2: 530 000 bit or 66 250 bytes, 63.21 frames, a window of 63 segments.
#[test]
fn the_window_fills_the_pipe() {
    let config = config();
    assert_eq!(config.pipe(), Bytes::new(66_250));
    assert_eq!(config.window(1000), 63_000);
    // 66 250 / 548 are 120.9 frames of half the payload.
    assert_eq!(config.window(500), 60_000);
    assert_eq!(StpConfig { window: Some(Bytes::new(10)), ..config }.window(1000), 1000);
}

#[test]
fn a_whole_window_goes_out_at_once_and_each_ack_moves_it() {
    let (mut end, out, timer) = End::sending(config(), 1_000_000, WIDE);
    assert_eq!(out.iter().filter(|segment| segment.len == 1000).count(), 63);
    assert_eq!(out.last().map(|segment| segment.seq), Some(nth(62)));
    // Timers run from the departures: a data frame after the other, before them nothing.
    assert_eq!(timer, Some(1_000_000_000 + FRAME + RTO));
    let at = 1_540_000_000;
    assert_eq!(end.ack(at, nth(1), &[], WIDE), (vec![nth(63)], Some(1_000_000_000 + 2 * FRAME + RTO)));
    // Two segments acknowledged at once let two out.
    assert_eq!(end.ack(at + FRAME, nth(3), &[], WIDE).0, [nth(64), nth(65)]);
    assert_eq!(end.0.stats().max_burst, 63);
}

#[test]
fn the_peers_window_counts_where_it_is_smaller() {
    let (mut end, out, _) = End::sending(config(), 1_000_000, 5000);
    assert_eq!(out.last().map(|segment| segment.seq), Some(nth(4)));
    assert_eq!(end.ack(1_540_000_000, nth(1), &[], 4000).0, []);
    assert_eq!(end.ack(1_550_000_000, nth(2), &[], 7000).0, [nth(5), nth(6), nth(7), nth(8)]);
}

/// S-Q03: armed at hand-over, the timers of a window that takes 0.528 s to leave expire together.
#[test]
fn timers_armed_at_hand_over_run_while_segments_wait() {
    let (mut end, _, timer) = End::sending(StpConfig { arming: Arming::HandOver, ..config() }, 1_000_000, WIDE);
    assert_eq!(timer, Some(1_000_000_000 + RTO));
    let (again, _) = end.poll(1_000_000_000 + RTO);
    assert_eq!(again.iter().filter(|segment| segment.len == 1000).count(), 63);
}

#[test]
fn a_hole_is_repaired_once_then_by_its_timer() {
    let (mut end, _, _) = End::sending(config(), 1_000_000, WIDE);
    let at = 1_540_000_000;
    // Segment 0 and 2 are missing: the highest SACKed one is 3. Nothing new may go out, for nothing is acknowledged.
    let (again, timer) = end.ack(at, nth(0), &[(nth(3), nth(4)), (nth(1), nth(2))], WIDE);
    assert_eq!(again, [nth(0), nth(2)]);
    // The timers of 0 to 3 are stopped or restarted; the next to run out is that of 4, which left fifth.
    assert_eq!(timer, Some(1_000_000_000 + 5 * FRAME + RTO));
    assert_eq!(end.ack(at + FRAME, nth(0), &[(nth(3), nth(5)), (nth(1), nth(2))], WIDE).0, []);
    // The rest of the window is SACKed, one frame after the other; then only the two repairs have timers. They left
    // behind the 63 frames of the start: at 1.54 s the line had long been free.
    for n in 5..63 {
        assert_eq!(end.ack(at + n * FRAME, nth(0), &[(nth(3), nth(n + 1)), (nth(1), nth(2))], WIDE).0, []);
    }
    let (_, timer) = end.poll(at + 63 * FRAME);
    assert_eq!(timer, Some(at + FRAME + RTO));
    let (again, timer) = end.poll(at + FRAME + RTO);
    assert_eq!(again.iter().map(|segment| segment.seq).collect::<Vec<_>>(), [nth(0)]);
    assert_eq!(timer, Some(at + 2 * FRAME + RTO));
    let stats = end.0.stats();
    assert_eq!((stats.retransmits, stats.fast_retransmits, stats.timeouts), (3, 2, 1));
}

#[test]
fn the_seventh_expiry_gives_up() {
    let (mut end, out, mut timer) = End::sending(config(), 1000, WIDE);
    assert_eq!(out.iter().filter(|segment| segment.len > 0).count(), 1);
    // Each timer starts when the repetition has left, a frame after the one before ran out.
    for n in 1..=6 {
        let at = 1_000_000_000 + n * (FRAME + RTO);
        assert_eq!(timer, Some(at));
        let (again, next) = end.poll(at);
        assert_eq!(again.len(), 1, "repetition {n}");
        timer = next;
    }
    let (reset, timer) = end.poll(1_000_000_000 + 7 * (FRAME + RTO));
    assert!(reset.len() == 1 && reset[0].flags.has(Flags::RST));
    assert_eq!((end.0.state(), timer), (State::Closed, None));
}

#[test]
fn a_closed_window_is_probed_while_the_peer_answers() {
    let (mut end, out, timer) = End::sending(config(), 1_000_000, 0);
    // The ACK of the handshake alone.
    assert_eq!((out.len(), out[0].len), (1, 0));
    let mut at = 1_000_000_000 + RTO;
    assert_eq!(timer, Some(at));
    for probe in 0..30 {
        let (out, next) = end.poll(at);
        assert_eq!(out.iter().map(|s| (s.seq, s.len)).collect::<Vec<_>>(), [(nth(0), 1)], "probe {probe}");
        assert_eq!(end.ack(at + 1000, nth(0), &[], 0).0, []);
        at = next.expect("the probe has a timer");
    }
    // It opens: what follows the byte of the probe goes out; the byte itself has been repeated and waits for its timer.
    assert_eq!(end.ack(at - 1000, nth(0), &[], 3001).0, [2, 1002, 2002]);
    assert_eq!(end.ack(at - 900, nth(0), &[(2, 1002)], 3001).0, []);
    assert_eq!(end.poll(at).0.iter().map(|segment| segment.seq).collect::<Vec<_>>(), [1]);
    // From a peer that does not answer no more than six repetitions are borne.
    let (mut end, _, timer) = End::sending(config(), 1_000_000, 0);
    let (mut timer, mut probes) = (timer, 0);
    while let Some(at) = timer {
        let (out, next) = end.poll(at);
        probes += out.iter().filter(|segment| segment.len == 1).count();
        timer = next;
    }
    assert_eq!((end.0.state(), probes), (State::Closed, 7));
}

/// A peer may report duplicates, too (RFC 2883); this says nothing about later data.
#[test]
fn a_reported_duplicate_changes_nothing() {
    let (mut end, ..) = End::sending(config(), 9000, WIDE);
    let at = 1_540_000_000;
    assert_eq!(end.ack(at, nth(1), &[(nth(5), nth(9))], WIDE).0, [1, 2, 3, 4].map(nth));
    assert_eq!(end.ack(at + 1000, nth(1), &[(nth(3), nth(9))], WIDE).0, []);
    assert_eq!(end.ack(at + 2000, nth(1), &[(nth(0), nth(1)), (nth(3), nth(9))], WIDE).0, []);
    // The timers of 3 and 4 are stopped.
    let (again, _) = end.poll(at + 5 * FRAME + RTO);
    assert_eq!(again.iter().map(|segment| segment.seq).collect::<Vec<_>>(), [1, 2].map(nth));
}

/// A peer that discards data that it had reported gets it again: every segment that it asks for has a timer.
#[test]
fn a_peer_that_reneges_is_served() {
    let (mut end, _, _) = End::sending(config(), 3000, WIDE);
    let at = 1_540_000_000;
    let (out, _) = end.ack(at, nth(0), &[(nth(1), nth(3))], WIDE);
    assert_eq!(out, [nth(0)]);
    // The hole is filled, but 1 and 2 are gone at the peer.
    let (out, timer) = end.ack(at + 540_000_000, nth(1), &[], WIDE);
    let due = at + 540_000_000 + RTO;
    assert_eq!((out, timer), (vec![], Some(due)));
    let (again, _) = end.poll(due);
    assert_eq!(again.iter().map(|segment| segment.seq).collect::<Vec<_>>(), [nth(1)]);
}

/// A peer that reports every other byte makes a range of each. From a receiver of whole segments there are few: 1024 are kept, and the rest
/// counts as not reported.
#[test]
fn a_peer_cannot_make_it_keep_many_ranges() {
    let mut sender = Sender::new(StpConfig { window: Some(Bytes::new(100_000)), ..config() });
    sender.skip_syn();
    let mut probe = NoProbe;
    let mut cx = Context { now: Time::ZERO, who: Who(0), probe: &mut probe };
    let mut ack = Segment { ack: 1, window: WIDE, ..Segment::new(Flags::ACK) };
    sender.update_window(&ack);
    sender.established(1000, 1, true);
    sender.write(100_000);
    while sender.next(Time::ZERO, 0).is_some() {}
    for n in 0..20_000 {
        ack.sack = Segment::new(Flags::ACK).sack;
        ack.sack.push(1, 2002 + 2 * n, 2003 + 2 * n);
        sender.on_ack(&mut cx, &ack, false, None);
    }
    assert!(sender.memory() <= 2 * 1024 * size_of::<(u64, u64)>(), "{} bytes", sender.memory());
}

#[test]
fn control_segments_take_their_time_on_the_line() {
    // 48 bytes of a bare ACK take 384 us: the next segment leaves that much later.
    let mut end = End(Connection::new(config(), Role::Passive));
    end.give(0, Input::Open);
    let mut syn = Segment { window: WIDE, ..Segment::new(Flags::SYN) };
    syn.syn.mss = Some(1000);
    let (out, timer) = end.give(0, Input::Segment(syn));
    assert_eq!((out.len(), timer), (1, Some(SYN + RTO)));
    let data = Segment { seq: 1, ack: 1, window: WIDE, len: 1000, ..Segment::new(Flags::ACK) };
    let (out, timer) = end.give(1_000_000_000, Input::Segment(data));
    assert_eq!((out[0].ack, timer), (1001, None));
    let (_, timer) = end.give(1_000_000_000, Input::Write(1000));
    assert_eq!(timer, Some(1_000_000_000 + BARE + FRAME + RTO));
}

mod twin {
    //! The pseudo-code of the `stp` paper, every segment looked at every time, as the oracle of the sender.

    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    struct Copy {
        seq: u64,
        end: u64,
        sent: u32,
        due: u64,
        arrived: bool,
        marked: bool,
    }

    struct Literal {
        config: StpConfig,
        segments: Vec<Copy>,
        una: u64,
        data_end: u64,
        peer: u64,
        line: u64,
    }

    impl Literal {
        fn transmit(&mut self, now: u64, n: usize) -> (u64, u64) {
            let copy = &mut self.segments[n];
            self.line = self.line.max(now) + (copy.end - copy.seq + 48) * 8000;
            copy.sent += 1;
            let from = if self.config.arming == Arming::Departure { self.line } else { now };
            copy.due = from + RTO;
            (copy.seq, copy.end)
        }

        fn next(&mut self, now: u64) -> Result<Option<(u64, u64)>, ()> {
            let waits = |copy: &Copy| copy.end > self.una && !copy.marked;
            let due = (0..self.segments.len()).filter(|&n| waits(&self.segments[n]) && self.segments[n].due <= now);
            if let Some(n) = due.min_by_key(|&n| (self.segments[n].due, n)) {
                return if self.segments[n].sent == 7 { Err(()) } else { Ok(Some(self.transmit(now, n))) };
            }
            let highest = self.segments.iter().rposition(|copy| copy.marked && copy.end > self.una).unwrap_or(0);
            if let Some(n) = (0..highest).find(|&n| waits(&self.segments[n]) && self.segments[n].sent == 1) {
                return Ok(Some(self.transmit(now, n)));
            }
            let next = self.segments.last().map_or(FIRST_BYTE, |last| last.end);
            let edge = self.una + self.config.window(self.config.mss).min(self.peer);
            let end = self.data_end.min(next + self.config.mss as u64).min(edge);
            if end > next && (end - next == self.config.mss as u64 || end == self.data_end) {
                self.segments.push(Copy { seq: next, end, sent: 0, due: 0, arrived: false, marked: false });
                return Ok(Some(self.transmit(now, self.segments.len() - 1)));
            }
            Ok(None)
        }

        fn deadline(&self) -> Option<u64> {
            self.segments.iter().filter(|copy| copy.end > self.una && !copy.marked).map(|copy| copy.due).min()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// Queue, cursor and bisection send the same as the walk over all segments, and wait for the same instants.
        #[test]
        fn agrees_with_the_pseudo_code(
            hand_over: bool,
            window in 1u64..30,
            events in prop::collection::vec((0u8..8, 0usize..40, 0u64..200_000_000), 1..120),
        ) {
            let arming = if hand_over { Arming::HandOver } else { Arming::Departure };
            let config = StpConfig { arming, window: Some(Bytes::new(window * 1000)), ..config() };
            let mut fast = Sender::new(config);
            let mut slow = Literal { config, segments: Vec::new(), una: 1, data_end: 1, peer: 0, line: 0 };
            fast.skip_syn();
            let mut probe = NoProbe;
            let mut now = 0;
            let established = Segment { ack: 1, window: WIDE, ..Segment::new(Flags::ACK) };
            fast.update_window(&established);
            fast.established(1000, 1, true);
            slow.peer = WIDE as u64;
            for (what, n, passes) in events {
                now += passes;
                // Time never passes a timer by: a driver wakes.
                if let Some(due) = slow.deadline() {
                    now = now.min(due);
                }
                let mut cx = Context { now: Time::from_nanos(now), who: Who(0), probe: &mut probe };
                match what {
                    0 | 1 => {
                        let bytes = 700 * (1 + n as u64);
                        fast.write(bytes);
                        slow.data_end += bytes;
                    }
                    2 => {}
                    // A segment arrives at the peer, who reports the block that it lies in and one other.
                    _ if slow.segments.is_empty() => {}
                    _ => {
                        let (n, last) = (n % slow.segments.len(), slow.segments.len() - 1);
                        slow.segments[n].arrived = true;
                        let gap = slow.segments.iter().position(|copy| !copy.arrived).unwrap_or(slow.segments.len());
                        let ack = slow.segments.get(gap).map_or_else(|| slow.segments[gap - 1].end, |copy| copy.seq);
                        let mut segment = Segment { ack, window: WIDE, ..Segment::new(Flags::ACK) };
                        let mut report = |at: usize| {
                            if at > gap && slow.segments[at].arrived {
                                let from = (0..at).rev().take_while(|&m| slow.segments[m].arrived).last().unwrap_or(at);
                                let to = (at..slow.segments.len()).take_while(|&m| slow.segments[m].arrived).last();
                                let to = to.expect("it has arrived itself");
                                segment.sack.push(ack, slow.segments[from].seq, slow.segments[to].end);
                                slow.segments[from..=to].iter_mut().for_each(|copy| copy.marked = true);
                            }
                        };
                        report(n);
                        report(last);
                        slow.una = ack;
                        let changed = fast.update_window(&segment);
                        fast.on_ack(&mut cx, &segment, changed, None);
                    }
                }
                for _ in 0..10_000 {
                    let late = fast.deadline().as_nanos() <= now;
                    let outcome = if late { fast.on_time(&mut cx) } else { Ok(()) };
                    let span = outcome.map(|()| fast.next(cx.now, 0)).map_err(|_| ());
                    if let Ok(Some(span)) = span {
                        let segment = Segment { seq: span.seq, len: span.len, ..Segment::new(Flags::ACK) };
                        fast.on_transmit(cx.now, &segment);
                    }
                    let expected = slow.next(now);
                    prop_assert_eq!(span.map(|span| span.map(|span| (span.seq, span.end()))), expected);
                    match expected {
                        Err(()) => return Ok(()),
                        Ok(None) => break,
                        Ok(Some(_)) => {}
                    }
                }
                fast.check();
                prop_assert_eq!(fast.deadline(), slow.deadline().map_or(Time::NEVER, Time::from_nanos));
            }
        }
    }
}

/// RFC 9293 §3.8.6.2.1: with nothing outstanding, half of the largest window that the peer has offered may be filled by a short segment;
/// less waits for the probe. A segment that the peer has taken in part is repeated from there on. Blocks beyond what was sent are
/// none.
#[test]
fn parts_of_segments() {
    let data = |out: &[Segment]| {
        out.iter().filter(|segment| segment.len > 0).map(|segment| (segment.seq, segment.len)).collect::<Vec<_>>()
    };
    let (mut end, out, _) = End::sending(config(), 100_000, 600);
    assert_eq!(data(&out), [(nth(0), 600)]);
    assert_eq!(end.0.stats().max_flight, 600);
    let (out, timer) = end.ack(1_540_000_000, nth(0) + 600, &[], 299);
    assert_eq!((out, timer), (vec![], Some(1_540_000_000 + RTO)));
    // Another ACK does not put the probe off.
    assert_eq!(end.ack(1_600_000_000, nth(0) + 600, &[], 299).1, timer);
    assert_eq!(data(&end.poll(1_540_000_000 + RTO).0), [(nth(0) + 600, 299)]);
    let (mut end, ..) = End::sending(config(), 100_000, 600);
    assert_eq!(end.ack(1_540_000_000, nth(0) + 600, &[], 300).0, [nth(0) + 600]);
    assert_eq!(end.0.stats().max_flight, 600);
    let (mut end, _, _) = End::sending(config(), 2000, WIDE);
    assert_eq!(end.ack(1_540_000_000, nth(0) + 400, &[(nth(3), nth(4))], WIDE).0, []);
    assert_eq!(data(&end.poll(1_000_000_000 + FRAME + RTO).0), [(nth(0) + 400, 600)]);
}

/// RFC 9293 §3.8.6 excuses only data beyond the right edge of the window. A segment that ends at the edge is within it: though the peer
/// answers, it is given up after six repetitions.
#[test]
fn a_segment_that_ends_at_the_edge_is_given_up() {
    let (mut end, _, mut timer) = End::sending(config(), 1000, 1000);
    let mut again = 0;
    while let Some(at) = timer.filter(|_| again < 20) {
        again += end.poll(at).0.iter().filter(|segment| segment.len > 0).count();
        timer = end.ack(at, nth(0), &[], 1000).1;
    }
    assert_eq!((end.0.state(), again), (State::Closed, 6));
}

/// RFC 5681 §2: a duplicate ACK carries no data, leaves the window as it is, and comes while data is outstanding.
#[test]
fn duplicate_acks_are_counted() {
    let (mut end, ..) = End::sending(config(), 2000, WIDE);
    let mut at = 1_540_000_000;
    let counts = [(1, 0, WIDE), (1, 0, WIDE), (1, 500, WIDE), (1, 0, WIDE - 1), (nth(2), 0, WIDE), (nth(2), 0, WIDE)]
        .map(|(ack, len, window)| {
            at += 1000;
            end.give(at, Input::Segment(Segment { seq: 1, ack, window, len, ..Segment::new(Flags::ACK) }));
            end.0.stats().duplicate_acks
        });
    assert_eq!(counts, [1, 2, 2, 2, 2, 2]);
}
