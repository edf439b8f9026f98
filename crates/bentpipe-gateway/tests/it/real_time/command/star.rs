//! A hub and several terminals run by the command: `server ── hub ══ terminal ── host`.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bentpipe_engine::link::LinkConfig;
use bentpipe_gateway::tunnel::PrivateKey;
use bentpipe_io::Tun;

use super::pair::{Hosts, Running, attach, bentpipe, folder, inside, until};
use crate::namespace::Namespace;
use crate::sky::Sky;

/// A terminal and a host behind it.
pub(crate) struct Terminal {
    pub(crate) name: String,
    pub(crate) is_link: bool,
    pub(crate) host: Arc<Namespace>,
    pub(crate) gate: Arc<Namespace>,
    key: String,
    pub(crate) running: Option<Running>,
}

/// The whole network.
pub(crate) struct Star {
    /// The server behind the hub also acts as a client.
    pub(crate) hosts: Hosts,
    pub(crate) hub: Arc<Namespace>,
    pub(crate) terminals: Vec<Terminal>,
    pub(crate) running: Option<Running>,
}

/// The host behind terminal `n`.
pub(crate) fn host(n: usize) -> [u8; 4] {
    [10, 20 + n as u8, 0, 2]
}

pub(crate) fn prefix(n: usize) -> String {
    format!("10.{}.0.0/24", 20 + n)
}

fn namespace() -> Arc<Namespace> {
    Arc::new(Namespace::new().expect("this test needs root and namespaces"))
}

impl Star {
    /// `shapes`: for each terminal, true if it has the shape `link`. Sets everything up; no gateway runs yet.
    pub(crate) fn new(shapes: &[bool]) -> Star {
        let [server, hub] = [(); 2].map(|()| namespace());
        attach(&server, &hub, "lan", 2);
        let folder = folder();
        let keygen = |name: &str| {
            let output = bentpipe(folder.path(), &["keygen", &format!("{name}.key")]);
            String::from_utf8(output.stdout).expect("text").trim().to_owned()
        };
        let hub_key = keygen("hub");
        let patience = "keepalive = \"1 s\"\ndead_after = \"5 s\"";
        let terminals = shapes.iter().enumerate().map(|(n, &is_link)| {
            let (name, [host, gate]) = (format!("t{n}"), [(); 2].map(|()| namespace()));
            let key = keygen(&name);
            attach(&host, &gate, "lan", 20 + n as u8);
            inside(&hub, &format!("ip link add sat{n} type veth peer name sat netns {}", gate.name()));
            for (at, device, end) in [(&hub, format!("sat{n}"), 1), (&gate, "sat".to_owned(), 2)] {
                inside(at, &format!("ip addr add 10.9.{n}.{end}/24 dev {device}"));
                inside(at, &format!("ip link set {device} up"));
            }
            // Packets would also arrive if no gateway carried them.
            inside(&gate, &format!("ip route add 10.2.0.0/24 via 10.9.{n}.1"));
            inside(&hub, &format!("ip route add {} via 10.9.{n}.2", prefix(n)));
            let shape = match is_link {
                true => format!("[link]\naddresses = [\"10.8.0.{}/24\"]", n + 2),
                false => "[split]\ncapture = [\"lan\"]".to_owned(),
            };
            let text = format!(
                "name = \"{name}\"\ncontrol = \"{name}.sock\"\n[tunnel]\nprivate_key = \"{name}.key\"\npeer_key = \"{hub_key}\"\n\
                 state = \"{name}.state\"\npeer = \"10.9.{n}.1:4500\"\n{patience}\n[satellite]\nrate = \"50 Mbit/s\"\n\
                 round_trip = \"20 ms\"\n{shape}\n"
            );
            std::fs::write(folder.path().join(format!("{name}.toml")), text).expect("a file");
            Terminal { name, is_link, host, gate, key, running: None }
        });
        let terminals = terminals.collect();
        let hosts = Hosts { client: server.clone(), server, folder };
        Star { hosts, hub, terminals, running: None }
    }

    /// A terminal's table in the hub's settings.
    pub(crate) fn peer(&self, n: usize) -> String {
        let Terminal { name, key, is_link, .. } = &self.terminals[n];
        let (shape, prefix) = (if *is_link { "link" } else { "split" }, prefix(n));
        format!("[[peers]]\nname = \"{name}\"\nkey = \"{key}\"\nprefixes = [\"{prefix}\"]\nshape = \"{shape}\"\n")
    }

    /// Replaces the wire between the hub and terminal `n` by an emulated link. `configs`: from the terminal to the hub, and back.
    pub(crate) fn over_sky(&self, n: usize, configs: [LinkConfig; 2]) -> Sky {
        let (gate, device) = (&self.terminals[n].gate, format!("sat{n}"));
        inside(&self.hub, &format!("ip link del {device}"));
        let door = |host: &Namespace, device: String, end: u8| {
            let addresses: [(IpAddr, u8); 1] = [([10, 9, n as u8, end].into(), 24)];
            host.inside(move || Tun::with_addresses(&device, &addresses, 1500).expect("root may"))
        };
        let doors = [door(gate, "sat".to_owned(), 2), door(&self.hub, device.clone(), 1)];
        inside(gate, "ip route replace 10.2.0.0/24 dev sat");
        inside(&self.hub, &format!("ip route replace {} dev {device}", prefix(n)));
        Sky::over(doors, configs, 1)
    }

    /// The hub itself, as one of its peers.
    pub(crate) fn own(&self) -> String {
        let key = std::fs::read_to_string(self.hosts.folder.path().join("hub.key")).expect("it is there");
        let key: PrivateKey = key.parse().expect("a key");
        format!(
            "[[peers]]\nname = \"own\"\nkey = \"{}\"\nprefixes = [\"10.99.0.0/24\"]\nshape = \"link\"\n",
            key.public()
        )
    }

    /// Writes the hub's settings, with those peers.
    pub(crate) fn write_hub(&self, rate: &str, peers: &str) {
        let text = format!(
            "name = \"hub\"\ncontrol = \"hub.sock\"\n[tunnel]\nprivate_key = \"hub.key\"\nstate = \"hub.state\"\nkeepalive = \
             \"1 s\"\ndead_after = \"5 s\"\n[satellite]\nrate = \"{rate}\"\nround_trip = \"20 ms\"\n[split]\ncapture = \
             [\"lan\"]\n[link]\naddresses = [\"10.8.0.1/24\"]\n{peers}"
        );
        let path = self.hosts.folder.path().join("hub.toml");
        std::fs::write(&path, text).expect("a file");
        // A reload does not wait for a file that was written a while ago.
        let a_while_ago = SystemTime::now() - Duration::from_secs(10);
        File::options().write(true).open(path).and_then(|file| file.set_modified(a_while_ago)).expect("it is ours");
    }

    /// Starts the hub and all terminals.
    pub(crate) fn start(&mut self) {
        let folder = self.hosts.folder.path();
        self.running = Some(Running::start(&self.hub, folder, "hub", 1024));
        for terminal in &mut self.terminals {
            terminal.running = Some(Running::start(&terminal.gate, folder, &terminal.name, 1024));
        }
    }

    /// True if the hub reports the link to a terminal as up; `None` if it does not report it.
    pub(crate) fn is_up(&self, n: usize) -> Option<bool> {
        self.hosts.status("hub")?["peers"][&self.terminals[n].name]["link_up"].as_bool()
    }

    /// Waits for these terminals, and routes packets for those of `link` into the device.
    pub(crate) fn wait_for(&self, terminals: impl Iterator<Item = usize> + Clone) {
        until("they are up", || terminals.clone().all(|n| self.is_up(n) == Some(true)));
        for n in terminals.filter(|&n| self.terminals[n].is_link) {
            inside(&self.hub, &format!("ip route replace {} dev bentpipe0", prefix(n)));
            inside(&self.terminals[n].gate, "ip route replace 10.2.0.0/24 dev bentpipe0");
        }
    }

    /// Sends SIGHUP and waits until the hub has logged the result.
    pub(crate) fn reload(&self) -> String {
        let before = self.hosts.said("hub").len();
        self.running.as_ref().expect("it runs").signal("HUP");
        until("it reads again", || self.hosts.said("hub")[before..].contains("reload: "));
        self.hosts.said("hub")[before..].to_owned()
    }

    /// A server behind each terminal that answers as [`echo`] does.
    pub(crate) fn serve_behind(&self, n: usize, work: fn(TcpStream)) -> SocketAddr {
        let at = SocketAddr::from((host(n), 80));
        let listener = self.terminals[n].host.inside(move || TcpListener::bind(at).expect("a free port"));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || work(stream));
            }
        });
        at
    }

    /// Connects from the host behind a terminal.
    pub(crate) fn connect_behind(&self, n: usize, to: SocketAddr) -> std::io::Result<TcpStream> {
        self.terminals[n].host.inside(move || patient(TcpStream::connect_timeout(&to, Duration::from_secs(10))))
    }

    /// The hub's counters for a terminal.
    pub(crate) fn counted(&self, n: usize, table: &str, key: &str) -> u64 {
        let status = self.hosts.fresh_status("hub");
        status["peers"][&self.terminals[n].name][table][key].as_u64().unwrap_or_else(|| panic!("{status}"))
    }
}

fn patient(stream: std::io::Result<TcpStream>) -> std::io::Result<TcpStream> {
    let stream = stream?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    Ok(stream)
}

/// Reads everything and sends it back.
pub(crate) fn back(mut stream: TcpStream) {
    let mut bytes = Vec::new();
    if stream.read_to_end(&mut bytes).is_ok() {
        let _ = stream.write_all(&bytes);
    }
}

/// Sends data without end.
pub(crate) fn pour(mut stream: TcpStream) {
    while stream.write_all(&[7; 65536]).is_ok() {}
}

/// Sends a UDP datagram from `source`, an address that the host is given for it. The server need not exist.
pub(crate) fn datagram_as(host: &Namespace, source: [u8; 4], to: [u8; 4]) {
    let source = Ipv4Addr::from(source);
    inside(host, &format!("ip addr add {source}/32 dev eth"));
    host.inside(move || {
        let socket = std::net::UdpSocket::bind((source, 0)).expect("it is ours");
        (0..5).for_each(|_| drop(socket.send_to(b"as somebody else", (Ipv4Addr::from(to), 9))));
    });
}
