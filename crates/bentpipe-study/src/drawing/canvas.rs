//! Shapes and text of an SVG document, in pixels from the upper left corner.

use std::fmt::Write;

use crate::markup::escaped;

/// Colours that the colour-blind can distinguish, as in the other figures.
pub(super) const BLUE: &str = "#0072b2";
pub(super) const GREEN: &str = "#009e73";
pub(super) const ORANGE: &str = "#d55e00";
pub(super) const BLACK: &str = "#222222";
pub(super) const GREY: &str = "#666666";
pub(super) const LIGHT: &str = "#f4f4f4";

/// Height of a line of text.
pub(super) const LINE: i32 = 16;

/// Alignment of text relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A document that grows with its content.
#[derive(Clone, Debug, Default)]
pub(super) struct Canvas {
    body: String,
    /// The place furthest to the left of 0; 0 if there is none.
    left: i32,
    width: i32,
    height: i32,
}

/// Estimated width of text set in 13 pixels; no font is available.
pub(super) fn width_of(text: &str) -> i32 {
    (text.chars().count() as f64 * 7.2).ceil() as i32
}

impl Canvas {
    fn covers(&mut self, x: i32, y: i32) {
        self.left = self.left.min(x);
        self.width = self.width.max(x);
        self.height = self.height.max(y);
    }

    pub(super) fn text(&mut self, place: (i32, i32), anchor: Anchor, colour: &str, text: &str) {
        self.text_with("", place, anchor, colour, text);
    }

    /// Writes text that hides the lines behind it.
    pub(super) fn label(&mut self, place: (i32, i32), anchor: Anchor, colour: &str, text: &str) {
        let halo = " stroke=\"#ffffff\" stroke-width=\"5\" stroke-linejoin=\"round\" paint-order=\"stroke\"";
        self.text_with(halo, place, anchor, colour, text);
    }

    fn text_with(&mut self, more: &str, (x, y): (i32, i32), anchor: Anchor, colour: &str, text: &str) {
        let (name, left) = match anchor {
            Anchor::Start => ("start", x),
            Anchor::Middle => ("middle", x - width_of(text) / 2),
            Anchor::End => ("end", x - width_of(text)),
        };
        self.covers(left, y + 4);
        self.covers(left + width_of(text), y + 4);
        let text = escaped(text);
        let _ = writeln!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{name}\" fill=\"{colour}\"{more}>{text}</text>"
        );
    }

    /// Writes lines of text one below the other, the first with its baseline at `y`.
    pub(super) fn lines(&mut self, (x, y): (i32, i32), anchor: Anchor, colour: &str, lines: &[String]) {
        for (line, y) in lines.iter().zip((y..).step_by(LINE as usize)) {
            self.text((x, y), anchor, colour, line);
        }
    }

    /// Writes labels one below the other, the first with its baseline at `y`.
    pub(super) fn labels(&mut self, (x, y): (i32, i32), anchor: Anchor, colour: &str, lines: &[String]) {
        for (line, y) in lines.iter().zip((y..).step_by(LINE as usize)) {
            self.label((x, y), anchor, colour, line);
        }
    }

    pub(super) fn rect(&mut self, (x, y): (i32, i32), (width, height): (i32, i32), fill: &str, stroke: &str) {
        self.covers(x, y);
        self.covers(x + width, y + height);
        let _ = writeln!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"4\" fill=\"{fill}\" stroke=\"{stroke}\"/>"
        );
    }

    /// Draws a line through points, optionally with an arrow head at its end.
    pub(super) fn path(&mut self, points: &[(i32, i32)], colour: &str, dashed: bool, arrow: bool) {
        for &(x, y) in points {
            self.covers(x, y);
        }
        let listed: Vec<_> = points.iter().map(|(x, y)| format!("{x},{y}")).collect();
        let dash = if dashed { " stroke-dasharray=\"6 4\"" } else { "" };
        let _ = writeln!(
            self.body,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"{dash}/>",
            listed.join(" ")
        );
        if let (true, [.., (x0, y0), (x, y)]) = (arrow, points) {
            // The arrow follows the last piece, which is horizontal or vertical.
            let (dx, dy) = ((x - x0).signum(), (y - y0).signum());
            let corner = |side: i32| (x - 9 * dx + 4 * side * dy, y - 9 * dy + 4 * side * dx);
            let ((ax, ay), (bx, by)) = (corner(1), corner(-1));
            let _ = writeln!(self.body, "<polygon points=\"{x},{y} {ax},{ay} {bx},{by}\" fill=\"{colour}\"/>");
        }
    }

    /// The document, with its title on top.
    pub(super) fn finish(self, title: &str) -> String {
        const HEAD: i32 = 40;
        // What lies to the left of 0 is moved into the picture, with a margin.
        let shift = if self.left < 0 { 20 - self.left } else { 0 };
        let (width, height) = ((self.width + shift).max(width_of(title) * 4 / 3) + 20, self.height + HEAD + 16);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n<text x=\"{}\" y=\"26\" \
             font-size=\"17\" text-anchor=\"middle\">{}</text>\n<g transform=\"translate({shift} {HEAD})\">\n{}</g>\n</svg>\n",
            width / 2,
            escaped(title),
            self.body
        )
    }
}
