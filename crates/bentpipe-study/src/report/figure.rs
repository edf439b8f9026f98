//! A figure as data: panels side by side, each with series over two axes and shaded spans of time.

use crate::csv;

/// A quantity along an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its label.
    pub label: String,
    /// Its unit.
    pub unit: String,
    /// The range, or `None` to fit the data.
    pub range: Option<(f64, f64)>,
}

impl Axis {
    /// An axis that fits the data.
    pub fn new(label: &str, unit: &str) -> Self {
        Axis { label: label.into(), unit: unit.into(), range: None }
    }

    /// Time in seconds.
    pub fn time() -> Self {
        Axis::new("time", "s")
    }

    /// The axis limited to a range.
    pub fn between(self, low: f64, high: f64) -> Self {
        Axis { range: Some((low, high)), ..self }
    }

    /// The label with its unit, as shown at the axis.
    pub fn title(&self) -> String {
        if self.unit.is_empty() { self.label.clone() } else { format!("{} ({})", self.label, self.unit) }
    }
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Straight lines from point to point.
    Line,
    /// Level until the next point, for counters and ACK numbers.
    Step,
    /// Like `Step`, but dashed, so that both are visible where two runs coincide.
    DashedStep,
    /// Level until the next point, dotted and grey: a reference such as a limit.
    Guide,
    /// A dot at each point: packets sent.
    Dot,
    /// A cross at each point: packets lost.
    Cross,
    /// A ring around each point, visible among dots and on lines: retransmissions.
    Ring,
}

/// Number of colours for series, after which they repeat.
pub(super) const COLOURS: usize = 6;

impl Mark {
    /// The mark of the n-th of several curves: solid and dashed alternate, so that both are visible where two coincide,
    /// and no two of twelve look alike.
    pub const fn of_curve(n: usize) -> Self {
        if (n + n / COLOURS).is_multiple_of(2) { Mark::Step } else { Mark::DashedStep }
    }
}

/// One curve or cloud.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub mark: Mark,
    /// Points in order of x.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// The percentage of `runs` whose value is at most x, as a staircase. Runs without a value (unfinished ones) are
    /// counted in the name, and the curve then ends below 100 %.
    pub fn distribution(name: &str, mark: Mark, mut values: Vec<f64>, runs: usize) -> Self {
        values.sort_by(f64::total_cmp);
        let missing = runs - values.len();
        let name = if missing == 0 { name.to_owned() } else { format!("{name} ({missing} of {runs} unfinished)") };
        let floor = values.first().map(|&first| (first, 0.0));
        let share = |n: usize| 100.0 * (n + 1) as f64 / runs as f64;
        let points = floor.into_iter().chain(values.iter().enumerate().map(|(n, &value)| (value, share(n)))).collect();
        Series { name, mark, points }
    }
}

/// A shaded interval of x: an error burst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Start.
    pub from: f64,
    /// End.
    pub to: f64,
}

/// One pair of axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Its title.
    pub title: String,
    /// Horizontal.
    pub x: Axis,
    /// Vertical.
    pub y: Axis,
    /// Curves.
    pub series: Vec<Series>,
    /// The label of the shaded spans, and the spans.
    pub spans: Option<(String, Vec<Span>)>,
}

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Title over all panels.
    pub title: String,
    /// Panels from left to right; if there are more than two, row by row.
    pub panels: Vec<Panel>,
}

/// From, and to.
pub(super) type Range = (f64, f64);

impl Panel {
    /// The min and max x and y of the data, or the given ranges; an empty range is widened.
    pub(super) fn ranges(&self) -> (Range, Range) {
        let fit = |pick: fn(&(f64, f64)) -> f64| {
            let points = self.series.iter().flat_map(|s| &s.points).map(pick);
            let (low, high) = points.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
            if low > high {
                (0.0, 1.0)
            } else if low == high {
                (low - 0.5, high + 0.5)
            } else {
                let room = 0.02 * (high - low);
                (if low >= 0.0 && low <= room { 0.0 } else { low - room }, high + room)
            }
        };
        let x = self.x.range.unwrap_or_else(|| fit(|p| p.0));
        let y = self.y.range.unwrap_or_else(|| fit(|p| p.1));
        (x, y)
    }
}

impl Figure {
    /// The same panels with shared axes that contain all of their data, so that higher means more in every panel.
    pub fn with_shared_axes(mut self) -> Self {
        let ranges: Vec<_> = self.panels.iter().map(Panel::ranges).collect();
        let union = |pick: fn(&(Range, Range)) -> Range| {
            let ranges = ranges.iter().map(pick);
            ranges.reduce(|(a, b), (c, d)| (a.min(c), b.max(d)))
        };
        let (x, y) = (union(|range| range.0), union(|range| range.1));
        for panel in &mut self.panels {
            (panel.x.range, panel.y.range) = (x, y);
        }
        self
    }

    /// All points as CSV: `panel,series,x,y` under a header that names the axes of the first panel with their units.
    /// Spans are series of two points, start and end, without y.
    pub fn to_csv(&self) -> String {
        let axes = self.panels.first().map_or(("x".into(), "y".into()), |p| (p.x.title(), p.y.title()));
        let mut out = format!("panel,series,{},{}\n", csv::field(&axes.0), csv::field(&axes.1));
        for panel in &self.panels {
            let title = csv::field(&panel.title);
            for series in &panel.series {
                let name = csv::field(&series.name);
                for (x, y) in &series.points {
                    out.push_str(&format!("{title},{name},{x},{y}\n"));
                }
            }
            if let Some((name, spans)) = &panel.spans {
                let name = csv::field(name);
                for span in spans {
                    out.push_str(&format!("{title},{name},{},\n{title},{name},{},\n", span.from, span.to));
                }
            }
        }
        out
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::report) fn figure() -> Figure {
        let series =
            |name: &str, mark, points: &[(f64, f64)]| Series { name: name.into(), mark, points: points.to_vec() };
        Figure {
            title: "One burst & its repair".into(),
            panels: vec![Panel {
                title: "Ref, 1 flow".into(),
                x: Axis::time(),
                y: Axis::new("sequence number", "segments"),
                series: vec![
                    series("sent", Mark::Dot, &[(0.0, 1.0), (1.0, 2.0), (1.0, 3.0)]),
                    series("ACK", Mark::Step, &[(0.5, 1.0), (1.5, 3.0)]),
                    series("dropped", Mark::Cross, &[(1.0, 3.0)]),
                ],
                spans: Some(("error burst".into(), vec![Span { from: 0.9, to: 1.1 }])),
            }],
        }
    }

    #[test]
    fn csv_holds_every_point() {
        let csv = figure().to_csv();
        let lines: Vec<_> = csv.lines().collect();
        assert_eq!(lines[0], "panel,series,time (s),sequence number (segments)");
        assert_eq!(lines[1], "\"Ref, 1 flow\",sent,0,1");
        assert_eq!(lines[7], "\"Ref, 1 flow\",error burst,0.9,");
        assert_eq!(lines.len(), 9);
    }

    #[test]
    fn twelve_curves_differ_in_colour_or_dashes() {
        let looks: Vec<_> = (0..12).map(|n| (n % COLOURS, Mark::of_curve(n))).collect();
        assert!((0..12).all(|n| !looks[..n].contains(&looks[n])), "{looks:?}");
    }

    #[test]
    fn a_distribution_ends_at_the_share_that_finished() {
        let series = Series::distribution("sack", Mark::Step, vec![3.0, 1.0, 2.0], 4);
        assert_eq!(series.name, "sack (1 of 4 unfinished)");
        assert_eq!(series.points, [(1.0, 0.0), (1.0, 25.0), (2.0, 50.0), (3.0, 75.0)]);
        assert_eq!(Series::distribution("tahoe", Mark::Step, Vec::new(), 2).points, []);
    }

    #[test]
    fn shared_axes_contain_every_panel() {
        let mut two = figure();
        let mut other = two.panels[0].clone();
        other.series[0].points = vec![(-4.0, 2.0), (9.0, 70.0)];
        two.panels.push(other);
        let shared = two.with_shared_axes();
        let [(x, y), again] = [0, 1].map(|n| shared.panels[n].ranges());
        assert_eq!((x, y), again);
        assert!(x.0 <= -4.0 && x.1 >= 9.0 && y.0 <= 1.0 && y.1 >= 70.0, "{x:?} {y:?}");
    }

    #[test]
    fn ranges_fit_what_is_there() {
        let mut panel = figure().panels.remove(0);
        let ((x0, x1), (y0, y1)) = panel.ranges();
        assert!(x0 == 0.0 && x1 > 1.5 && y0 < 1.0 && y1 > 3.0, "{x0} {x1} {y0} {y1}");
        panel.series.clear();
        assert_eq!(panel.ranges(), ((0.0, 1.0), (0.0, 1.0)));
    }
}
