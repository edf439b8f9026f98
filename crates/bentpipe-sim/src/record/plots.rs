//! Plots of a run: one quantity over time, as a panel of a figure.

use bentpipe_study::report::{Axis, Mark, Panel, Series, Span};

use super::sequence::{Point, Sequence};

/// A quantity to plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plot {
    /// Sequence numbers sent, acknowledged, lost and retransmitted.
    Sequence,
    /// Congestion window and data in flight, beside the bandwidth-delay product.
    Window,
    /// The queue of the observed link, with the losses of all flows in queues.
    Queue,
    /// Round-trip samples of the sender.
    RoundTrip,
    /// Bits acknowledged per second.
    Throughput,
}

/// Values to draw beside the measured ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Guides {
    /// The path's bandwidth-delay product, segments.
    pub bdp: Option<f64>,
    /// The limit of the observed link's queue, packets.
    pub queue_limit: Option<f64>,
    /// The maximum goodput that the links allow, bit/s.
    pub goodput_limit: Option<f64>,
}

/// Resolution along the time axis: two points per pixel of a usual plot.
const COLUMNS: f64 = 1000.0;

/// Intervals over which throughput is averaged, at most.
const INTERVALS: f64 = 100.0;

impl Sequence {
    /// The plot of one connection, to its last ACK. Points that would fall on the same pixel are drawn once; of a curve the first,
    /// the last and the extremes of each pixel are kept.
    pub fn plot(&self, plot: Plot, connection: usize, title: &str, guides: Guides) -> Panel {
        let data = &self.flows[connection];
        if plot == Plot::Sequence {
            return self.panel(connection, title, None);
        }
        let end = data.acks.last().or(data.sent.last().map(|(point, _)| point)).map_or(1.0, |point| point.0).max(1e-9);
        let curve =
            |name: &str, mark, points: Vec<Point>| Series { name: name.into(), mark, points: envelope(points, end) };
        let level = |name: &str, value: f64| Series {
            name: name.into(),
            mark: Mark::Line,
            points: vec![(0.0, value), (end, value)],
        };
        let (y, series) = match plot {
            Plot::Sequence => unreachable!("it has been drawn"),
            Plot::Window => {
                let window = data.windows.iter().map(|point| (point.at, point.cwnd)).collect();
                let flight = data.windows.iter().map(|point| (point.at, point.flight)).collect();
                let mut series =
                    vec![curve("congestion window", Mark::Step, window), curve("in flight", Mark::Dot, flight)];
                series.extend(guides.bdp.map(|bdp| level("bandwidth-delay product", bdp)));
                (Axis::new("window", "segments"), series)
            }
            Plot::Queue => {
                let waiting = self.queue.iter().map(|point| (point.at, f64::from(point.packets))).collect();
                let mut series = vec![curve("waiting", Mark::Step, waiting)];
                series.extend(guides.queue_limit.map(|limit| level("limit", limit)));
                let mut lost: Vec<f64> =
                    self.flows.iter().flat_map(|flow| &flow.queue_drops).map(|&(at, _)| at).collect();
                lost.sort_by(f64::total_cmp);
                if !lost.is_empty() {
                    let top = guides.queue_limit.unwrap_or(0.0);
                    let name = format!("lost ({})", lost.len());
                    series.push(curve(&name, Mark::Cross, lost.into_iter().map(|at| (at, top)).collect()));
                }
                (Axis::new("queue", "packets"), series)
            }
            Plot::RoundTrip => {
                let samples = data.round_trips.clone();
                (Axis::new("round trip", "ms"), vec![curve("sample", Mark::Dot, samples)])
            }
            Plot::Throughput => {
                let mut series = vec![curve("goodput", Mark::Step, self.goodput(connection, end))];
                series.extend(guides.goodput_limit.map(|limit| level("limit of the links", limit / 1e6)));
                (Axis::new("goodput", "Mbit/s"), series)
            }
        };
        let bursts = self.bursts_until(end).into_iter().map(|(from, to)| Span { from, to }).collect::<Vec<_>>();
        let spans = (!bursts.is_empty()).then(|| ("error burst".into(), bursts));
        Panel { title: title.into(), x: Axis::time().between(0.0, end), y, series, spans }
    }

    /// Mbit/s acknowledged in each interval.
    fn goodput(&self, connection: usize, end: f64) -> Vec<Point> {
        let width = end / INTERVALS;
        let mut bits = vec![0.0; INTERVALS as usize];
        let mut highest = 0.0;
        for &(at, segment) in &self.flows[connection].acks {
            if segment > highest {
                let interval = ((at / width) as usize).min(bits.len() - 1);
                bits[interval] += (segment - highest) * self.payload(connection) * 8.0;
                highest = segment;
            }
        }
        let rates = bits.iter().enumerate().map(|(n, bits)| (n as f64 * width, bits / width / 1e6));
        rates.chain([(end, 0.0)]).collect()
    }
}

/// Per column of the plot the first, the lowest, the highest and the last point, in order of time.
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
