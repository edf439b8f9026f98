//! The legend of a panel: rows beneath it, where they cover no data.

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;

use super::figure::{Mark, Panel};
use super::paint::{DrawError, SHADE, colours};

/// Height of a row, pixels.
const ROW: u32 = 18;
/// Width of a mark, with the space behind it.
const MARK: i32 = 20;
/// Measured: letters of 12 pixels are 6 pixels wide on average.
const LETTER: i32 = 6;
/// Space between two entries, and to the left of the first.
const GAP: i32 = 16;

/// An entry: its name, and its mark; none for shaded spans.
type Entry<'p> = (&'p str, Option<(Mark, RGBColor)>);

fn entries(panel: &Panel) -> Vec<Entry<'_>> {
    let spans = panel.spans.iter().map(|(name, _)| (name.as_str(), None));
    let series = panel.series.iter().zip(colours(&panel.series));
    spans.chain(series.map(|(series, colour)| (series.name.as_str(), Some((series.mark, colour))))).collect()
}

fn width(name: &str) -> i32 {
    MARK + LETTER * name.chars().count() as i32 + GAP
}

/// The entries in rows that are at most as wide as the panel. An entry that is wider has its own row.
fn rows<'p>(entries: Vec<Entry<'p>>, wide: i32) -> Vec<Vec<Entry<'p>>> {
    let mut rows: Vec<Vec<Entry<'p>>> = Vec::new();
    let mut used = wide;
    for entry in entries {
        let wanted = width(entry.0);
        if used + wanted > wide {
            rows.push(Vec::new());
            used = 2 * GAP;
        }
        used += wanted;
        rows.last_mut().expect("the first entry begins a row").push(entry);
    }
    rows
}

/// The height of a panel's legend, pixels.
pub(super) fn height(panel: &Panel, wide: u32) -> u32 {
    ROW * rows(entries(panel), wide as i32).len() as u32
}

/// Draws the legend from the top of the area on.
pub(super) fn draw(area: &DrawingArea<SVGBackend<'_>, Shift>, panel: &Panel) -> Result<(), DrawError> {
    let wide = area.dim_in_pixel().0 as i32;
    for (n, row) in rows(entries(panel), wide).into_iter().enumerate() {
        let y = (ROW / 2 + ROW * n as u32) as i32;
        let mut x = 2 * GAP;
        for (name, mark) in row {
            draw_mark(area, (x, y), mark)?;
            area.draw(&Text::new(name.to_owned(), (x + MARK, y - 6), ("sans-serif", 12))).map_err(DrawError::of)?;
            x += width(name);
        }
    }
    Ok(())
}

fn draw_mark(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    (x, y): (i32, i32),
    mark: Option<(Mark, RGBColor)>,
) -> Result<(), DrawError> {
    let ends = [(x, y), (x + 14, y)];
    let Some((mark, colour)) = mark else {
        let shade = Rectangle::new([(x, y - 5), (x + 14, y + 5)], SHADE.mix(0.5).filled());
        return area.draw(&shade).map_err(DrawError::of);
    };
    let drawn = match mark {
        Mark::Line | Mark::Step => area.draw(&PathElement::new(ends, colour)),
        Mark::DashedStep => area.draw(&DashedPathElement::new(ends, 5, 4, colour)),
        Mark::Guide => area.draw(&DashedPathElement::new(ends, 2, 3, colour)),
        Mark::Dot => area.draw(&Circle::new((x + 7, y), 2, colour.filled())),
        Mark::Cross => area.draw(&Cross::new((x + 7, y), 3, colour)),
        Mark::Ring => area.draw(&Circle::new((x + 7, y), 3, colour.stroke_width(2))),
    };
    drawn.map_err(DrawError::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_fill_rows() {
        let entry = |letters: usize| -> Entry<'static> { (&"abcdefghijklmnopqrstuvwxyz"[..letters], None) };
        // 36 + 6 per letter: 20 letters are 156 wide; the first is 32 from the edge.
        let of = |names: &[usize], wide| {
            let rows = rows(names.iter().map(|&letters| entry(letters)).collect(), wide);
            rows.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(of(&[20, 20, 20], 344), [2, 1]);
        assert_eq!(of(&[20, 20, 20], 343), [1, 1, 1]);
        assert_eq!(of(&[26, 1], 100), [1, 1], "one that does not fit has its own");
        assert!(of(&[], 100).is_empty());
    }
}
