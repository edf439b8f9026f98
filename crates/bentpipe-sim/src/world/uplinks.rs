//! Boxes of shape `uplink`: the order in which their connections send to the clients.
//!
//! As in the gateway, segments with data leave in turns as the pacer has room, one from each connection. All other
//! segments leave at once.

use std::collections::VecDeque;

use bentpipe_engine::gateway::Pacer;
use bentpipe_engine::link::Wire;
use bentpipe_engine::units::Time;
use bentpipe_engine::{Context, Step};
use bentpipe_study::scenario::Scenario;

use super::World;
use crate::ends;
use crate::observe::Observer;

/// A box.
#[derive(Debug)]
pub(super) struct UplinkBox {
    pacer: Pacer,
    /// The connections that wait for their turn, identified by their splices.
    turns: VecDeque<u32>,
}

/// The reason why a poll of a splice ended.
enum Polled {
    /// Data has taken its turn, and more may wait.
    Turn,
    Waits(Option<Time>),
}

impl UplinkBox {
    pub(super) fn all(scenario: &Scenario) -> Vec<UplinkBox> {
        let boxes = scenario.gateways.uplinks.iter();
        boxes.map(|spec| UplinkBox { pacer: Pacer::new(spec.sender.rate), turns: VecDeque::new() }).collect()
    }
}

impl World {
    /// Polls a splice at a box until it waits, or until data takes its turn.
    fn poll_at_uplink<O: Observer>(&mut self, gateway: u32, is_turn: bool, observer: &mut O) -> Polled {
        loop {
            let splice = &mut self.gateways[gateway as usize];
            let at = splice.uplink.expect("it is at a box");
            let waited = splice.splice.waits_for_turn();
            let mut cx = Context { now: self.now, who: ends::who(splice.slot()), probe: &mut *observer };
            let (leg, parcel) = match splice.poll_leg(&mut cx, &mut self.packets, is_turn) {
                Step::Do(sent) => sent,
                Step::Wait(until) => return Polled::Waits(until),
            };
            if leg == at.client {
                self.uplinks[at.number].pacer.sent(self.now, parcel.wire_len() as usize);
            }
            self.send(parcel, observer);
            if is_turn && waited && leg == at.client {
                return Polled::Turn;
            }
        }
    }

    /// Handles an event at the splice of a box.
    pub(super) fn run_at_uplink<O: Observer>(&mut self, gateway: u32, observer: &mut O) {
        if let Polled::Waits(until) = self.poll_at_uplink(gateway, false, observer) {
            self.wait(self.gateways[gateway as usize].slot(), until);
        }
        let splice = &mut self.gateways[gateway as usize];
        let waits = splice.splice.waits_for_turn();
        let Some(at) = &mut splice.uplink else { return };
        let number = at.number;
        if waits && !std::mem::replace(&mut at.is_queued, true) {
            self.uplinks[number].turns.push_back(gateway);
        }
        self.take_turns(number, observer);
    }

    /// Lets connections send as the pacer has room, then waits for room on behalf of the next one.
    fn take_turns<O: Observer>(&mut self, number: usize, observer: &mut O) {
        while self.uplinks[number].pacer.has_room(self.now)
            && let Some(gateway) = self.uplinks[number].turns.pop_front()
        {
            let has_more = match self.poll_at_uplink(gateway, true, observer) {
                Polled::Turn => true,
                Polled::Waits(until) => {
                    self.wait(self.gateways[gateway as usize].slot(), until);
                    false
                }
            };
            if has_more {
                self.uplinks[number].turns.push_back(gateway);
            } else if let Some(at) = &mut self.gateways[gateway as usize].uplink {
                at.is_queued = false;
            }
        }
        if let Some(&gateway) = self.uplinks[number].turns.front() {
            let slot = self.gateways[gateway as usize].slot();
            let until = self.ends[slot.index()].until.min(self.uplinks[number].pacer.next());
            self.wait(slot, Some(until));
        }
    }
}
