//! Hosts as network namespaces, each with one device, and the links between them.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use bentpipe_io::tun::{self, TunConfig};
use bentpipe_io::{Made, Namespace, Session, TrainTun, ip};
use bentpipe_study::scenario::{NodeId, Scenario};
use nix::errno::Errno;
use nix::unistd::AccessFlags;

use super::{EmulateError, Unsupported};
use crate::covered::{can_resolve, hosts_with};
use crate::network::Network;
use crate::plan::{Addressing, HostId, PREFIX_V4, PREFIX_V6, Plan};
use crate::running::Emulator;

/// The device of each host.
pub(super) const DEVICE: &str = "bentpipe0";

/// Queue length of a device in trains: more than a second at 64 kB each and 1 Gbit/s.
const QUEUE: &str = "4096";

/// Maximum number of packets per train from the kernel.
const TRAIN: &str = "128";

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
    unnamed: Option<io::Error>,
    /// Last field, so that devices are dropped before their namespaces.
    _session: Session,
}

impl Lab {
    /// Builds the hosts and starts the links, whose time starts at the end of this call. `more` are additional nodes
    /// that become hosts; they forward packets for others.
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
            let forwards = ids().any(|from| ids().any(|to| to != id && network.next_host(from, to) == Some(id)));
            let device = make(&mut session, &host, plan.mtu, forwards)
                .map_err(EmulateError::system(format!("the host `{}`", host.name)))?;
            hosts.push(host);
            devices.push(device);
        }
        let emulator = Emulator::new(network, addressing, devices).map_err(EmulateError::system("the emulator"))?;
        let unnamed = name(&session, &hosts).err();
        Ok(Lab { emulator, hosts, unnamed, _session: session })
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

/// Creates a namespace with loopback, device, addresses and routes.
fn make(session: &mut Session, host: &Host, mtu: u16, forwards: bool) -> io::Result<TrainTun> {
    session.note(Made::Namespace(host.namespace.clone()))?;
    ip(&["netns", "add", &host.namespace])?;
    let namespace = Namespace::named(&host.namespace)?;
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

/// Configures a host, in the namespace of the calling thread.
pub(crate) fn settle(forwards: bool) -> io::Result<()> {
    ip(&["link", "set", "lo", "up"])?;
    let forwards = if forwards { "1" } else { "0" };
    for (setting, value) in [
        ("ipv4/ip_forward", forwards),
        ("ipv6/conf/all/forwarding", forwards),
        // The emulation's routers send packets back through the device on which they arrived.
        ("ipv4/conf/all/send_redirects", "0"),
        ("ipv4/conf/default/send_redirects", "0"),
        ("ipv4/conf/all/rp_filter", "0"),
        ("ipv4/conf/default/rp_filter", "0"),
        // Nobody answers router solicitations: they would only count as unroutable packets.
        ("ipv6/conf/default/router_solicitations", "0"),
    ] {
        let path = Path::new("/proc/sys/net").join(setting);
        // A kernel without IPv6 has no settings for it.
        if path.exists() {
            std::fs::write(path, value)?;
        }
    }
    Ok(())
}

/// Sets the queue length and the trains of a device. The ioctl for the queue does not work for root in a user
/// namespace.
pub(crate) fn tune(device: &str) -> io::Result<()> {
    ip(&["link", "set", "dev", device, "txqueuelen", QUEUE, "gso_max_segs", TRAIN])
}

/// Routes everything else to the device.
pub(crate) fn routes(device: &str, has_v6: bool) -> io::Result<()> {
    tune(device)?;
    ip(&["route", "add", "default", "dev", device])?;
    if has_v6 {
        ip(&["-6", "route", "add", "default", "dev", device])?;
    }
    Ok(())
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
    found.map(drop).map_err(|error| EmulateError::Lacking {
        what: format!("the program `{name}`: {error}"),
        help: format!("install {package}"),
    })
}
