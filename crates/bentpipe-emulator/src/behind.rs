//! A network namespace behind a link, with the machine itself at the other end.
//!
//! The scenario's links are between two devices. One is in the caller's namespace, with the machine's routes; the
//! other is the only exit of the new namespace. Namespaces can be nested: the caller's is then behind another link,
//! and the delays add up. The namespace has no name and disappears with its last process.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command};

use bentpipe_io::tun::TunConfig;
use bentpipe_io::{Namespace, Session, Signals, TrainTun};
use bentpipe_study::scenario::{NodeId, Scenario};

use super::{EmulateError, Unsupported};
use crate::boxes::{Boxes, Wanted};
use crate::covered::{add_hosts, cover, own_mounts};
use crate::host::{routes, settle, tune};
use crate::lab::{needs_program, needs_settings, needs_tun};
use crate::nat::{self, Outside};
use crate::network::Network;
use crate::plan::{Addressing, HostId, INNER, OUTER, PREFIX_V4, PREFIX_V6, Plan, has_no_box, with_boxes};
use crate::running::Emulator;

/// The device behind the link.
const INSIDE: &str = "bentpipe0";

/// A namespace behind a link. Dropping it removes the link and the access to the outside.
#[derive(Debug)]
pub struct Behind {
    emulator: Emulator,
    namespace: Namespace,
    boxes: Option<Boxes>,
    /// The nodes of the hosts.
    nodes: Vec<NodeId>,
    outside: Outside,
    addressing: Addressing,
    has_v6: bool,
    /// The machine's address as seen from behind the link.
    machine: Ipv4Addr,
    /// The names of the outside and inside nodes.
    names: [String; 2],
    /// Last field, so that devices are dropped before rules.
    _session: Session,
}

impl Behind {
    /// Builds the namespace and starts the links. The machine takes the place of the node `outside`, the new namespace
    /// that of `inside`. The boxes of gateways have namespaces of their own, in which no gateway runs yet.
    ///
    /// # Errors
    /// Fails if the scenario is unsupported, the machine lacks something, or a system call fails.
    pub fn build(scenario: &Scenario, outside: NodeId, inside: NodeId) -> Result<Self, EmulateError> {
        let plan = Plan::new(scenario, &[])?;
        [outside, inside].into_iter().try_for_each(|node| has_no_box(scenario, node))?;
        let hosts: Vec<_> = [outside, inside].into_iter().chain(with_boxes(scenario)).collect();
        let network = Network::new(scenario, &hosts)?;
        for (from, to) in [(OUTER, INNER), (INNER, OUTER)] {
            if network.next_host(from, to).is_none() {
                let names = [outside, inside].map(|node| &scenario[node]);
                return Err(Unsupported {
                    key: "links".to_owned(),
                    what: format!("no links lead from `{}` to `{}`", names[from.index()], names[to.index()]),
                    expected: "links both ways between the two",
                }
                .into());
            }
        }
        needs_tun()?;
        needs_settings()?;
        needs_program("ip", "iproute2")?;
        let mut session = Session::begin().map_err(EmulateError::system("the record of this run"))?;
        let (addressing, outer) = free(&plan)?;
        let device = outer_name();
        let way_out = nat::open(&mut session, &device, addressing, plan.has_v6());
        let way_out = way_out.map_err(EmulateError::system("the way to the outside"))?;
        let namespace = Namespace::fresh().map_err(EmulateError::of_root("a network namespace"))?;
        let inner = namespace.inside(|| {
            settle(false)?;
            let device = TrainTun::create(&config(INSIDE, &plan, addressing, INNER))?;
            routes(INSIDE, plan.has_v6())?;
            Ok(device)
        });
        let inner = inner.map_err(EmulateError::system("the device behind the link"))?;
        let (mut devices, mut sites) = (vec![outer, inner], Vec::new());
        for id in HostId::first(hosts.len()).skip(devices.len()) {
            let (plan, network, way_out) = (&plan, &network, Some(OUTER));
            let wanted = Wanted { scenario, plan, network, hosts: &hosts, addressing, way_out };
            let made = Namespace::fresh().and_then(|fresh| wanted.make(id, fresh));
            let name = &scenario[hosts[id.index()]];
            let (site, own) = made.map_err(EmulateError::system(format!("the box at `{name}`")))?;
            sites.push(site);
            devices.extend(own);
        }
        let boxes = Boxes::new(sites, &mut session)?;
        let emulator = Emulator::new(network, addressing, devices);
        let mut emulator = emulator.map_err(EmulateError::system("the emulator"))?;
        if boxes.is_some() {
            emulator.lead_out(OUTER);
        }
        let has_v6 = plan.has_v6();
        let names = [outside, inside].map(|node| scenario[node].to_owned());
        let machine = addressing.v4(OUTER);
        let (outside, nodes, _session) = (way_out, hosts, session);
        Ok(Behind { emulator, namespace, boxes, nodes, outside, addressing, has_v6, machine, names, _session })
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

    /// Starts a program in the namespace. There, the names of the two nodes resolve; the outer one resolves to the
    /// machine.
    ///
    /// # Errors
    /// Fails if the program is missing or may not be run, or if its namespaces cannot be entered.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        self.namespace.inside(|| {
            own_mounts()?;
            if let Some(resolver) = &self.outside.resolver {
                cover(&nat::resolv_conf(), resolver.as_bytes())?;
            }
            let [outside, inside] = &self.names;
            let inside = self.inner_addresses().into_iter().map(|address| (inside.clone(), address));
            add_hosts(&std::iter::once((outside.clone(), self.machine.into())).chain(inside).collect::<Vec<_>>())?;
            Signals::release_thread();
            command.spawn()
        })
    }

    /// The machine's address as seen from behind the link: that of its end of the link, or the one set by
    /// [`Behind::set_machine`].
    pub fn outer_address(&self) -> Ipv4Addr {
        self.machine
    }

    /// Sets another address for the machine. Without root, the end of the link is not the machine itself.
    pub fn set_machine(&mut self, address: Ipv4Addr) {
        self.machine = address;
    }

    /// The addresses behind the link.
    pub fn inner_addresses(&self) -> Vec<IpAddr> {
        let v6 = self.has_v6.then(|| self.addressing.v6(INNER).into());
        std::iter::once(self.addressing.v4(INNER).into()).chain(v6).collect()
    }

    /// What can be reached outside the machine.
    pub fn outside(&self) -> &Outside {
        &self.outside
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

/// The device at the machine's end, with a unique name.
fn outer_name() -> String {
    format!("bp{}", std::process::id())
}

fn config(name: &str, plan: &Plan, addressing: Addressing, host: HostId) -> TunConfig {
    TunConfig {
        name: name.to_owned(),
        v4: Some((addressing.v4(host), PREFIX_V4)),
        v6: plan.has_v6().then(|| (addressing.v6(host), PREFIX_V6)),
        mtu: plan.mtu,
    }
}

/// A free network, and the device that now occupies it.
fn free(plan: &Plan) -> Result<(Addressing, TrainTun), EmulateError> {
    let doing = "the device before the link";
    let _turn = Session::turn().map_err(EmulateError::system(doing))?;
    let taken = bentpipe_io::addresses().map_err(EmulateError::system(doing))?;
    let is_free = |network: &u8| {
        let [a, b, c, _] = Addressing { network: *network }.v4(OUTER).octets();
        !taken.iter().any(|address| matches!(address, IpAddr::V4(v4) if v4.octets()[..3] == [a, b, c]))
    };
    let Some(network) = (0..=u8::MAX).find(is_free) else {
        return Err(EmulateError::Lacking {
            what: "all networks of 198.18.0.0/16 are in use here".to_owned(),
            help: "end some of the links that run".to_owned(),
        });
    };
    let addressing = Addressing { network };
    let device = TrainTun::create(&config(&outer_name(), plan, addressing, OUTER));
    let device = device.map_err(EmulateError::of_root(doing))?;
    tune(&outer_name()).map_err(EmulateError::system(doing))?;
    Ok((addressing, device))
}
