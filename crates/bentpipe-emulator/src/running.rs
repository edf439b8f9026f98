//! The loop: devices of hosts → links → devices of hosts, by the clock.
//!
//! Each wake-up runs all due events, reads what the hosts send, and delivers what has passed the links. A late wake-up
//! delays the events that were due, but nothing after them: links compute with the times at which packets should have
//! left.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::time::Duration as StdDuration;

use bentpipe_engine::link::LinkCounters;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::slacp::Stats;
use bentpipe_engine::units::{Duration, Time};
use bentpipe_io::{Buffers, Clock, Lateness, TrainTun, Waiter, Wakeful};
use bentpipe_study::scenario::LinkSpec;
use nix::errno::Errno;

use crate::network::{Exit, Network, PortId};
use crate::plan::{Addressing, HostId};
use crate::tap::Tap;

/// Maximum number of trains read from a device before the links' turn.
const BATCH: usize = 64;

/// If a turn delivers several packets, at least one for each such time since the last turn, the links are so fast that
/// polling too often would split trains. The next turn then comes after a pause, like interrupt moderation in network
/// cards. At 1 Gbit/s packets of full length are 12 us apart.
const DENSE: Duration = Duration::from_micros(5);
const SEVERAL: u64 = 4;
/// Length of the pause.
const REST: Duration = Duration::from_micros(40);

/// Counters of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets sent by hosts to others.
    pub sent: u64,
    /// Packets delivered to hosts.
    pub arrived: u64,
    /// Bytes of these packets.
    pub arrived_bytes: u64,
    /// Packets without a destination here: multicast, unknown addresses, or hosts to which no path leads.
    pub foreign: u64,
    /// Number of reads from hosts' devices, of trains and single packets.
    pub reads: u64,
    /// Number of writes to these devices.
    pub writes: u64,
}

/// What devices have counted since they exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    writes: u64,
    refused: u64,
    overruns: u64,
}

impl Counts {
    fn of(devices: &[TrainTun]) -> io::Result<Self> {
        devices.iter().try_fold(Counts::default(), |sum, device| {
            Ok(Counts {
                writes: sum.writes + device.written(),
                refused: sum.refused + device.refused(),
                overruns: sum.overruns + device.overruns()?,
            })
        })
    }
}

/// Links in real time between devices.
#[derive(Debug)]
pub struct Emulator {
    clock: Clock,
    waiter: Waiter,
    wakeful: Wakeful,
    network: Network,
    addressing: Addressing,
    devices: Vec<TrainTun>,
    /// The hosts of the devices.
    hosts: Vec<HostId>,
    /// Destination of packets for unknown addresses, by the device from which they come.
    default: Vec<Option<HostId>>,
    buffers: Buffers,
    lateness: Lateness,
    traffic: Traffic,
    tap: Option<Tap>,
    ready: Vec<u64>,
    /// The devices' counters when the links began. Changing the length of a queue loses what the kernel announces meanwhile
    /// (IPv6), and after a restart the devices are no new ones.
    before: Counts,
    /// True if a device has more packets than one turn reads.
    unread: bool,
    /// When the last turn found its packets.
    found_at: Time,
    /// True if the last turn delivered packets so fast that the next one comes after a pause.
    is_dense: bool,
    turns: u64,
}

impl Emulator {
    /// Creates an emulator whose time starts now. `devices` are the hosts' devices, in the network's order: one for
    /// each host, and one for each neighbour of a box.
    ///
    /// # Errors
    /// Fails if epoll or its timer cannot be opened: no descriptors are left. Also fails if a device no longer exists.
    pub fn new(network: Network, addressing: Addressing, devices: Vec<TrainTun>) -> io::Result<Self> {
        let clock = Clock::start();
        let waiter = Waiter::new(clock)?.punctual();
        for (mark, device) in devices.iter().enumerate() {
            waiter.watch(device, mark as u64)?;
        }
        let default = PortId::first(network.ports().len()).map(|port| network.only_neighbour(port)).collect();
        let before = Counts::of(&devices)?;
        let hosts = network.ports().iter().map(|port| port.host).collect();
        Ok(Emulator {
            clock,
            waiter,
            wakeful: Wakeful::default(),
            network,
            addressing,
            devices,
            hosts,
            default,
            buffers: Buffers::default(),
            lateness: Lateness::default(),
            traffic: Traffic::default(),
            tap: None,
            ready: Vec::new(),
            before,
            unread: false,
            found_at: Time::ZERO,
            is_dense: false,
            turns: 0,
        })
    }

    /// Starts again with these links, at time zero and without the packets of before.
    pub(crate) fn restart(&mut self, network: Network) -> io::Result<()> {
        let (devices, default) = (std::mem::take(&mut self.devices), std::mem::take(&mut self.default));
        *self = Emulator { default, ..Emulator::new(network, self.addressing, devices)? };
        Ok(())
    }

    /// Sends packets of other hosts for unknown addresses towards `host`.
    pub(crate) fn lead_out(&mut self, host: HostId) {
        for ((n, port), default) in self.network.ports().iter().enumerate().zip(&mut self.default) {
            if port.host != host && self.network.port(port.host, host) == Some(PortId::from(n)) {
                *default = self.network.next_host(port.host, host);
            }
        }
    }

    /// Captures all packets from now on.
    pub fn tap(&mut self, tap: Tap) {
        self.tap = Some(tap);
    }

    /// Makes [`Emulator::turn`] wake when `descriptor` is readable. `mark` identifies it to the caller.
    ///
    /// # Errors
    /// Fails if epoll cannot watch the descriptor, for example a regular file or one that is already watched.
    pub fn watch(&self, descriptor: impl AsFd, mark: u32) -> io::Result<()> {
        self.waiter.watch(descriptor, self.devices.len() as u64 + u64::from(mark))
    }

    /// The clock of the links.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The links.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Lateness of deliveries.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// Counters of the loop.
    pub fn traffic(&self) -> Traffic {
        let writes = self.devices.iter().map(TrainTun::written).sum::<u64>() - self.before.writes;
        Traffic { writes, ..self.traffic }
    }

    /// Number of calls of [`Emulator::turn`].
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Number of packets that hosts' stacks did not accept.
    pub fn refused(&self) -> u64 {
        self.devices.iter().map(TrainTun::refused).sum::<u64>() - self.before.refused
    }

    /// Number of trains or single packets that hosts sent and the kernel dropped because the device's queue was full.
    /// They never reached a link.
    ///
    /// # Errors
    /// Fails if a device no longer exists.
    pub fn overruns(&self) -> io::Result<u64> {
        Ok(Counts::of(&self.devices)?.overruns.saturating_sub(self.before.overruns))
    }

    /// Counters of the links, in the scenario's order.
    pub fn counters(&self) -> Vec<LinkCounters> {
        self.network.counters()
    }

    /// Counters of the ends of link layers, in the scenario's order.
    pub fn layer_stats(&self) -> Vec<[Stats; 2]> {
        self.network.layer_stats()
    }

    /// The capture, at the end.
    pub fn take_tap(&mut self) -> Option<Tap> {
        self.tap.take()
    }

    /// Sleeps until there is work, does it, and returns the marks of the caller's readable descriptors. Returns at
    /// `until` at the latest.
    ///
    /// # Errors
    /// Fails if a TUN device cannot be read or written (it was removed), or if epoll fails.
    pub fn turn(&mut self, until: Option<Time>) -> io::Result<Vec<u32>> {
        let Traffic { sent, arrived, .. } = self.traffic;
        let until = Time::earliest(until, self.wakeful.rest(self.clock.now()));
        let deadline = if self.unread { Some(Time::ZERO) } else { Time::earliest(self.network.next(), until) };
        if self.is_dense && self.may_rest(until) {
            std::thread::sleep(StdDuration::from_nanos(REST.as_nanos()));
        }
        let mut ready = std::mem::take(&mut self.ready);
        self.waiter.wait(deadline, &mut ready)?;
        let now = self.clock.now();
        if let Some(due) = self.network.next().filter(|due| *due <= now) {
            self.lateness.record(due, now);
        }
        self.advance(now);
        let devices = self.devices.len() as u64;
        self.unread = false;
        for port in ready.iter().filter(|mark| **mark < devices) {
            self.unread |= self.take_from(PortId(*port as u32))?;
        }
        let marks = ready.iter().filter_map(|mark| mark.checked_sub(devices)).map(|mark| mark as u32).collect();
        self.ready = ready;
        // This includes packets over links without delay, which have already passed.
        self.advance(self.clock.now());
        let delivered = self.traffic.arrived - arrived;
        let since = now.saturating_since(std::mem::replace(&mut self.found_at, now));
        self.is_dense = delivered >= SEVERAL && since <= DENSE.saturating_mul(delivered);
        if delivered > 0 || self.traffic.sent > sent {
            self.wakeful.stir(now);
        }
        self.turns += 1;
        for device in &mut self.devices {
            device.flush(&mut self.buffers).map_err(readable)?;
        }
        if let Some(tap) = &mut self.tap {
            tap.flush();
        }
        Ok(marks)
    }

    /// True if the loop may pause: an event of the links is due before the end of the pause, no packets are unread, and
    /// the caller's time comes later.
    fn may_rest(&self, until: Option<Time>) -> bool {
        let rested = self.clock.now() + REST;
        let is_soon = self.network.next().is_some_and(|next| next < rested);
        is_soon && !self.unread && until.is_none_or(|until| rested <= until)
    }

    /// Moves the packets of a host's device into the links. Returns true if there are more.
    fn take_from(&mut self, port: PortId) -> io::Result<bool> {
        let host = self.network.ports()[port.index()].host;
        for _ in 0..BATCH {
            let now = self.clock.now();
            self.advance(now);
            let Emulator { devices, network, buffers, traffic, tap, addressing, default, .. } = self;
            let more = devices[port.index()].read(buffers, |buffers, train| {
                traffic.reads += 1;
                // All packets of a train have the same destination.
                let to = train.destination().and_then(|address| match addressing.host(address) {
                    Some(known) if known.index() < network.hosts() => Some(known),
                    _ => default[port.index()].filter(|_| !is_local(address)),
                });
                // There is no path to itself.
                let to = to.filter(|to| network.next_host(host, *to).is_some());
                for packet in train.packets() {
                    let Some(to) = to else {
                        traffic.foreign += 1;
                        buffers.give(packet);
                        continue;
                    };
                    traffic.sent += 1;
                    if let Some(tap) = tap {
                        tap.write(host, now, &packet);
                    }
                    network.offer(now, host, to, packet).expect("there is a path");
                }
            });
            if !more.map_err(readable)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn advance(&mut self, now: Time) {
        let Emulator { devices, network, buffers, traffic, tap, hosts, .. } = self;
        network.advance(now, |_, exit| match exit {
            Exit::Lost(packet) => buffers.give(packet),
            Exit::Arrived(port, packet) => {
                traffic.arrived += 1;
                traffic.arrived_bytes += packet.len() as u64;
                if let Some(tap) = tap {
                    tap.write(hosts[port.index()], now, &packet);
                }
                devices[port.index()].put(packet);
            }
        });
    }

    /// Changes the settings of a link from now on. No packet is lost by it.
    pub fn retune(&mut self, link: LinkId, spec: &LinkSpec) {
        let now = self.clock.now();
        self.advance(now);
        self.network.retune(now, link, spec);
    }

    /// How long a link's line is busy with its queue.
    pub fn backlog(&self, link: LinkId) -> Option<Duration> {
        self.network.backlog(link, self.clock.now())
    }
}

/// A readable message for an error of a device.
fn readable(error: io::Error) -> io::Error {
    // The descriptor's device no longer exists. The system says "File descriptor in bad state".
    match error.raw_os_error() == Some(Errno::EBADFD as i32) {
        true => io::Error::new(io::ErrorKind::NotFound, "the device of a host was deleted, and the links end there"),
        false => io::Error::new(error.kind(), format!("the device of a host: {error}")),
    }
}

/// True if an address is valid only on its own link.
fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_multicast() || v4.is_broadcast() || v4.is_link_local() || v4.is_loopback(),
        IpAddr::V6(v6) => v6.is_multicast() || v6.is_unicast_link_local() || v6.is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_io::Packet;
    use bentpipe_study::scenario::{NodeId, Scenario};

    use super::*;

    /// A has two neighbours behind the router, so the way to unknown addresses must be said.
    #[test]
    fn unknown_addresses_are_led_out() {
        let link = |to: &str| {
            format!("[[links]]\nname = \"{to}\"\nbetween = [\"R\", \"{to}\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 s\"\n")
        };
        let text = format!("name = \"t\"\n{}{}{}", link("A"), link("B"), link("C"));
        let scenario = Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let hosts: Vec<_> = ["A", "B", "C"].into_iter().filter_map(|name| scenario.node(name)).collect();
        let network = Network::new(&scenario, &hosts).expect("links only");
        let mut emulator = Emulator::new(network, Addressing::default(), Vec::new()).expect("descriptors are left");
        assert_eq!(emulator.default, [None; 3]);
        emulator.lead_out(HostId(1));
        assert_eq!(emulator.default, [Some(HostId(1)), None, Some(HostId(1))]);
    }

    #[test]
    fn the_links_start_again_at_time_zero() {
        let link = "[[links]]\nname = \"l\"\nbetween = [\"A\", \"B\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 s\"\n";
        let scenario = Scenario::parse(&format!("name = \"t\"\n{link}"), "t.toml", &[]);
        let scenario = scenario.unwrap_or_else(|errors| panic!("{errors}"));
        let links = || Network::new(&scenario, &[NodeId(0), NodeId(1)]).expect("links only");
        let mut emulator = Emulator::new(links(), Addressing::default(), Vec::new()).expect("descriptors are left");
        std::thread::sleep(StdDuration::from_millis(2));
        let before = emulator.clock().now();
        emulator.network.offer(before, HostId(0), HostId(1), Packet::new(&[0; 100])).expect("a path");
        assert_eq!((emulator.counters()[0].offered, emulator.network.in_flight()), (1, 1));
        let begin = std::time::Instant::now();
        emulator.restart(links()).expect("descriptors are left");
        let now = emulator.clock().now();
        assert!(now <= Time::ZERO + Duration::from_nanos(begin.elapsed().as_nanos() as u64), "{now:?}");
        assert_eq!((emulator.counters()[0].offered, emulator.network.in_flight()), (0, 0));
    }
}
