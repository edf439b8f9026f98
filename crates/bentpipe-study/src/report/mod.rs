//! The results of a study: rows that compare a published value with ours, figures, and their files.
//!
//! Reading order: [`Row`], [`Verdict`] and [`Tally`]; [`render_text`] and [`to_json`]; [`Figure`], its [SVG](Figure::to_svg) and
//! its [CSV](Figure::to_csv); [`write_whole`], which leaves a complete file or none.

mod figure;
mod files;
mod row;
mod svg;
mod text;

pub use figure::{Axis, Figure, Mark, Panel, Series, Span};
pub use files::{WriteError, write_figure, write_whole};
pub use row::{Row, Tally, Verdict};
pub use svg::DrawError;
pub use text::{render_text, to_json};
