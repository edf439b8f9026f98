//! Four hosts in a row, and gateways on the two in the middle.

use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use bentpipe_engine::gateway::UplinkSender;
use bentpipe_engine::link::{ChannelConfig as Channel, Distribution, LinkConfig, LossConfig, QueueLimit};
use bentpipe_engine::slacp::classify::HostAddress;
use bentpipe_engine::tcp::variant::Startup;
use bentpipe_engine::tcp::{TcpConfig, Variant};
use bentpipe_engine::units::{Duration, Probability, Rate};
use bentpipe_gateway::tunnel::{PrivateKey, TunnelConfig};
use bentpipe_gateway::{
    Carries, ClientAddress, Fallback, Gateway, Instance, LinkShape, Loop, PeerConfig, Policy, RelayConfig,
    RelayGateway, RelayStats, Rules, Satellite, Shape, SplitConfig, SplitShape, SplitStats, Stop, UplinkConfig,
    UplinkGateway, UplinkStats, Work, for_packets, for_streams, max_packet,
};
use bentpipe_io::{TrainTun, Tun};

use crate::namespace::Namespace;
use crate::sky::Sky;

pub(crate) const CLIENT: &str = "10.1.0.2";
pub(crate) const CLIENT6: &str = "fd01::2";
pub(crate) const SERVER: &str = "10.2.0.2";
pub(crate) const SERVER6: &str = "fd02::2";
const PORT: u16 = 4000;

/// Each gateway has its own namespace, so all may use the same names.
fn instance() -> Instance {
    Instance::new("test")
}

/// The path between the gateways.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) rate: u64,
    /// The rate from the near box to the far one, if it differs from `rate`.
    pub(crate) up: Option<u64>,
    /// Packets.
    pub(crate) queue: u32,
    /// One way.
    pub(crate) delay: Duration,
    pub(crate) loss: f64,
    /// Outages of 100 to 500 ms every 1 to 10 s, independent in each direction.
    pub(crate) outages: bool,
    /// How long the loss processes have run when the test begins.
    pub(crate) age: Duration,
}

impl Path {
    /// A satellite path, scaled down.
    pub(crate) fn lossy(loss: f64) -> Self {
        Path { delay: Duration::from_millis(30), ..Path::quick(20_000_000, loss) }
    }

    /// A path on which a test takes little time.
    pub(crate) fn quick(rate: u64, loss: f64) -> Self {
        Path { rate, up: None, queue: 500, delay: Duration::from_millis(5), loss, outages: false, age: Duration::ZERO }
    }

    /// The rate at which the box on that side may send.
    fn rate_of(&self, side: usize) -> u64 {
        self.up.filter(|_| side == 0).unwrap_or(self.rate)
    }

    /// The link that the box on that side sends on.
    fn link(&self, side: usize) -> LinkConfig {
        let mut link = LinkConfig::clean(Rate::from_bits_per_second(self.rate_of(side)), self.delay);
        link.queue.limit = QueueLimit::Packets(self.queue);
        link.good = LossConfig { packet: Probability::new(self.loss).expect("a probability"), bit: Probability::ZERO };
        if self.outages {
            let span = |from, to| Distribution::Uniform(Duration::from_millis(from), Duration::from_millis(to));
            link.channel = Channel::OnOff { gap: span(1000, 10_000), burst: span(100, 500) };
            link.bad = LossConfig { packet: Probability::ONE, bit: Probability::ZERO };
        }
        link
    }
}

/// The hosts.
pub(crate) struct World {
    pub(crate) client: Arc<Namespace>,
    pub(crate) near: Arc<Namespace>,
    pub(crate) far: Arc<Namespace>,
    pub(crate) server: Arc<Namespace>,
    pub(crate) sky: Sky,
    pub(crate) path: Path,
    /// The rate in the gateways' settings, if it differs from that of the link.
    pub(crate) told: Option<u64>,
    /// True if the gateways share the link with others.
    pub(crate) shared: bool,
    /// The memory limit of a box of `split`, bytes.
    pub(crate) memory: u64,
    keys: [PrivateKey; 2],
    /// The gateways' counters, shown when a test fails.
    seen: Mutex<Vec<Arc<Mutex<SplitStats>>>>,
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.seen.lock().iter().flat_map(|seen| seen.iter()).for_each(|stats| eprintln!("{:?}", stats.lock()));
        }
    }
}

pub(crate) fn run(namespace: &Namespace, line: &str) {
    let words: Vec<_> = line.split(' ').collect();
    let output =
        Command::new("ip").args(["netns", "exec", namespace.name()]).args(&words).output().expect("iproute2 is there");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

impl World {
    pub(crate) fn new(path: Path, seed: u64) -> World {
        let [client, near, far, server] =
            [(); 4].map(|()| Arc::new(Namespace::new().expect("these tests need root and namespaces")));
        for (host, box_, net) in [(&client, &near, 1), (&server, &far, 2)] {
            run(box_, &format!("ip link add lan type veth peer name eth netns {}", host.name()));
            run(box_, &format!("ip addr add 10.{net}.0.1/24 dev lan"));
            run(box_, &format!("ip addr add fd0{net}::1/64 dev lan nodad"));
            run(box_, "ip link set lan up");
            run(box_, "ip link set lo up");
        }
        for (host, net) in [(&client, 1), (&server, 2)] {
            run(host, "ip link set lo up");
            run(host, &format!("ip addr add 10.{net}.0.2/24 dev eth"));
            run(host, &format!("ip addr add fd0{net}::2/64 dev eth nodad"));
            run(host, "ip link set eth up");
            run(host, &format!("ip route add default via 10.{net}.0.1"));
            run(host, &format!("ip route add default via fd0{net}::1"));
        }
        let doors = [(&near, 1), (&far, 2)].map(|(box_, n)| {
            let addresses: [(IpAddr, u8); 2] =
                [(([10, 9, 0, n]).into(), 24), ([0xfd09, 0, 0, 0, 0, 0, 0, u16::from(n)].into(), 64)];
            let tun = box_.inside(move || Tun::with_addresses("sat", &addresses, 1500).expect("root may"));
            run(box_, &format!("ip route add 10.{}.0.0/24 dev sat", 3 - n));
            run(box_, &format!("ip -6 route add fd0{}::/64 dev sat", 3 - n));
            for setting in ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1", "net.ipv4.conf.all.rp_filter=0"]
            {
                run(box_, &format!("sysctl -qw {setting}"));
            }
            tun
        });
        let sky = Sky::aged(doors, [path.link(0), path.link(1)], seed, path.age);
        World {
            client,
            near,
            far,
            server,
            sky,
            path,
            told: None,
            shared: false,
            memory: 64 << 20,
            keys: [PrivateKey::generate(), PrivateKey::generate()],
            seen: Mutex::default(),
        }
    }

    fn tunnel(&self, side: usize) -> TunnelConfig {
        TunnelConfig {
            keepalive: Duration::from_secs(1),
            dead_after: Duration::from_secs(4),
            ..TunnelConfig::new(
                self.keys[side].clone(),
                self.keys[1 - side].public(),
                (side == 0).then(|| ([10, 9, 0, 2], 4500).into()),
            )
        }
    }

    fn satellite(&self, side: usize) -> Satellite {
        let told = self.told.unwrap_or(self.path.rate_of(side) / 1000 * 995);
        Satellite {
            rate: Rate::from_bits_per_second(told).expect("not zero"),
            round_trip: self.path.delay.saturating_mul(2),
            path_mtu: 1500,
            over_ipv6: false,
            reordering: 0,
            shared: self.shared,
        }
    }

    /// A gateway of any shape on one side. `shape` is built on its host.
    pub(crate) fn gateway<S: Shape>(
        &self,
        side: usize,
        reliable: bool,
        shape: impl FnOnce() -> S + Send + 'static,
        mut user: impl FnMut(&mut Gateway<S>) + Send + 'static,
    ) -> Running {
        let satellite = self.satellite(side);
        let port = if reliable {
            for_streams(&satellite)
        } else {
            for_packets(&satellite, [HostAddress::Source, HostAddress::Destination][side])
        };
        let carries = if reliable { Carries::Streams } else { Carries::Packets };
        let tunnel = TunnelConfig { carries: Some(carries), ..self.tunnel(side) };
        let namespace = [&self.near, &self.far][side].clone();
        let (send, receive) = std::sync::mpsc::channel();
        let thread = namespace.spawn(move || {
            let local = SocketAddr::from(([0, 0, 0, 0], 4500));
            let mut gateway = Gateway::new(local, None, shape()).expect("root may");
            gateway.add(PeerConfig::alone(tunnel, port)).expect("the first one");
            send.send(gateway.stop()).expect("somebody waits");
            gateway.run(&mut user).expect("the system works");
        });
        Running { stop: receive.recv().expect("it starts"), thread: Some(thread), rules: None }
    }

    /// The `link` shape on both sides. All traffic between the hosts goes through it.
    pub(crate) fn link(&self) -> [Running; 2] {
        let (up, is_up) = std::sync::mpsc::channel();
        let both = [1, 0].map(|side| {
            let up = up.clone();
            let n = side as u8 + 1;
            let shape = move || {
                let mtu = max_packet(1500, false);
                let addresses: [(IpAddr, u8); 2] =
                    [([10, 8, 0, n].into(), 24), ([0xfd08, 0, 0, 0, 0, 0, 0, u16::from(n)].into(), 64)];
                LinkShape::new(TrainTun::with_addresses("bentpipe0", &addresses, mtu).expect("root may"), 256 << 20)
            };
            let mut running = self.gateway(side, false, shape, move |gateway| {
                if gateway.hub().carriers().all(|(_, carrier)| carrier.is_up()) {
                    let _ = up.send(());
                }
            });
            let namespace = [&self.near, &self.far][side].clone();
            run(&namespace, &format!("ip route replace 10.{}.0.0/24 dev bentpipe0", 3 - n));
            run(&namespace, &format!("ip -6 route replace fd0{}::/64 dev bentpipe0", 3 - n));
            running.install(namespace, Rules::Link { device: "bentpipe0".into() });
            running
        });
        is_up.recv_timeout(std::time::Duration::from_secs(20)).expect("the tunnel comes up");
        both
    }

    pub(crate) fn split_config(&self, side: usize) -> SplitConfig {
        let listen = [SocketAddr::from(([0, 0, 0, 0], PORT)), SocketAddr::from(([0; 16], PORT))];
        SplitConfig {
            listen: if side == 0 { listen.into() } else { Vec::new() },
            client_address: ClientAddress::Keep,
            fallback: Fallback::Direct,
            window: self.satellite(side).window(),
            max_streams: 10_000,
            budget: self.memory,
            policy: Policy::default(),
        }
    }

    /// One side of the `split` shape, and its counters.
    pub(crate) fn split_side(&self, side: usize, config: SplitConfig) -> (Running, Arc<Mutex<SplitStats>>) {
        let seen = Arc::new(Mutex::new(SplitStats::default()));
        let show = seen.clone();
        self.seen.lock().expect("nobody panics").push(seen.clone());
        let capture = if config.listen.is_empty() { vec![] } else { vec!["lan".to_owned()] };
        let mut running = self.gateway(
            side,
            true,
            move || SplitShape::new(config),
            move |gateway| {
                *show.lock().expect("nobody panics") = gateway.shape().stats();
            },
        );
        running.install(
            [&self.near, &self.far][side].clone(),
            Rules::Split { capture, port: PORT, ports: vec![], refuse: false, to: None, device: None },
        );
        (running, seen)
    }

    /// Both sides, with the tunnel up.
    pub(crate) fn split(&self) -> [(Running, Arc<Mutex<SplitStats>>); 2] {
        let both = [1, 0].map(|side| self.split_side(side, self.split_config(side)));
        self.wait_for_listener(true);
        let [far, near] = both;
        [near, far]
    }

    pub(crate) fn uplink_config(&self, variant: &str) -> UplinkConfig {
        let satellite = self.satellite(1);
        let mut row = Variant::named(variant).expect("a row of the table");
        // For the clients' uploads.
        row.sack = true;
        let fixed = matches!(row.startup, Startup::FixedWindow(_));
        UplinkConfig {
            sender: UplinkSender {
                tcp: TcpConfig { variant: row, timestamps: true, ..TcpConfig::default() },
                window: fixed.then(|| satellite.rate.bytes_in_floor(satellite.round_trip)),
                rate: satellite.rate,
                round_trip: satellite.round_trip,
                mtu: 1500,
            },
            early_accept: false,
            max_streams: 10_000,
            memory: 256 << 20,
        }
    }

    /// The `uplink` shape on the far box, and its counters.
    pub(crate) fn uplink(&self, config: UplinkConfig, address: ClientAddress) -> (Running, Arc<Mutex<UplinkStats>>) {
        let rules = Rules::Uplink { satellite: vec!["sat".into()], device: "bentpipe0".into(), ports: vec![] };
        let make = move || {
            let (gateway, lacks) = UplinkGateway::uplink(&instance(), "bentpipe0", config, address).expect("root may");
            assert_eq!(lacks, Vec::<String>::new());
            gateway
        };
        self.one_box(make, UplinkGateway::counted, rules)
    }

    pub(crate) fn relay_config(&self) -> RelayConfig {
        RelayConfig {
            listen: vec![([0, 0, 0, 0], PORT).into(), ([0; 16], PORT).into()],
            congestion: "bbr".to_owned(),
            rate: self.satellite(1).rate,
            round_trip: self.satellite(1).round_trip,
            client_address: ClientAddress::Keep,
            max_streams: 10_000,
            memory: 64 << 20,
            mark: instance().sent(),
            policy: Policy::default(),
        }
    }

    /// The same with the kernel's sender.
    pub(crate) fn relay(&self, config: RelayConfig) -> (Running, Arc<Mutex<RelayStats>>) {
        let rules = Rules::Relay { satellite: vec!["sat".into()], port: PORT, ports: vec![] };
        self.one_box(move || RelayGateway::relay(config).expect("root may"), RelayGateway::counted, rules)
    }

    fn one_box<W: Work + 'static, S: Default + Send + 'static>(
        &self,
        make: impl FnOnce() -> Loop<W> + Send + 'static,
        counted: fn(&Loop<W>) -> S,
        rules: Rules,
    ) -> (Running, Arc<Mutex<S>>) {
        let seen = Arc::new(Mutex::new(S::default()));
        let show = seen.clone();
        let (send, receive) = std::sync::mpsc::channel();
        let thread = self.far.spawn(move || {
            let mut gateway = make();
            send.send(gateway.stop()).expect("somebody waits");
            gateway.run(|gateway| *show.lock().expect("nobody panics") = counted(gateway)).expect("the system works");
        });
        let mut running = Running { stop: receive.recv().expect("it starts"), thread: Some(thread), rules: None };
        running.install(self.far.clone(), rules);
        (running, seen)
    }

    /// Waits until the near gateway listens, or has stopped listening.
    pub(crate) fn wait_for_listener(&self, wanted: bool) {
        for _ in 0..1000 {
            let listens = self.near.inside(|| {
                let table = std::fs::read_to_string("/proc/thread-self/net/tcp").expect("the kernel has TCP");
                table.contains(&format!(":{PORT:04X} 00000000:0000 0A"))
            });
            if listens == wanted {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("the listener should be {}", if wanted { "there" } else { "gone" });
    }
}

/// A running gateway. It is stopped and its rules are removed on drop.
pub(crate) struct Running {
    pub(crate) stop: Stop,
    thread: Option<JoinHandle<()>>,
    rules: Option<(Arc<Namespace>, Rules)>,
}

impl Running {
    fn install(&mut self, namespace: Arc<Namespace>, rules: Rules) {
        let to_install = rules.clone();
        namespace.inside(move || to_install.install(&instance()).expect("nft and ip work"));
        self.rules = Some((namespace, rules));
    }

    /// Ends it and waits for that.
    pub(crate) fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the gateway panicked");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.now();
        self.join();
        if let Some((namespace, rules)) = self.rules.take() {
            let removed = namespace.spawn(move || rules.remove(&instance())).join();
            assert!(removed.is_ok() || std::thread::panicking(), "rules are removed");
        }
    }
}
