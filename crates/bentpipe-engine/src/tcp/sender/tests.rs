//! The sender's parts together, without a connection.

use proptest::prelude::*;

use super::*;
use crate::machine::Context;
use crate::probe::{NoProbe, Who};
use crate::tcp::config::{Shortcuts, WindowUnit};
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::sending::Half;
use crate::units::{Duration, Rate};

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

/// A sender whose data may go out, with windows of 10 segments of 1000 bytes.
fn open_sender() -> Sender {
    let shortcuts = Shortcuts { handshake: Handshake::None, ..Shortcuts::NONE };
    Sender::new(&TcpConfig { mss: 1000, shortcuts, ..TcpConfig::default() })
}

/// A control with a pacing rate spaces the segments; the deadline is the time of the next one.
#[test]
fn a_pacing_rate_spaces_segments() {
    let mut sender = open_sender();
    // 1000 bytes take 10 ms.
    sender.congestion.pace(Rate::from_bits_per_second(800_000).expect("not zero"));
    sender.write(4000);
    let mut now = at(5);
    for n in 0..4 {
        let span = sender.next(now, 0).expect("the rate allows it");
        assert_eq!((now, span.seq), (at(5 + 10 * n), 1 + 1000 * n));
        if n == 3 {
            break;
        }
        assert_eq!(sender.next(now, 0), None, "held back");
        now = sender.deadline();
        let mut probe = NoProbe;
        let mut cx = Context { now, who: Who(0), probe: &mut probe };
        sender.on_time(&mut cx).expect("nothing is given up");
    }
    // All is sent: only the retransmission timer is left, 1 s after the first segment of the flight.
    assert_eq!(sender.next(at(100), 0), None);
    assert_eq!(sender.deadline(), at(1005));
}

/// A connection in FIN-WAIT-2 asks its sender for nothing more: the pacing deadline ends without that.
#[test]
fn a_pacing_deadline_passes_unasked() {
    let mut sender = open_sender();
    sender.congestion.pace(Rate::from_bits_per_second(800_000).expect("not zero"));
    sender.write(1000);
    assert!(sender.next(at(5), 0).is_some());
    assert_eq!((sender.next(at(5), 0), sender.deadline()), (None, at(15)));
    let mut probe = NoProbe;
    let mut cx = Context { now: at(15), who: Who(0), probe: &mut probe };
    sender.on_time(&mut cx).expect("nothing is given up");
    assert_eq!(sender.deadline(), at(1005));
}

/// SO_MAX_PACING_RATE paces a control that sets no rate, from the first segment on, and bounds one that does.
#[test]
fn a_max_rate_paces_any_control() {
    let rate = |bits| Rate::from_bits_per_second(bits);
    for variant in ["linux-reno", "bbr"] {
        let mut config = TcpConfig { mss: 1000, ..TcpConfig::default() };
        config.variant = crate::tcp::Variant::named(variant).expect("a row");
        config.variant.pacing.max_rate = rate(800_000);
        let mut congestion = Congestion::new(&config, false);
        congestion.note_round_trip(0, || None);
        assert_eq!(congestion.pacing_rate(), rate(800_000), "{variant}");
        // A window of 10 segments per 10 s, at 200 %: 16 kbit/s.
        congestion.note_round_trip(0, || Some(Duration::from_secs(10)));
        let slow = if variant == "bbr" { rate(800_000) } else { rate(16_000) };
        assert_eq!(congestion.pacing_rate(), slow, "{variant}");
        congestion.note_round_trip(0, || Some(Duration::from_millis(1)));
        assert_eq!(congestion.pacing_rate(), rate(800_000), "{variant}");
    }
}

/// Without a pacing rate a window goes out at once.
#[test]
fn without_a_rate_the_window_goes_out_at_once() {
    let mut sender = open_sender();
    sender.write(20_000);
    let sent = core::iter::from_fn(|| sender.next(at(5), 0)).count();
    assert_eq!(sent, 10);
}

/// The parts handle a loss in order: detection, then the window, then the retransmission.
#[test]
fn three_duplicate_acks_halve_and_retransmit() {
    let mut config = TcpConfig { mss: 1000, ..TcpConfig::default() };
    config.variant = crate::tcp::Variant::named("reno").expect("a row");
    config.shortcuts = Shortcuts { handshake: Handshake::None, ..Shortcuts::NONE };
    let mut sender = Sender::new(&config);
    sender.write(20_000);
    while sender.next(at(0), 0).is_some() {}
    let mut probe = NoProbe;
    let mut ack = Segment::new(Flags::ACK);
    (ack.ack, ack.window) = (1, 1 << 20);
    sender.update_window(&ack);
    for n in 1..=3 {
        assert_eq!(sender.cwnd(), 10_000);
        let mut cx = Context { now: at(100 + n), who: Who(0), probe: &mut probe };
        sender.on_ack(&mut cx, &ack, false, None);
    }
    // Half of ten segments, inflated by the three that have left.
    assert_eq!((sender.cwnd(), sender.ssthresh(), sender.congestion.window.usable()), (5000, 5000, 8000));
    let span = sender.next(at(104), 0).expect("the fast retransmit");
    assert_eq!((span.seq, span.retransmission, sender.sequence().flight()), (1, true, 10_000));
    assert_eq!(sender.deadline(), at(103) + Duration::from_secs(1));
    // RFC 5681 §3.2 step 4: each further duplicate ACK inflates it by a segment; an ACK with data is none (§2).
    for (len, usable) in [(0, 9000), (100, 9000), (0, 10_000)] {
        let ack = Segment { len, ..ack };
        sender.on_ack(&mut Context::silent(at(110)), &ack, false, None);
        assert_eq!(sender.congestion.window.usable(), usable);
    }
}

/// RFC 6582 §3.2 step 3B: a partial ACK has the first segment behind it sent again. Half of ten segments and three of inflation are 8000
/// bytes; less the 4000 that it acknowledges and one segment more they are 5000.
#[test]
fn a_partial_ack_retransmits_the_next_hole() {
    let mut config = TcpConfig { mss: 1000, ..TcpConfig::default() };
    config.variant = crate::tcp::Variant::named("newreno").expect("a row");
    config.shortcuts = Shortcuts { handshake: Handshake::None, ..Shortcuts::NONE };
    let mut sender = Sender::new(&config);
    sender.write(20_000);
    while sender.next(at(0), 0).is_some() {}
    let mut ack = Segment { ack: 1, window: 1 << 20, ..Segment::new(Flags::ACK) };
    sender.update_window(&ack);
    let take = |sender: &mut Sender, ack: &Segment, millis| {
        sender.on_ack(&mut Context::silent(at(millis)), ack, false, None);
        core::iter::from_fn(|| sender.next(at(millis), 0))
            .map(|span| (span.seq, span.retransmission))
            .collect::<Vec<_>>()
    };
    let sent = [101, 102, 103].map(|millis| take(&mut sender, &ack, millis));
    assert_eq!(sent[2], [(1, true)]);
    ack.ack = 4001;
    let sent = take(&mut sender, &ack, 200);
    assert_eq!((sent[0], sender.congestion.window.usable()), ((4001, true), 5000));
}

/// A timeout counts only after a transmission: at 1000 bytes per 100 s the retransmission waits for 99 s behind the first segment,
/// and the timer runs from then on. With three retries allowed the segment is sent four times before the connection is given up.
#[test]
fn a_retransmission_that_pacing_holds_is_no_retry() {
    let shortcuts = Shortcuts { handshake: Handshake::None, ..Shortcuts::NONE };
    let mut config = TcpConfig { mss: 1000, shortcuts, ..TcpConfig::default() };
    config.rto.max_retries = 3;
    let mut sender = Sender::new(&config);
    sender.congestion.pace(Rate::from_bits_per_second(80).expect("not zero"));
    sender.write(1000);
    let (mut now, mut sent) = (at(0), Vec::new());
    let end = loop {
        let mut probe = NoProbe;
        let mut cx = Context { now, who: Who(0), probe: &mut probe };
        if let Err(abort) = sender.on_time(&mut cx) {
            break abort;
        }
        while let Some(span) = sender.next(now, 0) {
            assert_eq!(span.seq, 1);
            sent.push(now.as_nanos() / 1_000_000_000);
        }
        assert!(sender.deadline() > now, "it waits");
        now = sender.deadline();
    };
    assert_eq!(end, crate::tcp::Abort::RetriesExhausted);
    // The first timeout after 1 s; the others while the line of the pacer is busy.
    assert_eq!(sent, [0, 100, 200, 300]);
    assert_eq!((sender.counters.timeouts, now.as_nanos() / 1_000_000_000), (3, 308));
}

/// 50 segments per 20 ms, as the peer's window allows. While BBR keeps four in flight to measure the round trip, for ten round trips, the
/// rate of these says nothing about the path: it paces as before (draft-cardwell-iccrg-bbr-congestion-control-00 §4.3.5).
#[test]
fn a_probe_of_the_round_trip_does_not_lower_the_rate() {
    for row in ["bbr", "bbr3"] {
        let shortcuts = Shortcuts { handshake: Handshake::None, ..Shortcuts::NONE };
        let mut config = TcpConfig { mss: 1000, shortcuts, ..TcpConfig::default() };
        config.variant = crate::tcp::Variant::named(row).expect("a row");
        let mut sender = Sender::new(&config);
        let mut ack = Segment::new(Flags::ACK);
        (ack.ack, ack.window) = (1, 50_000);
        sender.update_window(&ack);
        sender.write(1 << 40);
        let (mut now, mut under_way) = (at(0), alloc::collections::VecDeque::new());
        let (mut probe, mut probes, mut slowest) = (NoProbe, 0, u64::MAX);
        while now < at(16_000) {
            let mut cx = Context { now, who: Who(0), probe: &mut probe };
            sender.on_time(&mut cx).expect("nothing is given up");
            while let Some(&(_, end)) = under_way.front().filter(|&&(arrival, _)| arrival <= now) {
                under_way.pop_front();
                ack.ack = end;
                sender.update_window(&ack);
                sender.on_ack(&mut cx, &ack, false, None);
            }
            while let Some(span) = sender.next(now, 0) {
                // Only the first round trip is a minimum.
                let delay = Duration::from_micros(if span.seq == 1 { 19_000 } else { 20_000 });
                under_way.push_back((now + delay, span.end()));
            }
            if now > at(1000) {
                let rate = sender.congestion.pacing_rate().expect("it paces");
                slowest = slowest.min(rate.bits_per_second());
            }
            probes += u32::from(sender.congestion.holds_back());
            now = sender.deadline().min(under_way.front().map_or(Time::NEVER, |&(arrival, _)| arrival));
        }
        assert!(probes > 0, "{row}: it probes");
        // 20 Mbit/s; 0.75 or 0.9 of it in some rounds, less a hundredth.
        assert!(slowest > 14_000_000, "{row}: {slowest}");
    }
}

/// A duplicate report widens RACK's reordering window for sixteen recoveries (RFC 8985 §6.2 step 4). Those after a timeout count.
#[test]
fn the_end_of_the_repair_after_a_timeout_is_the_end_of_a_recovery() {
    let shortcuts = Shortcuts { handshake: Handshake::None, ..Shortcuts::NONE };
    let mut config = TcpConfig { mss: 1000, shortcuts, ..TcpConfig::default() };
    config.variant = crate::tcp::Variant::named("rack").expect("a row");
    config.variant.tail_probe = false;
    let mut sender = Sender::new(&config);
    let mut probe = NoProbe;
    let mut ack = Segment::new(Flags::ACK);
    (ack.ack, ack.window) = (1, 50_000);
    sender.update_window(&ack);
    if let Some(rack) = sender.loss.scoreboard.rack() {
        rack.on_duplicate_report(1, 1, false);
    }
    let mut now = at(0);
    for recovery in 0..=16 {
        let mult = sender.loss.scoreboard.rack().map(|rack| rack.reo_wnd_mult());
        assert_eq!(mult, Some(if recovery < 16 { 2 } else { 1 }), "after {recovery}");
        sender.write(1000);
        while sender.next(now, 0).is_some() {}
        now = sender.deadline();
        let mut cx = Context { now, who: Who(0), probe: &mut probe };
        sender.on_time(&mut cx).expect("nothing is given up");
        assert!(sender.next(now, 0).is_some_and(|span| span.retransmission));
        now += Duration::from_millis(100);
        let mut cx = Context { now, who: Who(0), probe: &mut probe };
        ack.ack += 1000;
        sender.on_ack(&mut cx, &ack, false, None);
        assert_eq!(sender.phase(), Phase::Open);
    }
}

/// A constant window is sent again at the first timeout; at the next ones, when the path may be down, one segment of it is, until an ACK
/// shows that the path is back.
#[test]
fn a_constant_window_is_probed_for_by_one_segment() {
    let shortcuts = Shortcuts { handshake: Handshake::None, ..Shortcuts::NONE };
    let mut config = TcpConfig { mss: 1000, shortcuts, ..TcpConfig::default() };
    config.variant = crate::tcp::Variant::named("constant-rack").expect("a row");
    (config.variant.startup, config.variant.tail_probe) = (crate::tcp::variant::Startup::FixedWindow(10), false);
    let mut sender = Sender::new(&config);
    let mut probe = NoProbe;
    let mut ack = Segment::new(Flags::ACK);
    (ack.ack, ack.window) = (1, 50_000);
    sender.update_window(&ack);
    sender.write(40_000);
    let sent = |sender: &mut Sender, now| core::iter::from_fn(|| sender.next(now, 0)).map(|span| span.seq).collect();
    let window = |first: u64| (0..10).map(|n| first + 1000 * n).collect::<Vec<u64>>();
    let out: Vec<u64> = sent(&mut sender, at(0));
    assert_eq!(out, window(1));
    let mut now = at(0);
    for timeout in 0..4 {
        now = sender.deadline();
        let mut cx = Context { now, who: Who(0), probe: &mut probe };
        sender.on_time(&mut cx).expect("nothing is given up");
        let out: Vec<u64> = sent(&mut sender, now);
        assert_eq!(out, if timeout == 0 { window(1) } else { vec![1] }, "timeout {timeout}");
    }
    now += Duration::from_millis(600);
    ack.ack = 1001;
    let mut cx = Context { now, who: Who(0), probe: &mut probe };
    sender.on_ack(&mut cx, &ack, false, None);
    let out: Vec<u64> = sent(&mut sender, now);
    assert_eq!((out, sender.cwnd()), (window(1001), 10_000));
    // So does the end of a timeout for which nothing was lost.
    sender.congestion.window.set(1000.0);
    sender.congestion.on_spurious_timeout(0, 0);
    assert_eq!(sender.cwnd(), 10_000);
}

/// Nagle's algorithm holds 300 bytes back, until a timeout sends them along with the 500 bytes before them. From then on
/// they do not wait in the send buffer: once all is acknowledged, it is empty, and a program that waits may write again.
#[test]
fn bytes_that_leave_with_a_retransmission_no_longer_wait() {
    let shortcuts = Shortcuts { handshake: Handshake::None, ..Shortcuts::NONE };
    let mut config = TcpConfig { mss: 1000, nagle: true, send_buffer: Some(1200), shortcuts, ..TcpConfig::default() };
    config.variant = crate::tcp::Variant::named("reno").expect("a row");
    let mut sender = Sender::new(&config);
    let mut ack = Segment::new(Flags::ACK);
    (ack.ack, ack.window) = (1, 50_000);
    sender.update_window(&ack);
    sender.established(1000, 10, false);
    sender.write(500);
    assert_eq!(sender.next(at(0), 0).map(|span| span.len), Some(500));
    sender.write(300);
    assert_eq!(sender.next(at(0), 0), None);
    sender.wait_for_room();
    assert_eq!(sender.room(), 0);
    let now = sender.deadline();
    let mut cx = Context { now, who: Who(0), probe: &mut NoProbe };
    sender.on_time(&mut cx).expect("nothing is given up");
    assert_eq!(sender.next(now, 0).map(|span| (span.len, span.retransmission)), Some((800, true)));
    ack.ack = 801;
    sender.on_ack(&mut cx, &ack, false, None);
    assert!(sender.room() > 0);
}

/// F-RTO finds a timeout spurious (RFC 5682 §2.1 step 3b), just after the peer has reported the ninth and tenth segment. The peer then
/// discards both (RFC 2018 §8), and loses the two after them. One more timeout shows that, and all four are sent again.
#[test]
fn reports_outlast_a_spurious_timeout() {
    let shortcuts = Shortcuts { handshake: Handshake::None, ..Shortcuts::NONE };
    let mut config = TcpConfig { mss: 1000, shortcuts, ..TcpConfig::default() };
    config.variant = crate::tcp::Variant::named("cubic").expect("a row");
    config.variant.tail_probe = false;
    let mut sender = Sender::new(&config);
    let mut ack = Segment::new(Flags::ACK);
    (ack.ack, ack.window) = (1, 50_000);
    sender.update_window(&ack);
    sender.write(12_000);
    let send = |sender: &mut Sender, now| core::iter::from_fn(|| sender.next(now, 0)).map(|span| span.seq).collect();
    let sent: Vec<u64> = send(&mut sender, at(0));
    assert_eq!(sent.len(), 10);
    let take = |sender: &mut Sender, now, ack: &Segment| {
        sender.on_ack(&mut Context { now, who: Who(0), probe: &mut NoProbe }, ack, false, None);
    };
    // So late that the timer expires before RACK does anything.
    let mut report = ack;
    report.sack.push(1, 8001, 10_001);
    take(&mut sender, at(950), &report);
    assert_eq!(sender.deadline(), at(1000));
    sender.on_time(&mut Context { now: at(1000), who: Who(0), probe: &mut NoProbe }).expect("nothing is given up");
    let _: Vec<u64> = send(&mut sender, at(1000));
    for (now, number, sends) in [(1050, 2001, &[10_001, 11_001][..]), (1060, 3001, &[]), (1070, 8001, &[])] {
        ack.ack = number;
        take(&mut sender, at(now), &ack);
        let sent: Vec<u64> = send(&mut sender, at(now));
        assert_eq!(sent, sends, "{number}");
    }
    assert_eq!((sender.counters.spurious_timeouts, sender.counters.timeouts), (1, 1));
    // What the peer has from now on, and its answers under way.
    let mut has = [true; 12];
    has[8..].fill(false);
    let mut answers = alloc::collections::VecDeque::new();
    while sender.seq.snd_una <= 12_000 {
        let now = answers.front().map_or(Time::NEVER, |&(arrival, _): &(Time, Segment)| arrival).min(sender.deadline());
        sender.on_time(&mut Context { now, who: Who(0), probe: &mut NoProbe }).expect("nothing is given up");
        while let Some((_, answer)) = answers.front().copied().filter(|&(arrival, _)| arrival <= now) {
            answers.pop_front();
            take(&mut sender, now, &answer);
        }
        let sent: Vec<u64> = send(&mut sender, now);
        for seq in sent {
            has[(seq / 1000) as usize] = true;
            let missing = has.iter().position(|has| !has).unwrap_or(12);
            let mut answer = Segment { ack: 1 + 1000 * missing as u64, ..ack };
            let beyond = (missing..12).filter(|&n| has[n]).map(|n| 1 + 1000 * n as u64);
            beyond.for_each(|start| assert!(answer.sack.push(answer.ack, start, start + 1000)));
            answers.push_back((now + Duration::from_millis(960), answer));
        }
    }
    assert_eq!(sender.counters.timeouts, 2);
}

proptest! {
    /// What is chosen in the frequent cases is what is chosen in general, and choosing it changes nothing. All is counted in
    /// halves of segments, so that segments often just fit.
    #[test]
    fn a_full_segment_is_chosen_like_any_other(
        una in 1u64..3,
        halves in (0u64..12, prop_oneof![3 => Just(0u64), 1 => 0u64..12], 0u64..8, 2u64..18, 0u64..3, 0u64..18),
        reserved in prop_oneof![2 => Just(0u16), 1 => Just(36)],
        window_unit in prop_oneof![Just(WindowUnit::Bytes), Just(WindowUnit::Segments)],
        (nagle, fin, probes) in any::<(bool, bool, bool)>(),
    ) {
        let [flight, back, rest, cwnd, inflation, peer] = <[u64; 6]>::from(halves).map(|halves| 500 * halves);
        let shortcuts = Shortcuts { handshake: Handshake::None, window_unit, ..Shortcuts::NONE };
        let mut sender = Sender::new(&TcpConfig { mss: 1000, nagle, shortcuts, ..TcpConfig::default() });
        (sender.seq.snd_una, sender.seq.snd_max) = (una, una + flight);
        sender.seq.snd_nxt = una + flight - back.min(flight);
        (sender.seq.data_end, sender.seq.fin, sender.seq.peer.now) = (una + flight + rest, fin, peer);
        sender.congestion.window.set(cwnd as f64);
        sender.congestion.window.set_inflation(inflation);
        sender.reserved = reserved;
        if probes {
            sender.persist.start(at(1), sender.probe_intervals());
        }
        let before = format!("{sender:?}");
        let chosen = sender.choose_full(sender.full());
        prop_assert_eq!(format!("{sender:?}"), before.clone());
        if let Some(chosen) = chosen {
            prop_assert_eq!(sender.choose_by_window(at(2)), chosen);
            prop_assert_eq!(format!("{sender:?}"), before);
        } else {
            let usual = flight > 0 && back.min(flight) == 0 && rest > 1000;
            prop_assert!(!usual, "the short way is taken where it can be");
        }
    }
}
