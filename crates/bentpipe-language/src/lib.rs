//! Reads TOML in which every quantity has a unit into checked values. Scenarios, sweeps and gateway settings share this language.
//!
//! A mistake is reported with file, line, key, the expected value and a suggestion. Reading continues after it, so one pass finds all
//! mistakes. Each file format has its own tables of [`shape::Field`]; this crate has only the keys that several formats share.
//!
//! # Example
//!
//! ```
//! use bentpipe_language::document::{self, Value};
//! use bentpipe_language::error::Problems;
//! use bentpipe_language::reader::View;
//! use bentpipe_language::shape::{Field, Shape, field};
//!
//! const KEYS: &[Field] = &[field("rate", Shape::RATE, "Rate."), field("delay", Shape::DURATION, "One-way delay.")];
//!
//! let read = |text: &str| {
//!     let mut problems = Problems::of("link");
//!     let source = problems.add_source("link.toml", text);
//!     let root = document::parse(text, source, &mut problems);
//!     let Value::Table(table) = &root.value else { unreachable!("a document is a table") };
//!     let view = View::open(table, String::new(), root.span, KEYS, &mut problems);
//!     let delay = view.require("delay", &mut problems).and_then(|item| item.duration(&mut problems));
//!     problems.finish(delay)
//! };
//! assert_eq!(read("rate = '10 Mbit/s'\ndelay = '270 ms'").expect("no mistakes").as_millis_f64(), 270.0);
//!
//! let errors = read("delay = '270 ms'\nrat = '10 Mbit/s'").expect_err("a mistake");
//! assert!(errors.render(false).contains("did you mean `rate`?"));
//! ```
//!
//! # Modules
//!
//! Reading order: [`quantity`] is a number and its unit; [`document`] stores the position of each key and value, [`error`] reports mistakes
//! at positions; [`shape`] is the grammar and [`reader`] reads values by it; [`schema()`] writes the same tables for editors and
//! [`mod@reference`] for people. [`overrides`] is `--set`, [`place`] finds the position of a key. [`text`] reads files, [`kind`] detects
//! their kinds. [`tcp`] reads the settings of connections, [`gateway`] those of gateways.
#![forbid(unsafe_code)]

pub mod document;
pub mod error;
pub mod gateway;
pub mod kind;
pub mod overrides;
pub mod place;
pub mod quantity;
pub mod reader;
pub mod reference;
mod schema;
pub mod shape;
pub mod single;
pub mod suggest;
pub mod tcp;
pub mod text;

pub use schema::{Schema, schema};
