//! TOML in which every quantity has a unit, read into checked values: the common part of scenarios and gateway
//! settings.
//!
//! A mistake is reported with file, line, key, what was expected and a suggestion. Reading continues after it, so that
//! one pass finds all mistakes. Each file format has its own tables of [`shape::Field`]; only keys that
//! several formats have are here.
//!
//! Reading order: [`quantity`] is a number and its unit; [`document`] stores the position of each key and value,
//! [`error`] reports mistakes at positions; [`shape`] is the grammar and [`reader`] reads values by it; [`schema()`]
//! writes the same tables for editors and [`mod@reference`] for people. [`overrides`] is `--set`, [`place`] finds the
//! position of a key. [`text`] reads files. [`tcp`] reads the settings of connections, [`gateway`] those of gateways.
#![forbid(unsafe_code)]

pub mod document;
pub mod error;
pub mod gateway;
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
