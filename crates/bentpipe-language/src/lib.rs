//! TOML in which every quantity carries its unit, read into checked values: what scenarios and the settings of gateways
//! have in common.
//!
//! A mistake is reported with file, line, key, what was expected and what may have been meant; reading goes on after it,
//! so that one pass finds all mistakes. Nothing here knows a key: each language brings its own tables of [`shape::Field`].
//!
//! Reading order: [`quantity`] is a number and its unit; [`document`] keeps the place of each key and value, [`error`] says
//! what is wrong there; [`shape`] is what may be written and [`reader`] makes values of it; [`schema()`] writes the same
//! tables for editors and [`mod@reference`] for people. [`overrides`] is `--set`, [`place`] finds a key again. [`tcp`] reads
//! the settings of connections.
#![forbid(unsafe_code)]

pub mod document;
pub mod error;
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

pub use schema::{Schema, schema};
