//! Hosts as network namespaces, each with one device, and the links between them.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use bentpipe_io::tun::{self, TunConfig};
use bentpipe_io::{Made, Namespace, Session, TrainTun, ip};
use bentpipe_study::scenario::{NodeId, Scenario};
use nix::errno::Errno;
use nix::unistd::AccessFlags;

use super::{EmulateError, Unsupported};
use crate::boxes::{Boxes, Wanted};
use crate::covered::{can_resolve, hosts_with};
use crate::host::{routes, settle};
use crate::network::Network;
use crate::plan::{Addressing, HostId, PREFIX_V4, PREFIX_V6, Plan, with_boxes};
use crate::running::Emulator;

/// The device of each host.
pub(super) const DEVICE: &str = "bentpipe0";

/// A host of an emulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name in the scenario.
    pub name: String,
    /// Its network namespace, for `ip netns exec`.
    pub namespace: String,
    /// Its address.
    pub v4: Ipv4Addr,
    /// Its IPv6 address, if the MTU allows IPv6.
    pub v6: Option<Ipv6Addr>,
}

/// A scenario's hosts as namespaces, connected by its links. Dropping it removes everything.
#[derive(Debug)]
pub struct Lab {
    emulator: Emulator,
    hosts: Vec<Host>,
    boxes: Option<Boxes>,
    /// The nodes of the hosts.
    nodes: Vec<NodeId>,
    unnamed: Option<io::Error>,
    /// Last field, so that devices are dropped before their namespaces.
    _session: Session,
}

impl Lab {
    /// Builds the hosts and starts the links, whose time starts at the end of this call. `more` are additional nodes
    /// that become hosts; they forward packets for others. So do the nodes with boxes, in which no gateway runs yet.
    ///
    /// # Errors
    /// Fails if the scenario is unsupported, if the machine lacks a device, a program or a right, or if a system call fails.
    pub fn build(scenario: &Scenario, more: &[NodeId]) -> Result<Self, EmulateError> {
        let plan = Plan::new(scenario, more)?;
        let network = Network::new(scenario, &plan.hosts)?;
        possible()?;
        let mut session = Session::begin().map_err(EmulateError::system("the record of this run"))?;
        let addressing = Addressing::default();
        let run = match session.number() {
            0 => std::process::id().to_string(),
            number => format!("{}.{number}", std::process::id()),
        };
        let mut hosts = Vec::new();
        let mut devices = Vec::new();
        let (with_box, mut sites) = (with_boxes(scenario), Vec::new());
        let ids = || HostId::first(plan.hosts.len());
        for (id, &node) in ids().zip(&plan.hosts) {
            let name = scenario[node].to_owned();
            let namespace = format!("bentpipe-{run}-{}", plain(&name));
            if hosts.iter().any(|host: &Host| host.namespace == namespace) {
                return Err(Unsupported {
                    key: "links".to_owned(),
                    what: format!("the host `{name}` has the same name as another one in plain letters"),
                    expected: "names that differ in letters or digits",
                }
                .into());
            }
            let v6 = plan.has_v6().then(|| addressing.v6(id));
            let host = Host { name, namespace, v4: addressing.v4(id), v6 };
            let system = || EmulateError::system(format!("the host `{}`", host.name));
            let inside = named(&mut session, &host.namespace).map_err(system())?;
            if with_box.contains(&node) {
                let (plan, network) = (&plan, &network);
                let wanted = Wanted { scenario, plan, network, hosts: &plan.hosts, addressing, way_out: None };
                let (site, own) = wanted.make(id, inside).map_err(system())?;
                sites.push(site);
                devices.extend(own);
            } else {
                let forwards = ids().any(|from| ids().any(|to| to != id && network.next_host(from, to) == Some(id)));
                devices.push(make(&inside, &host, plan.mtu, forwards).map_err(system())?);
            }
            hosts.push(host);
        }
        let boxes = Boxes::new(sites, &mut session)?;
        let emulator = Emulator::new(network, addressing, devices).map_err(EmulateError::system("the emulator"))?;
        let unnamed = name(&session, &hosts).err();
        Ok(Lab { emulator, hosts, boxes, nodes: plan.hosts, unnamed, _session: session })
    }

    /// Starts the links again at time zero, without the packets on them: the gateways are ready, and what is measured
    /// begins now. What was watched is watched no longer.
    ///
    /// # Errors
    /// Fails if no descriptors are left, or if a device no longer exists.
    pub fn restart(&mut self, scenario: &Scenario) -> Result<(), EmulateError> {
        let network = Network::new(scenario, &self.nodes)?;
        self.emulator.restart(network).map_err(EmulateError::system("the emulator"))
    }

    /// The boxes, if the scenario has some.
    pub fn boxes(&self) -> Option<&Boxes> {
        self.boxes.as_ref()
    }

    /// Why the hosts' names do not resolve in the namespaces, if they do not.
    pub fn unnamed(&self) -> Option<&io::Error> {
        self.unnamed.as_ref()
    }

    /// The name by which programs in the namespaces reach a host, or its address if the name does not resolve.
    pub fn name_of(&self, host: &Host) -> String {
        let is_named = self.unnamed.is_none() && can_resolve(&host.name);
        if is_named { host.name.clone() } else { host.v4.to_string() }
    }

    /// The hosts, in the scenario's order.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Read access to the links.
    pub fn emulator(&self) -> &Emulator {
        &self.emulator
    }

    /// Mutable access to the links, to run them.
    pub fn emulator_mut(&mut self) -> &mut Emulator {
        &mut self.emulator
    }
}

/// Creates a namespace with this name.
fn named(session: &mut Session, name: &str) -> io::Result<Namespace> {
    session.note(Made::Namespace(name.to_owned()))?;
    ip(&["netns", "add", name])?;
    Namespace::named(name)
}

/// Creates loopback, device, addresses and routes of a host.
fn make(namespace: &Namespace, host: &Host, mtu: u16, forwards: bool) -> io::Result<TrainTun> {
    let config = TunConfig {
        name: DEVICE.to_owned(),
        v4: Some((host.v4, PREFIX_V4)),
        v6: host.v6.map(|v6| (v6, PREFIX_V6)),
        mtu,
    };
    namespace.inside(|| {
        settle(forwards)?;
        let device = TrainTun::create(&config)?;
        routes(DEVICE, config.v6.is_some())?;
        Ok(device)
    })
}

/// Makes the hosts' names resolve in their namespaces. Only to IPv4 addresses: programs try IPv6 first, which costs a round trip where
/// a server listens on IPv4 alone.
fn name(session: &Session, hosts: &[Host]) -> io::Result<()> {
    let names: Vec<_> = hosts.iter().map(|host| (host.name.clone(), host.v4.into())).collect();
    let missing = || io::Error::new(io::ErrorKind::NotFound, "there is no /etc/hosts");
    let text = hosts_with(&names)?.ok_or_else(missing)?;
    hosts.iter().try_for_each(|host| session.hosts(&host.namespace, &text))
}

/// The name with each character other than ASCII letters, digits, `-` and `_` replaced by `-`, for names in the system.
fn plain(name: &str) -> String {
    let sign = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    name.chars().map(sign).collect()
}

/// Fails if this user or machine cannot run an emulation.
pub(crate) fn possible() -> Result<(), EmulateError> {
    let lacking = |what: &str, help: &str| EmulateError::Lacking { what: what.to_owned(), help: help.to_owned() };
    if !nix::unistd::geteuid().is_root() {
        return Err(lacking("network namespaces and devices need root", "run it with sudo"));
    }
    needs_tun()?;
    needs_settings()?;
    // Both disappear at once.
    let config = TunConfig { name: DEVICE.to_owned(), v4: None, v6: None, mtu: 1500 };
    let made = Namespace::fresh().and_then(|fresh| fresh.inside(|| TrainTun::create(&config).map(drop)));
    made.map_err(EmulateError::of_root("a device in a network namespace"))?;
    needs_program("ip", "iproute2")
}

/// Fails if the device for creating TUN devices is missing.
pub(crate) fn needs_tun() -> Result<(), EmulateError> {
    tun::can_be_made().map_err(|(error, help)| EmulateError::Lacking {
        what: format!("/dev/net/tun: {error}"),
        help: help.to_owned(),
    })
}

/// Fails if the kernel settings of a new namespace cannot be written: containers have them read-only by default.
pub(crate) fn needs_settings() -> Result<(), EmulateError> {
    match nix::unistd::access("/proc/sys/net/ipv4/ip_forward", AccessFlags::W_OK) {
        Err(Errno::EROFS) => Err(EmulateError::Lacking {
            what: "/proc/sys: it cannot be written".to_owned(),
            help: "in a container: --security-opt unmask=/proc/sys (podman), --security-opt systempaths=unconfined (Docker)".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Fails if a program that the emulation calls is missing.
pub(crate) fn needs_program(name: &str, package: &str) -> Result<(), EmulateError> {
    let found = bentpipe_io::program(name).arg("-V").output();
    found.map(drop).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            EmulateError::Lacking { what: format!("the program `{name}`: {error}"), help: format!("install {package}") }
        }
        // It is there, but cannot be started: no descriptors or no memory are left.
        _ => EmulateError::system(format!("the program `{name}`"))(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ip` could not be started for lack of descriptors, and the help was to install it.
    #[test]
    fn only_a_program_that_is_not_there_is_to_be_installed() {
        assert!(matches!(needs_program("/no/such/program", "it"), Err(EmulateError::Lacking { .. })));
        let closed = needs_program("/etc/passwd", "it").expect_err("it is no program");
        assert!(matches!(closed, EmulateError::System { .. }) && !closed.to_string().contains("install"), "{closed}");
    }
}
