//! Figures drawn as SVG.

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::compact::compact;
use super::figure::{Figure, Mark, Panel, Range, Series, Span};
use super::legend;
use super::paint::{DrawError, SHADE, colours};

const PANEL: (u32, u32) = (640, 440);

type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

impl Figure {
    /// The figure as an SVG document.
    ///
    /// # Errors
    /// Fails for a figure without panels, or a range that is not finite.
    pub fn to_svg(&self) -> Result<String, DrawError> {
        if self.panels.is_empty() {
            return Err(DrawError::of("the figure has no panel"));
        }
        let mut out = String::new();
        {
            let (rows, columns) = grid(self.panels.len());
            let legend = self.panels.iter().map(|panel| legend::height(panel, PANEL.0)).max().unwrap_or(0);
            let size = (PANEL.0 * columns as u32, (PANEL.1 + legend) * rows as u32 + 40);
            let root = SVGBackend::with_string(&mut out, size).into_drawing_area();
            root.fill(&WHITE).map_err(DrawError::of)?;
            let below = root.titled(&self.title, ("sans-serif", 20)).map_err(DrawError::of)?;
            for (area, panel) in below.split_evenly((rows, columns)).iter().zip(&self.panels) {
                let (plot, below) = area.split_vertically(area.dim_in_pixel().1 - legend);
                draw_panel(&plot, panel)?;
                legend::draw(&below, panel)?;
            }
            root.present().map_err(DrawError::of)?;
        }
        Ok(compact(&out))
    }
}

/// Rows and columns for this many panels: two side by side, so that their labels are readable on a page.
const fn grid(panels: usize) -> (usize, usize) {
    let columns = if panels == 1 { 1 } else { 2 };
    (panels.div_ceil(columns), columns)
}

fn draw_panel<'a>(area: &DrawingArea<SVGBackend<'a>, plotters::coord::Shift>, panel: &Panel) -> Result<(), DrawError> {
    let ((x0, x1), (y0, y1)) = panel.ranges();
    if ![x0, x1, y0, y1].iter().all(|v| v.is_finite()) {
        return Err(DrawError::of(format!("the axes of \"{}\" would run from {x0}, {y0} to {x1}, {y1}", panel.title)));
    }
    let mut chart: Chart<'_> = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(72)
        .build_cartesian_2d(x0..x1, y0..y1)
        .map_err(DrawError::of)?;
    chart
        .configure_mesh()
        .x_desc(panel.x.title())
        .y_desc(panel.y.title())
        .x_label_formatter(&tick)
        .y_label_formatter(&tick)
        .max_light_lines(0)
        .bold_line_style(RGBColor(225, 225, 225))
        .axis_desc_style(("sans-serif", 16))
        .label_style(("sans-serif", 15))
        .draw()
        .map_err(DrawError::of)?;
    if let Some((_, spans)) = &panel.spans {
        let pixel = (x1 - x0) / f64::from(chart.plotting_area().dim_in_pixel().0 - 1);
        let bars = bars(spans, (x0, x1), pixel).into_iter();
        let bars = bars.map(|(from, to)| Rectangle::new([(from, y0), (to, y1)], SHADE.mix(0.5).filled()));
        chart.draw_series(bars).map_err(DrawError::of)?;
    }
    for (series, colour) in panel.series.iter().zip(colours(&panel.series)) {
        draw_series(&mut chart, series, colour, ((x0, x1), (y0, y1)))?;
    }
    Ok(())
}

/// Where spans are shaded. However short a span is, it is drawn at least one pixel wide; the corners are rounded to whole pixels. Spans
/// that would overlap are one bar: a channel may have a hundred thousand short fades, and a darker shade would mean nothing.
fn bars(spans: &[Span], (x0, x1): Range, pixel: f64) -> Vec<(f64, f64)> {
    let mut bars: Vec<(f64, f64)> = Vec::new();
    for span in spans.iter().filter(|span| span.to >= x0 && span.from <= x1) {
        let (from, to) = (span.from.max(x0), span.to.max(span.from + pixel).min(x1));
        match bars.last_mut() {
            Some(last) if (last.0..=last.1).contains(&from) => last.1 = last.1.max(to),
            _ => bars.push((from, to)),
        }
    }
    bars
}

fn draw_series(
    chart: &mut Chart<'_>,
    series: &Series,
    colour: RGBColor,
    window: (Range, Range),
) -> Result<(), DrawError> {
    let ((x0, x1), (y0, y1)) = window;
    let seen = |&&(x, y): &&(f64, f64)| (x0..=x1).contains(&x) && (y0..=y1).contains(&y);
    let dots = || series.points.iter().filter(seen);
    let size = small(series.points.len());
    let drawn = match series.mark {
        Mark::Line | Mark::Step | Mark::DashedStep | Mark::Guide => {
            let line = if series.mark == Mark::Line { series.points.clone() } else { steps(&series.points) };
            let mut visible = visible(&line, window).into_iter();
            return visible.try_for_each(|part| {
                let drawn = match series.mark {
                    Mark::DashedStep => chart.draw_series(DashedLineSeries::new(part, 6, 5, colour.stroke_width(1))),
                    Mark::Guide => chart.draw_series(DashedLineSeries::new(part, 2, 3, colour.stroke_width(1))),
                    _ => chart.draw_series(LineSeries::new(part, colour)),
                };
                drawn.map(|_| ()).map_err(DrawError::of)
            });
        }
        Mark::Dot => chart.draw_series(dots().map(|&p| Circle::new(p, 1, colour.filled()))),
        Mark::Cross => chart.draw_series(dots().map(|&p| Cross::new(p, size, colour.stroke_width(1)))),
        Mark::Ring => {
            let stroke = if size == 3 { 2 } else { 1 };
            chart.draw_series(dots().map(|&p| Circle::new(p, size, colour.stroke_width(stroke))))
        }
    };
    drawn.map(|_| ()).map_err(DrawError::of)
}

/// The parts of a line that lie inside the axes.
fn visible(line: &[(f64, f64)], ((x0, x1), (y0, y1)): (Range, Range)) -> Vec<Vec<(f64, f64)>> {
    let mut parts: Vec<Vec<(f64, f64)>> = Vec::new();
    for pair in line.windows(2) {
        let ((ax, ay), (bx, by)) = (pair[0], pair[1]);
        // The fractions of the segment at which it enters and leaves each strip (Liang and Barsky 1984).
        let (mut from, mut to) = (0.0f64, 1.0f64);
        for (start, step, low, high) in [(ax, bx - ax, x0, x1), (ay, by - ay, y0, y1)] {
            if step == 0.0 {
                if !(low..=high).contains(&start) {
                    to = -1.0;
                }
            } else {
                let (one, other) = ((low - start) / step, (high - start) / step);
                (from, to) = (from.max(one.min(other)), to.min(one.max(other)));
            }
        }
        if from > to {
            continue;
        }
        let at = |share: f64| if share == 1.0 { (bx, by) } else { (ax + share * (bx - ax), ay + share * (by - ay)) };
        match parts.last_mut().filter(|part| from == 0.0 && part.last() == Some(&(ax, ay))) {
            Some(part) => part.push(at(to)),
            None => parts.push(vec![at(from), at(to)]),
        }
    }
    parts
}

/// Half the width of a cross or ring in pixels. The more there are, the smaller they are, so that they do not cover
/// what is between them.
const fn small(count: usize) -> i32 {
    match count {
        0..=100 => 3,
        101..=400 => 2,
        _ => 1,
    }
}

/// A number at an axis, without superfluous digits.
fn tick(value: &f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6)
}

/// The corners of a staircase through the points.
fn steps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut out = Vec::with_capacity(2 * points.len());
    for &(x, y) in points {
        if let Some(&(_, before)) = out.last() {
            out.push((x, before));
        }
        out.push((x, y));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::figure::tests::figure;
    use crate::report::figure::{Axis, Span};

    #[test]
    fn a_staircase_keeps_the_old_level_until_the_new_point() {
        assert_eq!(steps(&[(0.0, 1.0), (2.0, 5.0)]), [(0.0, 1.0), (2.0, 1.0), (2.0, 5.0)]);
    }

    #[test]
    fn an_svg_names_what_it_shows() {
        let svg = figure().to_svg().expect("a good figure");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for text in ["One burst &amp; its repair", "time (s)", "sequence number (segments)", "error burst", "dropped"] {
            assert!(svg.contains(text), "{text} is missing");
        }
        // Three packets and the dot of the legend.
        assert_eq!(svg.matches("h.01").count(), 4);
    }

    #[test]
    fn what_is_sent_again_is_larger_than_a_dot() {
        let mut figure = figure();
        figure.panels[0].series[2].mark = Mark::Ring;
        let svg = figure.to_svg().expect("a good figure");
        // The point and the legend, as open circles.
        assert_eq!(svg.matches("r=\"3\"").count(), 2, "{svg}");
    }

    /// A fade of 150 ms in 350 s.
    #[test]
    fn the_shortest_span_is_as_wide_as_a_pixel() {
        let mut figure = figure();
        figure.panels[0].x = Axis::time().between(0.0, 350.0);
        figure.panels[0].spans = Some(("fade".into(), (1..34).map(|n| f64::from(n) * 10.3).map(fade).collect()));
        let svg = figure.to_svg().expect("a good figure");
        let widths = svg.lines().filter(|line| line.starts_with("<rect") && line.contains("F0E442"));
        let widths: Vec<u32> =
            widths.filter_map(|line| line.split("width=\"").nth(1)?.split('"').next()?.parse().ok()).collect();
        // One is the legend's.
        assert_eq!(widths.len(), 34, "{svg}");
        assert!(widths.iter().all(|width| *width >= 1), "{widths:?}");
    }

    /// 1000 fades of 0.1 ms each second: more than pixels.
    #[test]
    fn spans_that_overlap_are_drawn_once() {
        let mut figure = figure();
        figure.panels[0].x = Axis::time().between(0.0, 100.0);
        let short = |n| Span { from: f64::from(n) / 1000.0, to: f64::from(n) / 1000.0 + 1e-4 };
        figure.panels[0].spans = Some(("fade".into(), (0..100_000).map(short).collect()));
        let svg = figure.to_svg().expect("a good figure");
        // The legend's, and one or a few that fill the panel.
        assert!(svg.matches("F0E442").count() < 10, "{} B", svg.len());
        let spans = [(0.0, 1.0), (0.5, 0.6), (1.05, 1.06), (5.0, 5.0), (9.0, 12.0)].map(|(from, to)| Span { from, to });
        assert_eq!(bars(&spans, (0.2, 10.0), 0.1), [(0.2, 1.0), (1.05, 1.05 + 0.1), (5.0, 5.1), (9.0, 10.0)]);
    }

    fn fade(from: f64) -> Span {
        Span { from, to: from + 0.15 }
    }

    #[test]
    fn more_than_two_panels_take_rows() {
        assert_eq!([1, 2, 3, 4, 5].map(grid), [(1, 1), (1, 2), (2, 2), (2, 2), (3, 2)]);
    }

    #[test]
    fn a_thousand_losses_leave_room_for_what_arrived() {
        assert_eq!([1, 100, 101, 1429].map(small), [3, 3, 2, 1]);
    }

    #[test]
    fn lines_end_at_the_axes() {
        let inside = |line: &[(f64, f64)]| visible(line, ((0.0, 10.0), (0.0, 10.0)));
        assert_eq!(inside(&[(0.0, 5.0), (5.0, 5.0), (20.0, 5.0)]), [vec![(0.0, 5.0), (5.0, 5.0), (10.0, 5.0)]]);
        // Out through the top and in again.
        let peak = inside(&[(0.0, 0.0), (4.0, 20.0), (8.0, 0.0)]);
        assert_eq!(peak, [vec![(0.0, 0.0), (2.0, 10.0)], vec![(6.0, 10.0), (8.0, 0.0)]]);
        assert!(inside(&[(0.0, 11.0), (10.0, 11.0)]).is_empty());
    }

    #[test]
    fn numbers_at_an_axis_are_short() {
        assert_eq!([tick(&80.0), tick(&0.25), tick(&(0.1 + 0.2))], ["80", "0.25", "0.3"]);
    }

    #[test]
    fn what_cannot_be_drawn_is_an_error() {
        let mut broken = figure();
        broken.panels[0].series[0].points[0].0 = f64::INFINITY;
        assert!(broken.to_svg().is_err());
        broken.panels.clear();
        assert!(broken.to_svg().is_err());
    }
}
