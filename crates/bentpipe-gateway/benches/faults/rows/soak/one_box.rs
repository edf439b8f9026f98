//! The same with one box.

use std::time::Duration;

use super::{Form, Gateways, Load, Looks, endure, serve_object};
use crate::Measured;
use crate::hosts::many_descriptors;
use crate::hub::Hub;
use crate::pair::{Running, inside};

#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill,
    LinkDown,
    Restart,
    Loss,
    Reload,
}

const FAULTS: [Fault; 5] = [Fault::Kill, Fault::LinkDown, Fault::Restart, Fault::Loss, Fault::Reload];

struct OneBox {
    hub: Hub,
    running: Running,
}

impl Gateways for OneBox {
    type Fault = Fault;

    fn suffer(&mut self, fault: Fault, span: Duration) {
        let gate = self.hub.hub.clone();
        match fault {
            Fault::Kill => {
                self.running.0.kill().expect("it runs");
                self.running.0.wait().expect("it ends");
                self.running = self.hub.run(4096);
            }
            Fault::Restart => {
                self.running.signal("TERM");
                std::thread::sleep(Duration::from_secs(1));
                self.running.signal("TERM");
                self.running.ends();
                self.running = self.hub.run(4096);
            }
            Fault::LinkDown => {
                inside(&gate, "ip link set sat down");
                std::thread::sleep(Duration::from_secs(5));
                inside(&gate, "ip link set sat up");
            }
            Fault::Loss => {
                // What the client sends is lost here, and what is sent to it.
                inside(&gate, "nft add table netdev soak");
                inside(&gate, "nft add chain netdev soak in { type filter hook ingress device sat priority -400 ; }");
                inside(&gate, "nft add chain netdev soak out { type filter hook egress device sat priority 0 ; }");
                for chain in ["in", "out"] {
                    inside(&gate, &format!("nft add rule netdev soak {chain} numgen random mod 100 < 5 drop"));
                }
                std::thread::sleep(span / 2);
                inside(&gate, "nft delete table netdev soak");
            }
            Fault::Reload => self.running.signal("HUP"),
        }
    }

    fn held(&self) -> (f64, usize) {
        let process = &self.hub.hosts.fresh_status("hub")["process"];
        let descriptors = process["open_fds"].as_u64().expect("a number") as usize;
        (process["resident_bytes"].as_f64().expect("a number") / 1e6, descriptors)
    }
}

/// With the engine's TCP, or the kernel's. Of the engine's a client that only listens is not told of `kill -9`, so that is left out.
pub(crate) fn run(form: Form, is_kernel: bool) -> Measured {
    many_descriptors();
    let (settings, faults) = match is_kernel {
        true => ("sender = \"kernel\"\ncongestion = \"cubic\"\n", &FAULTS[..]),
        false => ("variant = \"sack\"\n", &FAULTS[1..]),
    };
    let hub = Hub::new(settings);
    let path = hub.hosts.folder.path().join("hub.toml");
    let text = std::fs::read_to_string(&path).expect("it is there").replace("50 Mbit/s", form.rate);
    std::fs::write(path, text).expect("a file");
    let server = hub.hosts.serve(80, serve_object);
    let mut one = OneBox { running: hub.run(4096), hub };
    endure(&mut one, faults, form, |OneBox { hub, .. }| {
        let hosts = [&hub.hosts.client, &hub.hub, &hub.hosts.server].map(|host| host.name());
        let looks = Looks::new(&hub.hosts, &["client", "hub", "server"], &hosts, &["hub"]);
        Load::begin(&hub.hosts.client, server, form.open, looks)
    })
}
