//! The loop: TUN → link down → endpoint → link up → TUN, with a user that reads and writes.
//!
//! The clock is sampled once per wake-up, so everything in one wake-up has the same time. Packets leave the links at
//! the times that the links computed when they entered: a late wake-up delays one packet, not those after it. The
//! lateness of wake-ups is recorded.

use std::io;

use bentpipe_engine::link::{Link, LinkConfig, Outcome, Wire};
use bentpipe_engine::probe::Who;
use bentpipe_engine::units::Time;
use bentpipe_engine::{Context, Probe, Step};

use crate::endpoint::{Closing, Endpoint, Receipt};
use crate::lateness::Lateness;
use crate::linux::clock::Clock;
use crate::linux::tun::Tun;
use crate::linux::waiter::Waiter;

/// An IP packet in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram(pub Vec<u8>);

impl Wire for Datagram {
    fn wire_len(&self) -> u32 {
        self.0.len() as u32
    }
}

/// The path between the TUN device and the endpoint.
#[derive(Clone, Debug)]
pub struct Path {
    /// From the endpoint to the host.
    pub up: LinkConfig,
    /// From the host to the endpoint.
    pub down: LinkConfig,
    /// Seed of the random processes of both links.
    pub seed: u64,
}

/// What an endpoint's user wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Call again after the next arrival.
    Wait,
    /// Call again at this time or earlier.
    Until(Time),
    /// End [`Driver::run`].
    Done,
}

/// Counters of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that were damaged or not IP.
    pub malformed: u64,
    /// Packets for other addresses.
    pub foreign: u64,
    /// Packets for which the host had no room.
    pub refused_by_host: u64,
}

/// The user's access to the endpoint, for one turn.
#[derive(Debug)]
pub struct User<'a, 'p, P> {
    endpoint: &'a mut Endpoint,
    cx: Context<'p, P>,
}

impl<P: Probe> User<'_, '_, P> {
    /// The current time.
    pub fn now(&self) -> Time {
        self.cx.now
    }

    /// Read access to the endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        self.endpoint
    }

    /// Writes data: see [`Endpoint::write`].
    ///
    /// # Errors
    /// Returns [`Closing`] after [`Endpoint::close`] and after the end of the connection: nothing was written.
    pub fn write(&mut self, data: &[u8]) -> Result<usize, Closing> {
        self.endpoint.write(&mut self.cx, data)
    }

    /// Reads data: see [`Endpoint::read`].
    pub fn read(&mut self, data: &mut [u8]) -> usize {
        self.endpoint.read(&mut self.cx, data)
    }

    /// Ends the stream: see [`Endpoint::close`].
    pub fn close(&mut self) {
        self.endpoint.close(&mut self.cx);
    }

    /// Resets the connection: see [`Endpoint::abort`].
    pub fn abort(&mut self) {
        self.endpoint.abort(&mut self.cx);
    }
}

/// Numbers of the machines in probe events.
const ENDPOINT: Who = Who(0);
const UP: Who = Who(1);
const DOWN: Who = Who(2);

/// Maximum number of packets taken from the device before the connection's turn: a burst, not a flood.
const BATCH: usize = 64;

/// The largest IP packet.
const MAX_PACKET: usize = 65_535;

/// An endpoint in real time.
#[derive(Debug)]
pub struct Driver<P> {
    clock: Clock,
    waiter: Waiter,
    lateness: Lateness,
    tun: Tun,
    endpoint: Endpoint,
    up: Link<Datagram>,
    down: Link<Datagram>,
    probe: P,
    counters: Counters,
    buffer: Box<[u8]>,
    /// Empty buffers for reuse.
    spare: Vec<Vec<u8>>,
}

impl<P: Probe> Driver<P> {
    /// Opens an endpoint behind `tun`. `open` receives the context for [`Endpoint::open`]. Events of the endpoint, of
    /// the link up and of the link down go to `probe` with the numbers 0, 1 and 2.
    ///
    /// # Errors
    /// Fails if epoll or its timer cannot be opened: no descriptors are left.
    pub fn new(
        tun: Tun,
        path: &Path,
        mut probe: P,
        open: impl FnOnce(&mut Context<'_, P>) -> Endpoint,
    ) -> io::Result<Self> {
        let clock = Clock::start();
        let waiter = Waiter::new(clock)?;
        waiter.watch(&tun, 0)?;
        let endpoint = open(&mut Context { now: clock.now(), who: ENDPOINT, probe: &mut probe });
        Ok(Driver {
            clock,
            waiter,
            lateness: Lateness::default(),
            tun,
            endpoint,
            up: Link::new(&path.up, path.seed, "up"),
            down: Link::new(&path.down, path.seed, "down"),
            probe,
            counters: Counters::default(),
            buffer: vec![0; MAX_PACKET].into(),
            spare: Vec::new(),
        })
    }

    /// Runs until `user` is done. `user` is called after every change; it should do what it can and return.
    ///
    /// # Errors
    /// Fails if the TUN device cannot be read or written (it was removed), or if epoll fails.
    pub fn run(&mut self, mut user: impl FnMut(&mut User<'_, '_, P>) -> Turn) -> io::Result<()> {
        loop {
            let now = self.clock.now();
            let more = self.take_from_host(now)?;
            self.deliver_down(now);
            self.transmit(now);
            let cx = Context { now, who: ENDPOINT, probe: &mut self.probe };
            let turn = user(&mut User { endpoint: &mut self.endpoint, cx });
            let timer = self.transmit(now);
            self.deliver_up(now)?;
            let wish = match turn {
                Turn::Done => return Ok(()),
                Turn::Wait => None,
                Turn::Until(at) => Some(at),
            };
            if !more {
                let links = Time::earliest(self.up.next_arrival(), self.down.next_arrival());
                self.wait(Time::earliest(Time::earliest(timer, wish), links))?;
            }
        }
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Counters of the loop.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The lateness of the timers.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// The probe, at the end.
    pub fn into_probe(self) -> P {
        self.probe
    }

    /// Moves packets from the device into the link. Returns true if there are more.
    fn take_from_host(&mut self, now: Time) -> io::Result<bool> {
        let mut cx = Context { now, who: DOWN, probe: &mut self.probe };
        for _ in 0..BATCH {
            let Some(length) = self.tun.read(&mut self.buffer)? else { return Ok(false) };
            let mut packet = self.spare.pop().unwrap_or_default();
            packet.extend_from_slice(&self.buffer[..length]);
            // The link counts its drops.
            let _ = self.down.offer(&mut cx, Datagram(packet));
        }
        Ok(true)
    }

    /// Moves packets from the link into the endpoint.
    fn deliver_down(&mut self, now: Time) {
        while let Some(arrival) = self.down.take(&mut Context { now, who: DOWN, probe: &mut self.probe }) {
            let Datagram(mut packet) = arrival.packet;
            if arrival.outcome == Outcome::Delivered {
                let mut cx = Context { now, who: ENDPOINT, probe: &mut self.probe };
                match self.endpoint.receive(&mut cx, &packet) {
                    Ok(Receipt::Taken(_)) => {}
                    Ok(Receipt::Foreign) => self.counters.foreign += 1,
                    Err(_) => self.counters.malformed += 1,
                }
            }
            packet.clear();
            self.spare.push(packet);
        }
    }

    /// Moves packets from the endpoint into the link, and sets the endpoint's timer.
    fn transmit(&mut self, now: Time) -> Option<Time> {
        loop {
            let mut cx = Context { now, who: ENDPOINT, probe: &mut self.probe };
            match self.endpoint.poll(&mut cx, &mut self.buffer).expect("the buffer takes every IP packet") {
                Step::Wait(until) => return until,
                Step::Do(length) => {
                    let mut packet = self.spare.pop().unwrap_or_default();
                    packet.extend_from_slice(&self.buffer[..length]);
                    let mut cx = Context { now, who: UP, probe: &mut self.probe };
                    let _ = self.up.offer(&mut cx, Datagram(packet));
                }
            }
        }
    }

    /// Moves packets from the link into the device.
    fn deliver_up(&mut self, now: Time) -> io::Result<()> {
        while let Some(arrival) = self.up.take(&mut Context { now, who: UP, probe: &mut self.probe }) {
            let Datagram(mut packet) = arrival.packet;
            if arrival.outcome == Outcome::Delivered && !self.tun.write(&packet)? {
                self.counters.refused_by_host += 1;
            }
            packet.clear();
            self.spare.push(packet);
        }
        Ok(())
    }

    /// Sleeps until the device has a packet, at most until `deadline`.
    fn wait(&mut self, deadline: Option<Time>) -> io::Result<()> {
        self.waiter.wait(deadline, &mut Vec::new())?;
        if let Some(due) = deadline {
            let now = self.clock.now();
            if due <= now {
                self.lateness.record(due, now);
            }
        }
        Ok(())
    }
}
