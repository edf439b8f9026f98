//! The loop.

mod readings;

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bentpipe_engine::units::{Duration, Time};
use bentpipe_io::{Clock, Lateness};
use mio::event::Event as Ready;
use mio::{Events, Poll, Registry, Token, Waker};

use super::hub::Slot;
use super::readings::Readings;
use super::timer::Timer;

/// Tokens below this one belong to the loop and the tunnel, all others to the shape.
pub(super) const FIRST_TOKEN: usize = 16;
/// The token of the TUN device.
pub(super) const DEVICE: Token = Token(FIRST_TOKEN - 1);

const TIMER: Token = Token(1);
const WAKER: Token = Token(2);

/// Tells the loop to end. Another thread or a signal handler uses it.
#[derive(Clone, Debug)]
pub struct Stop {
    wish: Arc<AtomicU8>,
    waker: Arc<Waker>,
}

const RUN: u8 = 0;
const DRAIN: u8 = 1;
const NOW: u8 = 2;

impl Stop {
    /// Ends the loop when all work is done, or after 50 s; at once if called a second time.
    pub fn drain(&self) {
        let _ = self.wish.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |wish| Some((wish + 1).min(NOW)));
        self.wake();
    }

    /// Ends the loop at once.
    pub fn now(&self) {
        self.wish.store(NOW, Ordering::SeqCst);
        self.wake();
    }

    /// Wakes the loop, so that it calls the `user` closure of [`Loop::run`].
    pub fn wake(&self) {
        // If this fails, the loop wakes by itself within a second.
        let _ = self.waker.wake();
    }
}

/// The loop's counters.
#[derive(Clone, Debug, Default)]
pub struct GatewayStats {
    /// Packets refused by the kernel.
    pub refused_by_kernel: u64,
    /// How late timers were.
    pub lateness: Lateness,
    /// When the loop began to drain.
    pub draining_since: Option<Time>,
}

/// The work of the loop: a shape with its I/O. An error ends the gateway.
pub trait Work {
    /// Called when a registered source of events is ready.
    ///
    /// # Errors
    /// Fails if a socket or device that all connections need fails.
    fn ready(&mut self, now: Time, registry: &Registry, token: Token, ready: &Ready) -> io::Result<()>;

    /// Does all work that is due at this instant. Returns whether there is more, and the next instant at which work is
    /// due.
    ///
    /// # Errors
    /// Fails if a socket or device that all connections need fails.
    fn turn(&mut self, now: Time, registry: &Registry) -> io::Result<(bool, Option<Time>)>;

    /// Accepts no more work. Returns true once all work is done.
    ///
    /// # Errors
    /// Fails if a socket or device that all connections need fails.
    fn drain(&mut self, now: Time, registry: &Registry) -> io::Result<bool>;

    /// Called when the loop ends. Notifies peers and clients.
    ///
    /// # Errors
    /// Fails if the last messages cannot be sent.
    fn end(&mut self, now: Time) -> io::Result<()>;

    /// Number of packets refused by the kernel.
    fn refused_by_kernel(&self) -> u64;

    /// Makes the kernel read again how many connections may wait at the listeners.
    fn listen_again(&mut self) {}

    /// The name of the shape in settings.
    fn name(&self) -> &'static str;

    /// Adds the current values, except those of a hub's peers.
    fn read(&self, readings: &mut Readings);

    /// The number of times that a hub's peers, or their names, have changed.
    fn changes_of_peers(&self) -> u64 {
        0
    }

    /// Adds the values at `now` of at most `max` of a hub's peers, from this one on. Returns the next peer, if there is one.
    fn read_peers(&self, _now: Time, _readings: &mut Readings, _from: Slot, _max: usize) -> Option<Slot> {
        None
    }
}

/// Readings that are being collected: those of many peers take long, and the loop must not stop for them.
#[derive(Debug)]
pub(crate) struct Collection {
    pub(crate) readings: Readings,
    next: Option<Slot>,
    /// [`Work::changes_of_peers`] at its beginning.
    changes: u64,
}

/// One box: the loop and its work.
#[derive(Debug)]
pub struct Loop<W> {
    clock: Clock,
    poll: Poll,
    timer: Timer,
    work: W,
    stop: Stop,
    stats: GatewayStats,
    looks_soon: bool,
}

/// Draining ends after this time, even with open connections. The service's unit allows 60 s before it kills the
/// process.
pub(crate) const MAX_DRAIN: Duration = if cfg!(test) { Duration::from_millis(300) } else { Duration::from_secs(50) };

/// The loop wakes at least this often.
const MAX_SLEEP: Duration = Duration::from_secs(1);
/// The time that the loop has for its work between two parts of what else it does.
const SOON: Duration = Duration::from_millis(5);
/// Minimum wait. If a line will be free again within a microsecond, a system call is not worthwhile; packets that it
/// could have sent meanwhile are sent in one batch.
const GRAIN: Duration = Duration::from_micros(50);

impl<W: Work> Loop<W> {
    /// Creates a loop. `make` creates its work from the first instant and the registry of event sources.
    pub(super) fn begin(make: impl FnOnce(Time, &Registry) -> io::Result<W>) -> io::Result<Self> {
        // Timers of ordinary threads are up to 50 µs late. If the system refuses a smaller slack, this loop's are too.
        let _ = nix::sys::prctl::set_timerslack(1);
        let clock = Clock::start();
        let poll = Poll::new()?;
        let timer = Timer::new(poll.registry(), TIMER)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let work = make(clock.now(), poll.registry())?;
        let stop = Stop { wish: Arc::new(AtomicU8::new(RUN)), waker };
        Ok(Loop { clock, poll, timer, work, stop, stats: GatewayStats::default(), looks_soon: false })
    }

    /// The work.
    pub(super) fn work(&self) -> &W {
        &self.work
    }

    /// The name of the shape in the settings.
    pub(crate) fn shape_name(&self) -> &'static str {
        self.work.name()
    }

    /// The work, mutable, to change its settings.
    pub(super) fn work_mut(&mut self) -> &mut W {
        &mut self.work
    }

    /// Makes the kernel read again how many connections may wait at the listeners: net.core.somaxconn may have changed.
    pub(super) fn listen_again(&mut self) {
        self.work.listen_again();
    }

    /// A handle with which another thread can end the loop.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// The loop's counters.
    pub fn stats(&self) -> GatewayStats {
        GatewayStats { refused_by_kernel: self.work.refused_by_kernel(), ..self.stats.clone() }
    }

    /// The current readings of the gateway, under this name.
    pub fn readings(&self, name: &str) -> Readings {
        let mut collection = self.begin_readings(name);
        while !self.collect(&mut collection, usize::MAX) {}
        collection.readings
    }

    /// The readings without those of a hub's peers.
    pub(crate) fn begin_readings(&self, name: &str) -> Collection {
        let mut readings = Readings::new(name, self.work.name());
        readings.add_loop(&self.stats());
        self.work.read(&mut readings);
        Collection { readings, next: Some(Slot(0)), changes: self.work.changes_of_peers() }
    }

    /// True if the peers have not changed since this collection began. Otherwise one of them may be missing in it or be there twice.
    pub(crate) fn is_current(&self, collection: &Collection) -> bool {
        collection.changes == self.work.changes_of_peers()
    }

    /// Adds the readings of at most `max` peers. Returns true if those of all are there.
    pub(crate) fn collect(&self, collection: &mut Collection, max: usize) -> bool {
        let Collection { readings, next, .. } = collection;
        *next = next.and_then(|from| self.work.read_peers(self.now(), readings, from, max));
        next.is_none()
    }

    /// Makes [`Loop::run`] call `user` again after [`SOON`], and not after a second.
    pub(crate) fn look_soon(&mut self) {
        self.looks_soon = true;
    }

    /// The current time on the gateway's clock.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// The loop's epoll descriptor, which is readable when the loop has something to do.
    pub fn as_raw_fd(&self) -> RawFd {
        self.poll.as_raw_fd()
    }

    /// Runs until it is stopped. Calls `user` each time the loop is woken by [`Stop::wake`], and once a second.
    ///
    /// # Errors
    /// Fails if a socket or device that all connections need fails, or if epoll does. An error of one connection ends
    /// only that connection.
    pub fn run(&mut self, mut user: impl FnMut(&mut Self)) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        let mut look_at = Time::ZERO;
        loop {
            let now = self.clock.now();
            if now >= look_at {
                user(self);
                look_at = now + if std::mem::take(&mut self.looks_soon) { SOON } else { MAX_SLEEP };
            }
            let (more, until) = self.work.turn(now, self.poll.registry())?;
            match self.stop.wish.load(Ordering::SeqCst) {
                RUN => {}
                DRAIN => {
                    let since = *self.stats.draining_since.get_or_insert(now);
                    if self.work.drain(now, self.poll.registry())? || now.saturating_since(since) >= MAX_DRAIN {
                        return self.work.end(now);
                    }
                }
                _ => return self.work.end(now),
            }
            let due = until.map_or(look_at, |until| until.min(look_at)).max(now + GRAIN);
            let slept = !more;
            if slept {
                self.timer.arm(self.clock.now(), due)?;
            }
            let patience = if slept { None } else { Some(std::time::Duration::ZERO) };
            match self.poll.poll(&mut events, patience) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let now = self.clock.now();
            let mut only_timer = slept;
            for ready in &events {
                only_timer &= ready.token() == TIMER;
                match ready.token() {
                    TIMER => {}
                    WAKER => look_at = Time::ZERO,
                    token => self.work.ready(now, self.poll.registry(), token, ready)?,
                }
            }
            if only_timer && now >= due {
                self.stats.lateness.record(due, now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work that never ends.
    struct Endless {
        ended: bool,
    }

    impl Work for Endless {
        fn ready(&mut self, _: Time, _: &Registry, _: Token, _: &Ready) -> io::Result<()> {
            Ok(())
        }

        fn turn(&mut self, now: Time, _: &Registry) -> io::Result<(bool, Option<Time>)> {
            Ok((false, Some(now + Duration::from_millis(10))))
        }

        fn drain(&mut self, _: Time, _: &Registry) -> io::Result<bool> {
            Ok(false)
        }

        fn end(&mut self, _: Time) -> io::Result<()> {
            self.ended = true;
            Ok(())
        }

        fn refused_by_kernel(&self) -> u64 {
            0
        }

        fn name(&self) -> &'static str {
            "endless"
        }

        fn read(&self, _: &mut Readings) {}
    }

    /// A vanished client, with a server that waits for it, would keep the gateway running for hours.
    #[test]
    fn draining_ends() {
        let mut endless = Loop::begin(|_, _| Ok(Endless { ended: false })).expect("epoll is there");
        endless.stop().drain();
        endless.run(|_| ()).expect("it ends");
        let since = endless.stats().draining_since.expect("it drained");
        assert!(endless.work().ended && endless.now().saturating_since(since) >= MAX_DRAIN);
    }
}
