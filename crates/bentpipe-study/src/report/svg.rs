//! Figures drawn as SVG.

use plotters::coord::types::RangedCoordf64;
use plotters::element::DashedPathElement;
use plotters::prelude::*;

use super::compact::compact;
use super::figure::{self, Figure, Mark, Panel, Range, Series};

/// Why a figure could not be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the figure could not be drawn: {0}")]
pub struct DrawError(String);

/// Colours that the colour-blind can distinguish (Okabe and Ito 2008), without black and yellow.
const COLOURS: [RGBColor; figure::COLOURS] = [
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
];
const SHADE: RGBColor = RGBColor(240, 228, 66);
const PANEL: (u32, u32) = (640, 440);

type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

impl DrawError {
    pub(super) fn of(error: impl std::fmt::Display) -> DrawError {
        DrawError(error.to_string())
    }
}

impl Figure {
    /// The figure as an SVG document.
    ///
    /// # Errors
    /// Fails for a figure without panels, or a range that is not finite.
    pub fn to_svg(&self) -> Result<String, DrawError> {
        if self.panels.is_empty() {
            return Err(DrawError("the figure has no panel".into()));
        }
        let mut out = String::new();
        {
            let (rows, columns) = grid(self.panels.len());
            let size = (PANEL.0 * columns as u32, PANEL.1 * rows as u32 + 40);
            let root = SVGBackend::with_string(&mut out, size).into_drawing_area();
            root.fill(&WHITE).map_err(DrawError::of)?;
            let below = root.titled(&self.title, ("sans-serif", 20)).map_err(DrawError::of)?;
            for (area, panel) in below.split_evenly((rows, columns)).iter().zip(&self.panels) {
                draw_panel(area, panel)?;
            }
            root.present().map_err(DrawError::of)?;
        }
        Ok(compact(&out))
    }
}

/// Rows and columns of this many panels: two beside one another, whose labels can be read on a page.
const fn grid(panels: usize) -> (usize, usize) {
    let columns = if panels == 1 { 1 } else { 2 };
    (panels.div_ceil(columns), columns)
}

fn draw_panel<'a>(area: &DrawingArea<SVGBackend<'a>, plotters::coord::Shift>, panel: &Panel) -> Result<(), DrawError> {
    let ((x0, x1), (y0, y1)) = panel.ranges();
    if ![x0, x1, y0, y1].iter().all(|v| v.is_finite()) {
        return Err(DrawError(format!("the axes of \"{}\" would run from {x0}, {y0} to {x1}, {y1}", panel.title)));
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
    if let Some((name, spans)) = &panel.spans {
        let inside = spans.iter().filter(|s| s.to >= x0 && s.from <= x1);
        // However short, it is as wide as a pixel; the corners are rounded to whole ones.
        let pixel = (x1 - x0) / f64::from(chart.plotting_area().dim_in_pixel().0 - 1);
        let bars = inside.map(|s| {
            let end = s.to.max(s.from + pixel).min(x1);
            Rectangle::new([(s.from.max(x0), y0), (end, y1)], SHADE.mix(0.5).filled())
        });
        chart
            .draw_series(bars)
            .map_err(DrawError::of)?
            .label(name)
            .legend(|(x, y)| Rectangle::new([(x, y - 5), (x + 14, y + 5)], SHADE.mix(0.5).filled()));
    }
    for (series, colour) in panel.series.iter().zip(COLOURS.iter().cycle()) {
        draw_series(&mut chart, series, *colour, (x0..=x1, y0..=y1))?;
    }
    let corner = free_corner(panel, chart.plotting_area().dim_in_pixel(), (x0, x1), (y0, y1));
    chart
        .configure_series_labels()
        .position(corner)
        .background_style(WHITE.mix(0.85))
        .border_style(RGBColor(180, 180, 180))
        .label_font(("sans-serif", 12))
        .draw()
        .map_err(DrawError::of)
}

fn draw_series(
    chart: &mut Chart<'_>,
    series: &Series,
    colour: RGBColor,
    window: (std::ops::RangeInclusive<f64>, std::ops::RangeInclusive<f64>),
) -> Result<(), DrawError> {
    let seen = |&&(x, y): &&(f64, f64)| window.0.contains(&x) && window.1.contains(&y);
    let drawn = match series.mark {
        Mark::Line => chart.draw_series(LineSeries::new(series.points.iter().copied(), colour)),
        Mark::Step => chart.draw_series(LineSeries::new(steps(&series.points), colour)),
        Mark::DashedStep => {
            chart.draw_series(DashedLineSeries::new(steps(&series.points), 6, 5, colour.stroke_width(1)))
        }
        Mark::Dot => chart.draw_series(series.points.iter().filter(seen).map(|&p| Circle::new(p, 1, colour.filled()))),
        Mark::Cross => {
            let size = small(series.points.len());
            chart.draw_series(series.points.iter().filter(seen).map(|&p| Cross::new(p, size, colour.stroke_width(1))))
        }
        Mark::Ring => {
            let size = small(series.points.len());
            let stroke = if size == 3 { 2 } else { 1 };
            chart.draw_series(
                series.points.iter().filter(seen).map(|&p| Circle::new(p, size, colour.stroke_width(stroke))),
            )
        }
    };
    let label = drawn.map_err(DrawError::of)?.label(&series.name);
    match series.mark {
        Mark::Line | Mark::Step => label.legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], colour)),
        Mark::DashedStep => label.legend(move |(x, y)| DashedPathElement::new([(x, y), (x + 14, y)], 5, 4, colour)),
        Mark::Dot => label.legend(move |(x, y)| Circle::new((x + 7, y), 2, colour.filled())),
        Mark::Cross => label.legend(move |(x, y)| Cross::new((x + 7, y), 3, colour)),
        Mark::Ring => label.legend(move |(x, y)| Circle::new((x + 7, y), 3, colour.stroke_width(2))),
    };
    Ok(())
}

/// Half the width of a cross or ring, in pixels: the more there are, the smaller, so that they do not cover what is between them.
const fn small(count: usize) -> i32 {
    match count {
        0..=100 => 3,
        101..=400 => 2,
        _ => 1,
    }
}

/// A number at an axis, without insignificant digits.
fn tick(value: &f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6)
}

/// The corner in which the legend hides the fewest points. `size` is that of the plot, in pixels.
fn free_corner(panel: &Panel, size: (u32, u32), x: Range, y: Range) -> SeriesLabelPosition {
    let names = panel.series.iter().map(|series| &series.name).chain(panel.spans.as_ref().map(|spans| &spans.0));
    let longest = names.clone().map(|name| name.chars().count()).max().unwrap_or(0);
    // Measured: letters of 12 pixels are 7 wide, lines 15 apart; beside them are the marks, around them the margins.
    let (wide, high) = (60.0 + 7.0 * longest as f64, 20.0 + 15.0 * names.count() as f64);
    let (wide, high) = (wide / f64::from(size.0), high / f64::from(size.1));
    let place = |value: f64, (low, high): Range| (value - low) / (high - low);
    let hidden = |right: bool, upper: bool| {
        let inside = |part: f64, far: bool, size: f64| if far { part > 1.0 - size } else { part < size };
        let points = panel.series.iter().flat_map(|s| &s.points);
        points.filter(|p| inside(place(p.0, x), right, wide) && inside(place(p.1, y), upper, high)).count()
    };
    let corners = [
        (hidden(false, true), SeriesLabelPosition::UpperLeft),
        (hidden(true, false), SeriesLabelPosition::LowerRight),
        (hidden(true, true), SeriesLabelPosition::UpperRight),
        (hidden(false, false), SeriesLabelPosition::LowerLeft),
    ];
    corners.into_iter().min_by_key(|(count, _)| *count).expect("four corners").1
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
        // The last is the legend's.
        assert_eq!(widths.len(), 34, "{svg}");
        assert!(widths.iter().all(|width| *width >= 1), "{widths:?}");
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
    fn the_legend_keeps_clear_of_the_points() {
        let mut panel = figure().panels.remove(0);
        panel.series[0].points = (0..100).map(|i| (f64::from(i), 100.0 - f64::from(i))).collect();
        let corner = free_corner(&panel, (552, 360), (0.0, 100.0), (0.0, 100.0));
        assert!(matches!(corner, SeriesLabelPosition::UpperRight), "the points fall from the upper left");
        // A name too long for that corner.
        panel.series[1].name = "a name that is as wide as half of the picture".into();
        panel.series[0].points = (40..100).map(|i| (f64::from(i), 100.0)).collect();
        let corner = free_corner(&panel, (552, 360), (0.0, 100.0), (0.0, 100.0));
        assert!(matches!(corner, SeriesLabelPosition::LowerRight));
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
