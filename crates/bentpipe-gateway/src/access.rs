//! Access control: the policy from the settings, and the addresses of this machine.

use std::io;
use std::net::{IpAddr, SocketAddr};

use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteType};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr as Netlink};
use nix::libc;

use crate::policy::{Policy, Refusal, Whose};

/// The policy of a box, and its access to the kernel's routing table.
#[derive(Debug, Default)]
pub struct Access {
    policy: Policy,
    table: Table,
    refused: u64,
}

impl Access {
    /// Access control by this policy.
    pub fn new(policy: Policy) -> Access {
        Access { policy, table: Table::default(), refused: 0 }
    }

    /// Changes the policy. Open connections stay open.
    pub(crate) fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// Connections and packets refused so far.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Checks a destination that a host requests, before the other box connects to it. Only the other box knows its own
    /// addresses.
    ///
    /// # Errors
    /// Returns the [`Refusal`] of the policy: for a denied, special or not allowed destination.
    pub fn near(&mut self, to: SocketAddr) -> Result<(), Refusal> {
        let judged = self.policy.destination(to, Whose::Others);
        self.counted(judged)
    }

    /// Checks whether this machine may connect to `to`.
    ///
    /// # Errors
    /// Returns the [`Refusal`] of the policy: for a denied, special or not allowed destination, or for one of this
    /// machine's own addresses.
    pub fn far(&mut self, to: SocketAddr) -> Result<(), Refusal> {
        let whose = self.whose(to.ip().to_canonical());
        let judged = self.policy.destination(to, whose);
        self.counted(judged)
    }

    /// Checks a client's address from which this machine is to connect. From one of its own addresses, servers would take
    /// the client for this machine.
    ///
    /// # Errors
    /// Returns [`Refusal::Own`] for one of this machine's own addresses.
    pub fn client(&mut self, from: IpAddr) -> Result<(), Refusal> {
        let judged = if self.whose(from.to_canonical()) == Whose::Own { Err(Refusal::Own) } else { Ok(()) };
        self.counted(judged)
    }

    fn counted(&mut self, judged: Result<(), Refusal>) -> Result<(), Refusal> {
        self.refused += u64::from(judged.is_err());
        judged
    }

    fn whose(&mut self, address: IpAddr) -> Whose {
        self.table.whose(address, 0)
    }
}

/// The kernel's routing table. Its socket stays open, because closing one waits for a machine-wide lock.
#[derive(Debug, Default)]
pub(crate) struct Table(Option<Socket>);

impl Table {
    /// Looks up whose address this is, for packets with this mark. Only the kernel knows all local addresses: whole
    /// prefixes (`ip route add local`), secondary addresses, and broadcast addresses.
    pub(crate) fn whose(&mut self, address: IpAddr, mark: u32) -> Whose {
        let asked = self.0.take().map_or_else(connected, Ok).and_then(|table| {
            let answer = ask(&table, address, mark)?;
            self.0 = Some(table);
            Ok(answer)
        });
        asked.unwrap_or(Whose::Unknown)
    }
}

fn connected() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&Netlink::new(0, 0))?;
    Ok(socket)
}

fn ask(table: &Socket, address: IpAddr, mark: u32) -> io::Result<Whose> {
    let (family, bits) = if address.is_ipv4() { (AddressFamily::Inet, 32) } else { (AddressFamily::Inet6, 128) };
    let mut route = RouteMessage::default();
    route.header.address_family = family;
    route.header.destination_prefix_length = bits;
    route.attributes.push(RouteAttribute::Destination(RouteAddress::from(address)));
    route.attributes.push(RouteAttribute::Mark(mark));
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(RouteNetlinkMessage::GetRoute(route)));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    table.send(&bytes, 0)?;
    // The kernel answers before `send` returns.
    let mut answer = Vec::with_capacity(8 << 10);
    table.recv(&mut answer, libc::MSG_DONTWAIT)?;
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer).map_err(io::Error::other)?;
    Ok(match answer.payload {
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route)) => match route.header.kind {
            RouteType::Unicast => Whose::Others,
            RouteType::Local => Whose::Own,
            RouteType::Broadcast | RouteType::Anycast | RouteType::Multicast => Whose::Many,
            _ => Whose::Unknown,
        },
        // There is no route; the connection attempt will give the reason.
        NetlinkPayload::Error(_) => Whose::Others,
        _ => Whose::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loopback exists on every Linux machine. The tests between network namespaces cover the rest.
    #[test]
    fn the_kernel_says_whose_an_address_is() {
        let mut access = Access::default();
        for _ in 0..3 {
            assert_eq!(access.whose([127, 0, 0, 1].into()), Whose::Own);
            assert_eq!(access.whose([127, 9, 9, 9].into()), Whose::Own);
            assert_eq!(access.whose([127, 255, 255, 255].into()), Whose::Many);
            assert_eq!(access.whose([255, 255, 255, 255].into()), Whose::Many);
        }
        assert!(access.far(([127, 0, 0, 1], 22).into()).is_err());
        assert_eq!(access.client([127, 0, 0, 1].into()), Err(Refusal::Own));
        assert_eq!(access.refused(), 2);
    }
}
