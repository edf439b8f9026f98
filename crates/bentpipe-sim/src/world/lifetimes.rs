//! The ends of connections exist while they act. Of 50 000 flows, some thousand are active at a time: an end is made
//! from its model when it first acts, and when its connection is closed, only its results remain.
//!
//! An observer is told what every end does from the start, so with one all ends exist for the whole run. That is also
//! the twin in tests.

use bentpipe_engine::Context;
use bentpipe_engine::network::EndId;
use bentpipe_engine::tcp::{Handshake, TcbSharing, TcpConfig};
use bentpipe_engine::units::Time;
use bentpipe_study::scenario::{TcpFlow, Workload};

use super::{EndState, World};
use crate::endpoint::{Endpoint, TcpEnd};
use crate::ends;
use crate::observe::Observer;
use crate::packet::Parcel;

/// True if the ends of a flow can be made late: before they act, nothing distinguishes them from each other, and what
/// they do at the start depends on nothing.
pub(super) fn can_be_late(tcp: &TcpFlow) -> bool {
    let alone = tcp.stp.is_none() && tcp.splits.is_empty() && tcp.spoof.is_none();
    // The times of paced writes are drawn for each flow.
    let draws = matches!(tcp.workload, Workload::Paced { .. });
    let end =
        |config: &TcpConfig| config.tcb_sharing == TcbSharing::Off && config.shortcuts.handshake != Handshake::None;
    alone && !draws && end(&tcp.sender) && end(&tcp.receiver)
}

impl World {
    /// Two models, of the ends of flows that are alike. The passive one listens from the start.
    pub(super) fn add_models(&mut self, mut ends: [TcpEnd; 2]) {
        ends[1].act(&mut Context::silent(Time::ZERO));
        self.models.extend(ends);
    }

    /// The flow whose ends are the last two models is like this one.
    pub(super) fn add_late_ends(&mut self) {
        let model = self.models.len() as u32 - 2;
        self.ends.extend([model, model + 1].map(|model| EndState::new(Endpoint::Late { model })));
    }

    /// Makes a late end.
    pub(super) fn make(&mut self, n: EndId) {
        if let Endpoint::Late { model } = self.ends[n.index()].kind {
            let end = self.models[model as usize].of_another(n, self.flows[ends::connection(n).index()].start);
            let end = match self.spare.pop() {
                Some(mut memory) => {
                    *memory = end;
                    memory
                }
                None => Box::new(end),
            };
            self.ends[n.index()].kind = Endpoint::Tcp(end);
        }
    }

    /// Keeps only the results of an end whose connection is closed.
    #[inline(never)]
    pub(super) fn retire(&mut self, n: EndId) {
        let kind = &mut self.ends[n.index()].kind;
        if let Endpoint::Tcp(end) = kind
            && let Some(ended) = end.ended()
        {
            let at = self.ended.len() as u32;
            self.ended.push(ended);
            if let Endpoint::Tcp(memory) = core::mem::replace(kind, Endpoint::Ended { at }) {
                self.spare.push(memory);
            }
        }
    }

    /// A segment reaches an end whose connection is closed.
    pub(super) fn reach_ended<O: Observer>(&mut self, n: EndId, parcel: Parcel, observer: &mut O) {
        let Endpoint::Ended { at } = self.ends[n.index()].kind else { return };
        let segment = self.packets.segment(parcel);
        if let Some(answer) = self.ended[at as usize].answer(n, self.now, &segment, &mut self.packets) {
            self.send(answer, observer);
        }
        self.wait(n, None);
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_engine::NoProbe;
    use bentpipe_engine::units::Duration;
    use bentpipe_study::scenario::{FlowId, Scenario};

    use super::*;
    use crate::ended::Ended;
    use crate::world::{EndState, Timers};

    #[test]
    fn what_a_flow_weighs() {
        // An end and its timer are one line of the cache. The others are what 50 000 flows multiply.
        assert_eq!(size_of::<EndState>(), 64);
        assert!(size_of::<TcpEnd>() <= 1632, "{}", size_of::<TcpEnd>());
        assert!(size_of::<Ended>() <= 216, "{}", size_of::<Ended>());
    }

    /// Two transfers, the second long after the first. The largest number of ends that exist at once, of four, and how
    /// many have ended.
    fn lives(watched: bool) -> (usize, usize) {
        let text = "name = \"two\"\ntime_limit = \"300 s\"\n[[links]]\nname = \"line\"\nbetween = [\"a\", \"b\"]\n\
                    rate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n[[flows]]\nname = \"data\"\nfrom = \"a\"\nto = \"b\"\n\
                    count = 2\nstagger = \"100 s\"\nbytes = \"100 kB\"\n";
        let scenario =
            Scenario::parse(text, "two.toml", &[]).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
        let mut world = World::new(&scenario, 1, Timers::Lazy, watched).expect("a path");
        let mut max = 0;
        while world.step(Time::ZERO + Duration::from_secs(300), &mut NoProbe) {
            let exists = |end: &&EndState| matches!(end.kind, Endpoint::Tcp(_));
            max = max.max(world.ends.iter().filter(exists).count());
        }
        for flow in FlowId::first(2) {
            assert_eq!(world.flow_result(flow).delivered, 100_000);
        }
        (max, world.ended.len())
    }

    #[test]
    fn ends_exist_while_they_act() {
        assert_eq!(lives(false), (2, 4));
        // All exist from the start; they end in the same way, since nobody watches here after all.
        assert_eq!(lives(true), (4, 4));
    }
}
