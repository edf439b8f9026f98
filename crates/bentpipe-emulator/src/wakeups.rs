//! When a loop wakes: by the machine's clock, or in virtual time as late as the machine was.

use std::io;

use bentpipe_engine::stream::Stream;
use bentpipe_engine::units::Time;
use bentpipe_io::{Clock, Lateness, Waiter};

/// Time for a loop.
pub(super) trait Wakeups {
    /// The present.
    fn now(&self) -> Time;

    /// Sleeps until then.
    fn sleep(&mut self, until: Time) -> io::Result<()>;
}

/// The machine's.
#[derive(Debug)]
pub(super) struct Machine {
    clock: Clock,
    waiter: Waiter,
}

impl Machine {
    pub(super) fn start() -> io::Result<Self> {
        let clock = Clock::start();
        Ok(Machine { clock, waiter: Waiter::new(clock)? })
    }
}

impl Wakeups for Machine {
    fn now(&self) -> Time {
        self.clock.now()
    }

    fn sleep(&mut self, until: Time) -> io::Result<()> {
        self.waiter.wait(Some(until), &mut Vec::new())
    }
}

/// Virtual time in which each wake-up is late by an independent draw from what was measured. Work takes no time: what a
/// machine works is in the lateness of what comes after it.
#[derive(Debug)]
pub(super) struct Drawn<'l> {
    now: Time,
    /// `None`: never late.
    late: Option<&'l Lateness>,
    draws: Stream,
}

impl<'l> Drawn<'l> {
    pub(super) fn new(late: Option<&'l Lateness>, seed: u64) -> Self {
        Drawn { now: Time::ZERO, late, draws: Stream::named(seed, "wake-ups") }
    }
}

impl Wakeups for Drawn<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn sleep(&mut self, until: Time) -> io::Result<()> {
        if until > self.now {
            self.now = until;
            if let Some(late) = self.late {
                self.now += late.quantile(self.draws.uniform());
            }
        }
        Ok(())
    }
}
