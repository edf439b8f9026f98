//! Sleeps until a descriptor is readable or a time has come, with epoll and a timerfd.
//!
//! The timer is absolute on the monotonic clock and is set only when the time changes. Its expiry is
//! edge-triggered, so it need not be read.
//!
//! A thread that sleeps wakes up late, by what the system needs to switch to it. A waiter that is made [`punctual`](Waiter::punctual)
//! sleeps until shortly before the time and stays awake for the rest, as long as that takes at most a fifth of a core.

use std::io;
use std::os::fd::AsFd;

use bentpipe_engine::units::{Duration, Time};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::linux::clock::Clock;

/// The timer's mark.
const TIMER: u64 = u64::MAX;

/// Max descriptors reported at once; the others follow in the next call.
const EVENTS: usize = 64;

/// How long before a time a punctual waiter wakes up: most wake-ups are less late than this (docs/explanation/real-time.md).
const AWAKE: Duration = Duration::from_micros(60);

/// Of the time that passes, one part in this many may be spent awake.
const SHARE: u64 = 5;

/// Max time awake that is saved up: a burst of packets for a hundredth of a second.
const SAVED: Duration = Duration::from_millis(2);

/// What a punctual waiter may still spend awake.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    left: Duration,
    at: Time,
}

impl Allowance {
    /// What is left at `now`.
    fn at(&mut self, now: Time) -> Duration {
        let more = now.saturating_since(self.at).div_floor(SHARE);
        (self.left, self.at) = ((self.left + more).min(SAVED), now);
        self.left
    }

    fn spend(&mut self, span: Duration) {
        // Durations do not go below zero.
        self.left = self.left - span;
    }
}

/// The descriptors and the timer that a loop waits for.
#[derive(Debug)]
pub struct Waiter {
    clock: Clock,
    epoll: Epoll,
    timer: TimerFd,
    /// The timer's setting, while it is in the future.
    set_to: Option<Time>,
    /// Of a punctual waiter.
    allowance: Option<Allowance>,
}

impl Waiter {
    /// Creates a waiter that watches nothing.
    ///
    /// # Errors
    /// Fails if epoll or its timer cannot be opened: no descriptors are left.
    pub fn new(clock: Clock) -> io::Result<Self> {
        // Timers of ordinary threads may expire 50 µs late (PR_SET_TIMERSLACK), too late for a link. If the system
        // refuses, timers are that late; nothing else breaks.
        let _ = nix::sys::prctl::set_timerslack(1);
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, TIMER))?;
        Ok(Waiter { clock, epoll, timer, set_to: None, allowance: None })
    }

    /// Stays awake shortly before each time, so as not to be late.
    pub fn punctual(mut self) -> Self {
        self.allowance = Some(Allowance { left: SAVED, at: self.clock.now() });
        self
    }

    /// Watches `descriptor` for reading, and reports it as `mark`.
    ///
    /// # Errors
    /// Fails if epoll cannot watch the descriptor, such as a regular file or one already watched.
    ///
    /// # Panics
    /// Panics for the largest `mark`, which is the timer's.
    pub fn watch(&self, descriptor: impl AsFd, mark: u64) -> io::Result<()> {
        assert_ne!(mark, TIMER, "the timer has this mark");
        Ok(self.epoll.add(descriptor, EpollEvent::new(EpollFlags::EPOLLIN, mark))?)
    }

    /// Sleeps until a descriptor is readable or `until` has come, and puts the marks of readable descriptors into
    /// `ready`. `None` waits without a timer. Spurious wake-ups are possible.
    ///
    /// # Errors
    /// Fails if the timer cannot be set, or epoll fails.
    pub fn wait(&mut self, until: Option<Time>, ready: &mut Vec<u64>) -> io::Result<()> {
        let now = self.clock.now();
        let has_come = until.is_some_and(|until| until <= now);
        let Some(until) = until.filter(|_| !has_come) else {
            return self.look(if has_come { EpollTimeout::ZERO } else { EpollTimeout::NONE }, ready);
        };
        if self.allowance.as_mut().is_none_or(|allowance| allowance.at(now) < AWAKE) {
            self.set(until, now)?;
            return self.look(EpollTimeout::NONE, ready);
        }
        let early = until.saturating_sub(AWAKE);
        if early > now {
            self.set(early, now)?;
            self.look(EpollTimeout::NONE, ready)?;
        } else {
            ready.clear();
        }
        let start = self.clock.now();
        // A spurious wake-up ends the wait as well.
        if ready.is_empty() && early <= start {
            while ready.is_empty() && self.clock.now() < until {
                self.look(EpollTimeout::ZERO, ready)?;
            }
            if let Some(allowance) = &mut self.allowance {
                allowance.spend(self.clock.now().saturating_since(start));
            }
        }
        Ok(())
    }

    /// Puts the marks of readable descriptors into `ready`.
    fn look(&mut self, timeout: EpollTimeout, ready: &mut Vec<u64>) -> io::Result<()> {
        ready.clear();
        let mut events = [EpollEvent::empty(); EVENTS];
        let count = match self.epoll.wait(&mut events, timeout) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        ready.extend(events[..count].iter().map(EpollEvent::data).filter(|mark| *mark != TIMER));
        Ok(())
    }

    /// An earlier setting still in the future may remain: it causes one spurious wake-up.
    fn set(&mut self, until: Time, now: Time) -> io::Result<()> {
        if self.set_to.is_some_and(|set| now < set && set <= until) {
            return Ok(());
        }
        let at = Expiration::OneShot(self.clock.to_system(until));
        self.timer.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        self.set_to = Some(until);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn timers_and_descriptors_wake() {
        let clock = Clock::start();
        timers_and_descriptors(clock, Waiter::new(clock).expect("descriptors"));
        timers_and_descriptors(clock, Waiter::new(clock).expect("descriptors").punctual());
    }

    fn timers_and_descriptors(clock: Clock, mut waiter: Waiter) {
        let (mut near, mut far) = std::os::unix::net::UnixStream::pair().expect("sockets");
        waiter.watch(&near, 7).expect("a socket");
        let mut ready = vec![1, 2];

        let due = clock.now() + Duration::from_millis(5);
        while clock.now() < due {
            waiter.wait(Some(due), &mut ready).expect("no signal");
            assert!(ready.is_empty());
        }
        // A deadline that has passed still looks at the descriptors.
        far.write_all(b"x").expect("room");
        waiter.wait(Some(due), &mut ready).expect("no signal");
        assert_eq!(ready, [7]);
        // It is not an edge: what is not read stays.
        waiter.wait(None, &mut ready).expect("no signal");
        assert_eq!(ready, [7]);
        near.read_exact(&mut [0]).expect("there");

        // Later, then earlier, then later again: none of them is forgotten.
        let start = clock.now();
        for millis in [30, 5, 12] {
            let due = start + Duration::from_millis(millis);
            while clock.now() < due {
                waiter.wait(Some(due), &mut ready).expect("no signal");
            }
        }
        assert!(clock.now() >= start + Duration::from_millis(30));
    }

    #[test]
    fn time_awake_is_spent() {
        let clock = Clock::start();
        let mut waiter = Waiter::new(clock).expect("descriptors").punctual();
        // A time that has come before the waiter looks at it costs nothing.
        let costs = (0..1000).any(|_| {
            waiter.wait(Some(clock.now() + AWAKE.div_floor(2)), &mut Vec::new()).expect("no signal");
            waiter.allowance.is_some_and(|allowance| allowance.left < SAVED)
        });
        assert!(costs);
    }

    #[test]
    fn a_fifth_of_the_time_is_spent_awake_at_most() {
        let at = |micros| Time::ZERO + Duration::from_micros(micros);
        let mut allowance = Allowance { left: Duration::ZERO, at: at(0) };
        assert_eq!(allowance.at(at(500)), Duration::from_micros(100));
        allowance.spend(Duration::from_micros(60));
        assert_eq!(allowance.at(at(500)), Duration::from_micros(40));
        // What is not spent is saved, up to a limit; what is spent too much is not owed.
        assert_eq!(allowance.at(at(9_000_000)), SAVED);
        allowance.spend(Duration::from_secs(1));
        assert_eq!(allowance.at(at(9_000_000)), Duration::ZERO);
    }
}
