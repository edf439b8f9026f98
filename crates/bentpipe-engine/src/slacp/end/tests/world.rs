//! Two ends over a line that loses, doubles and delays frames.

use alloc::collections::{BTreeMap, VecDeque};

use crate::machine::{Context, Machine, Step};
use crate::slacp::config::{ChannelConfig, Copies, Fec, Release, Repairs, SlacpConfig};
use crate::slacp::{End, Frame, Input, Output, Released};
use crate::units::{Duration, Rate, Time};

pub(super) const MS: fn(u64) -> Duration = Duration::from_millis;

pub(super) fn at(ms: u64) -> Time {
    Time::ZERO + MS(ms)
}

pub(super) const FEC: Fec = Fec {
    block: 10,
    first_block: None,
    interval: Duration::from_millis(40),
    max_overhead: 0.5,
    repairs: Repairs::Spare,
    worth: Fec::WORTH,
};

pub(super) fn config(channels: Vec<ChannelConfig>) -> SlacpConfig {
    SlacpConfig { window: 10_000, ..SlacpConfig::new(Rate::from_bits_per_second(8_000_000), MS(500), channels) }
}

pub(super) fn paced(bits_per_second: u64) -> Release {
    Release::Paced(Rate::from_bits_per_second(bits_per_second).expect("not zero"))
}

/// What the line does to the n-th frame of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Arrives,
    Lost,
    Twice,
    /// This many milliseconds late.
    Late(u64),
}

/// Two ends, 250 ms apart each way. Packets go from the first to the second; each is its number.
pub(super) struct Pair {
    pub(super) ends: [End; 2],
    pub(super) now: Time,
    /// Frames on the way, by arrival.
    pub(super) flying: BTreeMap<(Time, u64), (usize, Frame)>,
    pub(super) sent: [usize; 2],
    pub(super) ticket: u64,
    /// Packet of each (channel, seq), its distance and length.
    pub(super) truth: BTreeMap<(u8, u64), (u32, u32, u32)>,
    /// The same, never forgotten.
    pub(super) known: BTreeMap<(u8, u64), (u32, u32, u32)>,
    pub(super) firsts: usize,
    pub(super) delivered: Vec<(Time, u32)>,
    pub(super) released: BTreeMap<u32, Released>,
    pub(super) skipped: Vec<u64>,
    pub(super) line: Vec<(Time, Frame)>,
}

impl Pair {
    pub(super) fn new(config: &SlacpConfig) -> Self {
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

    pub(super) fn give(&mut self, side: usize, input: Input) {
        self.ends[side].handle(&mut Context::silent(self.now), input);
    }

    /// Polls a side until it waits.
    fn drain(&mut self, side: usize, fate: &impl Fn(usize, usize, &Frame) -> Fate) -> Option<Time> {
        loop {
            match self.ends[side].poll(&mut Context::silent(self.now)) {
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
                Step::Do(Output::Skip { channel, seqs }) => {
                    for seq in seqs {
                        self.truth.remove(&(channel, seq));
                        self.skipped.push(seq);
                    }
                }
                Step::Do(Output::Release { handle, how }) => {
                    assert_eq!(self.released.insert(handle, how), None, "released once");
                }
            }
        }
    }

    /// Passes `packets` (instant, channel, length, flow) to the first end and runs until `until`.
    pub(super) fn run(
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
                self.give(0, Input::Packet { channel, handle, len, flow, host: 0, acknowledges: None });
            }
        }
    }

    pub(super) fn handles(&self) -> Vec<u32> {
        self.delivered.iter().map(|&(_, handle)| handle).collect()
    }
}

/// `count` packets of 976 bytes, 1 ms of line each, all present from the start.
pub(super) fn bulk(count: u64) -> Vec<(Time, u8, u32, u64)> {
    vec![(Time::ZERO, 0, 976, 7); count as usize]
}

pub(super) fn nth_data_lost(lost: &'static [usize]) -> impl Fn(usize, usize, &Frame) -> Fate {
    move |side, n, _| if side == 0 && lost.contains(&n) { Fate::Lost } else { Fate::Arrives }
}

pub(super) const COPIES: Copies = Copies { interval: Duration::from_millis(100), max: 3, only_resent: false };
