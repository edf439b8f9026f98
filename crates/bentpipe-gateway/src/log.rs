//! Log lines for the operator on standard error, where systemd's journal collects them.
//!
//! Callers log rarely: once per change of state, or at most one line a minute.

use std::fmt::Display;
use std::io::Write;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use bentpipe_engine::units::{Duration, Time};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Limits lines of one kind about one peer: five at once, then one per minute.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limit {
    /// When the next line would be due if each line took a minute.
    due: Time,
    left_out: u64,
}

const PAUSE: Duration = Duration::from_secs(60);
/// Number of lines allowed at once: a box that is being set up is started a few times.
const AT_ONCE: u64 = 5;

impl Limit {
    /// Asks for permission to write a line. Returns how many lines before it were omitted; `None` if this one must be
    /// omitted too.
    pub(crate) fn take(&mut self, now: Time) -> Option<LeftOut> {
        if self.due > now + PAUSE.saturating_mul(AT_ONCE - 1) {
            self.left_out += 1;
            return None;
        }
        self.due = self.due.max(now) + PAUSE;
        Some(LeftOut(std::mem::take(&mut self.left_out)))
    }
}

/// The number of omitted lines, shown at the end of the next line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut(u64);

impl Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            0 => Ok(()),
            1 => f.write_str("; a line like this was left out"),
            count => write!(f, "; {count} lines like this were left out"),
        }
    }
}

/// The length that a pipe accepts without blocking if poll(2) calls it writable (PIPE_BUF, pipe(7)).
const AT_ONCE_BYTES: usize = 4096;
/// Number of lines that could not be written since the last one that could.
static MISSING: AtomicU64 = AtomicU64::new(0);

/// Writes a line, unless it would have to wait: neither a full journal nor a reader that has stopped may stop the
/// gateway. The next line says how many are missing, also because of a full disk.
pub(crate) fn line(text: impl Display) {
    write(&mut std::io::stderr().lock(), &MISSING, text);
}

fn write(out: &mut (impl Write + AsFd), count: &AtomicU64, text: impl Display) {
    let missing = count.swap(0, Ordering::Relaxed);
    let before = match missing {
        0 => String::new(),
        1 => "(a line is missing here: standard error was full)\n".to_owned(),
        missing => format!("({missing} lines are missing here: standard error was full)\n"),
    };
    for part in format!("{before}{text}\n").as_bytes().chunks(AT_ONCE_BYTES) {
        let mut fds = [PollFd::new(out.as_fd(), PollFlags::POLLOUT)];
        let may_write = poll(&mut fds, PollTimeout::ZERO).unwrap_or(0) > 0;
        if !may_write || out.write_all(part).is_err() {
            count.fetch_add(missing + 1, Ordering::Relaxed);
            return;
        }
    }
}

/// A rate in bit/s, as log lines show it.
pub(crate) fn megabits(bits: u64) -> String {
    format!("{:.3} Mbit/s", bits as f64 * 1e-6)
}

/// Writes a line to standard error: as [`line`], with a format string.
macro_rules! note {
    ($($words:tt)*) => {
        $crate::log::line(::std::format_args!($($words)*))
    };
}
pub(crate) use note;

#[cfg(test)]
mod tests {
    use super::*;

    /// `/dev/full` is always writable and always full, as a file on a full disk is.
    #[test]
    fn what_a_full_disk_took_is_counted() {
        let count = AtomicU64::new(0);
        let mut full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
        for n in 0..3 {
            write(&mut full, &count, n);
        }
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        for n in 3..5 {
            write(file.as_file_mut(), &count, n);
        }
        write(&mut full, &count, 5);
        write(file.as_file_mut(), &count, 6);
        let text = std::fs::read_to_string(file.path()).expect("it is there");
        let lines = ["(3 lines are missing here: standard error was full)", "3", "4"];
        let more = ["(a line is missing here: standard error was full)", "6"];
        assert_eq!(text.lines().collect::<Vec<_>>(), [&lines[..], &more].concat());
    }

    #[test]
    fn a_peer_writes_five_lines_and_then_one_a_minute() {
        let mut limit = Limit::default();
        let said = |limit: &mut Limit, from: u64, until: u64| {
            let times = (from..until).map(|tenths| Time::ZERO + Duration::from_millis(100 * tenths));
            times.filter_map(|now| limit.take(now)).map(|left| left.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(said(&mut limit, 0, 600), ["", "", "", "", ""]);
        let more = "; 595 lines like this were left out";
        assert_eq!(said(&mut limit, 600, 601), [more]);
        assert_eq!(said(&mut limit, 601, 1201), ["; 599 lines like this were left out"]);
        // After a quiet period, the limit is as at the start.
        assert_eq!(said(&mut limit, 100_000, 100_010), ["", "", "", "", ""]);
        assert_eq!(said(&mut limit, 100_600, 100_602), ["; 5 lines like this were left out"]);
    }
}
