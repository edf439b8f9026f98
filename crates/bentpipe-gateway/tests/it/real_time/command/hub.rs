//! One box with a gateway, between a client and a server: `client ── hub ── server`.

use std::process::{Command, Output};
use std::sync::Arc;

use super::pair::{Hosts, Running, attach, bentpipe, folder, until};
use crate::namespace::Namespace;

/// One box between a client and a server, with its settings written and not started yet.
pub(crate) struct Hub {
    pub(crate) hosts: Hosts,
    pub(crate) hub: Arc<Namespace>,
}

impl Hub {
    pub(crate) fn new(uplink: &str) -> Hub {
        let [client, hub, server] = [(); 3].map(|()| Namespace::new().expect("this test needs root and namespaces"));
        attach(&client, &hub, "sat", 1);
        attach(&server, &hub, "lan", 2);
        let folder = folder();
        let hosts = Hosts { client: Arc::new(client), server: Arc::new(server), folder };
        let text = format!(
            "name = \"hub\"\ncontrol = \"hub.sock\"\n[satellite]\nrate = \"50 Mbit/s\"\nround_trip = \"20 ms\"\n\
             [uplink]\nsatellite = [\"sat\"]\n{uplink}"
        );
        std::fs::write(hosts.folder.path().join("hub.toml"), text).expect("a file");
        Hub { hosts, hub: Arc::new(hub) }
    }

    /// The rules as they are shown.
    pub(crate) fn rules(&self) -> String {
        let shown = bentpipe(self.hosts.folder.path(), &["run", "--dry-run", "hub.toml"]);
        String::from_utf8(shown.stdout).expect("text")
    }

    pub(crate) fn run(&self, descriptors: u32) -> Running {
        let running = Running::start(&self.hub, self.hosts.folder.path(), "hub", descriptors);
        until("it is up", || self.hosts.status("hub").is_some());
        running
    }

    pub(crate) fn bentpipe(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.hub.name(), env!("CARGO_BIN_EXE_bentpipe-gateway")]).args(arguments);
        command.current_dir(self.hosts.folder.path()).output().expect("iproute2 is there")
    }
}
