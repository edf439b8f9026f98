//! Links in real time, with programs of the machine at their ends. Needs root; skipped without, except in CI.

mod emulate;
mod shell;
pub(crate) mod support;
mod verify;
