//! The colours of figures, and the error of drawing.

use plotters::prelude::*;

use super::figure::{self, Mark, Series};

/// Why a figure could not be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the figure could not be drawn: {0}")]
pub struct DrawError(String);

/// Colours that the colour-blind can distinguish (Okabe and Ito 2008), without black and yellow.
const COLOURS: [RGBColor; figure::COLOURS] = [
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RED,
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
];
/// The colour of losses.
const RED: RGBColor = RGBColor(213, 94, 0);
/// The colour of shaded spans.
pub(super) const SHADE: RGBColor = RGBColor(240, 228, 66);
/// The colour of guides.
const GREY: RGBColor = RGBColor(80, 80, 80);

impl DrawError {
    pub(super) fn of(error: impl std::fmt::Display) -> DrawError {
        DrawError(error.to_string())
    }
}

/// The colour of each series. Guides and crosses have colours of their own, which no other series uses.
pub(super) fn colours(series: &[Series]) -> impl Iterator<Item = RGBColor> + '_ {
    let has_crosses = series.iter().any(|series| series.mark == Mark::Cross);
    let mut cycle = COLOURS.iter().copied().filter(move |colour| !(has_crosses && *colour == RED)).cycle();
    series.iter().map(move |series| match series.mark {
        Mark::Guide => GREY,
        Mark::Cross => RED,
        _ => cycle.next().expect("it never ends"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guides_and_losses_have_their_colours() {
        let of = |marks: &[Mark]| {
            let series = |&mark: &Mark| Series { name: "x".into(), mark, points: Vec::new() };
            let series: Vec<_> = marks.iter().map(series).collect();
            colours(&series).collect::<Vec<_>>()
        };
        assert_eq!(of(&[Mark::Step, Mark::Guide, Mark::Step, Mark::Step]), [COLOURS[0], GREY, COLOURS[1], RED]);
        assert_eq!(of(&[Mark::Dot, Mark::Cross, Mark::Dot, Mark::Dot]), [COLOURS[0], RED, COLOURS[1], COLOURS[3]]);
    }
}
