//! Flows whose TCP ends at a gateway: its arrivals, its forwarded data, and the space freed by the far end's
//! acknowledgements.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use bentpipe_engine::Context;
use bentpipe_engine::link::Wire;
use bentpipe_engine::probe::Who;
use bentpipe_engine::spoof::Input;
use bentpipe_engine::tcp::TcpConfig;
use bentpipe_study::scenario::{BufferSharing, Scenario, Spoof, TcpFlow, Workload};

use super::World;
use crate::endpoint::Endpoint;
use crate::observe::Observer;
use crate::packet::Parcel;
use crate::spoofing::{Buffer, HEADERS, Sink, SpoofEnd};

/// Spoofed flows.
pub(super) fn count(scenario: &Scenario) -> usize {
    scenario.flows.iter().filter(|flow| flow.kind.spoof().is_some()).count()
}

/// The far ends of such flows, in their order, and the buffers of the gateways, by node.
#[derive(Debug, Default)]
pub(super) struct Sinks {
    sinks: Vec<Sink>,
    buffers: BTreeMap<usize, Rc<RefCell<Buffer>>>,
}

impl Sinks {
    /// The gateway's end of flow `n`; the ends from `first` on are those of sinks.
    pub(super) fn spoofer(&mut self, first: usize, n: usize, tcp: &TcpFlow, spoof: Spoof) -> Endpoint {
        let sink = first + self.sinks.len();
        let expected = match tcp.workload {
            Workload::Bulk(bytes) => bytes.get(),
            _ => u64::MAX,
        };
        self.sinks.push(Sink::new(expected));
        let receiver = tcp.splits.last().map_or(tcp.receiver, |last| last.receiver);
        let capacity = u64::from(spoof.buffer) * u64::from(receiver.mss);
        let shared = self.buffers.entry(spoof.at).or_insert_with(|| {
            let in_parts = spoof.sharing == BufferSharing::Equal;
            Rc::new(RefCell::new(Buffer::new(capacity, in_parts)))
        });
        shared.borrow_mut().ends.push(2 * n + 1);
        // The whole buffer determines the window scale.
        let config = TcpConfig { receive_buffer: u32::try_from(capacity).unwrap_or(u32::MAX), ..receiver };
        Endpoint::Spoofer(Box::new(SpoofEnd::new(config, n as u32, sink as u32, shared.clone(), !spoof.reopens)))
    }

    pub(super) fn into_ends(self) -> impl Iterator<Item = Endpoint> {
        self.sinks.into_iter().map(|sink| Endpoint::Sink(Box::new(sink)))
    }
}

impl World {
    /// The end whose first hop a packet uses: its source, or a gateway's for forwarded data.
    #[inline(always)]
    pub(super) fn leaves_by(&self, parcel: Parcel) -> usize {
        let to = parcel.to.index();
        if to >= self.first_sink { to } else { parcel.from() }
    }

    /// A segment of the source reaches its gateway.
    pub(super) fn reach_spoofer<O: Observer>(&mut self, end: usize, parcel: Parcel, observer: &mut O) {
        let segment = self.packets.segment(parcel);
        self.bring_spoofer(end, Input::Segment(segment), observer);
        self.run_end(end, observer);
    }

    fn bring_spoofer<O: Observer>(&mut self, end: usize, input: Input, observer: &mut O) {
        let mut cx = Context { now: self.now, who: Who(end as u32), probe: observer };
        if let Endpoint::Spoofer(gateway) = &mut self.ends[end].kind {
            gateway.handle(&mut cx, input);
        }
    }

    /// A layer has released a packet: if a gateway forwarded it, its buffer has space again, for all that share it.
    pub(super) fn note_released<O: Observer>(&mut self, parcel: Parcel, observer: &mut O) {
        let Some(which) = (parcel.to.index()).checked_sub(self.first_sink) else { return };
        let Some(&end) = self.spoofers.get(which) else { return };
        self.bring_spoofer(end, Input::Released(u64::from(parcel.wire_len() - HEADERS)), observer);
        self.run_end(end, observer);
        let Endpoint::Spoofer(gateway) = &self.ends[end].kind else { return };
        let buffer = gateway.buffer.clone();
        let others = buffer.borrow().ends.len();
        for other in 0..others {
            let other = buffer.borrow().ends[other];
            if other == end {
                continue;
            }
            let mut cx = Context { now: self.now, who: Who(other as u32), probe: &mut *observer };
            if let Endpoint::Spoofer(gateway) = &mut self.ends[other].kind {
                gateway.note_room(&mut cx);
            }
            self.run_end(other, observer);
        }
    }

    /// The destination of a gateway's forwarded data.
    pub(super) fn sink_of(&self, gateway: usize) -> &Sink {
        let which = self.spoofers.iter().position(|&end| end == gateway).expect("it has one");
        match &self.ends[self.first_sink + which].kind {
            Endpoint::Sink(sink) => sink,
            _ => unreachable!("the ends after those of flows are sinks"),
        }
    }
}
