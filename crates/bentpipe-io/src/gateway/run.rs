//! The loop.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::SystemTime;

use bentpipe_engine::Step;
use bentpipe_engine::units::{Duration, Time};
use mio::{Events, Poll, Token, Waker};

use super::carrier::{Carried, Carrier};
use super::shape::{FIRST_TOKEN, Shape, Turn};
use super::timer::Timer;
use super::udp::Udp;
use crate::clock::Clock;
use crate::lateness::Lateness;

const UDP: Token = Token(0);
const TIMER: Token = Token(1);
const WAKER: Token = Token(2);

/// How the loop is to end, said from another thread or a signal handler's.
#[derive(Clone, Debug)]
pub struct Stop {
    wish: Arc<AtomicU8>,
    waker: Arc<Waker>,
}

const RUN: u8 = 0;
const DRAIN: u8 = 1;
const NOW: u8 = 2;

impl Stop {
    /// Ends when all work is done; asked a second time, at once.
    pub fn drain(&self) {
        let _ = self.wish.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |wish| Some((wish + 1).min(NOW)));
        self.wake();
    }

    /// Ends at once.
    pub fn now(&self) {
        self.wish.store(NOW, Ordering::SeqCst);
        self.wake();
    }

    /// Wakes the loop, so that the user of [`Gateway::run`] is asked.
    pub fn wake(&self) {
        // A loop that cannot be woken looks by itself before long.
        let _ = self.waker.wake();
    }
}

/// What the loop counted.
#[derive(Clone, Debug, Default)]
pub struct GatewayStats {
    /// Datagrams for which the kernel had no room.
    pub refused_by_kernel: u64,
    /// How late timers were.
    pub lateness: Lateness,
    /// When the loop began to drain.
    pub draining_since: Option<Time>,
}

/// One box.
#[derive(Debug)]
pub struct Gateway<S> {
    clock: Clock,
    poll: Poll,
    timer: Timer,
    udp: Udp,
    udp_is_readable: bool,
    carrier: Carrier,
    shape: S,
    stop: Stop,
    stats: GatewayStats,
    out: Box<[u8]>,
}

/// The loop looks up at least so often.
const MOST_SLEEP: Duration = Duration::from_secs(1);

impl<S: Shape> Gateway<S> {
    /// A box whose tunnel speaks from `local`; `carrier` is told the time that its clocks begin at.
    ///
    /// # Errors
    /// The system's.
    pub fn new(local: std::net::SocketAddr, carrier: impl FnOnce(Time) -> Carrier, shape: S) -> io::Result<Self> {
        // Timers of ordinary threads may run out 50 µs late; where the system refuses more, they are that late.
        let _ = nix::sys::prctl::set_timerslack(1);
        let clock = Clock::start();
        let poll = Poll::new()?;
        let timer = Timer::new(poll.registry(), TIMER)?;
        let udp = Udp::bind(local)?;
        udp.register(poll.registry(), UDP)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let mut gateway = Gateway {
            carrier: carrier(clock.now()),
            clock,
            timer,
            udp,
            udp_is_readable: true,
            shape,
            stop: Stop { wish: Arc::new(AtomicU8::new(RUN)), waker },
            stats: GatewayStats::default(),
            out: vec![0; 1 << 16].into(),
            poll,
        };
        let now = gateway.clock.now();
        let Gateway { poll, carrier, shape, .. } = &mut gateway;
        shape.start(&mut Turn { now, carrier, registry: poll.registry() })?;
        Ok(gateway)
    }

    /// Where the tunnel listens.
    ///
    /// # Errors
    /// The system's.
    pub fn local(&self) -> io::Result<std::net::SocketAddr> {
        self.udp.local()
    }

    /// How another thread ends the loop.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// The way to the other box.
    pub fn carrier(&self) -> &Carrier {
        &self.carrier
    }

    /// The shape.
    pub fn shape(&self) -> &S {
        &self.shape
    }

    /// The shape, to change its settings.
    pub fn shape_mut(&mut self) -> &mut S {
        &mut self.shape
    }

    /// What the loop counted.
    pub fn stats(&self) -> GatewayStats {
        GatewayStats { refused_by_kernel: self.udp.refused, ..self.stats.clone() }
    }

    /// The present, on the gateway's clock.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// The loop's epoll, which is readable when it has something to do.
    pub fn as_raw_fd(&self) -> RawFd {
        self.poll.as_raw_fd()
    }

    /// Runs until it is stopped. `user` looks at the gateway each time that the loop was woken by [`Stop::wake`], and
    /// once a second.
    ///
    /// # Errors
    /// The system's, where it is not about one connection only.
    pub fn run(&mut self, mut user: impl FnMut(&mut Self)) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        let mut look_at = Time::ZERO;
        loop {
            let now = self.clock.now();
            if now >= look_at {
                look_at = now + MOST_SLEEP;
                user(self);
            }
            let (more, until) = self.turn(now)?;
            match self.stop.wish.load(Ordering::SeqCst) {
                RUN => {}
                DRAIN => {
                    self.stats.draining_since.get_or_insert(now);
                    let Gateway { poll, carrier, shape, .. } = self;
                    if shape.drain(&mut Turn { now, carrier, registry: poll.registry() })? {
                        return Ok(());
                    }
                }
                _ => return Ok(()),
            }
            let due = until.map_or(look_at, |until| until.min(look_at));
            let slept = !more && due > now;
            if slept {
                self.timer.arm(self.clock.now(), Some(due))?;
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
                    UDP => self.udp_is_readable = true,
                    TIMER => {}
                    WAKER => look_at = Time::ZERO,
                    token => {
                        debug_assert!(token.0 >= FIRST_TOKEN);
                        let Gateway { poll, carrier, shape, .. } = self;
                        shape.ready(&mut Turn { now, carrier, registry: poll.registry() }, token, ready)?;
                    }
                }
            }
            if only_timer && now >= due {
                self.stats.lateness.record(due, now);
            }
        }
    }

    /// Does what there is to do at this instant; whether there is more, and when else there will be.
    fn turn(&mut self, now: Time) -> io::Result<(bool, Option<Time>)> {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let Gateway { poll, udp, carrier, shape, out, .. } = self;
        if self.udp_is_readable {
            self.udp_is_readable = udp.receive(|from, datagram| carrier.receive(now, from, datagram))?;
        }
        let mut turn = Turn { now, carrier, registry: poll.registry() };
        let mut more = shape.fill(&mut turn)?;
        let until = loop {
            match turn.carrier.poll(now, wall, out) {
                Step::Do(Carried::Send(sealed)) => {
                    udp.send(sealed.to, &out[..sealed.len]);
                    more |= shape.fill(&mut turn)?;
                }
                Step::Do(Carried::Packet(length)) => shape.on_packet(&mut turn, &out[..length])?,
                Step::Do(Carried::Event(event)) => shape.on_event(&mut turn, event)?,
                Step::Wait(until) => {
                    // What has come may have called for an answer.
                    let before = turn.carrier.waiting(0);
                    more |= shape.fill(&mut turn)?;
                    if turn.carrier.waiting(0) == before {
                        break until;
                    }
                }
            }
        };
        udp.flush();
        Ok((more || self.udp_is_readable, until))
    }
}
