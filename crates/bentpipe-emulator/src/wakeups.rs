//! Wake-ups of a loop: by the machine's clock, or in virtual time with measured lateness.

use std::io;

use bentpipe_engine::stream::Stream;
use bentpipe_engine::units::Time;
use bentpipe_io::{Clock, Lateness, Waiter, Wakeful};

/// The time source of a loop.
pub(super) trait Wakeups {
    /// The current time.
    fn now(&self) -> Time;

    /// Sleeps until this time.
    fn sleep(&mut self, until: Time) -> io::Result<()>;
}

/// The machine's clock.
#[derive(Debug)]
pub(super) struct Machine {
    clock: Clock,
    waiter: Waiter,
    wakeful: Wakeful,
}

impl Machine {
    pub(super) fn start() -> io::Result<Self> {
        let clock = Clock::start();
        Ok(Machine { clock, waiter: Waiter::new(clock)?, wakeful: Wakeful::default() })
    }
}

impl Wakeups for Machine {
    fn now(&self) -> Time {
        self.clock.now()
    }

    fn sleep(&mut self, until: Time) -> io::Result<()> {
        self.wakeful.stir(self.clock.now());
        self.waiter.wait(Some(until), &mut Vec::new())
    }
}

/// Virtual time in which each wake-up is late by an independent draw from measured lateness. Work takes no time: a
/// machine's work shows up as lateness of what follows it.
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

#[cfg(test)]
mod tests {
    use bentpipe_engine::units::Duration;

    use super::*;

    /// Each action was 100 us late, so each wake-up is; without measured lateness it is on time.
    #[test]
    fn a_wake_up_is_as_late_as_measured_and_time_never_goes_back() {
        let mut lateness = Lateness::default();
        (0..10).for_each(|_| lateness.record(Time::ZERO, Time::from_nanos(100_000)));
        let at = |micros: u64| Time::ZERO + Duration::from_micros(micros);
        for (late, after) in [(None, [1000, 1000, 2000]), (Some(&lateness), [1100, 1100, 2100])] {
            let mut drawn = Drawn::new(late, 1);
            let times = [1000, 500, 2000].map(|until| {
                drawn.sleep(at(until)).expect("it only counts");
                drawn.now()
            });
            assert_eq!(times, after.map(at));
        }
    }
}
