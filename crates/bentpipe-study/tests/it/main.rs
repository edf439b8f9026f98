//! The language of scenarios, from outside.

mod derived;
mod directions;
mod gateways;
mod language;
mod mistakes;
mod moving;
mod names;
mod quic;
mod samples;
mod shipped_scenarios;
