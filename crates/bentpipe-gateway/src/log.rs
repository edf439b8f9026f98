//! Lines for the operator, on the standard error stream, where systemd's journal takes them from.
//!
//! Whoever calls it does so rarely: once for each change of state, or limited to one line a minute.

use std::fmt::Display;

/// Writes a line.
pub(crate) fn line(text: impl Display) {
    use std::io::Write;
    // A journal that is full must not stop the gateway.
    let _ = writeln!(std::io::stderr(), "{text}");
}
