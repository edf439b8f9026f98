//! The instant at which the loop wants to be woken: a timerfd, some 50 µs late where a time-out of `epoll_wait` is late
//! by a millisecond.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use bentpipe_engine::units::{Duration, Time};
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// A timer of one shot.
#[derive(Debug)]
pub(super) struct Timer {
    fd: TimerFd,
    armed: Option<Time>,
}

impl Timer {
    pub(super) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let fd = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        registry.register(&mut SourceFd(&fd.as_fd().as_raw_fd()), token, Interest::READABLE)?;
        Ok(Timer { fd, armed: None })
    }

    /// Wakes the loop at `at`, and perhaps before: at an instant that was named earlier, which spares a system call where
    /// the next one comes long before either. Setting it again makes it ready again, so nothing has to be read from it.
    pub(super) fn arm(&mut self, now: Time, at: Time) -> io::Result<()> {
        if self.armed.is_some_and(|armed| now < armed && armed <= at) {
            return Ok(());
        }
        self.armed = Some(at);
        // A zero would disarm it.
        let span = at.saturating_since(now).max(Duration::from_nanos(1));
        let span = TimeSpec::from_duration(std::time::Duration::from_nanos(span.as_nanos_ceil()));
        self.fd.set(Expiration::OneShot(span), TimerSetTimeFlags::empty())?;
        Ok(())
    }
}
