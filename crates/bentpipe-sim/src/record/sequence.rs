//! The points of time–sequence plots: data sent, received and lost, ACKs, windows, and the queue of one link.
//!
//! Sequence numbers count segments from 1, as papers draw them. A flow's data goes from its `from` to its `to`; with
//! requests and responses, the responses are used, which go in the other direction. For QUIC, the position in the
//! packet's stream is drawn. An ACK of QUIC is drawn at the last data of the newest packet that it acknowledges, or at
//! the previous ACK if that is further on.

use std::collections::{BTreeMap, BTreeSet};

use bentpipe_engine::link::{Burst, Channel};
use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{DropReason, Event, Probe, QuicKind, QuicPacket, Who};
use bentpipe_engine::tcp::{FIRST_BYTE, Segment};
use bentpipe_engine::units::Time;
use bentpipe_study::limit::SegmentSize;
use bentpipe_study::report::{Axis, Mark, Panel, Series, Span};
use bentpipe_study::scenario::{FlowKind, Scenario, Workload};
use bentpipe_study::topology::{self, Connection};

use crate::observe::{LINK_BASE, Observer, Passage};
use crate::packet::{Body, Packet};

/// A time in seconds, and the number of a segment of the flow, from 1.
pub type Point = (f64, f64);

/// One TCP flow.
#[derive(Clone, Debug, Default)]
pub struct FlowTrace {
    /// Data sent; true for retransmissions.
    pub sent: Vec<(Point, bool)>,
    /// Data at the receiver.
    pub received: Vec<Point>,
    /// Data at the receiver that had not arrived before, as pairs of seconds and bytes.
    pub fresh: Vec<Point>,
    /// ACKs at the sender: the last segment acknowledged.
    pub acks: Vec<Point>,
    /// ACKs at the sender: the last segment that the receiver's window allows.
    pub allowed: Vec<Point>,
    /// Data lost before the line: in queues, or by a drop list.
    pub queue_drops: Vec<Point>,
    /// Data lost on channels.
    pub channel_drops: Vec<Point>,
    /// Data that arrives at the observed link.
    pub offered: Vec<Point>,
    /// Data that has crossed the observed link.
    pub crossed: Vec<Point>,
    /// The sender's windows.
    pub windows: Vec<WindowPoint>,
    /// Loss recoveries begun, seconds.
    pub entered: Vec<f64>,
    /// Loss recoveries ended, seconds.
    pub left: Vec<f64>,
    /// Timeouts, seconds.
    pub timeouts: Vec<f64>,
    /// Round-trip samples, as pairs of the time in seconds and the sample in milliseconds.
    pub round_trips: Vec<Point>,
}

impl FlowTrace {
    /// The time of the last ACK or, without one, of the last data sent, in seconds; but not before the last data at the receiver, whose
    /// ACK may be lost.
    pub(super) fn end(&self) -> f64 {
        let last = self.acks.last().or(self.sent.last().map(|(point, _)| point));
        let received = self.received.last().map_or(0.0, |point| point.0);
        last.map_or(1.0, |point| point.0).max(received).max(1e-9)
    }

    /// True if the sender has ever sent everything that the receiver's window allows. Only then does the window matter.
    fn fills_the_window(&self) -> bool {
        let mut allowed = self.allowed.iter().peekable();
        let mut edge = f64::INFINITY;
        self.sent.iter().any(|&((at, segment), _)| {
            while let Some(point) = allowed.next_if(|point| point.0 <= at) {
                edge = point.1;
            }
            // A segment that is not full may still fit.
            segment + 1.0 >= edge
        })
    }
}

/// A sender's windows after an ACK or a loss.
#[derive(Clone, Copy, Debug)]
pub struct WindowPoint {
    /// The time in seconds.
    pub at: f64,
    /// Congestion window, segments.
    pub cwnd: f64,
    /// Slow start threshold, segments.
    pub ssthresh: f64,
    /// Data outstanding, segments.
    pub flight: f64,
}

/// The observed link's queue at the arrival of a packet.
#[derive(Clone, Copy, Debug)]
pub struct QueuePoint {
    /// The time in seconds.
    pub at: f64,
    /// Packets waiting.
    pub packets: u32,
    /// RED's average, if any.
    pub average: Option<f64>,
}

/// How a flow's segments are numbered.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    /// The end that sends the data: 0 for the one at `from`, 1 for the one at `to`.
    data_end: u32,
    /// Bytes of data in a full segment; 1 for UDP.
    payload: f64,
}

impl Numbers {
    /// The numbering for one leg of a flow; the first leg is the flow's own.
    fn of(kind: &FlowKind, leg: usize) -> Self {
        match kind {
            FlowKind::Tcp(tcp) => {
                let split = leg.checked_sub(1).and_then(|n| tcp.splits.get(n));
                let stp = split.map_or(&tcp.stp, |split| &split.stp);
                let (sender, receiver) =
                    split.map_or((&tcp.sender, &tcp.receiver), |split| (&split.sender, &split.receiver));
                Numbers {
                    data_end: u32::from(matches!(tcp.workload, Workload::RequestResponse { .. })),
                    payload: f64::from(SegmentSize::of_leg(stp, sender, receiver).payload),
                }
            }
            FlowKind::Stp(stp) => Numbers {
                data_end: u32::from(matches!(stp.workload, Workload::RequestResponse { .. })),
                payload: f64::from(stp.config.mss),
            },
            FlowKind::Quic(quic) => Numbers {
                data_end: u32::from(matches!(quic.workload, Workload::RequestResponse { .. })),
                payload: f64::from(SegmentSize::of_quic(quic).payload),
            },
            FlowKind::Udp(_) => Numbers { data_end: 0, payload: 1.0 },
        }
    }

    /// The segment that begins with this sequence number.
    fn segment(&self, seq: u64) -> f64 {
        (seq.saturating_sub(FIRST_BYTE) as f64 / self.payload).floor() + 1.0
    }

    /// The last segment that this ACK acknowledges.
    fn acked(&self, segment: &Segment) -> f64 {
        (segment.ack.saturating_sub(FIRST_BYTE) as f64 / self.payload).ceil()
    }
}

/// The observer.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Flows in the order of the scenario, with the first legs of split flows, followed by the further legs
    /// (`bentpipe_study::topology::connections`). Empty for UDP.
    pub flows: Vec<FlowTrace>,
    /// The observed link's queue.
    pub queue: Vec<QueuePoint>,
    /// Packets of all flows that this queue dropped, as pairs of seconds and the number of packets waiting.
    pub dropped: Vec<Point>,
    /// Packets that it marked instead of dropping (RFC 3168).
    pub marked: Vec<Point>,
    numbers: Vec<Numbers>,
    /// For each flow, the data that has arrived by stream: the ends of ranges by their starts. TCP has one stream.
    arrived: Vec<BTreeMap<u64, BTreeMap<u64, u64>>>,
    /// For each QUIC flow, the last segment of the data in each packet from the last acknowledged one on, by packet
    /// number.
    unacknowledged: Vec<BTreeMap<u64, f64>>,
    link: Option<LinkId>,
    bursts: Option<Channel>,
}

impl Sequence {
    /// An observer of runs of `scenario` (under its seed), with details of this link.
    pub fn new(scenario: &Scenario, link: Option<LinkId>) -> Self {
        let channel = |link: LinkId| {
            let link = &scenario[link];
            // It uses the same process and name as the link's own channel.
            Channel::new(&link.config.channel, scenario.seed, &format!("{}/channel", link.component()))
        };
        let connections = topology::connections(scenario);
        Sequence {
            flows: vec![FlowTrace::default(); connections.len()],
            arrived: vec![BTreeMap::new(); connections.len()],
            unacknowledged: vec![BTreeMap::new(); connections.len()],
            queue: Vec::new(),
            dropped: Vec::new(),
            marked: Vec::new(),
            numbers: connections
                .iter()
                .map(|&Connection { flow, number, .. }| Numbers::of(&scenario[flow].kind, number))
                .collect(),
            link,
            bursts: link.map(channel),
        }
    }

    /// An observer whose link is the bottleneck of the first flow's data.
    pub fn at_bottleneck(scenario: &Scenario) -> Self {
        let bottleneck = scenario.flows.first().and_then(|flow| {
            let back = Numbers::of(&flow.kind, 0).data_end == 1;
            let path =
                if back { topology::return_path(scenario, flow) } else { topology::forward_path(scenario, flow) };
            topology::mean_facts(scenario, &path.ok()?, 1500).bottleneck_link
        });
        Sequence::new(scenario, bottleneck)
    }

    /// Bytes of data in a full segment of a connection.
    pub(super) fn payload(&self, connection: usize) -> f64 {
        self.numbers[connection].payload
    }

    /// Bursts of the observed link that begin before `end` seconds, as pairs of start and end in seconds.
    pub fn bursts_until(&self, end: f64) -> Vec<(f64, f64)> {
        let Some(mut channel) = self.bursts.clone() else { return Vec::new() };
        let next = || channel.next_burst().map(|Burst { start, end }| (start.as_secs_f64(), end.as_secs_f64()));
        std::iter::from_fn(next).take_while(|&(start, _)| start < end).collect()
    }

    /// The plot of one flow: segments sent and retransmitted, ACKs, losses and bursts, up to `until` seconds or to its
    /// end. Overlapping points are drawn once.
    pub fn panel(&self, flow: usize, title: &str, until: Option<f64>) -> Panel {
        let data = &self.flows[flow];
        let end = until.unwrap_or(data.end());
        let top = data.sent.iter().map(|((_, y), _)| *y).fold(1.0, f64::max);
        let thin = |points: &mut dyn Iterator<Item = Point>| {
            let mut seen = BTreeSet::new();
            let pixel = |part: f64, whole: f64| (part / whole.max(1e-9) * FINEST) as i64;
            points.filter(|&(x, y)| x <= end && seen.insert((pixel(x, end), pixel(y, top)))).collect::<Vec<_>>()
        };
        let series = |name: &str, mark, points: &mut dyn Iterator<Item = Point>| {
            let points = thin(points);
            (!points.is_empty()).then(|| Series { name: name.into(), mark, points })
        };
        let sent = |again: bool| data.sent.iter().filter(move |s| s.1 == again).map(|s| s.0);
        let lost = || data.queue_drops.iter().chain(&data.channel_drops).copied();
        // Marks may overlap, so the legend counts them.
        let counted = |name: &str, points: &mut dyn Iterator<Item = Point>| {
            let count = points.filter(|point| point.0 <= end).count();
            format!("{name} ({count})")
        };
        let allowed = data.fills_the_window().then_some(&data.allowed).into_iter().flatten();
        let all = [
            series("sent", Mark::Dot, &mut sent(false)),
            series("ACK", Mark::Step, &mut data.acks.iter().copied()),
            series("window", Mark::Guide, &mut allowed.copied()),
            series(&counted("lost", &mut lost()), Mark::Cross, &mut lost()),
            series(&counted("retransmitted", &mut sent(true)), Mark::Ring, &mut sent(true)),
        ];
        let bursts: Vec<_> = self.bursts_until(end).iter().map(|&(from, to)| Span { from, to }).collect();
        Panel {
            title: title.into(),
            x: Axis::time().between(0.0, end),
            y: Axis::new("sequence number", "segments").between(0.0, top),
            series: all.into_iter().flatten().collect(),
            spans: (!bursts.is_empty()).then(|| ("error burst".into(), bursts)),
        }
    }
}

/// The position of a packet's data in its stream, numbered like TCP's.
fn offset(packet: &QuicPacket) -> u64 {
    packet.at.map_or(0, |(_, offset)| offset) + FIRST_BYTE
}

/// Adds `start..end` to ranges that neither overlap nor touch. Returns the number of bytes that are new.
fn add(ranges: &mut BTreeMap<u64, u64>, start: u64, end: u64) -> u64 {
    let (mut from, mut to, mut new) = (start, end, end - start);
    while let Some((&left, &right)) = ranges.range(..=to).next_back().filter(|(_, right)| **right >= from) {
        new -= right.min(end).saturating_sub(left.max(start));
        ranges.remove(&left);
        (from, to) = (from.min(left), to.max(right));
    }
    ranges.insert(from, to);
    new
}

/// Resolution of a plot along one axis.
const FINEST: f64 = 1000.0;

impl Probe for Sequence {
    fn event(&mut self, now: Time, who: Who, event: &Event) {
        let at = now.as_secs_f64();
        if who.0 >= LINK_BASE {
            if Some(LinkId(who.0 - LINK_BASE)) == self.link {
                let waiting = self.queue.last().map_or(0.0, |point| f64::from(point.packets));
                match *event {
                    Event::Queue { packets, average, .. } => self.queue.push(QueuePoint { at, packets, average }),
                    Event::Dropped { reason: DropReason::QueueFull | DropReason::Early } => {
                        self.dropped.push((at, waiting));
                    }
                    Event::Marked => self.marked.push((at, waiting)),
                    _ => {}
                }
            }
            return;
        }
        let index = (who.0 / 2) as usize;
        let numbers = self.numbers[index];
        let is_sender = who.0 % 2 == numbers.data_end;
        let flow = &mut self.flows[index];
        match *event {
            Event::Sent { segment, retransmission } if is_sender && segment.len > 0 => {
                flow.sent.push(((at, numbers.segment(segment.seq)), retransmission));
            }
            Event::Received { segment } if is_sender => {
                flow.acks.push((at, numbers.acked(&segment)));
                let allowed = Segment { ack: segment.ack + u64::from(segment.window), ..segment };
                flow.allowed.push((at, numbers.acked(&allowed)));
            }
            Event::Received { segment } if segment.len > 0 => {
                flow.received.push((at, numbers.segment(segment.seq)));
                let ranges = self.arrived[index].entry(0).or_default();
                flow.fresh.push((at, add(ranges, segment.seq, segment.seq + u64::from(segment.len)) as f64));
            }
            Event::QuicSent(packet) if is_sender && packet.data > 0 => {
                let first = numbers.segment(offset(&packet));
                let last = numbers.segment(offset(&packet) + u64::from(packet.data) - 1);
                self.unacknowledged[index].insert(packet.number, last);
                flow.sent.push(((at, first), packet.repeats));
            }
            Event::QuicReceived(packet) if is_sender => {
                // The handshake's packets have a separate number space.
                if let (QuicKind::OneRtt, Some(largest)) = (packet.kind, packet.acknowledges) {
                    let sent = &mut self.unacknowledged[index];
                    *sent = sent.split_off(&largest);
                    let before = flow.acks.last().map_or(0.0, |ack| ack.1);
                    flow.acks.extend(sent.get(&largest).map(|last| (at, last.max(before))));
                }
            }
            Event::QuicReceived(packet) if packet.data > 0 => {
                flow.received.push((at, numbers.segment(offset(&packet))));
                // A packet may have data of several streams. All of it counts as the first one's.
                let (stream, start) = packet.at.unwrap_or_default();
                let ranges = self.arrived[index].entry(stream).or_default();
                flow.fresh.push((at, add(ranges, start, start + u64::from(packet.data)) as f64));
            }
            Event::Window { cwnd, ssthresh, flight } if is_sender => {
                let segments = |bytes: u64| bytes as f64 / numbers.payload;
                let (cwnd, ssthresh, flight) = (segments(cwnd), segments(ssthresh), segments(flight));
                flow.windows.push(WindowPoint { at, cwnd, ssthresh, flight });
            }
            Event::RecoveryEntered { .. } if is_sender => flow.entered.push(at),
            Event::RecoveryLeft if is_sender => flow.left.push(at),
            Event::Timeout { .. } if is_sender => flow.timeouts.push(at),
            Event::Rtt { sample, .. } if is_sender => flow.round_trips.push((at, sample.as_millis_f64())),
            _ => {}
        }
    }
}

impl Observer for Sequence {
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, packet: &Packet) {
        let (seq, len) = match &packet.body {
            Body::Tcp(segment) => (segment.seq, u32::from(segment.len)),
            Body::Quic(packet) => (offset(packet), packet.data),
            Body::Udp(_) => return,
        };
        let numbers = self.numbers[packet.connection.index()];
        if len == 0 || packet.forward != (numbers.data_end == 0) {
            return;
        }
        let point = (now.as_secs_f64(), numbers.segment(seq));
        let flow = &mut self.flows[packet.connection.index()];
        match passage {
            Passage::Dropped(DropReason::Channel) => flow.channel_drops.push(point),
            Passage::Dropped(_) => flow.queue_drops.push(point),
            Passage::Delivered if Some(link) == self.link => flow.crossed.push(point),
            Passage::Offered if Some(link) == self.link => flow.offered.push(point),
            Passage::Delivered | Passage::Offered => {}
        }
    }
}
