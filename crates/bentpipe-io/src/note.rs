//! Notes on standard error, and the exit code of a program whose output nobody reads.

use std::io::IsTerminal;

/// Prints a line to standard error, like `eprintln!`. If standard error is closed or its disk is full, the line is lost
/// and the work continues, whereas `eprintln!` would panic.
#[macro_export]
macro_rules! note {
    ($($words:tt)*) => {{
        use ::std::io::Write as _;
        let _ = ::std::writeln!(::std::io::stderr().lock(), $($words)*);
    }};
}

/// The exit code that a shell shows for a program ended by SIGPIPE: 128 + 13.
pub const SIGPIPE_CODE: u8 = 141;

/// True if notes may be coloured: standard error is a terminal, and `NO_COLOR` is unset or empty
/// (<https://no-color.org>).
pub fn has_colour() -> bool {
    std::io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && understands()
}

/// True if terminals understand the sequences for colours. Windows' consoles must be asked to.
fn understands() -> bool {
    #[cfg(windows)]
    return anstyle_query::windows::enable_ansi_colors() == Some(true);
    #[cfg(not(windows))]
    true
}
