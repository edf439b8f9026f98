//! The boxes of `[[gateways]]`: hosts that forward, with a device for each neighbour, so that a gateway can tell the
//! satellite from its own hosts. The caller runs the gateways.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;

use bentpipe_engine::network::LinkId;
use bentpipe_io::tun::TunConfig;
use bentpipe_io::{Namespace, Session, TrainTun, child, ip, prefer};
use bentpipe_study::scenario::{NodeId, Scenario};

use super::EmulateError;
use crate::host::{settle, tune};
use crate::network::{Network, Port, PortId};
use crate::plan::{Addressing, HostId, Plan};

/// Routes through the emulation's devices. A gateway's own routes have lower metrics: with the gateway they disappear,
/// and packets take these.
const METRIC: &str = "2000";
const GATEWAYS: &str = "1000";

/// How many connections may wait at a gateway's listeners, in the namespaces of boxes.
const BACKLOG: &str = "65536";

/// The boxes of an emulation.
#[derive(Clone, Debug)]
pub struct Boxes {
    /// Each box, in the order of the hosts.
    pub sites: Vec<Site>,
    /// A folder for their gateways' files, which only this user may enter. It disappears with the emulation.
    pub folder: PathBuf,
}

impl Boxes {
    /// Creates the folder for the boxes' gateways, if there are boxes.
    pub(crate) fn new(sites: Vec<Site>, session: &mut Session) -> Result<Option<Self>, EmulateError> {
        if sites.is_empty() {
            return Ok(None);
        }
        let folder = session.private_folder().map_err(EmulateError::system("the folder of the gateways"))?;
        Ok(Some(Boxes { sites, folder }))
    }

    /// The box at a node.
    pub fn at(&self, node: NodeId) -> Option<&Site> {
        self.sites.iter().find(|site| site.node == node)
    }
}

/// A host in which a gateway can run.
#[derive(Clone, Debug)]
pub struct Site {
    /// Its node.
    pub node: NodeId,
    /// Its address.
    pub v4: Ipv4Addr,
    /// Its IPv6 address, if the MTU allows IPv6.
    pub v6: Option<Ipv6Addr>,
    /// Its devices.
    pub sides: Vec<Side>,
    namespace: Arc<Namespace>,
}

/// A device of a box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// Its name.
    pub device: String,
    /// The node at the other end of the links.
    pub neighbour: NodeId,
    /// The hosts reached through it.
    pub hosts: Vec<IpAddr>,
    /// True if everything that is no host is reached through it, too.
    pub leads_out: bool,
}

impl Site {
    /// The side towards a neighbour.
    pub fn towards(&self, neighbour: NodeId) -> Option<&Side> {
        self.sides.iter().find(|side| side.neighbour == neighbour)
    }

    /// Starts a program in the box. The signals of the terminal do not reach it. It is preferred to other programs, if the system allows
    /// it: a box has a processor of its own, and programs on this machine should not delay what passes through it.
    ///
    /// # Errors
    /// Fails if the program cannot be started, or if the namespace cannot be entered.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        std::os::unix::process::CommandExt::process_group(command, 0);
        self.namespace.inside(|| {
            prefer();
            child::spawn(command)
        })
    }

    /// Sends what leaves by a side through a device of a gateway, as long as that exists; but not what goes to `peer`,
    /// the other box, since the tunnel's own packets are among that.
    ///
    /// # Errors
    /// Fails with the message of `ip`, for example if there is no such device.
    pub fn route(&self, side: &Side, device: &str, peer: &Site) -> io::Result<()> {
        let is_peer = |host: &IpAddr| *host == IpAddr::V4(peer.v4) || Some(*host) == peer.v6.map(IpAddr::V6);
        self.namespace.inside(|| {
            let mut hosts = side.hosts.iter().filter(|host| !is_peer(host));
            hosts.try_for_each(|&host| self.lead(Some(host), device, GATEWAYS))?;
            if side.leads_out { self.lead_out(device, GATEWAYS) } else { Ok(()) }
        })
    }

    /// Adds a route to a host, or to everything else, in the namespace of the calling thread.
    fn lead(&self, to: Option<IpAddr>, device: &str, metric: &str) -> io::Result<()> {
        let to_text = to.map_or("default".to_owned(), |host| host.to_string());
        let route = ["route", "add", &to_text, "dev", device, "metric", metric];
        match to {
            // It is the device's only address. The kernel would refuse it here for an instant after it was added.
            Some(IpAddr::V6(_)) => ip(&[&["-6"], &route[..]].concat()),
            _ => ip(&[&["-4"], &route[..], &["src", &self.v4.to_string()]].concat()),
        }
    }

    fn lead_out(&self, device: &str, metric: &str) -> io::Result<()> {
        self.lead(None, device, metric)?;
        self.v6.map_or(Ok(()), |_| ip(&["-6", "route", "add", "default", "dev", device, "metric", metric]))
    }
}

/// The MTU of a box's device towards a neighbour: at least that of the hosts, and that of a tunnel over the link.
fn mtu(scenario: &Scenario, plan: &Plan, node: NodeId, neighbour: NodeId) -> u16 {
    let is_between = |link: &LinkId| (scenario[*link].from, scenario[*link].to) == (node, neighbour);
    let pairs = scenario.gateways.pairs.iter().filter(|pair| pair.over.iter().any(is_between));
    let uplinks = scenario.gateways.uplinks.iter().filter(|uplink| uplink.over.iter().any(is_between));
    let tunnels = pairs.map(|pair| pair.satellite[0].path_mtu).chain(uplinks.map(|uplink| uplink.sender.mtu));
    tunnels.fold(plan.mtu, u16::max)
}

/// What a box is made for.
pub(crate) struct Wanted<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) plan: &'a Plan,
    pub(crate) network: &'a Network,
    /// The nodes of the hosts.
    pub(crate) hosts: &'a [NodeId],
    pub(crate) addressing: Addressing,
    /// The host through which everything else is reached, if any.
    pub(crate) way_out: Option<HostId>,
}

impl Wanted<'_> {
    /// Creates the devices, addresses and routes of the box `id` in its namespace.
    pub(crate) fn make(&self, id: HostId, namespace: Namespace) -> io::Result<(Site, Vec<TrainTun>)> {
        let (v4, node) = (self.addressing.v4(id), self.hosts[id.index()]);
        let v6 = self.plan.has_v6().then(|| self.addressing.v6(id));
        let ports = self.network.ports().iter().enumerate().filter(|(_, port)| port.host == id);
        let mut lans = 0..;
        let side = |(n, port): (usize, &Port)| {
            let neighbour = port.neighbour.unwrap_or(node);
            let device = match is_satellite(self.scenario, node, neighbour) {
                true => "sat0".to_owned(),
                false => format!("lan{}", lans.next().unwrap_or(0)),
            };
            let is_here = |to: &HostId| self.network.port(id, *to) == Some(PortId::from(n));
            let leads_out = self.way_out.is_some_and(|out| is_here(&out));
            let hosts = HostId::first(self.hosts.len()).filter(is_here).flat_map(|to| {
                let v6 = v6.map(|_| self.addressing.v6(to).into());
                std::iter::once(self.addressing.v4(to).into()).chain(v6)
            });
            Side { device, neighbour, hosts: hosts.collect(), leads_out }
        };
        let sides = ports.map(side).collect();
        let site = Site { node, v4, v6, sides, namespace: Arc::new(namespace) };
        let devices = site.namespace.inside(|| {
            settle(true)?;
            // As `bentpipe gateway prepare` does. Without it, a gateway warns.
            let _ = std::fs::write("/proc/sys/net/core/somaxconn", BACKLOG);
            site.sides.iter().map(|side| self.device(&site, side)).collect()
        })?;
        Ok((site, devices))
    }

    /// The device of a side, in the namespace of the calling thread.
    fn device(&self, site: &Site, side: &Side) -> io::Result<TrainTun> {
        let device = TrainTun::create(&TunConfig {
            name: side.device.clone(),
            v4: Some((site.v4, 32)),
            v6: site.v6.map(|v6| (v6, 128)),
            mtu: mtu(self.scenario, self.plan, site.node, side.neighbour),
        })?;
        tune(&side.device)?;
        side.hosts.iter().try_for_each(|&host| site.lead(Some(host), &side.device, METRIC))?;
        if side.leads_out {
            site.lead_out(&side.device, METRIC)?;
        }
        Ok(device)
    }
}

/// True if the link of the gateway at a node leads to this neighbour.
fn is_satellite(scenario: &Scenario, node: NodeId, neighbour: NodeId) -> bool {
    let pairs = scenario.gateways.pairs.iter().filter(|pair| pair.nodes.contains(&node)).map(|pair| pair.over);
    let uplinks = scenario.gateways.uplinks.iter().filter(|uplink| uplink.at == node).map(|uplink| uplink.over);
    pairs.chain(uplinks).flatten().any(|link| (scenario[link].from, scenario[link].to) == (node, neighbour))
}
