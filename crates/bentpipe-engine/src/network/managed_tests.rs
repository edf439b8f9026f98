use super::*;
use crate::link::{Codel, DualPi2};
use crate::probe::Who;
use crate::units::{Probability, Rate};

#[derive(Clone, Copy, Debug, PartialEq)]
struct Packet {
    flow: u64,
    len: u32,
    number: u32,
}

impl Wire for Packet {
    fn wire_len(&self) -> u32 {
        self.len
    }

    fn flow(&self) -> u64 {
        self.flow
    }

    /// Flow 9 understands marks.
    fn ecn(&self) -> Ecn {
        if self.flow == 9 { Ecn::Ect0 } else { Ecn::NotEct }
    }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Time {
    Time::ZERO + ms(millis)
}

/// 1 Mbit/s, so that 1000 B take 8 ms, and 100 ms of delay.
fn link(discipline: fn(Codel) -> Discipline, limit: QueueLimit) -> ManagedLink<Packet> {
    ManagedLink::new(&config(1_000_000, discipline, limit), 1, "sat").expect("it is managed")
}

fn config(bits: u64, discipline: fn(Codel) -> Discipline, limit: QueueLimit) -> LinkConfig {
    let mut config = LinkConfig::clean(Rate::from_bits_per_second(bits), ms(100));
    config.queue =
        QueueConfig { limit, discipline: discipline(Codel { target: ms(5), interval: ms(100) }), marking: true };
    config
}

fn offer(link: &mut ManagedLink<Packet>, now: Time, packet: Packet) -> Result<(), DropReason> {
    link.offer(&mut Context { now, who: Who(0), probe: &mut NoProbe }, packet)
}

/// Offers a packet that is not dropped at once.
fn admit(link: &mut ManagedLink<Packet>, now: Time, packet: Packet) {
    assert_eq!(offer(link, now, packet), Ok(()));
}

type Came = (u64, Packet, Result<Altered, DropReason>);

/// What comes out until `until`: time in milliseconds, packet and fate.
fn out(link: &mut ManagedLink<Packet>, until: Time, all: &mut Vec<Came>) {
    while let Some((now, _)) = link.head().filter(|head| head.0 <= until) {
        while let Some((packet, fate)) = link.take(&mut Context { now, who: Who(0), probe: &mut NoProbe }) {
            all.push((now.as_nanos() / 1_000_000, packet, fate));
        }
    }
}

fn packet(flow: u64, number: u32) -> Packet {
    Packet { flow, len: 1000, number }
}

#[test]
fn a_short_queue_is_a_plain_link() {
    let mut link = link(Discipline::Codel, QueueLimit::Packets(2));
    let mut all = Vec::new();
    for n in 0..3 {
        admit(&mut link, at(0), packet(0, n));
    }
    assert_eq!(offer(&mut link, at(0), packet(0, 3)), Err(DropReason::QueueFull));
    out(&mut link, at(50), &mut all);
    admit(&mut link, at(50), packet(0, 4));
    assert_eq!(link.in_flight(), 4);
    out(&mut link, at(1000), &mut all);
    // One on the line, two wait, one is refused at once. The line is idle from 24 to 50 ms.
    let expected = [
        (0, packet(0, 3), Err(DropReason::QueueFull)),
        (108, packet(0, 0), Ok(Altered::NOT)),
        (116, packet(0, 1), Ok(Altered::NOT)),
        (124, packet(0, 2), Ok(Altered::NOT)),
        (158, packet(0, 4), Ok(Altered::NOT)),
    ];
    assert_eq!(all, expected);
    let counters = link.counters();
    assert_eq!((counters.offered, counters.delivered, counters.dropped_full, counters.max_waiting), (5, 4, 1, 2));
    assert_eq!(link.in_flight(), 0);
}

/// RFC 8289: nothing is dropped in the first interval above the target; then one at the first packet after it, and the next
/// after interval / sqrt(count).
#[test]
fn codel_drops_by_its_law() {
    let mut link = link(Discipline::Codel, QueueLimit::Unlimited);
    let mut all = Vec::new();
    for n in 0..100 {
        admit(&mut link, at(0), packet(0, n));
    }
    out(&mut link, at(5000), &mut all);
    let dropped: Vec<u64> = all.iter().filter(|came| came.2 == Err(DropReason::Early)).map(|came| came.0).collect();
    // The packet that leaves at 8 ms is the first that waited for 5 ms or more: from 108 ms on a packet may be dropped, which
    // happens at 112 ms, the next multiple of 8. Then at 212, so at 216; 212 + 70.7 = 282.7, so 288; + 57.7 = 340.4, so 344.
    assert_eq!(dropped[..4], [112, 216, 288, 344]);
    assert_eq!(all.len(), 100);
}

/// RFC 3168 §7: what CoDel would drop is marked at the same times, and arrives.
#[test]
fn codel_marks_what_understands_it() {
    let mut link = link(Discipline::Codel, QueueLimit::Unlimited);
    let mut all = Vec::new();
    for n in 0..100 {
        admit(&mut link, at(0), packet(9, n));
    }
    out(&mut link, at(5000), &mut all);
    let marks = |came: &&Came| came.2 == Ok(Altered { marked: true, ..Altered::NOT });
    let marked: Vec<u64> = all.iter().filter(marks).map(|came| came.0).collect();
    // As above, but each marked packet takes 8 ms of the line and 100 ms of delay: it leaves the queue 108 ms before.
    assert_eq!(marked[..4], [112 + 108, 216 + 108, 288 + 108, 344 + 108]);
    let counters = link.counters();
    assert_eq!((counters.delivered, counters.dropped(), counters.marked), (100, 0, marked.len() as u64));
}

#[test]
fn flows_take_turns() {
    let mut link = link(Discipline::FqCodel, QueueLimit::Packets(40));
    let mut all = Vec::new();
    for n in 0..30 {
        admit(&mut link, at(0), packet(1, n));
    }
    out(&mut link, at(20), &mut all);
    admit(&mut link, at(20), Packet { flow: 2, len: 100, number: 0 });
    out(&mut link, at(2000), &mut all);
    let quiet = all.iter().find(|came| came.1.flow == 2).expect("it comes");
    // The line is busy until 24 ms. A flow that was quiet goes first: 0.8 ms and 100.
    assert_eq!((quiet.0, quiet.2), (124, Ok(Altered::NOT)));
    // Without room the longest flow gives way, not the one that comes.
    let mut full = self::link(Discipline::FqCodel, QueueLimit::Packets(5));
    let mut all = Vec::new();
    for n in 0..6 {
        admit(&mut full, at(0), packet(1, n));
    }
    admit(&mut full, at(0), packet(2, 0));
    out(&mut full, at(2000), &mut all);
    let lost: Vec<(u64, u32)> =
        all.iter().filter(|came| came.2.is_err()).map(|came| (came.1.flow, came.1.number)).collect();
    assert_eq!(lost, [(1, 5)]);
}

/// The limit does not count the packet in transmission: an idle line takes a packet that is longer than the limit, and
/// the next one is dropped.
#[test]
fn an_idle_line_takes_any_packet() {
    for discipline in [Discipline::Codel, Discipline::FqCodel] {
        for limit in [QueueLimit::Packets(0), QueueLimit::Bytes(crate::units::Bytes::new(10))] {
            let mut link = link(discipline, limit);
            let mut all = Vec::new();
            for (ms, number) in [(0, 0), (1, 1), (8, 2), (100, 3)] {
                let expected = if number == 1 { Err(DropReason::QueueFull) } else { Ok(()) };
                assert_eq!(offer(&mut link, at(ms), packet(1, number)), expected);
            }
            out(&mut link, at(2000), &mut all);
            let passed: Vec<u32> = all.iter().filter(|came| came.2.is_ok()).map(|came| came.1.number).collect();
            assert_eq!(passed, [0, 2, 3], "{limit:?}");
        }
    }
}

/// The line refuses a packet that is longer than the MTU. If it is idle, that is known when the packet is offered.
#[test]
fn the_verdict_of_an_idle_line_is_known_at_once() {
    let mut config = LinkConfig::clean(Rate::from_bits_per_second(1_000_000), ms(100));
    config.mtu = Some(900);
    config.queue.discipline = Discipline::Codel(Codel { target: ms(5), interval: ms(100) });
    let mut link = ManagedLink::new(&config, 1, "sat").expect("it is managed");
    let short = |number| Packet { flow: 0, len: 500, number };
    assert_eq!(offer(&mut link, at(0), packet(0, 0)), Err(DropReason::TooLong));
    admit(&mut link, at(0), short(1));
    // The line is busy until 4 ms. It refuses the first of these when it is free, not the last that was offered.
    admit(&mut link, at(1), packet(0, 2));
    admit(&mut link, at(1), short(3));
    admit(&mut link, at(5), short(4));
    let mut all = Vec::new();
    out(&mut link, at(1000), &mut all);
    let lost: Vec<_> = all.iter().filter(|came| came.2.is_err()).map(|came| (came.1.number, came.2)).collect();
    assert_eq!(lost, [(0, Err(DropReason::TooLong)), (2, Err(DropReason::TooLong))]);
    assert_eq!(all.len(), 5);
}

/// As of a plain link: at 12 ms the second packet has 4 ms to go, which are 2 at the new rate. The queue goes on.
#[test]
fn those_that_wait_are_sent_at_the_new_rate() {
    let disciplines: [fn(Codel) -> Discipline; 3] =
        [Discipline::Codel, Discipline::FqCodel, |_| Discipline::DualPi2(DualPi2::standard())];
    for discipline in disciplines {
        let (mut link, mut all) = (link(discipline, QueueLimit::Packets(3)), Vec::new());
        (0..4).for_each(|n| admit(&mut link, at(0), packet(0, n)));
        link.retune(at(12), &config(2_000_000, discipline, QueueLimit::Packets(3)), 1, "sat");
        admit(&mut link, at(12), packet(0, 4));
        assert_eq!(offer(&mut link, at(12), packet(0, 5)), Err(DropReason::QueueFull), "three wait");
        out(&mut link, at(1000), &mut all);
        let arrived: Vec<_> = all.iter().filter(|came| came.2.is_ok()).map(|came| (came.0, came.1.number)).collect();
        assert_eq!(arrived, [(108, 0), (114, 1), (118, 2), (122, 3), (126, 4)]);
        // An idle line is free at once.
        link.retune(at(1000), &config(4_000_000, discipline, QueueLimit::Packets(3)), 1, "sat");
        admit(&mut link, at(1010), packet(0, 6));
        out(&mut link, at(2000), &mut all);
        assert_eq!(all.last().map(|came| (came.0, came.1.number)), Some((1112, 6)));
    }
}

/// What leaves the line between two changes is lost, and nothing else.
#[test]
fn losses_begin_and_end_with_the_changes() {
    let (mut link, mut all) = (link(Discipline::FqCodel, QueueLimit::Unlimited), Vec::new());
    (0..5).for_each(|n| admit(&mut link, at(0), packet(0, n)));
    let before = config(1_000_000, Discipline::FqCodel, QueueLimit::Unlimited);
    let mut bad = before.clone();
    bad.good.packet = Probability::ONE;
    for (millis, config) in [(10, &bad), (26, &before)] {
        out(&mut link, at(millis), &mut all);
        link.retune(at(millis), config, 1, "sat");
    }
    out(&mut link, at(1000), &mut all);
    let lost: Vec<_> = all.iter().filter(|came| came.2.is_err()).map(|came| came.1.number).collect();
    assert_eq!((lost, all.len(), link.counters().delivered), (vec![1, 2], 5, 3));
}
