//! A path that keeps the order: two serializers, two delays, losses by packet and transmission.
//!
//! It drives both systems of the tests, the engine's and the literal one, in packet numbers.

use std::collections::BTreeMap;

/// One end: takes a number (of a packet, or of the next packet expected), gives numbers.
pub(crate) trait End {
    fn take(&mut self, now: u64, number: u64);
    /// The packets to send now, after due timers have run.
    fn give(&mut self, now: u64) -> Vec<u64>;
    fn timer(&self) -> Option<u64>;
}

/// Nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) data: u64,
    pub(crate) ack: u64,
    pub(crate) there: u64,
    pub(crate) back: u64,
}

/// minei §3.1: 512 B at 400 kbit/s, 250 ms; 40 B at 28.8 kbit/s, 40 ms.
pub(crate) const SATELLITE: Times = Times { data: 10_240_000, ack: 11_111_111, there: 250_000_000, back: 40_000_000 };

impl Times {
    pub(crate) fn round_trip(&self) -> u64 {
        self.data + self.there + self.ack + self.back
    }
}

/// The packets that one direction carried: time and number.
pub(crate) type Log = Vec<(u64, u64)>;

/// Runs until nothing is left to do, or for an hour. Returns the packets of the sender and of the receiver.
pub(crate) fn run(
    sender: &mut dyn End,
    receiver: &mut dyn End,
    times: Times,
    mut loses: impl FnMut(bool, u64, u32) -> bool,
) -> (Log, Log) {
    const HOUR: u64 = 3_600_000_000_000;
    let (mut data, mut acks) = (Log::new(), Log::new());
    let mut free = [0u64; 2];
    let mut sent: BTreeMap<(bool, u64), u32> = BTreeMap::new();
    // When, in which order, to the receiver or back, number.
    let mut flying: BTreeMap<(u64, u64), (bool, u64)> = BTreeMap::new();
    let (mut now, mut order) = (0, 0);
    let mut pump = |now, forward: bool, numbers: Vec<u64>, flying: &mut BTreeMap<(u64, u64), (bool, u64)>| {
        for number in numbers {
            if forward { &mut data } else { &mut acks }.push((now, number));
            let (line, delay) = if forward { (times.data, times.there) } else { (times.ack, times.back) };
            let free = &mut free[forward as usize];
            *free = now.max(*free) + line;
            let nth = sent.entry((forward, number)).or_default();
            *nth += 1;
            if !loses(forward, number, *nth) {
                order += 1;
                flying.insert((*free + delay, order), (forward, number));
            }
        }
    };
    pump(0, true, sender.give(0), &mut flying);
    loop {
        let arrival = flying.first_key_value().map(|((at, _), _)| *at);
        let Some(next) = [arrival, sender.timer(), receiver.timer()].into_iter().flatten().min() else { break };
        assert!(next >= now, "time runs forward");
        now = next;
        if now > HOUR {
            break;
        }
        let arrived = if arrival == Some(now) { flying.pop_first() } else { None };
        match arrived {
            Some((_, (true, number))) => receiver.take(now, number),
            Some((_, (false, number))) => sender.take(now, number),
            None => {}
        }
        pump(now, true, sender.give(now), &mut flying);
        pump(now, false, receiver.give(now), &mut flying);
    }
    (data, acks)
}
