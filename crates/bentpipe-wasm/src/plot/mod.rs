//! A run reduced to the width of a plot while it goes on.
//!
//! [`Plot`] observes a run. It takes the points of one connection and one link from [`Sequence`] as they come and keeps them in
//! `columns` and `dots`, so memory depends on the plot's size, not on the run's length.

mod columns;
mod dots;

use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{DropReason, Event, Probe, Who};
use bentpipe_engine::units::Time;
use bentpipe_sim::record::{Point, Sequence};
use bentpipe_sim::{LINK_BASE, Observer, Packet, Passage};
use bentpipe_study::scenario::{ConnectionId, Scenario};
use serde::Serialize;

use crate::arrays::{Arrays, Numbers};
use columns::{Band, Counts, Grid, Place};
use dots::Dots;

/// Events between two times that the points are taken.
const EVENTS: u32 = 4096;
/// Max number of instants in a list.
const MAX_LIST: usize = 4096;

/// What a plot shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The connection.
    pub(crate) connection: ConnectionId,
    /// The end that receives the flow's data.
    pub(crate) receiver: Who,
    /// The number of the flow's packets, if it is one of datagrams.
    pub(crate) datagrams: Option<ConnectionId>,
    /// The link whose queue and losses are shown.
    pub(crate) link: LinkId,
    /// The last link of the flow's data.
    pub(crate) last_link: LinkId,
}

/// The observer.
#[derive(Debug)]
pub(crate) struct Plot {
    subject: Subject,
    sequence: Sequence,
    events: u32,
    grid: Grid,
    sent: Band,
    acks: Band,
    cwnd: Band,
    flight: Band,
    queue: Band,
    full: Counts,
    lost: Counts,
    arrived: Counts,
    resent: Dots,
    dropped: Dots,
    faded: Dots,
    timeouts: Vec<f64>,
}

impl Plot {
    /// Of this size in columns and rows, and of these seconds of the run.
    pub(crate) fn new(scenario: &Scenario, subject: Subject, size: (u32, u32), window: Option<(f64, f64)>) -> Plot {
        let (width, rows) = (size.0 as usize, size.1 as usize);
        let grid = window.map_or(Grid::open(width), |(from, to)| Grid::window(width, from, to));
        let (band, counts) = (Band::new(grid.count), Counts::new(grid.count));
        let dots = Dots::new(rows);
        Plot {
            subject,
            sequence: Sequence::new(scenario, Some(subject.link)),
            events: 0,
            grid,
            sent: band.clone(),
            acks: band.clone(),
            cwnd: band.clone(),
            flight: band.clone(),
            queue: band,
            full: counts.clone(),
            lost: counts.clone(),
            arrived: counts,
            resent: dots.clone(),
            dropped: dots.clone(),
            faded: dots,
            timeouts: Vec::new(),
        }
    }

    fn column(&mut self, at: f64) -> Option<usize> {
        loop {
            match self.grid.place(at) {
                Place::Outside => return None,
                Place::Column(column) => return Some(column),
                Place::Merge => {
                    self.grid.merge();
                    let bands = [&mut self.sent, &mut self.acks, &mut self.cwnd, &mut self.flight, &mut self.queue];
                    bands.into_iter().for_each(Band::merge);
                    [&mut self.full, &mut self.lost, &mut self.arrived].into_iter().for_each(Counts::merge);
                    [&mut self.resent, &mut self.dropped, &mut self.faded].into_iter().for_each(Dots::merge);
                }
            }
        }
    }

    fn dot(&mut self, point: Point, which: fn(&mut Plot) -> &mut Dots) {
        if let Some(column) = self.column(point.0) {
            let grid = self.grid;
            which(self).add(&grid, column, point);
        }
    }

    fn band(&mut self, (at, value): Point, which: fn(&mut Plot) -> &mut Band) {
        if let Some(column) = self.column(at) {
            which(self).add(column, value);
        }
    }

    fn count(&mut self, at: f64, value: f64, which: fn(&mut Plot) -> &mut Counts) {
        if let Some(column) = self.column(at) {
            which(self).add(column, value);
        }
    }

    /// After each event: takes the points now and then.
    fn go_on(&mut self) {
        self.events += 1;
        if self.events >= EVENTS {
            self.events = 0;
            self.take();
        }
    }

    fn take(&mut self) {
        for (n, mut flow) in self.sequence.flows.iter_mut().map(std::mem::take).enumerate().collect::<Vec<_>>() {
            if n != self.subject.connection.index() {
                continue;
            }
            for (point, again) in flow.sent.drain(..) {
                if again {
                    self.dot(point, |plot| &mut plot.resent);
                } else {
                    self.band(point, |plot| &mut plot.sent);
                }
            }
            flow.acks.into_iter().for_each(|point| self.band(point, |plot| &mut plot.acks));
            flow.queue_drops.into_iter().for_each(|point| self.dot(point, |plot| &mut plot.dropped));
            flow.channel_drops.into_iter().for_each(|point| self.dot(point, |plot| &mut plot.faded));
            for window in flow.windows {
                self.band((window.at, window.cwnd), |plot| &mut plot.cwnd);
                self.band((window.at, window.flight), |plot| &mut plot.flight);
            }
            let room = MAX_LIST.saturating_sub(self.timeouts.len());
            self.timeouts.extend(flow.timeouts.into_iter().take(room));
        }
        for point in std::mem::take(&mut self.sequence.queue) {
            self.band((point.at, f64::from(point.packets)), |plot| &mut plot.queue);
        }
    }

    /// What has been seen of a run that ended at `end` seconds. Its numbers go to `arrays`.
    pub(crate) fn finish(mut self, end: f64, arrays: &mut Arrays) -> Drawn {
        self.take();
        // Columns behind the end are empty.
        let used = match self.grid.place(end) {
            Place::Column(column) => column + 1,
            Place::Outside | Place::Merge => self.grid.count,
        };
        let mut cut = |values: &[f64]| arrays.put(&values[..used]);
        let bands = [&self.sent, &self.acks, &self.cwnd, &self.flight, &self.queue];
        let [sent, acks, cwnd, flight, queue] =
            bands.map(|band| Drawing { lo: cut(&band.lo), hi: cut(&band.hi), last: cut(&band.last) });
        let [dropped_queue, dropped_channel, arrived_bytes] =
            [&self.full, &self.lost, &self.arrived].map(|counts| cut(&counts.0));
        let [resent, lost_queue, lost_channel] = [&self.resent, &self.dropped, &self.faded]
            .map(|dots| Scatter { count: dots.count, points: arrays.put(&dots.points(&self.grid)) });
        Drawn {
            from_s: self.grid.from,
            column_s: self.grid.dt,
            columns: used,
            sent,
            acks,
            cwnd,
            flight,
            queue,
            dropped_queue,
            dropped_channel,
            arrived_bytes,
            resent,
            lost_queue,
            lost_channel,
            timeouts_s: self.timeouts,
        }
    }
}

impl Probe for Plot {
    fn event(&mut self, now: Time, who: Who, event: &Event) {
        self.sequence.event(now, who, event);
        let at = now.as_secs_f64();
        match *event {
            Event::Received { segment } if who == self.subject.receiver && self.subject.datagrams.is_none() => {
                self.count(at, f64::from(segment.len), |plot| &mut plot.arrived);
            }
            Event::Dropped { reason } if who.0 == LINK_BASE + self.subject.link.0 => match reason {
                DropReason::Channel => self.count(at, 1.0, |plot| &mut plot.lost),
                _ => self.count(at, 1.0, |plot| &mut plot.full),
            },
            _ => {}
        }
        self.go_on();
    }
}

impl Observer for Plot {
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, packet: &Packet) {
        self.sequence.packet(now, link, passage, packet);
        let is_last = link == self.subject.last_link && passage == Passage::Delivered;
        if is_last && self.subject.datagrams == Some(packet.connection) {
            self.count(now.as_secs_f64(), f64::from(packet.wire_len), |plot| &mut plot.arrived);
        }
        self.go_on();
    }
}

/// A quantity by column; NaN where there is no value.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Drawing {
    /// Minimum.
    pub(crate) lo: Numbers,
    /// Maximum.
    pub(crate) hi: Numbers,
    /// The last value.
    pub(crate) last: Numbers,
}

/// Points.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Scatter {
    /// How many there were; several may be one point of the plot.
    pub(crate) count: u64,
    /// Seconds and values in turn.
    pub(crate) points: Numbers,
}

/// The numbers of plots. Sequence numbers count segments from 1, as in `bentpipe_sim::record::Sequence`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Drawn {
    /// Start of the first column, seconds.
    pub(crate) from_s: f64,
    /// Length of a column, seconds.
    pub(crate) column_s: f64,
    /// Number of columns.
    pub(crate) columns: usize,
    /// Segments sent for the first time.
    pub(crate) sent: Drawing,
    /// Segments acknowledged.
    pub(crate) acks: Drawing,
    /// Congestion window, segments.
    pub(crate) cwnd: Drawing,
    /// Outstanding data, segments.
    pub(crate) flight: Drawing,
    /// Packets that wait at the link.
    pub(crate) queue: Drawing,
    /// Packets and frames of all flows that its queue dropped, by column.
    pub(crate) dropped_queue: Numbers,
    /// Those that its channel lost.
    pub(crate) dropped_channel: Numbers,
    /// Payload that arrived at the end of the path, bytes, repetitions included; for datagrams with headers.
    pub(crate) arrived_bytes: Numbers,
    /// Segments sent again.
    pub(crate) resent: Scatter,
    /// Segments dropped by queues.
    pub(crate) lost_queue: Scatter,
    /// Segments lost on channels.
    pub(crate) lost_channel: Scatter,
    /// Timeouts, seconds.
    pub(crate) timeouts_s: Vec<f64>,
}
