//! The events of a run as tables: the observer behind `Result.trace`.

use arrow_array::builder::{Float64Builder, Int64Builder};
use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_engine::units::Time;
use bentpipe_sim::record::{Names, Sequence};
use bentpipe_sim::{Observer, Packet, Passage};
use bentpipe_study::scenario::Scenario;

use crate::events::Events;
use crate::flows::whole;
use crate::packets::{Packets, Seen};
use crate::table::{Table, Words, columns};

columns! {
    /// Windows of the senders.
    Windows {
        time_s: Float64Builder, "Time since the start of the run, seconds.";
        at: Words, "The end: FLOW/sender or FLOW/receiver.";
        cwnd_bytes: Int64Builder, "Congestion window, bytes, inflation included.";
        ssthresh_bytes: Int64Builder, "Slow start threshold, bytes; null while it is unlimited.";
        flight_bytes: Int64Builder, "Sent and not yet acknowledged, bytes.";
    }
}

columns! {
    /// Round-trip samples.
    RoundTrips {
        time_s: Float64Builder, "Time since the start of the run, seconds.";
        at: Words, "The end: FLOW/sender or FLOW/receiver.";
        rtt_s: Float64Builder, "The sample, seconds.";
        rto_s: Float64Builder, "The resulting retransmission timeout without backoff, seconds.";
    }
}

columns! {
    /// Queues at the arrival of packets.
    Queues {
        time_s: Float64Builder, "Time since the start of the run, seconds.";
        link: Words, "The link.";
        packets: Int64Builder, "Packets already waiting, without the one in transmission.";
        bytes: Int64Builder, "Bytes already waiting.";
        average_packets: Float64Builder, "RED's average queue, packets; null without RED.";
    }
}

columns! {
    /// Loss recovery of the senders.
    Recoveries {
        time_s: Float64Builder, "Time since the start of the run, seconds.";
        at: Words, "The end: FLOW/sender or FLOW/receiver.";
        event: Words, "recovery (begins), recovered, timeout or spurious-timeout.";
    }
}

columns! {
    /// Error bursts.
    Bursts {
        link: Words, "The link.";
        start_s: Float64Builder, "First bad instant, seconds.";
        end_s: Float64Builder, "First good instant after it, seconds.";
    }
}

/// Names of the tables.
pub(crate) const KINDS: [&str; 8] = ["windows", "rtt", "queue", "drops", "recovery", "bursts", "packets", "events"];

/// An observer that fills the requested tables.
pub(crate) struct Recorder {
    names: Names,
    seed: u64,
    windows: Option<Windows>,
    rtt: Option<RoundTrips>,
    queue: Option<Queues>,
    drops: Option<Packets>,
    recovery: Option<Recoveries>,
    wants_bursts: bool,
    packets: Option<Packets>,
    events: Option<Events>,
}

impl Recorder {
    /// Records runs of a scenario. `kinds` are among [`KINDS`].
    pub(crate) fn new(scenario: &Scenario, seed: u64, kinds: &[String]) -> Recorder {
        let wants = |kind: &str| kinds.iter().any(|wanted| wanted == kind);
        Recorder {
            names: Names::of(scenario),
            seed,
            windows: wants("windows").then(Windows::default),
            rtt: wants("rtt").then(RoundTrips::default),
            queue: wants("queue").then(Queues::default),
            drops: wants("drops").then(Packets::default),
            recovery: wants("recovery").then(Recoveries::default),
            wants_bursts: wants("bursts"),
            packets: wants("packets").then(Packets::default),
            events: wants("events").then(Events::default),
        }
    }

    /// The tables after a run that ended at `end`.
    pub(crate) fn finish(self, scenario: &Scenario, end: Time) -> Vec<(&'static str, Table)> {
        let mut tables = Vec::new();
        let mut add = |name, table: Option<Table>| tables.extend(table.map(|table| (name, table)));
        add("windows", self.windows.map(Windows::finish));
        add("rtt", self.rtt.map(RoundTrips::finish));
        add("queue", self.queue.map(Queues::finish));
        add("drops", self.drops.map(Packets::finish));
        add("recovery", self.recovery.map(Recoveries::finish));
        add("bursts", self.wants_bursts.then(|| bursts(scenario, self.seed, end)));
        add("packets", self.packets.map(Packets::finish));
        add("events", self.events.map(Events::finish));
        tables
    }
}

/// The bursts of all links that begin before the end of the run.
fn bursts(scenario: &Scenario, seed: u64, end: Time) -> Table {
    let scenario = scenario.with_seed(seed);
    let mut rows = Bursts::default();
    for (number, link) in (0..).map(LinkId).zip(&scenario.links) {
        for (from, to) in Sequence::new(&scenario, Some(number)).bursts_until(end.as_secs_f64()) {
            rows.link.append_value(&link.name);
            rows.start_s.append_value(from);
            rows.end_s.append_value(to);
        }
    }
    rows.finish()
}

impl Probe for Recorder {
    fn event(&mut self, now: Time, who: Who, event: &Event) {
        let name = self.names.get(who);
        if let Some(events) = &mut self.events {
            events.push(now, name, event);
        }
        let at = now.as_secs_f64();
        match event {
            Event::Sent { segment, retransmission } => {
                if let Some(packets) = &mut self.packets {
                    packets.end(at, name, Seen::Segment(segment), Some(*retransmission));
                }
            }
            Event::Received { segment } => {
                if let Some(packets) = &mut self.packets {
                    packets.end(at, name, Seen::Segment(segment), None);
                }
            }
            Event::QuicSent(packet) => {
                if let Some(packets) = &mut self.packets {
                    packets.end(at, name, Seen::Quic(packet), Some(packet.repeats));
                }
            }
            Event::QuicReceived(packet) => {
                if let Some(packets) = &mut self.packets {
                    packets.end(at, name, Seen::Quic(packet), None);
                }
            }
            Event::Window { cwnd, ssthresh, flight } => {
                if let Some(rows) = &mut self.windows {
                    rows.time_s.append_value(at);
                    rows.at.append_value(name);
                    rows.cwnd_bytes.append_value(whole(*cwnd));
                    rows.ssthresh_bytes.append_option(i64::try_from(*ssthresh).ok());
                    rows.flight_bytes.append_value(whole(*flight));
                }
            }
            Event::Rtt { sample, rto } => {
                if let Some(rows) = &mut self.rtt {
                    rows.time_s.append_value(at);
                    rows.at.append_value(name);
                    rows.rtt_s.append_value(sample.as_secs_f64());
                    rows.rto_s.append_value(rto.as_secs_f64());
                }
            }
            Event::Queue { packets, bytes, average } => {
                if let Some(rows) = &mut self.queue {
                    rows.time_s.append_value(at);
                    rows.link.append_value(name);
                    rows.packets.append_value(i64::from(*packets));
                    rows.bytes.append_value(whole(*bytes));
                    rows.average_packets.append_option(*average);
                }
            }
            Event::RecoveryEntered { .. } => self.recovery(at, who, "recovery"),
            Event::RecoveryLeft => self.recovery(at, who, "recovered"),
            Event::Timeout { .. } => self.recovery(at, who, "timeout"),
            Event::SpuriousTimeout => self.recovery(at, who, "spurious-timeout"),
            _ => {}
        }
    }
}

impl Recorder {
    fn recovery(&mut self, at: f64, who: Who, event: &str) {
        if let Some(rows) = &mut self.recovery {
            rows.time_s.append_value(at);
            rows.at.append_value(self.names.get(who));
            rows.event.append_value(event);
        }
    }
}

impl Observer for Recorder {
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, packet: &Packet) {
        let is_drop = matches!(passage, Passage::Dropped(_));
        if self.packets.is_none() && !(is_drop && self.drops.is_some()) {
            return;
        }
        let (at, flow) = (self.names.link(link), self.names.flow(packet.connection));
        if let Some(packets) = &mut self.packets {
            packets.link(now.as_secs_f64(), at, flow, passage, packet);
        }
        if let Some(drops) = self.drops.as_mut().filter(|_| is_drop) {
            drops.link(now.as_secs_f64(), at, flow, passage, packet);
        }
    }
}
