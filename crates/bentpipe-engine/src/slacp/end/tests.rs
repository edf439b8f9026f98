//! Two ends over a line that loses, doubles and overtakes.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::NoProbe;
use crate::link::QueueLimit;
use crate::slacp::Released;
use crate::slacp::config::{
    Arq, ChannelConfig, Codel, Copies, Fec, Order, Overhead, Queueing, RateControl, Release, Repairs,
};
use crate::units::Rate;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn at(ms: u64) -> Time {
    Time::ZERO + MS(ms)
}

fn channel() -> ChannelConfig {
    ChannelConfig {
        arq: Some(Arq { transmissions: None }),
        copies: None,
        fec: None,
        order: Order::Flow,
        priority: 0,
        weight: 1,
        limit: QueueLimit::Unlimited,
        limit_counts_copies: false,
        codel: None,
        filters_acks: false,
        queueing: Queueing::Fifo,
        segments: 1,
    }
}

const FEC: Fec = Fec { block: 10, interval: Duration::from_millis(40), max_overhead: 0.5, repairs: Repairs::Spare };

fn config(channels: Vec<ChannelConfig>) -> SlacpConfig {
    SlacpConfig {
        rate: Rate::from_bits_per_second(8_000_000),
        rate_control: RateControl::Fixed,
        initial_rtt: MS(500),
        channels,
        report_interval: MS(20),
        reordering: 0,
        release: Release::AtOnce,
        window: 10_000,
        weightless: false,
        hears_damage: false,
        overhead: Overhead::Bytes(0),
        catch_up: Duration::ZERO,
        patience: Duration::ZERO,
    }
}

fn paced(bits_per_second: u64) -> Release {
    Release::Paced(Rate::from_bits_per_second(bits_per_second).expect("not zero"))
}

/// What the line does to the n-th frame of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Arrives,
    Lost,
    Twice,
    /// So many milliseconds late.
    Late(u64),
}

/// Two ends, 250 ms apart each way. Packets go from the first to the second; each is its number.
struct Pair {
    ends: [End; 2],
    now: Time,
    /// Frames on the way, by arrival.
    flying: BTreeMap<(Time, u64), (usize, Frame)>,
    sent: [usize; 2],
    ticket: u64,
    /// Packet of each (channel, seq), its distance and length.
    truth: BTreeMap<(u8, u64), (u32, u32, u32)>,
    /// The same, never forgotten.
    known: BTreeMap<(u8, u64), (u32, u32, u32)>,
    firsts: usize,
    delivered: Vec<(Time, u32)>,
    released: BTreeMap<u32, Released>,
    skipped: Vec<u64>,
    line: Vec<(Time, Frame)>,
}

impl Pair {
    fn new(config: &SlacpConfig) -> Self {
        Pair {
            ends: [End::new(config), End::new(config)],
            now: Time::ZERO,
            flying: BTreeMap::new(),
            sent: [0; 2],
            ticket: 0,
            truth: BTreeMap::new(),
            known: BTreeMap::new(),
            firsts: 0,
            delivered: Vec::new(),
            released: BTreeMap::new(),
            skipped: Vec::new(),
            line: Vec::new(),
        }
    }

    fn give(&mut self, side: usize, input: Input) {
        let mut probe = NoProbe;
        let mut cx = Context { now: self.now, who: crate::probe::Who(0), probe: &mut probe };
        self.ends[side].handle(&mut cx, input);
    }

    /// Polls a side until it waits.
    fn drain(&mut self, side: usize, fate: &impl Fn(usize, usize, &Frame) -> Fate) -> Option<Time> {
        loop {
            let mut probe = NoProbe;
            let mut cx = Context { now: self.now, who: crate::probe::Who(0), probe: &mut probe };
            match self.ends[side].poll(&mut cx) {
                Step::Wait(until) => return until,
                Step::Do(Output::Transmit { frame, handle }) => {
                    if let (Frame::Data { channel, seq, behind, len, .. }, Some(handle)) = (&frame, handle) {
                        let packet = (handle, *behind, *len);
                        let first = *self.known.entry((*channel, *seq)).or_insert(packet);
                        assert_eq!(first, packet, "a repetition is the same");
                        if self.known.len() > self.firsts {
                            self.firsts += 1;
                            self.truth.insert((*channel, *seq), packet);
                        }
                    }
                    if side == 0 {
                        self.line.push((self.now, frame.clone()));
                    }
                    let n = self.sent[side];
                    self.sent[side] += 1;
                    let late = match fate(side, n, &frame) {
                        Fate::Lost => continue,
                        Fate::Arrives | Fate::Twice => 0,
                        Fate::Late(ms) => ms,
                    };
                    let copies = if fate(side, n, &frame) == Fate::Twice { 2 } else { 1 };
                    for _ in 0..copies {
                        self.ticket += 1;
                        self.flying.insert((self.now + MS(250 + late), self.ticket), (1 - side, frame.clone()));
                    }
                }
                Step::Do(Output::Deliver { channel, seq }) => {
                    let (handle, ..) = self.truth.remove(&(channel, seq)).expect("delivered once, and sent before");
                    self.delivered.push((self.now, handle));
                }
                Step::Do(Output::Recover { channel, seq, .. }) => {
                    let (_, behind, len) = self.truth[&(channel, seq)];
                    self.give(side, Input::Recovered { channel, seq, behind, len });
                }
                Step::Do(Output::Skip { channel, seq }) => {
                    self.truth.remove(&(channel, seq));
                    self.skipped.push(seq);
                }
                Step::Do(Output::Release { handle, how }) => {
                    assert_eq!(self.released.insert(handle, how), None, "released once");
                }
            }
        }
    }

    /// Gives `packets` (instant, channel, length, flow) to the first end and lets all happen until `until`.
    fn run(
        &mut self,
        packets: &[(Time, u8, u32, u64)],
        until: Time,
        fate: impl Fn(usize, usize, &Frame) -> Fate,
    ) -> &mut Self {
        let mut packets: VecDeque<(u32, (Time, u8, u32, u64))> =
            packets.iter().copied().enumerate().map(|(n, packet)| (n as u32, packet)).collect();
        loop {
            let waits = [self.drain(0, &fate), self.drain(1, &fate)];
            let next = [
                waits[0],
                waits[1],
                self.flying.keys().next().map(|(time, _)| *time),
                packets.front().map(|(_, (time, ..))| *time),
            ];
            let Some(next) = next.into_iter().flatten().min().filter(|&next| next <= until) else { return self };
            assert!(next >= self.now, "an instant that is past would never end");
            self.now = next;
            while let Some(entry) = self.flying.first_entry()
                && entry.key().0 <= next
            {
                let (side, frame) = entry.remove();
                self.give(side, Input::Frame(frame));
            }
            while let Some(&(handle, (time, channel, len, flow))) = packets.front()
                && time <= next
            {
                packets.pop_front();
                self.give(0, Input::Packet { channel, handle, len, flow, acknowledges: None });
            }
        }
    }

    fn handles(&self) -> Vec<u32> {
        self.delivered.iter().map(|&(_, handle)| handle).collect()
    }
}

/// So many packets of 976 bytes, 1 ms of line each, all there at once.
fn bulk(count: u64) -> Vec<(Time, u8, u32, u64)> {
    vec![(Time::ZERO, 0, 976, 7); count as usize]
}

fn nth_data_lost(lost: &'static [usize]) -> impl Fn(usize, usize, &Frame) -> Fate {
    move |side, n, _| if side == 0 && lost.contains(&n) { Fate::Lost } else { Fate::Arrives }
}

#[test]
fn a_lost_frame_costs_its_flow_one_round_trip() {
    let mut pair = Pair::new(&config(vec![channel()]));
    pair.run(&bulk(100), at(5000), nth_data_lost(&[10]));
    assert_eq!(pair.handles(), (0..100).collect::<Vec<_>>());
    // Frames end a millisecond apart but arrive here as their transmission begins: 10 would have come at 260 ms.
    let (arrived, _) = pair.delivered[10];
    // The frame behind it arrives at 261 ms; the report is due 20 ms after the first arrival since the last report:
    // 250, 270 at the latest; 250 ms back, the frame then on the line, 250 ms there again.
    assert!(arrived >= at(761) && arrived <= at(772), "{arrived:?}");
    assert!(pair.delivered[9].0 == at(259) && pair.delivered[99].0 == arrived);
    assert_eq!(pair.ends[0].stats().channels[0].resent, 1);
    assert!(pair.released.values().all(|&how| how == Released::Acknowledged) && pair.released.len() == 100);
    assert!(pair.truth.is_empty());
}

#[test]
fn another_flow_does_not_wait() {
    let mut packets = bulk(40);
    packets.iter_mut().enumerate().for_each(|(n, packet)| packet.3 = n as u64 % 2);
    let mut pair = Pair::new(&config(vec![channel()]));
    pair.run(&packets, at(5000), nth_data_lost(&[10]));
    let odd: Vec<_> = pair.delivered.iter().filter(|(_, handle)| handle % 2 == 1).collect();
    assert!(odd.iter().all(|&&(time, handle)| time == at(250 + handle as u64)), "untouched");
    let even: Vec<_> = pair.handles().into_iter().filter(|handle| handle % 2 == 0).collect();
    assert_eq!(even, (0..40).step_by(2).collect::<Vec<_>>());
}

const COPIES: Copies = Copies { interval: Duration::from_millis(100), max: 3 };

#[test]
fn an_idle_line_spares_the_round_trip() {
    let mut pair = Pair::new(&config(vec![ChannelConfig { copies: Some(COPIES), ..channel() }]));
    // Frames 5 to 9 are lost, and of their copies those in the next 150 ms: all 100 ms after the first.
    let fade = |side, n, _: &Frame| if side == 0 && (5..10).contains(&n) { Fate::Lost } else { Fate::Arrives };
    pair.run(&bulk(10), at(5000), fade);
    assert_eq!(pair.handles(), (0..10).collect::<Vec<_>>());
    // The fifth frame began at 5 ms; its copy 100 ms later, behind those of the five before it, which are due earlier.
    assert_eq!(pair.delivered[5].0, at(105 + 250));
    let stats = pair.ends[0].stats().channels[0];
    assert_eq!((stats.resent, stats.lost), (0, 5), "the copy's arrival came before anything else was to be done");
    assert!(stats.copies <= 30 && stats.copies >= 10, "{stats:?}");
    assert_eq!(pair.ends[1].stats().channels[0].delivered, 10);
}

#[test]
fn copies_take_only_what_is_left_of_the_line() {
    let times = [None, Some(COPIES)].map(|copies| {
        let mut pair = Pair::new(&config(vec![ChannelConfig { copies, ..channel() }]));
        // A packet of 1 ms each millisecond: the line is never idle, until the last has gone.
        let packets: Vec<_> = (0..2000).map(|n| (at(n), 0, 976, 7)).collect();
        pair.run(&packets, at(5000), |_, _, _| Fate::Arrives);
        pair.delivered.last().map(|&(time, _)| time)
    });
    assert_eq!(times[0], times[1]);
    let mut pair = Pair::new(&config(vec![ChannelConfig { copies: Some(COPIES), ..channel() }]));
    pair.run(&bulk(2000), at(1999), |_, _, _| Fate::Arrives);
    // The last packet begins at 1999 ms: until then nothing but packets went out.
    assert_eq!(pair.ends[0].stats().channels[0].copies, 0);
}

/// What costs the line nothing costs processors.
#[test]
fn copies_are_counted() {
    let once = ChannelConfig { copies: Some(Copies { max: 1, ..COPIES }), ..channel() };
    let fast = SlacpConfig { rate: Rate::from_bits_per_second(800_000_000), ..config(vec![once]) };
    let mut pair = Pair::new(&fast);
    // All have gone out in 20 ms, and all might be copied in 20 more.
    pair.run(&bulk(2000), at(299), |_, _, _| Fate::Arrives);
    let spans = MS(200).as_nanos() / COPY_SPAN.as_nanos();
    assert_eq!(pair.ends[0].stats().channels[0].copies, spans * u64::from(MAX_COPIES));
}

#[test]
fn a_copy_that_is_lost_too_is_made_good() {
    let mut pair = Pair::new(&config(vec![ChannelConfig { copies: Some(COPIES), ..channel() }]));
    // The packets and all thirty copies of them are lost; what goes out again after that is not.
    let fade = |side, n, _: &Frame| if side == 0 && n < 40 { Fate::Lost } else { Fate::Arrives };
    pair.run(&bulk(10), at(20_000), fade);
    let lost = pair.ends[0].stats().channels[0].lost;
    assert_eq!(pair.handles(), (0..10).collect::<Vec<_>>());
    assert!(lost >= 40 && pair.truth.is_empty(), "{lost}");
    assert!(pair.released.values().all(|&how| how == Released::Acknowledged));
}

#[test]
fn release_after_a_repair_is_paced() {
    let mut pair = Pair::new(&SlacpConfig { release: paced(16_000_000), ..config(vec![channel()]) });
    pair.run(&bulk(100), at(5000), nth_data_lost(&[10]));
    assert_eq!(pair.handles(), (0..100).collect::<Vec<_>>());
    let gaps: Vec<_> = pair.delivered[12..].windows(2).map(|w| w[1].0 - w[0].0).collect();
    // 976 bytes at 16 Mbit/s.
    assert!(gaps.iter().all(|&gap| gap == Duration::from_micros(488)), "{gaps:?}");
}

/// When packets are passed on, and how many times, if some of them are lost in a row.
fn deliveries(release: Release, lost: std::ops::Range<usize>) -> Vec<(Time, u32)> {
    let mut pair = Pair::new(&SlacpConfig { release, ..config(vec![channel()]) });
    let fade = |side, n, _: &Frame| if side == 0 && lost.contains(&n) { Fate::Lost } else { Fate::Arrives };
    pair.run(&bulk(400), at(5000), fade);
    assert_eq!(pair.handles(), (0..400).collect::<Vec<_>>());
    pair.delivered.clone()
}

#[test]
fn what_an_outage_took_passes_in_groups() {
    let instants = |delivered: &[(Time, u32)]| {
        let mut instants: Vec<_> = delivered[100..300].iter().map(|&(time, _)| time).collect();
        instants.dedup();
        instants
    };
    let singly = deliveries(Release::AtOnce, 100..300);
    assert_eq!(instants(&singly).len(), 200, "each as it comes");
    let grouped = deliveries(Release::Grouped, 100..300);
    // An eighth of the round trip of 500 ms, and what reports add to it.
    let gaps: Vec<_> = instants(&grouped).windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.len() >= 2 && gaps.iter().all(|&gap| gap >= MS(62) && gap < MS(80)), "{gaps:?}");
    // None is late by more than that, and what was not lost is as early as ever.
    for (&(time, _), &(alone, _)) in grouped.iter().zip(&singly) {
        assert!(time >= alone && time - alone < MS(80));
    }
    assert_eq!(grouped[..100], singly[..100]);
    assert_eq!(deliveries(Release::Grouped, 100..108), deliveries(Release::AtOnce, 100..108), "no outage");
}

#[test]
fn acknowledgements_take_the_place_of_those_that_wait() {
    let acks = ChannelConfig { arq: None, order: Order::None, filters_acks: true, ..channel() };
    let mut pair = Pair::new(&config(vec![acks]));
    // One of 976 bytes takes the line for a millisecond, and all others wait then.
    for n in 0..100 {
        let acknowledges = Some(1000 * n);
        pair.give(0, Input::Packet { channel: 0, handle: n, len: 976, flow: u64::from(n) % 2, acknowledges });
    }
    pair.run(&[], at(1000), |_, _, _| Fate::Arrives);
    assert_eq!(pair.handles(), [98, 99]);
    assert_eq!(pair.ends[0].stats().channels[0].superseded, 98);
    assert_eq!((pair.released[&97], pair.released[&98]), (Released::Superseded, Released::Sent));
}

#[test]
fn persistence_is_bounded() {
    let stubborn = ChannelConfig { arq: Some(Arq { transmissions: Some(2) }), ..channel() };
    let mut pair = Pair::new(&config(vec![stubborn]));
    // The sixth packet never gets through.
    pair.run(&bulk(30), at(10_000), |_, _, frame| {
        if matches!(frame, Frame::Data { seq: 5, .. }) { Fate::Lost } else { Fate::Arrives }
    });
    let expected: Vec<_> = (0..30).filter(|&n| n != 5).collect();
    assert_eq!((pair.handles(), pair.skipped.as_slice()), (expected, [5].as_slice()));
    assert_eq!(pair.released[&5], Released::Abandoned);
    let stats = pair.ends[0].stats().channels[0];
    assert_eq!((stats.resent, stats.abandoned), (1, 1));
    assert!(stats.syncs >= 1, "nothing follows that could tell");
    assert!(pair.truth.is_empty());
}

#[test]
fn without_treatment_nothing_is_kept() {
    let plain = ChannelConfig { arq: None, order: Order::None, ..channel() };
    let mut pair = Pair::new(&config(vec![plain]));
    pair.run(&bulk(30), at(5000), nth_data_lost(&[3, 4]));
    let expected: Vec<_> = (0..30).filter(|n| ![3, 4].contains(n)).collect();
    assert_eq!(pair.handles(), expected);
    assert!(pair.delivered.iter().all(|&(time, handle)| time == at(250 + handle as u64)));
    assert_eq!(pair.ends[0].stats().channels[0].lost, 2, "but it is known");
}

/// Voice: 200 B every 20 ms, every tenth frame lost.
#[test]
fn repairs_spare_the_round_trip() {
    let slow = Fec { interval: MS(200), ..FEC };
    let voice = ChannelConfig { arq: None, fec: Some(slow), order: Order::None, ..channel() };
    let mut pair = Pair::new(&config(vec![voice]));
    let packets: Vec<_> = (0..1000).map(|n| (at(20 * n), 0, 200, 1)).collect();
    pair.run(&packets, at(30_000), |side, _, frame| match frame {
        Frame::Data { seq, .. } if side == 0 && seq % 10 == 3 => Fate::Lost,
        _ => Fate::Arrives,
    });
    let late: Vec<_> =
        pair.delivered.iter().map(|&(time, handle)| time - at(20 * handle as u64)).filter(|&d| d > MS(250)).collect();
    let stats = pair.ends[1].stats().channels[0];
    // The first reports take a round trip, and a block or two passes before its successor is protected.
    assert!(stats.recovered >= 94 && stats.skipped <= 6, "{stats:?}");
    // A block lasts 200 ms: a packet waits for its repair frame no longer than that and the line.
    assert!(late.len() as u64 == stats.recovered && late.iter().all(|&delay| delay < MS(250 + 200)), "{late:?}");
    let sent = pair.ends[0].stats().channels[0];
    // One of ten is lost, and might be by chance: four of the ten and their repairs are in two of a hundred blocks, five in four of a thousand.
    assert_eq!(sent.repairs, 4 * 100, "{sent:?}");
}

/// A tenth of the frames there is lost, chosen by their number and a seed.
fn tenth(seed: u64) -> impl Fn(usize, usize, &Frame) -> Fate {
    let noise = crate::stream::TimeNoise::named(seed, "tenth");
    move |side, n, _| if side == 0 && noise.at(n as u64, 0) < 0.1 { Fate::Lost } else { Fate::Arrives }
}

#[test]
fn repairs_take_only_what_is_left_of_the_line() {
    let both = ChannelConfig { fec: Some(FEC), ..channel() };
    let end = |channel, seed| {
        let mut pair = Pair::new(&config(vec![channel]));
        pair.run(&bulk(2000), at(60_000), tenth(seed));
        assert_eq!(pair.handles(), (0..2000).collect::<Vec<_>>());
        let repair = pair.line.iter().find(|(_, frame)| matches!(frame, Frame::Repair { .. })).map(|(time, _)| *time);
        // As long as data fills the line there are none.
        assert!(repair.is_none_or(|time| time >= at(1900)), "{repair:?}");
        pair.delivered.last().expect("all").0.as_secs_f64()
    };
    let (with, without): (Vec<_>, Vec<_>) = (0..40).map(|seed| (end(both, seed), end(channel(), seed))).unzip();
    let gains: Vec<f64> = with.iter().zip(&without).map(|(with, without)| without - with).collect();
    let mean = gains.iter().sum::<f64>() / 40.0;
    let variance = gains.iter().map(|gain| (gain - mean) * (gain - mean)).sum::<f64>() / 39.0;
    // The last losses are made good without a round trip; at two standard errors it never costs time.
    assert!(mean > -2.0 * (variance / 40.0).sqrt(), "{mean} {gains:?}");
}

/// A flow that fills the line and waits for its losses: prompt repairs spare it most of the round trips.
#[test]
fn prompt_repairs_shorten_the_hold() {
    let prompt = Fec { block: 100, interval: MS(200), max_overhead: 0.5, repairs: Repairs::Prompt };
    let hold = |fec| {
        let mut pair = Pair::new(&config(vec![ChannelConfig { fec, ..channel() }]));
        let noise = crate::stream::TimeNoise::named(3, "hundredth");
        pair.run(&bulk(8000), at(60_000), |side, n, _| {
            if side == 0 && noise.at(n as u64, 0) < 0.01 { Fate::Lost } else { Fate::Arrives }
        });
        assert_eq!(pair.handles(), (0..8000).collect::<Vec<_>>());
        let stats = pair.ends[1].stats().channels[0];
        (stats.held.as_secs_f64() / 8000.0, pair.ends[0].stats().channels[0].repairs)
    };
    let ((with, repairs), (without, _)) = (hold(Some(prompt)), hold(None));
    // Without them some frame of the last round trip is always missing. With them a packet waits for the end of its
    // block, half of 100 ms in the mean, and one block in a hundred for a round trip; the first half second is bare.
    assert!(without > 0.4 && with < 0.15, "{with} {without}");
    // 99 of 100 blocks lose at most four frames: no more than five repair frames for a block of a hundred.
    assert!(repairs <= 80 * 5, "{repairs}");
}

/// A long queue keeps the line busy during a repetition, so repair frames wait for its end; a shorter one gets them at
/// once.
#[test]
fn repairs_of_a_long_queue_wait_and_those_of_a_short_one_do_not() {
    let repairs_before = |packets: &[(Time, u8, u32, u64)], repairs, until| {
        let fec = Fec { block: 50, interval: MS(200), max_overhead: 0.5, repairs };
        let mut pair = Pair::new(&config(vec![ChannelConfig { fec: Some(fec), ..channel() }]));
        pair.run(packets, at(60_000), |_, _, _| Fate::Arrives);
        assert_eq!(pair.delivered.len(), packets.len());
        pair.line.iter().filter(|(time, frame)| *time < until && matches!(frame, Frame::Repair { .. })).count()
    };
    // Two seconds of the line at once: the round trip is known after 500 ms, and the queue is a quarter of one long until
    // 1875 ms. Blocks end every 50 ms.
    let long = bulk(2000);
    let between = |repairs| repairs_before(&long, repairs, at(1450)) - repairs_before(&long, repairs, at(700));
    assert_eq!(between(Repairs::Short), 0);
    assert_eq!(between(Repairs::Idle), 0);
    assert!(between(Repairs::Prompt) >= 14);
    // The same at nine tenths of the line's rate: nothing waits.
    let short: Vec<_> = (0..2000).map(|n| (Time::ZERO + Duration::from_micros(1111 * n), 0, 976, 1)).collect();
    assert!(repairs_before(&short, Repairs::Short, at(1450)) >= 20);
}

#[test]
fn an_outage_is_survived_without_shouting_into_it() {
    let mut pair = Pair::new(&config(vec![channel()]));
    let packets: Vec<_> = (0..3000).map(|n| (at(10 * n), 0, 976, 1)).collect();
    // From 5 s to 15 s nothing passes either way; judged by what has been sent, 100 frames per second.
    let log = std::cell::RefCell::new(Vec::new());
    let now = std::cell::Cell::new(0u64);
    let until = at(60_000);
    // The line knows no time; the outage is told by the packets' numbers and the probes' count.
    let outage = |side: usize, _: usize, frame: &Frame| {
        if let (0, Frame::Data { seq, .. }) = (side, frame) {
            now.set(now.get().max(*seq));
            log.borrow_mut().push(*seq);
        }
        let in_outage = (500..580).contains(&now.get()) && log.borrow().len() < 720;
        if in_outage { Fate::Lost } else { Fate::Arrives }
    };
    pair.run(&packets, until, outage);
    assert_eq!(pair.handles(), (0..3000).collect::<Vec<_>>());
    // In silence one frame at a time: far fewer than a timeout for each of what is out, again and again.
    let resent = pair.ends[0].stats().channels[0].resent;
    assert!(resent < 400, "{resent}");
}

#[test]
fn a_higher_priority_waits_for_one_frame_at_most() {
    let voice = ChannelConfig { arq: None, order: Order::None, ..channel() };
    let bulky = ChannelConfig { priority: 1, ..channel() };
    let mut pair = Pair::new(&config(vec![voice, bulky]));
    let mut packets: Vec<_> = (0..2000).map(|_| (Time::ZERO, 1, 976, 1)).collect();
    packets.extend((0..50).map(|n| (Time::ZERO + Duration::from_micros(500) + MS(20 * n), 0, 200, 2)));
    pair.run(&packets, at(10_000), |_, _, _| Fate::Arrives);
    for &(time, handle) in pair.delivered.iter().filter(|(_, handle)| *handle >= 2000) {
        let delay = time - packets[handle as usize].0;
        assert!(delay <= MS(251), "{delay:?}");
    }
    assert_eq!(pair.delivered.len(), 2050);
}

#[test]
fn equals_share_by_weight() {
    let light = ChannelConfig { weight: 1, ..channel() };
    let heavy = ChannelConfig { weight: 3, ..channel() };
    let mut pair = Pair::new(&config(vec![light, heavy]));
    let packets: Vec<_> = (0..8000).map(|n| (Time::ZERO, (n % 2) as u8, 976, n)).collect();
    pair.run(&packets, at(2000), |_, _, _| Fate::Arrives);
    let of = |channel: u32| pair.handles().iter().filter(|&&handle| handle % 2 == channel).count() as f64;
    let ratio = of(1) / of(0);
    assert!((2.9..3.1).contains(&ratio), "{ratio}");
}

#[test]
fn the_standing_queue_stays_at_its_target() {
    // A source of 1.2 times the line's rate: CoDel keeps the wait near its target, a bare limit does not.
    let codel = Codel { target: MS(50), interval: MS(600) };
    let managed = ChannelConfig { codel: Some(codel), ..channel() };
    let mut pair = Pair::new(&config(vec![managed]));
    let packets: Vec<_> = (0..72_000).map(|n| (Time::ZERO + Duration::from_micros(833 * n), 0, 976, 1)).collect();
    pair.run(&packets, at(60_000), |_, _, _| Fate::Arrives);
    let last: Vec<_> = pair.delivered.iter().filter(|(time, _)| *time > at(50_000)).collect();
    let waits: Vec<_> =
        last.iter().map(|&&(time, n)| time - (Time::ZERO + Duration::from_micros(833 * n as u64))).collect();
    let mean = waits.iter().map(|wait| wait.as_secs_f64()).sum::<f64>() / waits.len() as f64 - 0.25;
    // An unresponsive source is CoDel's worst case (RFC 8289 §4.2 aims at responsive ones): drops per second grow as
    // the square root of time steps, and reach the surplus of 200 per second after (200 * 0.6)^2 drops in theory; the
    // bare queue would stand at 10 s by now.
    assert!(mean < 9.0, "{mean}");
    assert!(pair.ends[0].stats().channels[0].dropped_early > 100);
}

#[test]
fn repairs_protect_the_end_of_a_transfer_for_a_round_trip() {
    let run =
        |repairs| {
            let fec = Fec { block: 50, interval: MS(100), repairs, ..FEC };
            let mut pair = Pair::new(&config(vec![ChannelConfig { fec: Some(fec), ..channel() }]));
            // A second of the line at once. One frame of its first half second is lost, and one of the last.
            pair.run(&bulk(1000), at(5000), |side, n, _| {
                if side == 0 && (n == 100 || n == 800) { Fate::Lost } else { Fate::Arrives }
            });
            assert_eq!(pair.handles(), (0..1000).collect::<Vec<_>>());
            (pair.delivered.last().expect("all came").0, pair.ends[0].stats().channels[0])
        };
    let (end, stats) = run(Repairs::Idle);
    // The first is sent again as soon as it is known, a frame more; repairs of the second's block follow the last frame.
    assert_eq!((stats.resent, stats.repaired), (1, 1));
    assert!(end < at(1000 + 250 + 50), "{end:?}");
    let (late, stats) = run(Repairs::Spare);
    assert_eq!((stats.resent, stats.repaired), (2, 0));
    assert!(late > at(1500), "{late:?}");
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        6 => Just(Fate::Arrives),
        2 => Just(Fate::Lost),
        1 => Just(Fate::Twice),
        1 => (1u64..800).prop_map(Fate::Late),
    ];
    prop::collection::vec(fate, 1..400)
}

fn repairs() -> impl Strategy<Value = Option<Fec>> {
    let fec = |repairs| Some(Fec { repairs, ..FEC });
    prop_oneof![
        Just(None),
        Just(fec(Repairs::Spare)),
        Just(fec(Repairs::Prompt)),
        Just(fec(Repairs::Idle)),
        Just(fec(Repairs::Short))
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever the line does to its first frames: with ARQ everything arrives once, each flow in order; every handle
    /// is released once; nothing stays behind.
    #[test]
    fn whole_in_order_once(
        there in fates(), back in fates(), flows in 1u64..5, fec in repairs(), in_channel: bool, copies: bool,
        release in prop::sample::select(vec![Release::AtOnce, Release::Grouped, paced(12_000_000)]),
        reordering in 0u64..4, spread in 0u64..30, window in 5u32..300,
    ) {
        let order = if in_channel { Order::Channel } else { Order::Flow };
        let one = ChannelConfig { copies: copies.then_some(COPIES), fec, order, ..channel() };
        let mut settings = SlacpConfig { reordering, window, ..config(vec![one]) };
        settings.release = release;
        let mut pair = Pair::new(&settings);
        let packets: Vec<_> = (0..200).map(|n| (at(n * spread), 0, 100 + n as u32, n % flows)).collect();
        pair.run(&packets, at(600_000), |side, n, _| {
            let fates = if side == 0 { &there } else { &back };
            fates.get(n).copied().unwrap_or(Fate::Arrives)
        });
        let got = pair.handles();
        let mut sorted = got.clone();
        sorted.sort_unstable();
        prop_assert_eq!(sorted, (0..200).collect::<Vec<_>>());
        for flow in 0..flows {
            let of_flow: Vec<_> = got.iter().filter(|&&n| in_channel || n as u64 % flows == flow).collect();
            prop_assert!(of_flow.is_sorted(), "{:?}", of_flow);
        }
        prop_assert_eq!(pair.released.len(), 200);
        prop_assert!(pair.truth.is_empty() && pair.skipped.is_empty());
    }

    /// With bounded persistence what arrives is in order, and what does not is skipped: nothing waits for ever.
    #[test]
    fn all_is_delivered_or_skipped(
        there in fates(), back in fates(), flows in 1u64..5, fec in repairs(), copies: bool,
        transmissions in prop::option::of(1u32..4),
    ) {
        let arq = transmissions.map(|n| Arq { transmissions: Some(n) });
        let copies = copies.then_some(COPIES).filter(|_| arq.is_some());
        let one = ChannelConfig { arq, copies, fec, ..channel() };
        let mut pair = Pair::new(&config(vec![one]));
        let packets: Vec<_> = (0..200).map(|n| (at(n * 5), 0, 100 + n as u32, n % flows)).collect();
        pair.run(&packets, at(600_000), |side, n, _| {
            let fates = if side == 0 { &there } else { &back };
            fates.get(n).copied().unwrap_or(Fate::Arrives)
        });
        let got = pair.handles();
        for flow in 0..flows {
            let of_flow: Vec<_> = got.iter().filter(|&&n| n as u64 % flows == flow).collect();
            let once = of_flow.windows(2).all(|w| w[0] < w[1]);
            prop_assert!(once || arq.is_none() && fec.is_none(), "{:?}", of_flow);
        }
        prop_assert_eq!(pair.released.len(), 200);
        if arq.is_some() || fec.is_some() {
            prop_assert_eq!(got.len() + pair.skipped.len(), 200);
            prop_assert!(pair.truth.is_empty());
        }
    }
}

/// A packet in four frames is cut evenly, released once, when the last of its frames is acknowledged, and takes the room of
/// one packet until then.
#[test]
fn a_packet_in_frames_takes_room_until_the_last_is_acknowledged() {
    let cut = ChannelConfig { segments: 4, limit: QueueLimit::Packets(2), limit_counts_copies: true, ..channel() };
    let mut pair = Pair::new(&config(vec![cut]));
    // Two fit, the third finds no room. The third frame of the first packet is lost once.
    let packets = [(Time::ZERO, 0, 1001, 7), (Time::ZERO, 0, 1001, 7), (at(1), 0, 1001, 7), (at(530), 0, 1001, 7)];
    pair.run(&packets, at(5000), nth_data_lost(&[2]));
    let lengths: Vec<_> = pair.known.values().map(|&(_, _, len)| len).collect();
    assert_eq!(lengths[..4], [251, 250, 250, 250]);
    assert_eq!(pair.released.get(&2), Some(&Released::DroppedFull), "both places are taken");
    // At 530 ms the second packet is acknowledged, and of the first three frames of four.
    assert_eq!(pair.released.get(&3), Some(&Released::Acknowledged), "one place is free");
    assert_eq!(pair.delivered.len(), 12, "three packets of four frames");
    assert_eq!(pair.handles()[..4], [0; 4]);
    assert!([0, 1, 3].iter().all(|handle| pair.released[handle] == Released::Acknowledged));
    assert_eq!(pair.ends[0].stats().channels[0].resent, 1);
}

/// Two flows, one with four times as much to send: they take turns, and what finds no room is the long one's.
#[test]
fn flows_take_turns_and_the_longest_gives_way() {
    let fair = ChannelConfig { queueing: Queueing::Fair, limit: QueueLimit::Packets(10), ..channel() };
    let mut packets: Vec<_> = (0..16).map(|_| (Time::ZERO, 0, 1490, 1)).collect();
    packets.extend((0..4).map(|_| (Time::ZERO, 0, 1490, 2)));
    let mut pair = Pair::new(&config(vec![fair]));
    pair.run(&packets, at(5000), |_, _, _| Fate::Arrives);
    let of = |flow: u64| pair.handles().iter().filter(|&&handle| packets[handle as usize].3 == flow).count();
    // Of the ten that find room four are the short flow's.
    assert_eq!((of(1), of(2)), (6, 4));
    let turns: Vec<_> = pair.handles().iter().map(|&handle| packets[handle as usize].3).collect();
    assert_eq!(turns[..8].iter().filter(|&&flow| flow == 2).count(), 4, "{turns:?}");
}
