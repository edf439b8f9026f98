//! Log lines for the operator on standard error, where systemd's journal collects them.
//!
//! Callers log rarely: once per change of state, or at most one line a minute.

use std::fmt::Display;

/// Writes a line.
pub(crate) fn line(text: impl Display) {
    use std::io::Write;
    // A full journal must not stop the gateway.
    let _ = writeln!(std::io::stderr(), "{text}");
}
