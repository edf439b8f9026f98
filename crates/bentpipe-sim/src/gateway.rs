//! A node that splits a flow, or the box of an `uplink`: the engine's splice between two connections.

use bentpipe_engine::network::EndId;
use bentpipe_engine::splice::{EndConfig, Leg, Splice, SpliceInput, SpliceOutput};
use bentpipe_engine::tcp::Segment;
use bentpipe_engine::{Context, Machine, Probe, Step};
use bentpipe_study::scenario::UplinkSpec;

use crate::ends;
use crate::packet::{self, Parcel, Store};

/// A splice, and the ends of its legs.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) splice: Splice,
    ends: [EndId; 2],
    ns2_lengths: [bool; 2],
    opened: bool,
    /// Set at the box of an `uplink`.
    pub(crate) uplink: Option<AtUplink>,
}

/// A splice at the box of an `uplink`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtUplink {
    /// The box.
    pub(crate) number: usize,
    /// The leg to the client.
    pub(crate) client: Leg,
    /// True if it waits for its turn.
    pub(crate) is_queued: bool,
}

impl Gateway {
    /// The settings and the ends of the near and the far leg.
    pub(crate) fn new(configs: [EndConfig; 2], ends: [EndId; 2]) -> Self {
        Gateway {
            splice: Splice::new(configs[0], configs[1], ends.map(ends::who)),
            ends,
            ns2_lengths: configs.map(|config| matches!(config, EndConfig::Tcp(tcp) if tcp.shortcuts.ns2_lengths)),
            opened: false,
            uplink: None,
        }
    }

    /// Places the gateway at the box of an `uplink`, with the client on this leg.
    pub(crate) fn at_uplink(mut self, spec: &UplinkSpec, number: usize, client: Leg) -> Self {
        if !spec.accepts_early() {
            self.splice = self.splice.asking_first();
        }
        if spec.is_paced() {
            self.splice = self.splice.in_turns(client);
            self.uplink = Some(AtUplink { number, client, is_queued: false });
        }
        self
    }

    /// The end that represents it in the agenda.
    pub(crate) fn slot(&self) -> EndId {
        self.ends[0]
    }

    /// Its end on the far leg.
    pub(crate) fn far_end(&self) -> EndId {
        self.ends[1]
    }

    fn open<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        if !core::mem::replace(&mut self.opened, true) {
            self.splice.handle(cx, SpliceInput::Open);
        }
    }

    /// Takes a segment that has arrived on this leg.
    pub(crate) fn take<P: Probe>(&mut self, cx: &mut Context<'_, P>, leg: Leg, segment: Segment) {
        self.open(cx);
        self.splice.handle(cx, SpliceInput::Segment(leg, segment));
    }

    /// The next packet to send at `cx.now`, or when to poll again.
    pub(crate) fn poll<P: Probe>(&mut self, cx: &mut Context<'_, P>, packets: &mut Store) -> Step<Parcel> {
        match self.poll_leg(cx, packets, false) {
            Step::Do((_, parcel)) => Step::Do(parcel),
            Step::Wait(until) => Step::Wait(until),
        }
    }

    /// Like [`Self::poll`], with the packet's leg. Data that waits for its turn leaves only if `is_turn` is set.
    pub(crate) fn poll_leg<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        packets: &mut Store,
        is_turn: bool,
    ) -> Step<(Leg, Parcel)> {
        self.open(cx);
        loop {
            match if is_turn { self.splice.poll_turn(cx) } else { self.splice.poll(cx) } {
                Step::Do(SpliceOutput::Transmit(leg, segment)) => {
                    let end = self.ends[leg as usize];
                    let length = packet::wire_len(&segment, self.ns2_lengths[leg as usize]);
                    return Step::Do((leg, packets.put_segment(end, length, &segment)));
                }
                // Virtual time has no payload bytes, and a broken splice shows at the ends of the flow.
                Step::Do(SpliceOutput::Passed(..) | SpliceOutput::Closed(_)) => {}
                Step::Wait(until) => return Step::Wait(until),
            }
        }
    }
}
