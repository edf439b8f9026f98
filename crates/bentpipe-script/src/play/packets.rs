//! Packets that a script sends, and packets that it expects.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bentpipe_engine::wire::ip::{Addresses, Ports};

use super::flow::Flow;
use super::{FIRST_PORT, PORT, Player, START, Stop, fails, matching, seconds, sent_by_peer};
use crate::host::{IpVersion, Profile};
use crate::lang::ast::{Body, Icmp, Packet, Tcp, TcpOption};
use crate::wire::{Seen, flag};

impl Player {
    pub(super) fn collect(&mut self) -> Result<(), Stop> {
        if let Some(fault) = self.host.fault() {
            return fails("a sound connection", fault);
        }
        while let Some((at, packet)) = self.host.sent() {
            let Some(seen) = Seen::parse(&packet) else { return fails("TCP", "a packet that cannot be read") };
            let ports = (seen.ports.source, seen.ports.destination);
            let index = match self.flows.iter().rposition(|flow| (flow.local, flow.remote) == ports) {
                Some(index) => index,
                None => {
                    self.flows.push(self.flow(ports.0, ports.1, None));
                    self.current = Some(self.flows.len() - 1);
                    self.flows.len() - 1
                }
            };
            let line = format!("{} > {}", seconds(self.micros(at)), self.flows[index].show(&seen));
            self.log.push(line);
            self.flows[index].note_sent(&seen);
            let micros = self.micros(at);
            self.flows[index].queue.push_back((micros, seen));
        }
        Ok(())
    }

    pub(super) fn nothing_is_left(&self) -> Result<(), Stop> {
        for flow in &self.flows {
            if let Some((at, seen)) = flow.queue.front() {
                return fails("nothing is sent", format!("at {}: {}", seconds(*at), flow.show(seen)));
            }
        }
        Ok(())
    }

    pub(super) fn addresses(&self) -> (IpAddr, IpAddr) {
        match self.version {
            // packetdrill's own addresses, or the documentation blocks.
            IpVersion::V4 | IpVersion::V4Mapped => {
                (Ipv4Addr::new(192, 168, 0, 1).into(), Ipv4Addr::new(192, 0, 2, 1).into())
            }
            IpVersion::V6 => (
                Ipv6Addr::new(0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1).into(),
                Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
            ),
        }
    }

    pub(super) fn flow(&self, local: u16, remote: u16, script_ports: Option<(u16, u16)>) -> Flow {
        let mut flow = Flow::new(local, remote, script_ports);
        if self.strict {
            // Timestamps are milliseconds since the start of the script.
            flow.first_stamp = Some((0, (START / 1_000_000) as u32));
        }
        flow
    }

    /// The flow of a packet from the peer. A SYN to a listener starts a new flow if the current one is over.
    pub(super) fn flow_for(&mut self, packet: &Packet, tcp: &Tcp) -> usize {
        if let Some(ports) = packet.ports {
            let found = self.flows.iter().rposition(|flow| flow.script_ports == Some(ports));
            if let Some(index) = found {
                return index;
            }
        } else if let Some(index) = self.current {
            let flow = &self.flows[index];
            let (here, there) = self.addresses();
            let ends = (SocketAddr::new(here, flow.local), SocketAddr::new(there, flow.remote));
            let is_opening = tcp.flags & (flag::SYN | flag::ACK) == flag::SYN && self.listening.is_some();
            if !is_opening || flow.is_closed_port || self.host.has_connection(ends.0, ends.1) {
                return index;
            }
        }
        let local = self.listening.or(self.bound).unwrap_or(PORT);
        let mut flow = self.flow(local, self.next_port, packet.ports);
        flow.is_closed_port = self.listening.is_none();
        self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_PORT);
        self.flows.push(flow);
        self.current = Some(self.flows.len() - 1);
        self.flows.len() - 1
    }

    pub(super) fn inject(&mut self, packet: &Packet) -> Result<(), Stop> {
        if self.strict {
            self.nothing_is_left()?;
        }
        match &packet.body {
            Body::Tcp(tcp) => {
                let index = self.flow_for(packet, tcp);
                let seen = self.incoming(index, packet, tcp)?;
                self.log.push(format!("{} < {}", seconds(self.now), self.flows[index].show_incoming(&seen)));
                let Some(bytes) = seen.emit() else {
                    return Err(Stop::Needs("a packet longer than IP allows".into()));
                };
                self.host.receive(&bytes);
            }
            Body::Icmp(icmp) => self.inject_icmp(icmp),
        }
        self.settle()
    }

    /// A packet of the script, with the numbers of this run.
    pub(super) fn incoming(&mut self, index: usize, packet: &Packet, tcp: &Tcp) -> Result<Seen, Stop> {
        let (here, there) = self.addresses();
        let flow = &mut self.flows[index];
        let seq = tcp.seq.unwrap_or(0);
        if tcp.flags & flag::SYN != 0 && flow.peer_isn.is_none() {
            flow.peer_isn = Some(seq);
        }
        let isn = flow.peer_isn.unwrap_or(0);
        // A SYN's data follows it.
        let first = seq.wrapping_add(u32::from(tcp.flags & flag::SYN != 0));
        let start = u64::from(first.wrapping_sub(isn).wrapping_sub(1));
        let options = tcp.options.as_deref().unwrap_or_default();
        let options: Vec<TcpOption> = options.iter().map(|option| flow.option_in(option)).collect();
        flow.note_received(tcp);
        let Some(addresses) = Addresses::new(there, here) else {
            return fails("addresses", "of two versions of IP");
        };
        Ok(Seen {
            addresses,
            ports: Ports { source: flow.remote, destination: flow.local },
            tos: packet.tos.unwrap_or(packet.ecn.unwrap_or(0)),
            ttl: packet.ttl.unwrap_or(255),
            flags: tcp.flags,
            seq,
            ack: tcp.ack.map_or(0, |ack| flow.ours(ack)),
            window: tcp.window.unwrap_or(0),
            urgent: tcp.urgent.unwrap_or(0),
            options,
            payload: (start..start + u64::from(tcp.len)).map(sent_by_peer).collect(),
            size: 0,
        })
    }

    pub(super) fn inject_icmp(&mut self, icmp: &Icmp) {
        let Some(index) = self.current else { return };
        let (here, there) = self.addresses();
        let flow = &self.flows[index];
        let quoted = flow.ours(icmp.quoted.unwrap_or(flow.last_quoted));
        let ends = (SocketAddr::new(here, flow.local), SocketAddr::new(there, flow.remote));
        let is_linux = self.host.settings.profile == Profile::Linux;
        let errno = icmp_error(icmp, self.version, is_linux).filter(|_| self.host.settings.icmp_may_reset);
        self.log.push(format!("{} < icmp {} {}", seconds(self.now), icmp.kind, icmp.code.as_deref().unwrap_or("")));
        self.host.unreachable(ends.0, ends.1, quoted, errno);
    }

    pub(super) fn expect(
        &mut self,
        packet: &Packet,
        from: i64,
        to: i64,
        tolerance: i64,
        is_any: bool,
    ) -> Result<(), Stop> {
        let Body::Tcp(tcp) = &packet.body else {
            return Err(Stop::Needs("ICMP messages from the host".into()));
        };
        let limit = to + tolerance;
        let wanted = || matching::show_expected(packet, tcp);
        loop {
            self.settle()?;
            if self.front(packet).is_some() {
                break;
            }
            match self.timer().filter(|at| self.micros(*at) <= limit) {
                Some(at) => self.step(at)?,
                None => {
                    // Later packets help to understand.
                    let later = self.timer().map(|at| self.micros(at)).filter(|at| *at < limit + 10_000_000);
                    let mut got = format!("nothing is sent until {}", seconds(limit));
                    if let Some(at) = later {
                        let _ = self.step(self.at(at));
                        if let Some((at, seen)) = self.front(packet) {
                            let flow = &self.flows[self.index_for(packet).unwrap_or(0)];
                            got += &format!("; at {}: {}", seconds(at), flow.show(&seen));
                        }
                    }
                    return fails(format!("at {}: {}", seconds(from), wanted()), got);
                }
            }
        }
        let index = self.index_for(packet).expect("a packet is there");
        let (at, seen) = self.flows[index].take(tcp, self.strict);
        self.now = self.now.max(at);
        let flow = &mut self.flows[index];
        if !self.strict && matching::is_bare_for_repeated_fin(tcp, &seen, flow) {
            self.notes.push("an ACK came without the repeated FIN that the script expects".into());
            return Ok(());
        }
        if let Some(what) = matching::difference(packet, tcp, &seen, flow, self.strict, &self.pace) {
            return fails(wanted(), format!("{} ({what} differs)", flow.show(&seen)));
        }
        flow.learn(tcp, &seen);
        if !is_any && (at < from - tolerance || at > limit) {
            let when = if from == to { seconds(from) } else { format!("{} to {}", seconds(from), seconds(to)) };
            return fails(format!("at {when}: {}", wanted()), format!("at {}: {}", seconds(at), flow.show(&seen)));
        }
        Ok(())
    }

    pub(super) fn index_for(&self, packet: &Packet) -> Option<usize> {
        match packet.ports {
            Some((source, destination)) => {
                let ports = Some((destination, source));
                self.flows.iter().rposition(|flow| flow.script_ports == ports).or(self.current)
            }
            None => self.current,
        }
    }

    pub(super) fn front(&self, packet: &Packet) -> Option<(i64, Seen)> {
        self.flows.get(self.index_for(packet)?)?.queue.front().cloned()
    }
}

/// The error of an opening connection after an ICMP message, if any.
fn icmp_error(icmp: &Icmp, version: IpVersion, is_linux: bool) -> Option<&'static str> {
    let code = icmp.code.as_deref().unwrap_or_default();
    if icmp.mtu.is_some() {
        return None;
    }
    match (icmp.kind.as_str(), code) {
        ("unreachable", "port_unreachable" | "protocol_unreachable") => Some("ECONNREFUSED"),
        ("unreachable", "packet_filtered" | "admin_prohibited" | "net_prohibited" | "host_prohibited") if !is_linux => {
            Some("ECONNREFUSED")
        }
        ("time_exceeded", "ttl_exceeded_in_transit" | "exceeded_hop_limit") if !is_linux => Some("EHOSTUNREACH"),
        ("parameter_problem", "unknown_next_header") if version == IpVersion::V6 => Some("ECONNREFUSED"),
        ("unreachable", _) if is_linux => Some("EHOSTUNREACH"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Settings;
    use crate::lang::ast::Action;
    use crate::lang::parse::parse;
    use crate::play::Pace;

    #[test]
    fn after_the_last_port_comes_the_first() {
        let pace = Pace { tolerance: 0, share: 0, tick: None };
        let mut player = Player::new(Settings::new(Profile::Linux), pace);
        player.next_port = u16::MAX;
        let script = parse("0 < 1 > 8080 S 0:0(0) win 1\n0 < 2 > 8080 S 0:0(0) win 1", &[]).expect("sound");
        for event in &script.events {
            let Action::Inbound(packet) = &event.action else { panic!("{event:?}") };
            let Body::Tcp(tcp) = &packet.body else { panic!("{packet:?}") };
            player.flow_for(packet, tcp);
        }
        assert_eq!(player.flows.iter().map(|flow| flow.remote).collect::<Vec<_>>(), [u16::MAX, FIRST_PORT]);
    }
}
