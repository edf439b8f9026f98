//! The ends of connections exist only while they act. Of 50 000 flows, some thousand are active at a time: an end is
//! made from its model when it first acts, and when its connection is closed, only its results remain. In TIME-WAIT,
//! where most ends are, the state that answers stray segments also remains.
//!
//! An observer sees what every end does from the start, so all ends then exist for the whole run. Tests compare the
//! two.

use bentpipe_engine::Context;
use bentpipe_engine::network::{Due, EndId};
use bentpipe_engine::tcp::{Handshake, TcbSharing, TcpConfig};
use bentpipe_engine::units::Time;
use bentpipe_study::scenario::{TcpFlow, Workload};

use super::{EndState, World};
use crate::ended::{Ended, Rest};
use crate::endpoint::{Endpoint, TcpEnd};
use crate::observe::Observer;
use crate::packet::Parcel;

/// True if the ends of a flow can be made late: before they act, they are all alike, and their first actions depend on
/// nothing else.
pub(super) fn can_be_late(tcp: &TcpFlow) -> bool {
    let alone = tcp.stp.is_none() && tcp.splits.is_empty() && tcp.spoof.is_none() && tcp.path_change.is_none();
    // The times of paced writes are drawn per flow.
    let draws = matches!(tcp.workload, Workload::Paced { .. });
    let end =
        |config: &TcpConfig| config.tcb_sharing == TcbSharing::Off && config.shortcuts.handshake != Handshake::None;
    alone && !draws && end(&tcp.sender) && end(&tcp.receiver)
}

/// Number of ends that are made or retired at a time: the code for this takes some hundred cache lines, which packets
/// between two ends would evict again.
const BATCH: usize = 16;

/// A model of equal ends.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) end: TcpEnd,
    /// Ends that are made but not yet in use.
    #[allow(clippy::vec_box, reason = "the boxes themselves are used")]
    ready: Vec<Box<TcpEnd>>,
    /// Number of ends still to be made.
    left: usize,
}

/// Ends that are no longer needed.
#[derive(Debug, Default)]
pub(super) struct Former {
    /// Ends whose connection is closed or in TIME-WAIT.
    retiring: Vec<EndId>,
    /// Memory for new ends.
    #[allow(clippy::vec_box, reason = "the boxes themselves are used again")]
    spare: Vec<Box<TcpEnd>>,
}

impl World {
    /// Adds two models, for the ends of flows with equal settings. The passive one listens from the start.
    pub(super) fn add_models(&mut self, mut ends: [TcpEnd; 2]) {
        ends[1].act(&mut Context::silent(Time::ZERO));
        for mut end in ends {
            end.set_model(self.models.len() as u32);
            self.models.push(Model { end, ready: Vec::new(), left: 0 });
        }
    }

    /// Adds the ends of a flow that equals the flow of the last two models.
    pub(super) fn add_late_ends(&mut self) {
        let first = self.models.len() - 2;
        for model in first..first + 2 {
            self.models[model].left += 1;
            self.ends.push(EndState::new(Endpoint::Late { model: model as u32 }));
        }
    }

    /// Number of late ends still to be made.
    pub(super) fn late_ends(&self) -> usize {
        self.models.iter().map(|model| model.left).sum()
    }

    /// Makes a late end.
    pub(super) fn make(&mut self, n: EndId) {
        let Endpoint::Late { model } = self.ends[n.index()].kind else { return };
        if self.models[model as usize].ready.is_empty() {
            self.make_ready(model);
        }
        if let Some(mut end) = self.models[model as usize].ready.pop() {
            end.begin(n, self.now);
            self.ends[n.index()].kind = Endpoint::Tcp(end);
        }
    }

    #[inline(never)]
    fn make_ready(&mut self, number: u32) {
        self.retire_all();
        // What the next ends to start read first is far away. Read together, they are waited for once.
        for due in self.agenda.next_starts(BATCH) {
            core::hint::black_box(self.ends[due.component() - self.network.components()].until);
        }
        let model = &mut self.models[number as usize];
        for _ in 0..model.left.min(BATCH) {
            model.left -= 1;
            model.ready.push(in_memory_of(&mut self.former.spare, || model.end.clone()));
        }
    }

    /// Schedules an end for retirement with the next batch: its connection is closed or in TIME-WAIT, and it has
    /// nothing else to do.
    #[inline(never)]
    pub(super) fn retire(&mut self, n: EndId) {
        self.former.retiring.push(n);
        if self.former.retiring.len() >= BATCH {
            self.retire_all();
        }
    }

    fn retire_all(&mut self) {
        let mut retiring = core::mem::take(&mut self.former.retiring);
        for n in retiring.drain(..) {
            let kind = &mut self.ends[n.index()].kind;
            if let Endpoint::Tcp(end) = kind
                && let Some(ended) = end.ended()
            {
                let at = self.ended.len() as u32;
                let time_wait = ended.until();
                self.ended.push(ended);
                // One that was restored in TIME-WAIT has none left.
                if let Some(responses) = end.take_responses() {
                    self.responses.insert(n, responses);
                }
                if let Endpoint::Tcp(memory) = core::mem::replace(kind, Endpoint::Ended { at }) {
                    self.former.spare.push(memory);
                }
                self.free_timer(n, time_wait);
            }
        }
        self.former.retiring = retiring;
    }

    /// Frees the slot of a retired end in the agenda: its TIME-WAIT joins the others there, and a stopped timer is
    /// forgotten. It keeps its slot if its TIME-WAIT ends before another's that began earlier.
    fn free_timer(&mut self, n: EndId, time_wait: Option<Time>) {
        let due = self.due_of_end(n);
        let rests = time_wait.is_some_and(|until| until == due.at());
        if due == Due::NEVER || rests && self.agenda.add_rest(due) {
            self.put_on_agenda(n, Due::NEVER);
        }
    }

    /// Handles the end of a TIME-WAIT that has joined the others. Its state is freed at once: that of 50 000 flows
    /// would take 15 MB.
    pub(super) fn end_rest(&mut self, n: EndId) {
        let state = &mut self.ends[n.index()];
        state.until = Time::NEVER;
        if let Endpoint::Ended { at } = state.kind {
            self.ended[at as usize].on_time(self.now);
        }
    }

    /// Handles a segment for an end whose connection is closed or in TIME-WAIT.
    pub(super) fn reach_ended<O: Observer>(&mut self, n: EndId, parcel: Parcel, observer: &mut O) {
        let Endpoint::Ended { at } = self.ends[n.index()].kind else { return };
        if self.wake(n, at) {
            return self.deliver(n, parcel, observer);
        }
        let segment = self.packets.segment(parcel);
        if let Some(answer) = self.ended[at as usize].answer(n, self.now, &segment, &mut self.packets) {
            self.send(answer, observer);
        }
        self.wait(n, None);
        self.packets.release(parcel);
    }

    /// Restores a connection in TIME-WAIT. Returns false if it is closed.
    fn wake(&mut self, n: EndId, at: u32) -> bool {
        let due = self.due_of_end(n);
        let Ended { outcome, rest, model, .. } = &mut self.ended[at as usize];
        let Rest::Waits(resting) = rest else { return false };
        let closed = Rest::Closed(resting.closed());
        let Rest::Waits(resting) = core::mem::replace(rest, closed) else { return false };
        // From here on, it has its own timer again.
        self.agenda.remove_rest(due);
        let woken = || self.models[*model as usize].end.woken(n, outcome, resting.wake());
        self.ends[n.index()].kind = Endpoint::Tcp(in_memory_of(&mut self.former.spare, woken));
        true
    }
}

/// Puts an end into the memory of a former one, if there is one. It is made by a function so that it is copied only
/// once.
#[allow(clippy::vec_box, reason = "the boxes themselves are used again")]
fn in_memory_of(former: &mut Vec<Box<TcpEnd>>, make: impl FnOnce() -> TcpEnd) -> Box<TcpEnd> {
    match former.pop() {
        Some(mut memory) => {
            *memory = make();
            memory
        }
        None => Box::new(make()),
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_engine::NoProbe;
    use bentpipe_engine::units::Duration;
    use bentpipe_study::scenario::{FlowId, Scenario};

    use super::*;
    use crate::world::{EndState, Timers};

    #[test]
    fn what_a_flow_weighs() {
        // An end and its timer fit one cache line. The other sizes count 50 000 times.
        assert_eq!(size_of::<EndState>(), 64);
        assert!(size_of::<TcpEnd>() <= 1728, "{}", size_of::<TcpEnd>());
        assert!(size_of::<Ended>() <= 232, "{}", size_of::<Ended>());
    }

    const COUNT: usize = 40;

    /// Sequential transfers. Returns the maximum number of ends at once, and how many have ended.
    fn lives(watched: bool) -> (usize, usize) {
        let text = format!(
            "name = \"many\"\ntime_limit = \"500 s\"\n[[links]]\nname = \"line\"\nbetween = [\"a\", \"b\"]\n\
             rate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n[[flows]]\nname = \"data\"\nfrom = \"a\"\nto = \"b\"\n\
             count = {COUNT}\nstagger = \"10 s\"\nbytes = \"100 kB\"\n"
        );
        let scenario =
            Scenario::parse(&text, "many.toml", &[]).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
        let mut world = World::new(&scenario, 1, Timers::Lazy, watched).expect("a path");
        let mut max = 0;
        while world.step(Time::ZERO + Duration::from_secs(500), &mut NoProbe) {
            let exists = |end: &&EndState| matches!(end.kind, Endpoint::Tcp(_));
            max = max.max(world.ends.iter().filter(exists).count());
        }
        for flow in FlowId::first(COUNT) {
            assert_eq!(world.flow_result(flow).delivered, 100_000);
        }
        (max, world.ended.len())
    }

    #[test]
    fn ends_exist_while_they_act() {
        // Two ends that act, and a batch to be retired. During TIME-WAIT, which is six times as long as a transfer,
        // ends do not exist.
        let (max, ended) = lives(false);
        assert!(max <= 2 + BATCH && ended > 2 * COUNT - BATCH, "{max}, {ended}");
        // All ends exist from the start.
        assert_eq!(lives(true).0, 2 * COUNT);
    }
}
