//! Figures drawn as SVG.

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::compact::compact;
use super::figure::{Figure, Mark, Panel, Series};

/// Why a figure could not be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the figure could not be drawn: {0}")]
pub struct DrawError(String);

/// Colours that the colour-blind can distinguish (Okabe and Ito 2008), without black and yellow.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
];
const SHADE: RGBColor = RGBColor(240, 228, 66);
const PANEL: (u32, u32) = (640, 440);
/// Panels in a row: more would be too small to read on a page.
const COLUMNS: usize = 2;

type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

fn failed(error: impl std::fmt::Display) -> DrawError {
    DrawError(error.to_string())
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
            let columns = self.panels.len().min(COLUMNS);
            let rows = self.panels.len().div_ceil(COLUMNS);
            let size = (PANEL.0 * columns as u32, PANEL.1 * rows as u32 + 40);
            let root = SVGBackend::with_string(&mut out, size).into_drawing_area();
            root.fill(&WHITE).map_err(failed)?;
            let below = root.titled(&self.title, ("sans-serif", 20)).map_err(failed)?;
            for (area, panel) in below.split_evenly((rows, columns)).iter().zip(&self.panels) {
                draw_panel(area, panel)?;
            }
            root.present().map_err(failed)?;
        }
        Ok(compact(&out))
    }
}

fn draw_panel<'a>(area: &DrawingArea<SVGBackend<'a>, plotters::coord::Shift>, panel: &Panel) -> Result<(), DrawError> {
    let ((x0, x1), (y0, y1)) = panel.ranges();
    if ![x0, x1, y0, y1].iter().all(|v| v.is_finite()) {
        return Err(DrawError(format!("the axes of \"{}\" would run from {x0}, {y0} to {x1}, {y1}", panel.title)));
    }
    let mut chart: Chart<'_> = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(72)
        .build_cartesian_2d(x0..x1, y0..y1)
        .map_err(failed)?;
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
        .map_err(failed)?;
    if let Some((name, spans)) = &panel.spans {
        let inside = spans.iter().filter(|s| s.to >= x0 && s.from <= x1);
        // However short, it is as wide as a pixel.
        let pixel = (x1 - x0) / f64::from(PANEL.0);
        let bars = inside.map(|s| {
            let end = s.to.max(s.from + pixel).min(x1);
            Rectangle::new([(s.from.max(x0), y0), (end, y1)], SHADE.mix(0.5).filled())
        });
        chart
            .draw_series(bars)
            .map_err(failed)?
            .label(name)
            .legend(|(x, y)| Rectangle::new([(x, y - 5), (x + 14, y + 5)], SHADE.mix(0.5).filled()));
    }
    for (series, colour) in panel.series.iter().zip(COLOURS.iter().cycle()) {
        draw_series(&mut chart, series, *colour, (x0..=x1, y0..=y1))?;
    }
    chart
        .configure_series_labels()
        .position(free_corner(panel, (x0, x1), (y0, y1)))
        .background_style(WHITE.mix(0.85))
        .border_style(RGBColor(180, 180, 180))
        .label_font(("sans-serif", 14))
        .draw()
        .map_err(failed)
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
        Mark::Dot => chart.draw_series(series.points.iter().filter(seen).map(|&p| Circle::new(p, 1, colour.filled()))),
        Mark::Cross => {
            chart.draw_series(series.points.iter().filter(seen).map(|&p| Cross::new(p, 3, colour.stroke_width(1))))
        }
        Mark::Ring => {
            chart.draw_series(series.points.iter().filter(seen).map(|&p| Circle::new(p, 3, colour.stroke_width(2))))
        }
    };
    let label = drawn.map_err(failed)?.label(&series.name);
    match series.mark {
        Mark::Line | Mark::Step => label.legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], colour)),
        Mark::Dot => label.legend(move |(x, y)| Circle::new((x + 7, y), 2, colour.filled())),
        Mark::Cross => label.legend(move |(x, y)| Cross::new((x + 7, y), 3, colour)),
        Mark::Ring => label.legend(move |(x, y)| Circle::new((x + 7, y), 3, colour.stroke_width(2))),
    };
    Ok(())
}

/// A number at an axis, without insignificant digits.
fn tick(value: &f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6)
}

/// The corner in which the legend hides the fewest points; it takes about a third of the width and height.
fn free_corner(panel: &Panel, x: (f64, f64), y: (f64, f64)) -> SeriesLabelPosition {
    let place = |value: f64, (low, high): (f64, f64)| (value - low) / (high - low);
    let hidden = |right: bool, upper: bool| {
        let inside = |part: f64, far: bool| if far { part > 0.67 } else { part < 0.33 };
        let points = panel.series.iter().flat_map(|s| &s.points);
        points.filter(|p| inside(place(p.0, x), right) && inside(place(p.1, y), upper)).count()
    };
    let corners = [
        (hidden(false, true), SeriesLabelPosition::UpperLeft),
        (hidden(true, false), SeriesLabelPosition::LowerRight),
        (hidden(true, true), SeriesLabelPosition::UpperRight),
    ];
    corners.into_iter().min_by_key(|(count, _)| *count).expect("three corners").1
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
        assert_eq!(svg.matches("h0").count(), 4);
    }

    #[test]
    fn what_is_sent_again_is_larger_than_a_dot() {
        let mut figure = figure();
        figure.panels[0].series[2].mark = Mark::Ring;
        let svg = figure.to_svg().expect("a good figure");
        // The point and the legend, as open circles.
        assert_eq!(svg.matches("r=\"3\"").count(), 2, "{svg}");
    }

    #[test]
    fn the_legend_keeps_clear_of_the_points() {
        let mut panel = figure().panels.remove(0);
        panel.series[0].points = (0..100).map(|i| (f64::from(i), 100.0 - f64::from(i))).collect();
        let corner = free_corner(&panel, (0.0, 100.0), (0.0, 100.0));
        assert!(matches!(corner, SeriesLabelPosition::UpperRight), "the points fall from the upper left");
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
