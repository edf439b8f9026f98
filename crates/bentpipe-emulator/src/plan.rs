//! Selects the nodes of a scenario that become hosts, and their addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bentpipe_study::scenario::{Carries, FlowKind, NodeId, Scenario};
use bentpipe_study::topology;

use super::Unsupported;

/// Part of 198.18.0.0/15, which RFC 2544 (appendix C.2.2) reserves for tests of network devices.
const FIRST_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);

/// A unique local prefix (RFC 4193) whose global identifier is the letters "bentp".
const FIRST_V6: Ipv6Addr = Ipv6Addr::new(0xfd62, 0x656e, 0x7470, 0, 0, 0, 0, 0);

/// Prefix lengths of the networks.
pub(crate) const PREFIX_V4: u8 = 24;
pub(crate) const PREFIX_V6: u8 = 64;

/// Minimum MTU of a link with IPv6 (RFC 8200 §5).
const MIN_V6: u16 = 1280;

/// Default MTU, if no connection sets its segment size.
const ETHERNET: u16 = 1500;

/// Headers of IPv4 and TCP without options.
const HEADERS: u32 = 40;

bentpipe_engine::ids! {
    /// A host of an emulation, by its index in the list of hosts ([`Plan::hosts`]).
    HostId,
}

/// The hosts of [`Behind`](crate::Behind): this machine before the link, and the namespace behind it.
pub(crate) const OUTER: HostId = HostId(0);
pub(crate) const INNER: HostId = HostId(1);

/// The networks of the hosts: the n-th /24 and the n-th /64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addressing {
    /// The number of the networks, n.
    pub network: u8,
}

impl Addressing {
    /// The address of a host.
    pub fn v4(self, host: HostId) -> Ipv4Addr {
        let [a, b, ..] = FIRST_V4.octets();
        Ipv4Addr::new(a, b, self.network, host.0 as u8 + 1)
    }

    /// The IPv6 address of a host.
    pub fn v6(self, host: HostId) -> Ipv6Addr {
        let mut segments = FIRST_V6.segments();
        (segments[3], segments[7]) = (self.network.into(), host.0 as u16 + 1);
        segments.into()
    }

    /// The host with an address.
    pub(crate) fn host(self, address: IpAddr) -> Option<HostId> {
        let last = match address {
            IpAddr::V4(v4) => u32::from(v4.octets()[3]),
            IpAddr::V6(v6) => u32::from(v6.segments()[7]),
        };
        let host = HostId(last.checked_sub(1).filter(|host| *host < u32::from(u8::MAX) - 1)?);
        let is_ours = match address {
            IpAddr::V4(v4) => self.v4(host) == v4,
            IpAddr::V6(v6) => self.v6(host) == v6,
        };
        is_ours.then_some(host)
    }
}

/// The hosts of an emulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Nodes of the scenario that are hosts, in its order.
    pub hosts: Vec<NodeId>,
    /// MTU in bytes.
    pub mtu: u16,
}

impl Plan {
    /// Selects as hosts the ends of flows and of their legs, the nodes with a single neighbour, those with boxes, and
    /// `more`. The MTU fits the longest segments of any connection.
    ///
    /// # Errors
    /// Fails if the scenario is unsupported in real time.
    pub fn new(scenario: &Scenario, more: &[NodeId]) -> Result<Self, Unsupported> {
        one_box_per_node(scenario)?;
        let boxes = with_boxes(scenario);
        let is_end =
            |node| scenario.flows.iter().flat_map(topology::legs).any(|leg| node == leg.from || node == leg.to);
        let is_asked_for = |node: &NodeId| boxes.contains(node) || more.contains(node);
        let is_host = |node: &NodeId| is_end(*node) || neighbours(scenario, *node) == 1 || is_asked_for(node);
        let hosts: Vec<_> = NodeId::first(scenario.nodes.len()).filter(is_host).collect();
        if hosts.len() > 250 {
            return Err(Unsupported {
                key: "links".to_owned(),
                what: format!("{} hosts", hosts.len()),
                expected: "at most 250 hosts",
            });
        }
        Ok(Plan { hosts, mtu: mtu(scenario) })
    }

    /// True if the MTU allows IPv6.
    pub(crate) fn has_v6(&self) -> bool {
        self.mtu >= MIN_V6
    }
}

/// The nodes of boxes.
pub(crate) fn with_boxes(scenario: &Scenario) -> Vec<NodeId> {
    let pairs = scenario.gateways.pairs.iter().flat_map(|pair| pair.nodes);
    pairs.chain(scenario.gateways.uplinks.iter().map(|uplink| uplink.at)).collect()
}

/// Refuses two boxes at one node.
fn one_box_per_node(scenario: &Scenario) -> Result<(), Unsupported> {
    let pairs = scenario.gateways.pairs.iter().flat_map(|pair| pair.nodes.map(|node| (&pair.name, node)));
    let uplinks = scenario.gateways.uplinks.iter().map(|uplink| (&uplink.name, uplink.at));
    let all: Vec<_> = pairs.chain(uplinks).collect();
    for (n, (name, node)) in all.iter().enumerate() {
        if let Some((other, _)) = all[..n].iter().find(|(_, taken)| taken == node) {
            return Err(Unsupported {
                key: format!("gateways.{name}"),
                what: format!("`{other}` has a box at the node `{}`, too", &scenario[*node]),
                expected: "one box per node in real time",
            });
        }
    }
    Ok(())
}

/// Refuses a program on a node that has a box.
pub(crate) fn has_no_box(scenario: &Scenario, node: NodeId) -> Result<(), Unsupported> {
    let pair = scenario.gateways.pairs.iter().find(|pair| pair.nodes.contains(&node)).map(|pair| &pair.name);
    let uplink = scenario.gateways.uplinks.iter().find(|uplink| uplink.at == node).map(|uplink| &uplink.name);
    pair.or(uplink).map_or(Ok(()), |name| {
        Err(Unsupported {
            key: format!("gateways.{name}"),
            what: format!("there is a box at `{}`, and programs run on hosts behind it", &scenario[node]),
            expected: "other nodes for --inside and --outside",
        })
    })
}

fn neighbours(scenario: &Scenario, node: NodeId) -> usize {
    let mut others: Vec<_> = scenario
        .links
        .iter()
        .filter_map(|link| match (link.from == node, link.to == node) {
            (true, _) => Some(link.to),
            (_, true) => Some(link.from),
            _ => None,
        })
        .collect();
    others.sort_unstable();
    others.dedup();
    others.len()
}

fn mtu(scenario: &Scenario) -> u16 {
    let mss = scenario.flows.iter().filter_map(|flow| match &flow.kind {
        FlowKind::Tcp(tcp) => Some(u32::from(tcp.sender.mss).max(u32::from(tcp.receiver.mss))),
        FlowKind::Stp(_) | FlowKind::Quic(_) | FlowKind::Udp(_) => None,
    });
    let mtu = mss.max().map_or(ETHERNET, |mss| (mss + HEADERS).min(u32::from(u16::MAX)) as u16);
    // The segments of a flow over `link` are as long as its device accepts. Real hosts learn that from the gateway.
    let pairs = scenario.gateways.pairs.iter().filter(|pair| matches!(pair.carries, Carries::Packets));
    let learnt = pairs.filter(|pair| pair.satellite[0].max_packet() == mtu).map(|pair| pair.satellite[0].path_mtu);
    learnt.max().unwrap_or(mtu)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped(name: &str) -> Scenario {
        let path = format!("{}/../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        Scenario::load(path, &[]).unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[test]
    fn routers_are_no_hosts_unless_asked_for() {
        let geo = shipped("geo");
        let names = |plan: &Plan| plan.hosts.iter().map(|&node| geo[node].to_owned()).collect::<Vec<_>>();
        let plan = Plan::new(&geo, &[]).expect("it has links only");
        assert_eq!((names(&plan), plan.mtu, plan.has_v6()), (vec!["server".into(), "client".into()], 1500, true));
        let more = geo.node("terminal").expect("a node");
        let plan = Plan::new(&geo, &[more]).expect("it has links only");
        assert_eq!(names(&plan), ["server", "terminal", "client"]);
    }

    #[test]
    fn where_a_connection_is_split_there_is_a_host() {
        let minei = shipped("minei-split");
        let plan = Plan::new(&minei, &[]).expect("it has links only");
        assert_eq!(plan.hosts.len(), 3);
        // Segments of 472 B: a link of 512 B has no IPv6.
        assert_eq!((plan.mtu, plan.has_v6()), (512, false));
    }

    fn parsed(text: &str) -> Scenario {
        Scenario::parse(&format!("name = \"t\"\n{text}"), "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn duplex(one: &str, other: &str) -> String {
        format!(
            "[[links]]\nname = \"{one}{other}\"\nbetween = [\"{one}\", \"{other}\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n"
        )
    }

    /// Without flows, the nodes with a single neighbour are the hosts, though two links join each of them with it.
    #[test]
    fn leaves_are_hosts() {
        let line = parsed(&[duplex("A", "R"), duplex("R", "S"), duplex("S", "B")].concat());
        let plan = Plan::new(&line, &[]).expect("links only");
        assert_eq!(plan.hosts.iter().map(|&node| &line[node]).collect::<Vec<_>>(), ["A", "B"]);
        let star = |leaves: usize| {
            let links: String = (0..leaves).map(|n| duplex("hub", &format!("n{n}"))).collect();
            Plan::new(&parsed(&links), &[]).map(|plan| plan.hosts.len()).map_err(|error| error.what)
        };
        assert_eq!([star(250), star(251)], [Ok(250), Err("251 hosts".to_owned())]);
    }

    /// The boxes are hosts, though the flow ends at neither with `link`, and hosts learn from its device how long
    /// segments may be.
    #[test]
    fn boxes_are_hosts() {
        for name in ["geo-gateway", "geo-gateway-link"] {
            let scenario = shipped(name);
            let plan = Plan::new(&scenario, &[]).expect("one box per node");
            let names: Vec<_> = plan.hosts.iter().map(|&node| &scenario[node]).collect();
            assert_eq!((names, plan.mtu), (vec!["server", "gateway", "terminal", "client"], 1500), "{name}");
        }
        let gateway = |name: &str, near: &str, far: &str| {
            format!("[[gateways]]\nname = \"{name}\"\nshape = \"link\"\nnear = \"{near}\"\nfar = \"{far}\"\n")
        };
        let line = [duplex("A", "R"), duplex("R", "S"), duplex("S", "B"), gateway("one", "A", "R")].concat();
        let two = |near: &str, far: &str| Plan::new(&parsed(&(line.clone() + &gateway("two", near, far))), &[]);
        assert!(two("S", "B").is_ok());
        let error = two("R", "S").expect_err("two boxes at R");
        assert_eq!((&*error.key, &*error.what), ("gateways.two", "`one` has a box at the node `R`, too"));
    }

    /// Either end's segments must fit. With 1240 B and 40 B of headers they are as long as IPv6 needs.
    #[test]
    fn the_mtu_fits_both_ends() {
        let plan = |tcp: &str| {
            let flow = format!("[[flows]]\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 kB\"\n{tcp}\n");
            let plan = Plan::new(&parsed(&(duplex("A", "B") + &flow)), &[]).expect("links only");
            (plan.mtu, plan.has_v6())
        };
        assert_eq!(plan("tcp.sender.mss = \"1000 B\"\ntcp.receiver.mss = \"1240 B\""), (1280, true));
        assert_eq!(plan("tcp.sender.mss = \"1239 B\"\ntcp.receiver.mss = \"1000 B\""), (1279, false));
        assert_eq!(plan("type = \"quic\""), (ETHERNET, true));
    }

    #[test]
    fn addresses_lead_back_to_hosts() {
        let addressing = Addressing { network: 7 };
        for host in [0, 1, 249].map(HostId) {
            assert_eq!(addressing.host(addressing.v4(host).into()), Some(host));
            assert_eq!(addressing.host(addressing.v6(host).into()), Some(host));
        }
        assert_eq!(addressing.v4(HostId(1)), Ipv4Addr::new(198, 18, 7, 2));
        assert_eq!(addressing.v6(HostId(1)).to_string(), "fd62:656e:7470:7::2");
        for other in ["198.18.6.2", "198.18.7.0", "198.18.7.255", "fd62:656e:7470:8::2", "ff02::2"] {
            assert_eq!(addressing.host(other.parse().expect("an address")), None, "{other}");
        }
    }
}
