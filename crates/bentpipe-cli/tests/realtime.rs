//! Links in real time, with programs of the machine at their ends. Needs root; skipped without, except in CI.

#[path = "realtime/emulate.rs"]
mod emulate;
#[path = "realtime/shell.rs"]
mod shell;
#[path = "realtime/support.rs"]
mod support;
#[path = "realtime/verify.rs"]
mod verify;
