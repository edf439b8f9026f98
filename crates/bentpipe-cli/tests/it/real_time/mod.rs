//! Links in real time, with real programs at their ends. Needs root; skipped without it, except in CI.

mod boxes;
mod control;
mod emulate;
mod inherited;
mod shell;
pub(crate) mod support;
mod verify;
