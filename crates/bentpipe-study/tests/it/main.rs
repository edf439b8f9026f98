//! The language of scenarios, from outside.

mod language;
mod mistakes;
mod moving;
mod names;
mod shipped_scenarios;
