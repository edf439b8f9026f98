//! The timer that wakes the loop: a timerfd. It is about 50 µs late, whereas a timeout of `epoll_wait` is a millisecond
//! late.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use bentpipe_engine::units::{Duration, Time};
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// A one-shot timer.
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

    /// Wakes the loop at `at`. The loop may also wake at an instant set earlier: leaving that in place saves a system
    /// call if the next call comes long before either. Setting the timer re-arms its (edge-triggered) event, so nothing
    /// has to be read from it.
    pub(super) fn arm(&mut self, now: Time, at: Time) -> io::Result<()> {
        if self.armed.is_some_and(|armed| now < armed && armed <= at) {
            return Ok(());
        }
        self.armed = Some(at);
        // Zero would disarm the timer.
        let span = at.saturating_since(now).max(Duration::from_nanos(1));
        let span = TimeSpec::from_duration(std::time::Duration::from_nanos(span.as_nanos_ceil()));
        self.fd.set(Expiration::OneShot(span), TimerSetTimeFlags::empty())?;
        Ok(())
    }
}
