//! Single windows with chosen losses: figures 2 and 13 to 16, and the claims about single packets.
//!
//! The window is limited in one of two ways. Reno's arithmetic (§5.1) is about the congestion window, which duplicate
//! ACKs inflate beyond the old window, so those cases have no other limit ([`Case::unbounded`]). In all other cases a
//! constant limit stands for the receiver's window ([`Case::new`]).

use std::collections::BTreeMap;

use bentpipe_sim::record::{FlowTrace, Sequence};

use super::world::World;
use crate::lab::Lab;
use crate::request::ReproduceError;

/// Packets before the window with losses: enough to open any window.
const BEFORE: u64 = 300;
const TOTAL: u64 = 700;

/// Round trip of the direct path, seconds: two links of 400 kbit/s, the modem, 330 ms (minei §3.1).
pub(super) const RTT: f64 = 2.0 * 512.0 * 8.0 / 400e3 + 0.33 + 40.0 * 8.0 / 28.8e3;
/// Serialisation time of an ACK on the modem link, seconds. It is longer than that of a packet on the satellite link.
pub(super) const ACK_TIME: f64 = 40.0 * 8.0 / 28.8e3;

/// A sender, its window, and its losses: packet numbers from 1 in that window.
#[derive(Clone, Debug)]
pub(super) struct Case {
    variant: &'static str,
    window: u64,
    lost: Vec<u64>,
    /// Packets whose retransmission is lost too.
    lost_again: Option<u64>,
    /// Number of packets from the first one of the window on.
    after: u64,
    /// Number of packets before the window.
    before: u64,
    more: Vec<(&'static str, String)>,
}

/// The result of a case.
pub(super) struct Outcome {
    pub(super) trace: FlowTrace,
    pub(super) timeouts: u64,
    /// Retransmitted packet numbers in the window, in sending order.
    pub(super) repeated: Vec<u64>,
}

impl Case {
    pub(super) fn new(variant: &'static str, window: u64, lost: impl IntoIterator<Item = u64>) -> Case {
        let lost = lost.into_iter().collect();
        Case { variant, window, lost, lost_again: None, after: TOTAL - BEFORE, before: BEFORE, more: Vec::new() }
    }

    /// A case that only the congestion window limits. The initial window is one packet smaller than the wanted window. The
    /// ACK of the first packet completes the window, which begins with the second packet.
    pub(super) fn unbounded(variant: &'static str, window: u64, lost: impl IntoIterator<Item = u64>) -> Case {
        let case = Case::new(variant, window, lost);
        // Enough packets after the window for timeouts to appear.
        Case { before: 1, after: window + 60, ..case }.with("initial_window", &format!("{} segments", window - 1))
    }

    /// No packets follow the window, as in the paper's figures.
    pub(super) fn alone(self) -> Case {
        Case { after: self.window, ..self }
    }

    pub(super) fn losing_again(self, packet: u64) -> Case {
        Case { lost_again: Some(packet), ..self }
    }

    pub(super) fn with(mut self, key: &'static str, value: &str) -> Case {
        self.more.push((key, value.to_owned()));
        self
    }

    fn world(&self, drops: &[u64]) -> World {
        let list: Vec<_> = drops.iter().map(u64::to_string).collect();
        let mut world = World::direct()
            .packets(self.before + self.after)
            .sender(self.variant)
            // A limit above the length of the transfer has no effect.
            .leg("window_clamp", format!("{} segments", if self.before < BEFORE { TOTAL } else { self.window }))
            .leg("ack.delay", "0 s")
            .with("links.sat.drop_list", format!("[{}]", list.join(", ")));
        if self.variant == "burst" {
            world = world.leg("fixed_window", format!("{} segments", self.window));
        }
        self.more.iter().fold(world, |world, (key, value)| world.leg(key, value))
    }

    pub(super) fn run(&self, lab: &Lab<'_>) -> Result<Outcome, ReproduceError> {
        let mut drops: Vec<u64> = self.lost.iter().map(|packet| self.before + packet - 1).collect();
        let mut outcome = self.run_with(lab, &drops)?;
        if let Some(again) = self.lost_again {
            // The link keeps the order, so a packet's index in the drop list is its index among the sent packets.
            let is_it =
                |&((_, number), repeated): &((f64, f64), bool)| repeated && number == (self.before + again) as f64;
            let place = outcome.trace.sent.iter().position(is_it).expect("it was sent again");
            drops.push(place as u64);
            outcome = self.run_with(lab, &drops)?;
        }
        Ok(outcome)
    }

    fn run_with(&self, lab: &Lab<'_>, drops: &[u64]) -> Result<Outcome, ReproduceError> {
        let scenario = self.world(drops).scenario();
        let sat = scenario.link("sat");
        let mut watcher = Sequence::new(&scenario, sat);
        let result = lab.watched(&scenario, lab.seed(), &mut watcher)?;
        let trace = watcher.flows.swap_remove(0);
        let number = |number: f64| (number as u64).saturating_sub(self.before);
        let repeated = trace.sent.iter().filter(|sent| sent.1).map(|sent| number(sent.0.1)).collect();
        Ok(Outcome { trace, timeouts: result.flows[0].stats.timeouts, repeated })
    }

    /// Number of packets before the window.
    pub(super) fn before(&self) -> u64 {
        self.before
    }

    pub(super) fn losses(&self) -> u64 {
        self.lost.len() as u64
    }
}

impl Outcome {
    /// Time from the detection of the loss to its complete repair, in round trips.
    pub(super) fn recovery(&self) -> Option<f64> {
        let (entered, left) = (self.trace.entered.first()?, self.trace.left.last()?);
        Some((left - entered) / RTT)
    }

    /// Number of needless retransmissions: all but one for each lost packet.
    pub(super) fn needless(&self, lost: &[u64]) -> u64 {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        self.repeated.iter().for_each(|packet| *counts.entry(*packet).or_default() += 1);
        counts.iter().map(|(packet, count)| count - u64::from(lost.contains(packet))).sum()
    }
}

/// The cases of figure 14 and of §5.3.
pub(super) fn one_hole() -> Case {
    Case::new("burst", 8, 1..=4).alone()
}

pub(super) fn two_holes() -> Case {
    Case::new("burst", 8, [1, 2, 6, 7]).alone()
}

/// Three holes so close that the first burst repairs two of them.
pub(super) fn tight_holes() -> Case {
    Case::new("burst", 14, [1, 2, 4, 5, 7, 8]).alone()
}

/// Loss patterns of one window, with many lengths and distances of holes: number of holes, and lost packets.
pub(super) fn patterns() -> Vec<(u64, Vec<u64>)> {
    let mut all = Vec::new();
    for (first, length, gap) in [(1u64, 1u64, 2u64), (2, 1, 1), (3, 2, 3), (1, 3, 5), (4, 4, 2), (6, 1, 4), (1, 2, 1)] {
        for holes in 1..=5u64 {
            let mut lost: Vec<u64> = (1..=first).collect();
            for hole in 1..holes {
                let from = lost[lost.len() - 1] + gap + hole % 3;
                lost.extend(from + 1..=from + length);
            }
            if lost[lost.len() - 1] + 4 <= WINDOW {
                all.push((holes, lost));
            }
        }
    }
    all
}

/// The window of [`patterns`], packets: below the path's capacity, so queues stay empty.
pub(super) const WINDOW: u64 = 27;
