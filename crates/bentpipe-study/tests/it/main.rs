//! The language of scenarios, from outside.

mod language;
mod mistakes;
mod shipped_scenarios;
