//! What two boxes have in common for the loop: a UDP socket, the carrier behind it, and the shape.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::SystemTime;

use bentpipe_engine::Step;
use bentpipe_engine::units::Time;
use mio::event::Event as Ready;
use mio::{Registry, Token};

use super::carrier::{Carried, Carrier, PathChange};
use super::log;
use super::ports;
use super::readings::Readings;
use super::resume::Resume;
use super::run::{FIRST_TOKEN, Loop, Work};
use super::shape::{Shape, Turn};
use super::state::State;
use super::udp::Udp;
use crate::tunnel::Event;

const UDP: Token = Token(0);

/// A shape of two boxes and its way to the other one.
#[derive(Debug)]
pub struct Tunnelled<S> {
    udp: Udp,
    udp_is_readable: bool,
    carrier: Carrier,
    shape: S,
    state: Option<State>,
    resume: Resume,
}

/// One of two boxes.
pub type Gateway<S> = Loop<Tunnelled<S>>;

impl<S: Shape> Gateway<S> {
    /// A box whose tunnel speaks from `local`; `carrier` is told the time that its clocks begin at.
    ///
    /// # Errors
    /// Fails if the UDP address cannot be bound, or if epoll or a listener of the shape cannot be opened.
    pub fn new(local: SocketAddr, carrier: impl FnOnce(Time) -> Carrier, shape: S) -> io::Result<Self> {
        Loop::begin(|now, registry| {
            let udp = Udp::bind(local).map_err(|error| ports::explained(ports::Kind::Udp, local.port(), error))?;
            udp.register(registry, UDP)?;
            let mut work = Tunnelled {
                udp,
                udp_is_readable: true,
                carrier: carrier(now),
                shape,
                state: None,
                resume: Resume::new(),
            };
            let Tunnelled { carrier, shape, .. } = &mut work;
            shape.start(&mut Turn { now, carrier, registry })?;
            Ok(work)
        })
    }

    /// Where the tunnel listens.
    ///
    /// # Errors
    /// Fails if the kernel does not tell the socket's address.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.work().udp.local()
    }

    /// Notes where the peer is in that file.
    pub fn keep_state(&mut self, path: PathBuf) {
        self.work_mut().state = Some(State::new(path));
    }

    /// The way to the other box.
    pub fn carrier(&self) -> &Carrier {
        &self.work().carrier
    }

    /// The shape.
    pub fn shape(&self) -> &S {
        &self.work().shape
    }

    /// The shape, to change its settings.
    pub fn shape_mut(&mut self) -> &mut S {
        &mut self.work_mut().shape
    }
}

impl<S: Shape> Work for Tunnelled<S> {
    fn ready(&mut self, now: Time, registry: &Registry, token: Token, ready: &Ready) -> io::Result<()> {
        if token == UDP {
            self.udp_is_readable = true;
            return Ok(());
        }
        debug_assert!(token.0 >= FIRST_TOKEN);
        let Tunnelled { carrier, shape, .. } = self;
        shape.ready(&mut Turn { now, carrier, registry }, token, ready)
    }

    fn turn(&mut self, now: Time, registry: &Registry) -> io::Result<(bool, Option<Time>)> {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let Tunnelled { udp, carrier, shape, .. } = self;
        if self.resume.has_jumped() {
            log::line("this machine's clocks have jumped, as after sleep or a snapshot: the tunnel makes new keys");
            carrier.renew(now);
        }
        if self.udp_is_readable {
            self.udp_is_readable = udp.receive(|from, datagram| carrier.receive(now, from, datagram))?;
        }
        let mut turn = Turn { now, carrier, registry };
        let mut more = shape.fill(&mut turn)?;
        let until = loop {
            match turn.carrier.poll(now, wall, udp.room()) {
                Step::Do(Carried::Send(sealed)) => {
                    udp.send(now, sealed.to, sealed.len);
                    more |= shape.fill(&mut turn)?;
                }
                Step::Do(Carried::Packet(at)) => shape.on_packet(&mut turn, &udp.room()[at])?,
                Step::Do(Carried::Event(event)) => {
                    say(turn.carrier, event);
                    shape.on_event(&mut turn, event)?;
                }
                Step::Do(Carried::Log(note)) => log::line(note),
                Step::Do(Carried::PathMtu(change)) => {
                    log::line(path_line(&change));
                    shape.on_path_mtu(&mut turn, change.max_packet)?;
                }
                Step::Wait(until) => {
                    shape.flush()?;
                    // What has come may have called for an answer.
                    let before = turn.carrier.waiting(0);
                    more |= shape.fill(&mut turn)?;
                    if turn.carrier.waiting(0) == before {
                        break until;
                    }
                }
            }
        };
        udp.flush(now);
        if let Some(length) = udp.take_too_long() {
            turn.carrier.on_too_long(now, length);
            more = true;
        }
        if let Some(state) = &mut self.state {
            let tunnel = turn.carrier.tunnel();
            state.note(now, tunnel.endpoint().map(|at| (tunnel.peer(), at)).into_iter());
        }
        Ok((more || self.udp_is_readable, until))
    }

    fn drain(&mut self, now: Time, registry: &Registry) -> io::Result<bool> {
        let Tunnelled { carrier, shape, .. } = self;
        shape.drain(&mut Turn { now, carrier, registry })
    }

    fn end(&mut self, _: Time) -> io::Result<()> {
        Ok(())
    }

    fn refused_by_kernel(&self) -> u64 {
        self.udp.refusals().sum()
    }

    fn name(&self) -> &'static str {
        self.shape.name()
    }

    fn read(&self, now: Time, readings: &mut Readings) {
        readings.add_carrier(now, &self.carrier, &self.udp.refusals());
        self.shape.read(readings);
    }
}

fn path_line(change: &PathChange) -> String {
    let PathChange { mtu, black_hole, .. } = change;
    match black_hole {
        true => {
            format!("longer datagrams to the peer are lost: the path MTU is {mtu} bytes until a larger one is found")
        }
        false => format!("the path MTU is {mtu} bytes"),
    }
}

/// One line for each change of the link.
fn say(carrier: &Carrier, event: Event) {
    let at = carrier.tunnel().endpoint().map_or_else(|| "an unknown address".to_owned(), |at| at.to_string());
    match event {
        Event::Up { fresh: true } => log::line(format_args!("the peer at {at} is up")),
        Event::Up { fresh: false } => log::line(format_args!("the peer at {at} is back; the link goes on")),
        Event::Down => log::line(format_args!("the peer at {at} has been silent for `dead_after`: the link is down")),
    }
}
