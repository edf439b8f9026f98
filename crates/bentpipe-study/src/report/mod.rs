//! The results of a study: rows that compare a published value with ours, figures, and their files.
//!
//! Reading order: [`Row`], [`Verdict`] and [`Tally`]; [`render_text`] and [`to_json`]; [`Figure`], its
//! [SVG](Figure::to_svg) and [CSV](Figure::to_csv), and [other formats](Picture); [`Page`], a report as HTML;
//! [`write_whole`], which leaves either a complete file or none.

#[cfg(feature = "svg")]
mod compact;
mod figure;
#[cfg(feature = "files")]
mod files;
#[cfg(feature = "svg")]
mod legend;
mod page;
#[cfg(feature = "svg")]
mod paint;
#[cfg(feature = "files")]
mod pdf;
#[cfg(feature = "files")]
mod picture;
mod row;
#[cfg(feature = "svg")]
mod svg;
mod text;

pub use figure::{Axis, Figure, Mark, Panel, Series, Span};
#[cfg(feature = "files")]
pub use files::{WriteError, write_figure, write_in, write_whole};
pub use page::Page;
#[cfg(feature = "svg")]
pub use paint::DrawError;
#[cfg(feature = "files")]
pub use picture::Picture;
pub use row::{Row, Tally, Verdict};
pub use text::{listed, render_text, to_json};
