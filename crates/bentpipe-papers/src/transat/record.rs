//! A watcher that writes down what the paper's figures show: packets sent, received and lost, ACKs, windows, the queue.

use bentpipe_engine::link::{Burst, Channel};
use bentpipe_engine::probe::{DropReason, Event, Probe, Who};
use bentpipe_engine::tcp::{FIRST_BYTE, Segment};
use bentpipe_engine::units::Time;
use bentpipe_sim::{Body, LINK_BASE, Observer, Packet, Passage};
use bentpipe_study::scenario::{FlowKind, Scenario};

use super::setting::BOTTLENECK;

/// An instant, seconds, and the number of a packet of the flow, from 1.
pub(super) type Point = (f64, f64);

/// One TCP flow.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowTrace {
    /// Data sent, and whether it had been sent before.
    pub(super) sent: Vec<(Point, bool)>,
    /// Data at the receiver.
    pub(super) received: Vec<Point>,
    /// ACKs at the sender: the last packet acknowledged.
    pub(super) acks: Vec<Point>,
    /// Data lost before the satellite link, in its queue.
    pub(super) queue_drops: Vec<Point>,
    /// Data lost on the satellite link.
    pub(super) channel_drops: Vec<Point>,
    /// Data that arrives at the satellite link.
    pub(super) offered: Vec<Point>,
    /// Data that has crossed the satellite link.
    pub(super) crossed: Vec<Point>,
    /// The sender's windows.
    pub(super) windows: Vec<WindowPoint>,
    /// Loss recoveries begun.
    pub(super) entered: Vec<f64>,
    /// Loss recoveries ended.
    pub(super) left: Vec<f64>,
    /// Timeouts.
    pub(super) timeouts: Vec<f64>,
}

/// A sender's windows after an ACK or a loss.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowPoint {
    /// When, seconds.
    pub(super) at: f64,
    /// Congestion window, packets.
    pub(super) cwnd: f64,
    /// Slow start threshold, packets.
    pub(super) ssthresh: f64,
    /// Data outstanding, packets.
    pub(super) flight: f64,
}

/// The queue before the satellite link as an arriving packet met it.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueuePoint {
    /// When, seconds.
    pub(super) at: f64,
    /// Packets waiting.
    pub(super) packets: u32,
    /// RED's average, where there is one.
    pub(super) average: Option<f64>,
}

/// The watcher.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    /// Flows in the order of the scenario; empty for CBR.
    pub(super) flows: Vec<FlowTrace>,
    /// The bottleneck's queue.
    pub(super) queue: Vec<QueuePoint>,
    bottleneck: usize,
    mss: f64,
    bursts: Channel,
}

impl Recorder {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let bottleneck = scenario.links.iter().position(|l| l.name == BOTTLENECK).expect("settings have this link");
        let link = &scenario.links[bottleneck];
        let mss = scenario.flows.iter().find_map(|flow| match &flow.kind {
            FlowKind::Tcp(tcp) => Some(f64::from(tcp.sender.mss)),
            FlowKind::Udp(_) => None,
        });
        Recorder {
            flows: vec![FlowTrace::default(); scenario.flows.len()],
            queue: Vec::new(),
            bottleneck,
            mss: mss.expect("settings have a TCP flow"),
            // The same process under the same name as the link's own.
            bursts: Channel::new(&link.config.channel, scenario.seed, &format!("link/{}/channel", link.name)),
        }
    }

    /// Bursts of the satellite link that begin before `end` seconds: start and end, seconds.
    pub(super) fn bursts_until(&self, end: f64) -> Vec<(f64, f64)> {
        let mut channel = self.bursts.clone();
        let next = || channel.next_burst().map(|Burst { start, end }| (start.as_secs_f64(), end.as_secs_f64()));
        std::iter::from_fn(next).take_while(|&(start, _)| start < end).collect()
    }

    /// The number, from 1, of the packet with this sequence number.
    fn packet_number(&self, seq: u64) -> f64 {
        ((seq.saturating_sub(FIRST_BYTE)) as f64 / self.mss).floor() + 1.0
    }

    /// The number of the last packet that this ACK acknowledges.
    fn acked(&self, segment: &Segment) -> f64 {
        (segment.ack.saturating_sub(FIRST_BYTE) as f64 / self.mss).ceil()
    }
}

impl Probe for Recorder {
    fn event(&mut self, now: Time, who: Who, event: &Event) {
        let at = now.as_secs_f64();
        if who.0 >= LINK_BASE {
            if let Event::Queue { packets, average, .. } = *event
                && (who.0 - LINK_BASE) as usize == self.bottleneck
            {
                self.queue.push(QueuePoint { at, packets, average });
            }
            return;
        }
        let (mss, is_sender) = (self.mss, who.0.is_multiple_of(2));
        let number = match event {
            Event::Sent { segment, .. } => self.packet_number(segment.seq),
            Event::Received { segment } if is_sender => self.acked(segment),
            Event::Received { segment } => self.packet_number(segment.seq),
            _ => 0.0,
        };
        let flow = &mut self.flows[who.0 as usize / 2];
        match *event {
            Event::Sent { segment, retransmission } if is_sender && segment.len > 0 => {
                flow.sent.push(((at, number), retransmission));
            }
            Event::Received { .. } if is_sender => flow.acks.push((at, number)),
            Event::Received { segment } if segment.len > 0 => flow.received.push((at, number)),
            Event::Window { cwnd, ssthresh, flight } if is_sender => {
                let packets = |bytes: u64| bytes as f64 / mss;
                let (cwnd, ssthresh, flight) = (packets(cwnd), packets(ssthresh), packets(flight));
                flow.windows.push(WindowPoint { at, cwnd, ssthresh, flight });
            }
            Event::RecoveryEntered { .. } => flow.entered.push(at),
            Event::RecoveryLeft => flow.left.push(at),
            Event::Timeout { .. } => flow.timeouts.push(at),
            _ => {}
        }
    }
}

impl Observer for Recorder {
    fn packet(&mut self, now: Time, link: usize, passage: Passage, packet: &Packet) {
        let Body::Tcp(segment) = &packet.body else { return };
        if link != self.bottleneck || segment.len == 0 {
            return;
        }
        let point = (now.as_secs_f64(), self.packet_number(segment.seq));
        let flow = &mut self.flows[packet.flow as usize];
        match passage {
            Passage::Dropped(DropReason::Channel) => flow.channel_drops.push(point),
            Passage::Dropped(_) => flow.queue_drops.push(point),
            Passage::Delivered => flow.crossed.push(point),
            Passage::Offered => flow.offered.push(point),
        }
    }
}
