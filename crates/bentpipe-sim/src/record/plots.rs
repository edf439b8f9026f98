//! Plots of one run or several: a quantity over time, as a panel of a figure.

use bentpipe_engine::units::{Duration, Time};
use bentpipe_study::report::{Axis, Mark, Panel, Series, Span};
use bentpipe_study::scenario::LinkSpec;

use super::sequence::{FlowTrace, Point, Sequence, WindowPoint};

/// A quantity to plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plot {
    /// Sequence numbers sent, acknowledged, lost and retransmitted.
    Sequence,
    /// Congestion window and data in flight, compared with the bandwidth-delay product.
    Window,
    /// The queue of the observed link, with the packets that it dropped or marked.
    Queue,
    /// Round-trip samples of the sender.
    RoundTrip,
    /// Rate of new data that arrives at the receiver, in bits per second.
    Throughput,
}

/// Reference values to draw beside the measured ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Guides<'s> {
    /// The path's bandwidth-delay product in segments.
    pub bdp: Option<f64>,
    /// The limit of the observed link's queue in packets.
    pub queue_limit: Option<f64>,
    /// The maximum goodput that the links allow an endless flow, in bit/s.
    pub goodput_limit: Option<f64>,
    /// The link that limits the goodput and the seed of the run, if the link's rate changes.
    pub changing: Option<(&'s LinkSpec, u64)>,
}

impl Guides<'_> {
    /// The maximum goodput over time, Mbit/s.
    fn goodput_over_time(&self, end: f64) -> Option<Vec<Point>> {
        let limit = self.goodput_limit? / 1e6;
        let Some((link, seed)) = self.changing else { return Some(vec![(0.0, limit), (end, limit)]) };
        // The part of the line's rate that remains without headers and losses.
        let share = limit / link.config.at_best().rate?.bits_per_second() as f64;
        let width = end / INTERVALS;
        let sent = |n: f64| link.capacity(seed, Time::ZERO + Duration::from_secs_f64_rounded(n * width));
        let rates =
            (0..INTERVALS as u32).map(f64::from).map(|n| Some((sent(n + 1.0)? - sent(n)?) * 8.0 / width * share));
        let rates: Vec<f64> = rates.collect::<Option<_>>()?;
        let last = rates.last().map(|rate| (end, *rate));
        Some(rates.iter().enumerate().map(|(n, rate)| (n as f64 * width, *rate)).chain(last).collect())
    }
}

/// Resolution along the time axis: two points per pixel of a usual plot.
const COLUMNS: f64 = 1000.0;

/// Maximum number of intervals over which throughput is averaged.
const INTERVALS: f64 = 100.0;

impl Plot {
    fn axis(self) -> Axis {
        match self {
            Plot::Sequence => Axis::new("sequence number", "segments"),
            Plot::Window => Axis::new("window", "segments"),
            Plot::Queue => Axis::new("queue", "packets"),
            Plot::RoundTrip => Axis::new("round trip", "ms"),
            Plot::Throughput => Axis::new("goodput", "Mbit/s"),
        }
    }

    /// The reference values to draw, up to the end of the time axis.
    fn guide(self, guides: Guides<'_>, end: f64) -> Option<Series> {
        let level = |value: f64| vec![(0.0, value), (end, value)];
        let (name, points) = match self {
            Plot::Window => ("bandwidth-delay product", level(guides.bdp?)),
            Plot::Queue => ("limit", level(guides.queue_limit?)),
            Plot::Throughput => ("limit of the links", guides.goodput_over_time(end)?),
            Plot::Sequence | Plot::RoundTrip => return None,
        };
        Some(Series { name: name.into(), mark: Mark::Guide, points })
    }
}

impl Sequence {
    /// The plot of one connection, up to its last ACK. Points that would fall on the same pixel are drawn once. For a
    /// curve, the first, the last and the extremes of each pixel are kept.
    pub fn plot(&self, plot: Plot, connection: usize, title: &str, guides: Guides<'_>) -> Panel {
        let data = &self.flows[connection];
        if plot == Plot::Sequence {
            return self.panel(connection, title, None);
        }
        let end = data.end();
        let series = |name: &str, mark, points| Series { name: name.into(), mark, points };
        let main = envelope(self.curve(plot, connection, end), end);
        let mut all = match plot {
            Plot::Sequence => unreachable!("it has been drawn"),
            Plot::Window => {
                let flight = data.windows.iter().map(|point| (point.at, point.flight)).collect();
                let flight = envelope(flight, end);
                vec![series("congestion window", Mark::Step, main), series("in flight", Mark::Dot, flight)]
            }
            // Between two arrivals, the queue drains without being observed.
            Plot::Queue => vec![series("waiting, at each arrival", Mark::Dot, main)],
            Plot::RoundTrip => vec![series("sample", Mark::Dot, main)],
            Plot::Throughput => vec![series("new data at the receiver", Mark::Step, main)],
        };
        all.extend(plot.guide(guides, end));
        if plot == Plot::Queue {
            for (what, mark, points) in [("dropped", Mark::Cross, &self.dropped), ("marked", Mark::Ring, &self.marked)]
            {
                if !points.is_empty() {
                    all.push(series(&format!("{what} ({})", points.len()), mark, envelope(points.clone(), end)));
                }
            }
        }
        Panel {
            title: title.into(),
            x: Axis::time().between(0.0, end),
            y: plot.axis(),
            series: all,
            spans: self.spans(end),
        }
    }

    /// The curve that shows a quantity best.
    fn curve(&self, plot: Plot, connection: usize, end: f64) -> Vec<Point> {
        let data = &self.flows[connection];
        match plot {
            Plot::Sequence => data.acks.clone(),
            Plot::Window => data.windows.iter().map(|point| (point.at, point.cwnd)).collect(),
            Plot::Queue => self.queue.iter().map(|point| (point.at, f64::from(point.packets))).collect(),
            Plot::RoundTrip => data.round_trips.clone(),
            Plot::Throughput => self.goodput(connection, end),
        }
    }

    fn spans(&self, end: f64) -> Option<(String, Vec<Span>)> {
        let bursts: Vec<_> = self.bursts_until(end).into_iter().map(|(from, to)| Span { from, to }).collect();
        (!bursts.is_empty()).then(|| ("error burst".into(), bursts))
    }

    /// The rate in Mbit/s that arrives in each interval; the number of intervals until `end` is fixed. Repeated data
    /// does not count.
    fn goodput(&self, connection: usize, end: f64) -> Vec<Point> {
        let width = end / INTERVALS;
        let mut bits = vec![0.0; INTERVALS as usize];
        for &(at, bytes) in &self.flows[connection].fresh {
            let interval = ((at / width) as usize).min(bits.len() - 1);
            bits[interval] += bytes * 8.0;
        }
        let rates = bits.iter().enumerate().map(|(n, bits)| (n as f64 * width, bits / width / 1e6));
        rates.chain([(end, 0.0)]).collect()
    }
}

/// The same connection in several runs over the same links, one curve each, over the time of the longest. The names in
/// the legend include the number of losses. Every second curve is dashed, so that both are visible where two coincide.
///
/// # Panics
/// Panics if a run has no such connection.
pub fn overlay(plot: Plot, runs: &[(&str, &Sequence)], connection: usize, title: &str, guides: Guides<'_>) -> Panel {
    let end = runs.iter().map(|(_, run)| run.flows[connection].end()).fold(1e-9, f64::max);
    let curves = runs.iter().enumerate().map(|(n, (name, run))| Series {
        name: format!("{name}{}", losses(plot, run, &run.flows[connection])),
        mark: if plot == Plot::Queue { Mark::Dot } else { Mark::of_curve(n) },
        points: envelope(run.curve(plot, connection, end), end),
    });
    let series = curves.chain(plot.guide(guides, end)).collect();
    let spans = runs.first().and_then(|(_, run)| run.spans(end));
    Panel { title: title.into(), x: Axis::time().between(0.0, end), y: plot.axis(), series, spans }
}

/// Measurements of another sender, drawn beside a simulated one. Points are in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Congestion window, as pairs of seconds and segments.
    pub windows: Vec<Point>,
    /// Slow start threshold, while there is one, as pairs of seconds and segments.
    pub thresholds: Vec<Point>,
    /// Smoothed round trip, as pairs of seconds and milliseconds.
    pub round_trips: Vec<Point>,
}

impl Sequence {
    /// The windows and the smoothed round trips of one TCP connection, each together with those of another sender over
    /// the same links.
    pub fn beside(&self, connection: usize, title: &str, other: &str, measured: &Measured) -> [Panel; 2] {
        let data = &self.flows[connection];
        let last = |points: &[Point]| points.last().map_or(0.0, |point| point.0);
        let end = data.end().max(last(&measured.windows));
        let segments = |pick: fn(&WindowPoint) -> f64| data.windows.iter().map(move |point| (point.at, pick(point)));
        let thresholds = segments(|point| point.ssthresh).filter(|point| point.1 * self.payload(connection) < NONE);
        let panel = |title: String, y, curves: Vec<(&str, Vec<Point>, &[Point])>| {
            let series = curves.into_iter().flat_map(|(what, ours, theirs)| {
                let series = |whose: &str, mark, points| Series {
                    name: format!("{what}, {whose}"),
                    mark,
                    points: corners(envelope(points, end)),
                };
                [series("simulated", Mark::Step, ours), series(other, Mark::DashedStep, theirs.to_vec())]
            });
            let series = series.filter(|series| !series.points.is_empty()).collect();
            Panel { title, x: Axis::time().between(0.0, end), y, series, spans: self.spans(end) }
        };
        let windows = vec![
            ("cwnd", segments(|point| point.cwnd).collect(), &measured.windows[..]),
            ("ssthresh", thresholds.collect(), &measured.thresholds[..]),
        ];
        let round_trips = vec![("srtt", smoothed(&data.round_trips), &measured.round_trips[..])];
        [
            panel(title.to_owned(), Plot::Window.axis(), windows),
            panel(format!("{title}: round trip"), Plot::RoundTrip.axis(), round_trips),
        ]
    }
}

/// The points of a staircase, without those that change nothing.
fn corners(mut points: Vec<Point>) -> Vec<Point> {
    let last = points.pop();
    points.dedup_by(|next, kept| next.1 == kept.1);
    points.extend(last);
    points
}

/// Thresholds of at least this many bytes mean that there is none: no TCP window is larger (RFC 7323 §2.3).
const NONE: f64 = (1_u64 << 30) as f64;

/// The smoothed round trip after each sample.
fn smoothed(samples: &[Point]) -> Vec<Point> {
    let mut srtt = None;
    let smooth = |&(at, sample): &Point| {
        //= RFC 6298 §2.3: "SRTT <- (1 - alpha) * SRTT + alpha * R'"
        let next = srtt.map_or(sample, |srtt| srtt + (sample - srtt) / 8.0);
        srtt = Some(next);
        (at, next)
    };
    samples.iter().map(smooth).collect()
}

/// The number of losses in a run, which a curve does not show.
fn losses(plot: Plot, run: &Sequence, flow: &FlowTrace) -> String {
    match plot {
        Plot::Sequence => {
            let lost = flow.queue_drops.len() + flow.channel_drops.len();
            let again = flow.sent.iter().filter(|(_, again)| *again).count();
            format!(": ACKs; {lost} lost, {again} retransmitted")
        }
        Plot::Queue if run.marked.is_empty() => format!(": {} dropped", run.dropped.len()),
        Plot::Queue => format!(": {} dropped, {} marked", run.dropped.len(), run.marked.len()),
        Plot::Window | Plot::RoundTrip | Plot::Throughput => String::new(),
    }
}

/// The first, lowest, highest and last point in each column of the plot, in order of time.
fn envelope(points: Vec<Point>, end: f64) -> Vec<Point> {
    let column = |point: &Point| (point.0 / end * COLUMNS) as i64;
    let mut kept: Vec<Point> = Vec::new();
    for group in points.chunk_by(|a, b| column(a) == column(b)) {
        let by_height = |a: &&Point, b: &&Point| a.1.total_cmp(&b.1);
        let ends = group.first().into_iter().chain(group.last());
        let extremes = group.iter().min_by(by_height).into_iter().chain(group.iter().max_by(by_height));
        let mut four: Vec<Point> = ends.chain(extremes).copied().collect();
        four.sort_by(|a, b| a.0.total_cmp(&b.0));
        four.dedup();
        kept.extend(four);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6298 §2.2 and §2.3 by hand: the first sample, then seven eighths of the average plus one eighth of the next
    /// sample.
    #[test]
    fn round_trips_are_smoothed() {
        assert_eq!(smoothed(&[(1.0, 80.0), (2.0, 160.0), (3.0, 10.0)]), [(1.0, 80.0), (2.0, 90.0), (3.0, 80.0)]);
    }

    #[test]
    fn a_staircase_needs_its_corners_only() {
        let points = [(0.0, 1.0), (1.0, 1.0), (2.0, 3.0), (3.0, 3.0), (4.0, 3.0)];
        assert_eq!(corners(points.to_vec()), [(0.0, 1.0), (2.0, 3.0), (4.0, 3.0)]);
    }

    #[test]
    fn a_peak_survives_the_reduction() {
        let points: Vec<Point> =
            (0..100_000).map(|n| (f64::from(n) / 1000.0, if n == 77_777 { 9.0 } else { 1.0 })).collect();
        let kept = envelope(points, 100.0);
        assert!(kept.len() <= 4000, "{}", kept.len());
        assert!(kept.contains(&(77.777, 9.0)));
        assert!(kept.is_sorted_by(|a, b| a.0 <= b.0));
    }
}
