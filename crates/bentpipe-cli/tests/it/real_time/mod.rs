//! Links in real time, with programs of the machine at their ends. Needs root; skipped without, except in CI.

mod captures;
mod emulate;
mod shell;
mod support;
mod verify;
