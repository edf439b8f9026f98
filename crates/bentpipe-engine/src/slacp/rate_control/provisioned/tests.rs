//! A sender with a configured rate, over lines with a different capacity.

use crate::link::{ChannelConfig as Channel, Distribution, Link, LinkConfig, LossConfig, Outcome, QueueLimit, Wire};
use crate::slacp::{ChannelConfig, End, Frame, Input, Output, RateControl, SlacpConfig};
use crate::units::{Duration, Probability, Rate, Time};
use crate::{Context, Machine, Step};

/// A frame and its sender.
struct Carried(usize, Frame);

impl Wire for Carried {
    fn wire_len(&self) -> u32 {
        self.1.wire_len()
    }
}

fn config(max_rate: u64, rate_control: RateControl) -> SlacpConfig {
    let (rate, rtt) = (Rate::from_bits_per_second(max_rate), Duration::from_millis(620));
    let patience = Duration::from_millis(500);
    let channel = ChannelConfig { resends_oldest_first: true, ..ChannelConfig::reliable() };
    SlacpConfig { rate_control, patience, ..SlacpConfig::new(rate, rtt, vec![channel]) }
}

pub(in crate::slacp) fn line(rate: u64, packets: u32, loss: f64) -> LinkConfig {
    let mut link = LinkConfig::clean(Rate::from_bits_per_second(rate), Duration::from_millis(300));
    link.queue.limit = QueueLimit::Packets(packets);
    link.good = LossConfig { packet: Probability::new(loss).expect("a probability"), bit: Probability::ZERO };
    link
}

/// What was seen in each second: megabits that came through, and megabits that were offered.
#[derive(Debug)]
pub(in crate::slacp) struct Second {
    pub(in crate::slacp) delivered: f64,
    pub(in crate::slacp) offered: f64,
    /// Megabits of packets that were delivered, each once.
    pub(in crate::slacp) useful: f64,
}

/// A sender on the line: its maximum rate, its rate control, and the second in which it begins.
#[derive(Clone, Copy, Debug)]
pub(in crate::slacp) struct Sender {
    pub(in crate::slacp) max_rate: u64,
    pub(in crate::slacp) rate_control: RateControl,
    pub(in crate::slacp) begins: u64,
}

/// A single greedy sender.
fn run(max_rate: u64, there: &LinkConfig, seconds: u64) -> Vec<Second> {
    let sender = Sender { max_rate, rate_control: RateControl::Provisioned, begins: 0 };
    run_all(&[sender], there, seconds).swap_remove(0)
}

/// Greedy senders that share a line: the observations of each.
pub(in crate::slacp) fn run_all(senders: &[Sender], there: &LinkConfig, seconds: u64) -> Vec<Vec<Second>> {
    let back = line(20_000_000, 1000, 0.0);
    let mut ends: Vec<[End; 2]> = senders
        .iter()
        .map(|sender| [(); 2].map(|()| End::new(&config(sender.max_rate, sender.rate_control))))
        .collect();
    let mut links = [Link::<Carried>::new(there, 1, "there"), Link::<Carried>::new(&back, 1, "back")];
    let mut seen: Vec<Vec<Second>> = senders.iter().map(|_| Vec::new()).collect();
    let mut counts = vec![(0u64, 0u64, 0u64); senders.len()];
    let (mut now, mut second, mut handle) = (Time::ZERO, 0, 0);
    while second < seconds {
        let next_second = Time::ZERO + Duration::from_secs(second + 1);
        let mut wake = next_second;
        for (ends, _) in ends.iter_mut().zip(senders).filter(|(_, sender)| sender.begins <= second) {
            while ends[0].waiting(0) < 4 {
                let packet = Input::Packet { channel: 0, handle, len: 1400, flow: 0, host: 0, acknowledges: None };
                ends[0].handle(&mut Context::silent(now), packet);
                handle += 1;
            }
        }
        for side in [0, 1] {
            let mut cx = Context::silent(now);
            while let Some(arrival) = links[side].take(&mut cx) {
                if arrival.outcome == Outcome::Delivered {
                    let Carried(who, frame) = arrival.packet;
                    counts[who].0 += u64::from(frame.wire_len()) * u64::from(side == 0);
                    ends[who][1 - side].handle(&mut cx, Input::Frame(frame));
                }
            }
        }
        let mut sent = false;
        for (who, ends) in ends.iter_mut().enumerate() {
            for side in [0, 1] {
                let mut cx = Context::silent(now);
                loop {
                    match ends[side].poll(&mut cx) {
                        Step::Do(Output::Transmit { frame, .. }) => {
                            counts[who].1 += u64::from(frame.wire_len()) * u64::from(side == 0);
                            sent |= side == 0;
                            let _ = links[side].offer(&mut cx, Carried(who, frame));
                        }
                        Step::Do(Output::Deliver { .. }) => counts[who].2 += 1400 * u64::from(side == 1),
                        Step::Do(_) => {}
                        Step::Wait(until) => {
                            wake = until.map_or(wake, |until| until.min(wake));
                            break;
                        }
                    }
                }
            }
        }
        if sent {
            continue;
        }
        let arrival = Time::earliest(links[0].next_arrival(), links[1].next_arrival());
        now = arrival.map_or(wake, |arrival| arrival.min(wake)).max(now);
        if now >= next_second {
            second += 1;
            let mega = |bytes: u64| bytes as f64 * 8.0 / 1e6;
            for (seen, (delivered, offered, useful)) in seen.iter_mut().zip(counts.iter_mut().map(core::mem::take)) {
                let (delivered, offered, useful) = (mega(delivered), mega(offered), mega(useful));
                seen.push(Second { delivered, offered, useful });
            }
        }
    }
    seen
}

pub(in crate::slacp) fn mean(seconds: &[Second], get: fn(&Second) -> f64) -> f64 {
    seconds.iter().map(get).sum::<f64>() / seconds.len() as f64
}

/// Twice what the line carries, and a queue of a round trip: a few seconds later no more is offered than is carried.
#[test]
fn a_rate_configured_too_high_is_found_out() {
    let seen = run(20_000_000, &line(10_000_000, 500, 0.0), 60);
    let late = &seen[20..];
    let (offered, delivered) = (mean(late, |s| s.offered), mean(late, |s| s.delivered));
    // Only the probes, 25 % faster every few seconds, exceed it, and the queue that they build is drained.
    assert!(offered < 10.3, "{offered}: {seen:?}");
    assert!(delivered > 9.0, "{delivered}: {seen:?}");
    let worst = seen[8..].iter().map(|s| s.offered).fold(0.0, f64::max);
    assert!(worst < 12.6, "no flood after eight seconds: {worst} {seen:?}");
}

/// A shallow queue, as in a policer: there is no delay to see, but losses fall with the rate.
#[test]
fn losses_that_fall_with_the_rate_are_found_out() {
    let seen = run(20_000_000, &line(10_000_000, 20, 0.0), 60);
    let (offered, delivered) = (mean(&seen[30..], |s| s.offered), mean(&seen[30..], |s| s.delivered));
    assert!(offered < 11.5 && delivered > 8.5, "{offered} {delivered}: {seen:?}");
}

/// A correct rate is kept, however much the link loses.
#[test]
fn losses_of_the_link_change_nothing() {
    for loss in [0.01, 0.05, 0.2] {
        let seen = run(9_900_000, &line(10_000_000, 500, loss), 60);
        let offered = mean(&seen[5..], |s| s.offered);
        // At 20 % a trial of two seconds each half minute costs a fifth of the rate.
        assert!(offered > if loss > 0.1 { 9.4 } else { 9.85 }, "{loss}: {offered}: {seen:?}");
    }
}

/// Neither do outages, each of which takes up to a whole round trip's frames.
#[test]
fn outages_change_nothing() {
    let mut there = line(10_000_000, 500, 0.0);
    let span = |from, to| Distribution::Uniform(Duration::from_millis(from), Duration::from_millis(to));
    there.channel = Channel::OnOff { gap: span(1000, 10_000), burst: span(100, 500) };
    there.bad = LossConfig { packet: Probability::ONE, bit: Probability::ZERO };
    let seen = run(9_900_000, &there, 120);
    let offered = mean(&seen[5..], |s| s.offered);
    assert!(offered > 9.8, "{offered}: {seen:?}");
}

/// The queue may be in the other direction: ACKs must not slow down because data fills the line that carries their reports.
#[test]
fn who_sends_little_does_not_come_down() {
    let judged = |bytes_per_report| {
        let rate = Rate::from_bits_per_second(20_000_000).expect("not zero");
        let mut control = super::Provisioned::new(rate, Duration::ZERO);
        let lowered = (0..500).any(|n| {
            let rtt = Duration::from_millis(if n < 50 { 600 } else { 1200 });
            let sample = super::RateSample {
                arrived: bytes_per_report,
                lost: 0,
                rtt: Some(rtt),
                newest: n,
                next: n + 30,
                in_flight: 30 * bytes_per_report,
            };
            control.on_report(Time::ZERO + Duration::from_millis(20 * n), sample).is_some()
        });
        (lowered, control.is_at_max_rate())
    };
    // 160 kbit/s, and half of the configured rate.
    assert_eq!(judged(400), (false, true));
    assert!(judged(25_000).0);
}

/// A line of 20 Mbit/s that carries 2 Mbit/s from `begin` milliseconds to the 40th second, with a queue of `packets`.
fn dipping(packets: u32, begin: u64) -> LinkConfig {
    let bits_per_frame = 8.0 * (1400.0 + f64::from(crate::slacp::DATA_HEADER));
    let (mut millis, mut carried) = (Vec::new(), 0.0);
    for ms in 0..100_000u64 {
        carried += if (begin..40_000).contains(&ms) { 2e3 } else { 20e3 } / bits_per_frame;
        while carried >= 1.0 {
            millis.push(ms);
            carried -= 1.0;
        }
    }
    let trace = crate::link::RateTrace::new(millis).expect("in order");
    let mut link = LinkConfig::following(trace.into(), Duration::from_millis(300));
    link.queue.limit = QueueLimit::Packets(packets);
    link
}

/// A dip of some 20 s to a tenth: after 3 s the line is full of useful data, and 5 s after the dip it is as full as before, wherever
/// between two probes the dip ends.
#[test]
fn a_dip_costs_little() {
    for packets in [100, 500, 2000] {
        for begin in [20_000, 18_000, 17_000, 15_500, 15_250] {
            let seen = run(20_000_000, &dipping(packets, begin), 46);
            let useful = |from: usize, to: usize| mean(&seen[from..to], |s| s.useful);
            let before = useful(5, 15);
            let (in_dip, after) = (useful(23, 40), useful(45, 46));
            // Packets are delivered in order, so those behind a lost one are late, not missing. The queue of 2000 holds 11 s of the dip, so
            // a packet lost at its beginning is repaired when most of it is over.
            let holds_the_dip = packets == 2000 && begin < 20_000;
            assert!(
                before > 19.6 && (in_dip > 1.7 || holds_the_dip),
                "{packets} {begin}: {before} {in_dip}: {seen:.2?}"
            );
            assert!(after > 0.95 * before, "{packets} {begin}: {before} {after}: {seen:.2?}");
        }
    }
}

/// A line of 20 kbit/s sends a frame of 1500 bytes in 600 ms and one of 60 in 24 ms. The difference is not a queue, and
/// the rate stays.
#[test]
fn long_frames_on_a_slow_line_are_not_a_queue() {
    let rate = Rate::from_bits_per_second(20_000).expect("not zero");
    let mut control = super::Provisioned::new(rate, Duration::ZERO);
    for n in 0..200 {
        let bytes = if n % 20 == 0 { 60 } else { 1500 };
        let sample = super::RateSample {
            arrived: bytes,
            lost: 0,
            rtt: Some(Duration::from_millis(600) + rate.time_for_ceil(bytes)),
            newest: n,
            next: n + 2,
            in_flight: 3000,
        };
        assert_eq!(control.on_report(Time::ZERO + Duration::from_millis(600 * n), sample), None, "report {n}");
    }
}

/// A control at 10 Mbit/s, which is judged once per second. The round trip is 600 ms without a queue, so 75 ms are ignored.
struct Judged(super::Provisioned);

impl Judged {
    fn new() -> Self {
        let rate = Rate::from_bits_per_second(10_000_000).expect("not zero");
        Judged(super::Provisioned::new(rate, Duration::from_millis(500)))
    }

    /// What arrived and what was lost, kilobytes, and the least queue in milliseconds, in all and at the end: the rate then, kbit/s.
    fn judge(&mut self, (arrived, lost, queue, late): (u64, u64, u64, u64)) -> u64 {
        let base = Duration::from_millis(600);
        let min_rtt = |queue| Some(base + Duration::from_millis(queue));
        let sum =
            super::Sum { arrived: 1000 * arrived, lost: 1000 * lost, min_rtt: min_rtt(queue), late_rtt: min_rtt(late) };
        self.0.judge(sum, 1000 * (arrived + lost), Duration::from_secs(1), base);
        self.0.rate().bits_per_second() / 1000
    }
}

/// A queue is one if it is there twice; the rate is then 95 % of what came through, less for a long queue. It stays until a judgement
/// without a queue, and after the next one it is a quarter higher. If that much comes through, it is tripled.
#[test]
fn judgements_by_hand() {
    /// What is seen, and the rate that follows.
    type Judgement = ((u64, u64, u64, u64), u64);
    let q = |arrived, queue| (arrived, 0, queue, queue);
    let down: [Judgement; 2] = [(q(1000, 76), 10_000), (q(1000, 76), 7600)];
    // The line carries what is sent, and loses a twentieth.
    let probe: [Judgement; 2] = [((950, 50, 0, 0), 7600), ((950, 50, 0, 0), 9500)];
    let lossy: [Judgement; 3] = [((1000, 250, 0, 0), 10_000); 3];
    let trial: [Judgement; 2] = [((1000, 250, 0, 0), 8000), ((800, 200, 0, 0), 8000)];
    // A sixth of the rate, and half of that, since the queue is long: a quarter more, and three times that.
    let low: [Judgement; 4] = [(q(200, 700), 10_000), (q(200, 700), 800), (q(100, 0), 1000), (q(125, 0), 3000)];
    let cases: [Vec<Judgement>; 26] = [
        [&low[..], &[(q(375, 0), 9000)]].concat(),
        // After the first step, what comes through need not be 90 %.
        [&low[..], &[(q(313, 0), 9000)]].concat(),
        // Who does not use the higher rate has it raised by a quarter.
        [&low[..], &[(q(100, 0), 3750)]].concat(),
        // Once the rise is over, a single queue is none.
        [&down[..], &probe, &[((1010, 54, 0, 0), 7600), (q(950, 76), 7600)]].concat(),
        [&down[..], &probe, &[(q(1100, 76), 8360), (q(1045, 0), 8360), (q(1045, 76), 8360)]].concat(),
        // At a rate that does not rise, the queue of the end alone is none.
        vec![((1000, 0, 0, 76), 10_000); 3],
        vec![(q(1000, 75), 10_000), (q(1000, 75), 10_000), (q(1000, 75), 10_000)],
        vec![(q(1000, 76), 10_000), (q(1000, 0), 10_000), (q(1000, 76), 10_000)],
        vec![(q(1000, 150), 10_000), (q(1000, 150), 7600)],
        vec![(q(1000, 151), 10_000), (q(1000, 151), 6000), (q(750, 0), 9500)],
        vec![(q(1000, 601), 10_000), (q(1000, 601), 4000), (q(500, 0), 9500)],
        // A sender that used less than 70 % does not know what the line carries.
        vec![(q(300, 76), 10_000), (q(300, 76), 2280), (q(285, 0), 2850)],
        // Nothing comes down to more.
        [&down[..], &[(q(1250, 76), 7600), (q(1250, 76), 7600)]].concat(),
        // 90 % of the raised rate, less the losses from before, have to come through.
        [&down[..], &probe, &[((1020, 54, 0, 0), 10_000)]].concat(),
        [&down[..], &probe, &[((1010, 54, 0, 0), 7600)]].concat(),
        [&down[..], &probe, &[((1045, 142, 0, 0), 10_000)]].concat(),
        [&down[..], &probe, &[((1045, 200, 0, 0), 8360)]].concat(),
        // While it rises, a queue at the end of a judgement is enough.
        [&down[..], &probe, &[(q(1100, 76), 8360)]].concat(),
        [&down[..], &probe, &[((1100, 0, 0, 76), 8360)]].concat(),
        // Who does not use the rate learns nothing from a rise.
        [&down[..], &[(q(100, 0), 7600), (q(100, 0), 9500), (q(100, 0), 10_000)]].concat(),
        // Losses: a trial with what came through, which is judged once it has taken effect.
        [
            &lossy[..],
            &trial,
            &[((800, 200, 0, 0), 10_000)],
            &[((1000, 250, 0, 0), 10_000); 49],
            &[((1000, 250, 0, 0), 8000)],
        ]
        .concat(),
        [&lossy[..], &trial, &[((950, 50, 0, 0), 8000), ((950, 50, 0, 0), 10_000)]].concat(),
        [&lossy[..], &trial, &[((10, 0, 0, 0), 10_000)]].concat(),
        vec![((699, 175, 0, 0), 10_000); 9],
        [&[((700, 175, 0, 0), 10_000); 3][..], &[((700, 175, 0, 0), 5600)]].concat(),
        vec![((1125, 124, 0, 0), 10_000); 9],
    ];
    for (n, case) in cases.iter().enumerate() {
        let mut judged = Judged::new();
        let rates: Vec<u64> = case.iter().map(|&(seen, _)| judged.judge(seen)).collect();
        assert_eq!(rates, case.iter().map(|&(_, rate)| rate).collect::<Vec<_>>(), "case {n}");
    }
}

/// 1.25 round trips of 600 ms, 500 ms of patience and 100 ms at 10 Mbit/s, and a frame. After a restart, reports of what was sent before
/// the next one say nothing.
#[test]
fn what_is_in_flight_and_what_a_restart_forgets() {
    let mut control = Judged::new().0;
    let begins = |control: &mut super::Provisioned, newest, next| {
        let rtt = Some(Duration::from_millis(600));
        control.on_report(Time::ZERO, super::RateSample { arrived: 0, lost: 0, rtt, newest, next, in_flight: 0 });
        control.since.is_some()
    };
    assert_eq!(control.max_in_flight(), u64::MAX);
    assert!(begins(&mut control, 10, 40));
    assert_eq!(control.max_in_flight(), 1_687_500 + 1500);
    control.restart();
    assert_eq!(
        [(11, 41), (40, 60), (41, 61)].map(|(newest, next)| begins(&mut control, newest, next)),
        [false, false, true]
    );
    assert_eq!(control.max_in_flight(), 1_687_500 + 1500);
}

/// A report of 10 Mbit/s: what arrived, what was lost and what is in flight, kilobytes, and the round trip.
fn report(control: &mut super::Provisioned, ms: u64, (arrived, lost, in_flight): (u64, u64, u64), rtt: u64) {
    let (arrived, lost, in_flight) = (1000 * arrived, 1000 * lost, 1000 * in_flight);
    let sample =
        super::RateSample { arrived, lost, rtt: Some(Duration::from_millis(rtt)), newest: 0, next: 1, in_flight };
    control.on_report(Time::ZERO + Duration::from_millis(ms), sample);
}

/// A judgement takes a round trip of 600 ms, or half of one while the rate rises after its first step, but at least 100
/// ms. The last quarter's least round trip begins at three quarters of it.
#[test]
fn judgements_take_a_round_trip() {
    for (base, climbs, is_first_step, length) in
        [(600, false, false, 600), (600, true, true, 600), (600, true, false, 300), (10, false, false, 100)]
    {
        let mut control = Judged::new().0;
        report(&mut control, 0, (0, 0, 0), base);
        (control.climbs, control.is_first_step) = (climbs, is_first_step);
        let begins = control.since;
        let late: Vec<_> = [(length * 3 / 4 - 1, 50), (length * 3 / 4, 80), (length - 2, 70), (length - 1, 90)]
            .into_iter()
            .map(|(ms, queue)| {
                report(&mut control, ms, (1, 0, 0), base + queue);
                assert_eq!(control.since, begins, "{ms}");
                control.sum.late_rtt
            })
            .collect();
        let rtt = |queue| Duration::from_millis(base + queue);
        assert_eq!(late, [None, Some(80), Some(70), Some(70)].map(|queue| queue.map(rtt)));
        assert_eq!(control.sum.min_rtt, Some(rtt(50)));
        report(&mut control, length, (1, 0, 0), base + 100);
        assert_eq!(control.since, Some(Time::ZERO + Duration::from_millis(length)));
    }
}

/// A line that carries less returns few reports. What was sent counts, whether it has arrived, is lost or still in flight: 7/8 of what the
/// rate allows in a round trip of 600 ms, so the sender knows what the line carries, 50 kB in that time. The rate is 75 % of it, since the
/// queue is long. If it sends 80 kB only, it does not weigh.
#[test]
fn what_is_in_flight_was_sent() {
    for (judgements, lost, more_in_flight, carried, rate) in
        [(2, 0, 600, Some(666_666), 499_950), (2, 300, 300, Some(666_666), 499_950), (3, 0, 30, None, 10_000_000)]
    {
        let mut control = Judged::new().0;
        report(&mut control, 0, (0, 0, 100), 600);
        for n in 1..=judgements {
            report(&mut control, 600 * n, (50, lost, 100 + n * more_in_flight), 800);
        }
        assert_eq!((control.carried, control.rate().bits_per_second()), (carried, rate), "{lost} {more_in_flight}");
    }
}
