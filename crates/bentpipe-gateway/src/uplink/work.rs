//! The driver of the machine: TUN device, raw sockets, and the kernel's connections to servers.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd};

use bentpipe_engine::Step;
use bentpipe_engine::mux::{Reason, Route};
use bentpipe_engine::units::Time;
use bentpipe_io::tun::{self, Tun};
use mio::event::Event as Ready;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use nix::errno::Errno;

use super::config::{UplinkConfig, UplinkStats};
use super::machine::{ConnectionId, Heard, Uplink, Uplinked};
use super::opening::opener;
use super::raw::Raw;
use super::waste::Waste;
use crate::access::Access;
use crate::conn::{Conn, Outcome};
use crate::dialer::Dialer;
use crate::listeners;
use crate::log;
use crate::policy::Policy;
use crate::readings::Readings;
use crate::rules::Instance;
use crate::run::{FIRST_TOKEN, Loop, Work};
use crate::sockets::{self, ClientAddress};

/// Maximum number of segments to send before the device is read again. At a rate that the box cannot reach, the pacer
/// would let it send until the device's queue overflows.
const MAX_SENDS: usize = 64;

/// The shape's work for the loop.
#[derive(Debug)]
pub struct Uplinking {
    tun: Tun,
    tun_is_readable: bool,
    raw: Raw,
    machine: Uplink,
    conns: BTreeMap<ConnectionId, Server>,
    access: Access,
    dialer: Dialer,
    client_address: ClientAddress,
    /// The mark of packets with others' addresses.
    mark: u32,
    other_port: u64,
    scratch: Box<[u8]>,
    out: Box<[u8]>,
    waste: Waste,
}

/// A connection to a server.
#[derive(Debug)]
struct Server {
    conn: Conn,
    /// True if both directions have ended, except for data that the server's kernel has not accepted yet.
    is_closing: bool,
}

/// The box at the uplink.
pub type UplinkGateway = Loop<Uplinking>;

/// The longest packet that a device can carry. Connections that only pass through it keep their segment sizes.
const DEVICE_MTU: u16 = 65_535;

/// RFC 7600 §3: the dummy address of a host that has none. Without any address, the loose source check drops every
/// packet.
const DUMMY: (IpAddr, u8) = (IpAddr::V4(Ipv4Addr::new(192, 0, 0, 8)), 32);

impl UplinkGateway {
    /// Creates the device `name` and starts serving connections routed into it. Also returns readable messages about
    /// optional steps that failed.
    ///
    /// # Errors
    /// Fails if the TUN device cannot be created (CAP_NET_ADMIN and `/dev/net/tun` are needed), or epoll cannot be
    /// opened.
    pub fn uplink(
        instance: &Instance,
        name: &str,
        config: UplinkConfig,
        client_address: ClientAddress,
    ) -> io::Result<(UplinkGateway, Vec<String>)> {
        let tun = Tun::with_addresses(name, &[DUMMY], DEVICE_MTU)?;
        let raw = Raw::open(instance.sent())?;
        let lacks = instance.route_into(name);
        let mark = instance.sent();
        // Each connection takes a descriptor, including those being opened.
        let descriptors = u32::try_from(listeners::max_conns(1)?).unwrap_or(u32::MAX);
        let config = UplinkConfig { max_streams: config.max_streams.min(descriptors), ..config };
        let gateway = Loop::begin(|_, registry| {
            registry.register(&mut SourceFd(&tun.as_fd().as_raw_fd()), Token(FIRST_TOKEN), Interest::READABLE)?;
            Ok(Uplinking {
                tun,
                tun_is_readable: true,
                raw,
                machine: Uplink::new(config),
                conns: BTreeMap::new(),
                access: Access::default(),
                dialer: Dialer::default(),
                client_address,
                mark,
                other_port: 0,
                scratch: vec![0; sockets::READ].into(),
                out: vec![0; 1 << 16].into(),
                waste: Waste::default(),
            })
        })?;
        Ok((gateway, lacks))
    }

    /// The machine.
    pub fn machine(&self) -> &Uplink {
        &self.work().machine
    }

    /// The machine's counters.
    pub fn counted(&self) -> UplinkStats {
        self.work().machine.stats()
    }

    /// Sets the servers that may be contacted from now on. Until this is called, the default applies.
    pub(crate) fn set_policy(&mut self, policy: Policy) {
        self.work_mut().access.set_policy(policy);
    }

    /// Sets the source address of connections to servers from now on.
    pub(crate) fn set_client_address(&mut self, client_address: ClientAddress) {
        self.work_mut().client_address = client_address;
    }
}

fn token(id: ConnectionId) -> Token {
    Token(FIRST_TOKEN + 1 + id.0 as usize)
}

impl Uplinking {
    /// Takes packets from clients, at most as many as the device's queue holds. Returns true if there may be more.
    fn take(&mut self, now: Time) -> io::Result<bool> {
        for _ in 0..tun::QUEUE {
            if !self.tun_is_readable {
                return Ok(false);
            }
            match self.tun.read(&mut self.out).map_err(crate::link::device_error)? {
                None => self.tun_is_readable = false,
                Some(length) => {
                    let packet = &self.out[..length];
                    if let Some(client) = opener(packet) {
                        // Without a route, nothing can be sent.
                        self.machine.set_mtu(self.raw.mtu_to(client).unwrap_or(u16::MAX));
                    }
                    // A foreign packet is sent out of the device again. It does not enter by the satellite's interface,
                    // so the rules ignore it.
                    if self.machine.receive(now, packet) == Heard::Pass {
                        self.pass(length)?;
                    }
                }
            }
        }
        Ok(true)
    }

    /// Sends a packet out of the device again. A packet that the kernel refuses is lost, as on a line. Only the loss of
    /// the device ends the gateway.
    fn pass(&mut self, length: usize) -> io::Result<()> {
        match self.tun.write(&self.out[..length]) {
            Ok(true) => Ok(()),
            Err(error) if error.raw_os_error() == Some(Errno::EBADFD as i32) => Err(error),
            Ok(false) | Err(_) => {
                self.raw.refused += 1;
                Ok(())
            }
        }
    }

    fn connect(&mut self, now: Time, registry: &Registry, id: ConnectionId, route: Route) {
        if self.access.far(route.destination).is_err() {
            self.machine.failed(now, id, Reason::Forbidden);
            return;
        }
        let (made, other_port) = self.dialer.connect(now, route, self.client_address, Some(self.mark));
        self.other_port += u64::from(other_port);
        let registered = made.and_then(|socket| {
            let mut conn = Conn::connecting(socket);
            conn.register(registry, token(id)).map(|()| conn)
        });
        match registered {
            Ok(conn) => {
                self.conns.insert(id, Server { conn, is_closing: false });
            }
            Err(error) => self.machine.failed(now, id, sockets::reason(&error)),
        }
    }

    /// Moves data between a client's connection and the server's.
    fn serve(&mut self, now: Time, id: ConnectionId) {
        let Some(Server { conn, is_closing }) = self.conns.get_mut(&id) else { return };
        let machine = &mut self.machine;
        loop {
            let may_wait = machine.may_wait(id);
            while conn.waiting() < may_wait {
                let count = machine.read(now, id, &mut self.scratch[..may_wait]);
                if count == 0 {
                    break;
                }
                conn.bring(&self.scratch[..count]);
            }
            if machine.has_ended(id) {
                conn.end();
            }
            let was_connecting = conn.is_connecting();
            let Outcome { read, taken, ended, failed } = conn.serve(&mut self.scratch, machine.room(id));
            if let Some(error) = failed {
                let reason = if was_connecting { sockets::reason(&error) } else { Reason::Peer };
                match was_connecting {
                    true => machine.failed(now, id, reason),
                    false => machine.abort(now, id),
                }
                self.forget(id, true);
                return;
            }
            let has_connected = was_connecting && !conn.is_connecting();
            if has_connected {
                machine.connected(now, id);
            }
            if read > 0 {
                let bytes = conn.unsent() as usize;
                let count = machine.write(now, id, conn.next(bytes));
                debug_assert_eq!(count, bytes, "no more is read than there is room for");
                conn.sent(count);
            }
            if ended {
                machine.close(now, id);
            }
            if read == 0 && taken == 0 && !has_connected {
                break;
            }
        }
        machine.set_waiting(id, conn.waiting());
        if *is_closing && conn.is_flushed() {
            self.forget(id, false);
        }
    }

    fn forget(&mut self, id: ConnectionId, by_reset: bool) {
        if let Some(Server { conn, .. }) = self.conns.remove(&id) {
            if by_reset { conn.reset() } else { conn.close() }
        }
        self.machine.flushed(id);
    }
}

impl Work for Uplinking {
    fn ready(&mut self, now: Time, _: &Registry, token: Token, ready: &Ready) -> io::Result<()> {
        match token.0.checked_sub(FIRST_TOKEN + 1) {
            // If the device was deleted, reading fails.
            None => self.tun_is_readable |= ready.is_readable() || ready.is_error(),
            Some(number) => {
                let id = ConnectionId(number as u64);
                if let Some(server) = self.conns.get_mut(&id) {
                    server.conn.note(ready);
                    self.serve(now, id);
                }
            }
        }
        Ok(())
    }

    fn turn(&mut self, now: Time, registry: &Registry) -> io::Result<(bool, Option<Time>)> {
        let more = self.take(now)?;
        let rate = self.machine.config().sender.rate;
        if let Some(said) = self.waste.look(now, rate, || self.machine.stats()) {
            log::line(said);
        }
        if let Some(said) = self.machine.queue_news(now) {
            log::line(said);
        }
        let mut sends = 0;
        while sends < MAX_SENDS {
            match self.machine.poll(now, &mut self.out) {
                Step::Do(Uplinked::Send(length)) => {
                    self.raw.send(&self.out[..length]);
                    sends += 1;
                }
                Step::Do(Uplinked::Connect(id, route)) => self.connect(now, registry, id, route),
                Step::Do(Uplinked::Ready(id)) => self.serve(now, id),
                Step::Do(Uplinked::Closed(id)) => match self.conns.get_mut(&id) {
                    Some(server) => {
                        server.is_closing = true;
                        server.conn.end();
                        self.serve(now, id);
                    }
                    None => self.machine.flushed(id),
                },
                Step::Do(Uplinked::Reset(id)) => self.forget(id, true),
                Step::Wait(until) => return Ok((more, until)),
            }
        }
        Ok((true, None))
    }

    fn drain(&mut self, _: Time, _: &Registry) -> io::Result<bool> {
        Ok(self.machine.drain() && self.conns.is_empty())
    }

    /// Notifies clients that only receive, which would otherwise wait for ever.
    fn end(&mut self, now: Time) -> io::Result<()> {
        self.machine.abort_all(now);
        while let Step::Do(what) = self.machine.poll(now, &mut self.out) {
            if let Uplinked::Send(length) = what {
                self.raw.send(&self.out[..length]);
            }
        }
        for (_, server) in std::mem::take(&mut self.conns) {
            server.conn.reset();
        }
        Ok(())
    }

    fn refused_by_kernel(&self) -> u64 {
        self.raw.refused
    }

    fn name(&self) -> &'static str {
        "uplink"
    }

    fn read(&self, readings: &mut Readings) {
        let rate = self.machine.config().sender.rate;
        readings.add_uplink(rate, &self.machine.stats(), self.raw.refused, self.other_port);
        readings.add_overruns("uplink", self.tun.overruns().ok());
        readings.add_forbidden("uplink", self.access.refused());
    }
}
