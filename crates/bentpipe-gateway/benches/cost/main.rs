//! What gateways cost: CPU time of their own threads per byte and per connection, over a plain veth, beside the kernel's
//! forwarding and a plain relay in the same run. `make bench-cost`.
//!
//! Hosts and gateways share the machine's cores, so speeds by the clock say little; Gbit/s per core are those that a
//! core would reach which did nothing but the gateway's work.
#![allow(dead_code)] // What the tests use and this does not.

#[path = "../../tests/it/hosts.rs"]
mod hosts;
#[path = "../../../bentpipe-io/tests/it/real_time/namespace.rs"]
mod namespace;
mod traffic;

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bentpipe_engine::gateway::UplinkSender;
use bentpipe_engine::slacp::classify::HostAddress;
use bentpipe_engine::tcp::TcpConfig;
use bentpipe_engine::tcp::variant::Variant;
use bentpipe_engine::units;
use bentpipe_engine::units::Rate;
use bentpipe_gateway::tunnel::{PrivateKey, TunnelConfig};
use bentpipe_gateway::{
    ClientAddress, Fallback, Gateway, Instance, LinkShape, PeerConfig, Policy, RelayConfig, RelayGateway, Rules,
    Satellite, Shape, SplitConfig, SplitShape, Stop, UplinkConfig, UplinkGateway, for_packets, for_streams,
};
use bentpipe_io::TrainTun;
use nix::sys::resource::{UsageWho, getrusage};

use namespace::Namespace;
use traffic::{connections, download, relay, sink, transfer};

const SERVER: &str = "10.2.0.2";
const PORT: u16 = 4000;

/// Each gateway has a namespace of its own: all may have the same names.
fn instance() -> Instance {
    Instance::new("bench")
}
/// A transfer lasts so long, after a tenth of it for its start.
const SPAN: Duration = Duration::from_secs(4);

fn run(namespace: &Namespace, line: &str) {
    let mut command = Command::new("ip");
    let output = command.args(["netns", "exec", namespace.name()]).args(line.split(' ')).output();
    let output = output.expect("iproute2 is there");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// CPU time of the calling thread so far, ns.
fn cpu_of_thread() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("the kernel counts");
    let of = |time: nix::sys::time::TimeVal| time.tv_sec() as u64 * 1_000_000_000 + time.tv_usec() as u64 * 1000;
    of(usage.user_time()) + of(usage.system_time())
}

/// Client, two boxes, server, in a row; a veth between any two.
struct Row {
    client: Namespace,
    boxes: [Namespace; 2],
    server: Namespace,
    keys: [PrivateKey; 2],
}

impl Row {
    fn new() -> Row {
        let [client, near, far, server] = [(); 4].map(|()| Namespace::new().expect("this needs root and namespaces"));
        for (host, gate, net) in [(&client, &near, 1), (&server, &far, 2)] {
            run(gate, &format!("ip link add lan type veth peer name eth netns {}", host.name()));
            run(gate, &format!("ip addr add 10.{net}.0.1/24 dev lan"));
            run(host, &format!("ip addr add 10.{net}.0.2/24 dev eth"));
            for (namespace, device) in [(gate, "lan"), (gate, "lo"), (host, "eth"), (host, "lo")] {
                run(namespace, &format!("ip link set {device} up"));
            }
            run(host, &format!("ip route add default via 10.{net}.0.1"));
        }
        run(&near, &format!("ip link add wan type veth peer name wan netns {}", far.name()));
        for (gate, n) in [(&near, 1), (&far, 2)] {
            run(gate, &format!("ip addr add 10.9.0.{n}/24 dev wan"));
            run(gate, "ip link set wan up");
            run(gate, "sysctl -qw net.ipv4.ip_forward=1");
            run(gate, "sysctl -qw net.ipv4.conf.all.rp_filter=0");
        }
        for (gate, n) in [(&near, 1), (&far, 2)] {
            run(gate, &format!("ip route add 10.{}.0.0/24 via 10.9.0.{}", 3 - n, 3 - n));
        }
        Row { client, boxes: [near, far], server, keys: [PrivateKey::generate(), PrivateKey::generate()] }
    }

    /// A gateway on one of the boxes, and the CPU time of its thread.
    fn gateway<S: Shape>(
        &self,
        side: usize,
        reliable: bool,
        shape: impl FnOnce() -> S + Send + 'static,
        rules: Rules,
    ) -> Running {
        let satellite = satellite();
        let port = if reliable { for_streams(&satellite) } else { for_packets(&satellite, HostAddress::Source) };
        let tunnel = TunnelConfig {
            keepalive: units::Duration::from_secs(1),
            dead_after: units::Duration::from_secs(4),
            ..TunnelConfig::new(
                self.keys[side].clone(),
                self.keys[1 - side].public(),
                (side == 0).then(|| ([10, 9, 0, 2], 4500).into()),
            )
        };
        let (cpu, is_up) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (show, tell) = (cpu.clone(), is_up.clone());
        let (send, receive) = std::sync::mpsc::channel();
        let thread = self.boxes[side].spawn(move || {
            rules.install(&instance()).expect("nft and ip work");
            let local = SocketAddr::from(([0, 0, 0, 0], 4500));
            let mut gateway = Gateway::new(local, None, shape()).expect("root may");
            gateway.add(PeerConfig::alone(tunnel, port)).expect("the first one");
            send.send(gateway.stop()).expect("somebody waits");
            let user = |gateway: &mut Gateway<S>| {
                show.store(cpu_of_thread(), Ordering::Relaxed);
                tell.store(gateway.hub().carriers().all(|(_, carrier)| carrier.is_up()), Ordering::Relaxed);
            };
            gateway.run(user).expect("the system works");
            rules.remove(&instance()).expect("nft works");
        });
        Running { stop: receive.recv().expect("it starts"), thread: Some(thread), cpu, is_up }
    }

    fn split(&self) -> [Running; 2] {
        [1, 0].map(|side| {
            let config = SplitConfig {
                listen: if side == 0 { vec![([0, 0, 0, 0], PORT).into()] } else { Vec::new() },
                client_address: ClientAddress::Keep,
                fallback: Fallback::Direct,
                window: satellite().window(),
                max_streams: 10_000,
                budget: 256 << 20,
                policy: Policy::default(),
            };
            let capture = if side == 0 { vec!["lan".to_owned()] } else { Vec::new() };
            let rules = Rules::Split { capture, port: PORT, ports: Vec::new(), refuse: false, to: None, device: None };
            self.gateway(side, true, move || SplitShape::new(config), rules)
        })
    }

    fn link(&self) -> [Running; 2] {
        let both = [1, 0].map(|side| {
            let n = side as u8 + 1;
            let shape = move || {
                let address: (IpAddr, u8) = ([10, 8, 0, n].into(), 24);
                LinkShape::new(
                    TrainTun::with_addresses("bentpipe0", &[address], satellite().max_packet()).expect("root"),
                    256 << 20,
                )
            };
            self.gateway(side, false, shape, Rules::Link { device: "bentpipe0".into() })
        });
        for (side, n) in [(0, 1), (1, 2)] {
            run(&self.boxes[side], &format!("ip route replace 10.{}.0.0/24 dev bentpipe0", 3 - n));
        }
        both
    }

    /// The kernel's sender of `uplink`, on the near box: for what the client sends and for what it is sent it does the same.
    fn one_sided(&self) -> Running {
        let (cpu, is_up) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(true)));
        let show = cpu.clone();
        let (send, receive) = std::sync::mpsc::channel();
        let thread = self.boxes[0].spawn(move || {
            let rules = Rules::Relay { satellite: vec!["lan".to_owned()], port: PORT, ports: Vec::new() };
            let mut gateway = RelayGateway::relay(RelayConfig {
                listen: vec![([0, 0, 0, 0], PORT).into()],
                congestion: "bbr".to_owned(),
                rate: satellite().rate,
                round_trip: satellite().round_trip,
                client_address: ClientAddress::Keep,
                max_streams: 10_000,
                memory: 256 << 20,
                mark: instance().sent(),
                policy: Policy::default(),
            })
            .expect("root may");
            rules.install(&instance()).expect("nft and ip work");
            send.send(gateway.stop()).expect("somebody waits");
            gateway.run(|_| show.store(cpu_of_thread(), Ordering::Relaxed)).expect("the system works");
            rules.remove(&instance()).expect("nft works");
        });
        Running { stop: receive.recv().expect("it starts"), thread: Some(thread), cpu, is_up }
    }

    /// The engine's sender of `uplink`, on the near box, with the default row.
    fn uplink(&self) -> Running {
        let (cpu, is_up) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(true)));
        let show = cpu.clone();
        let (send, receive) = std::sync::mpsc::channel();
        let thread = self.boxes[0].spawn(move || {
            let rules =
                Rules::Uplink { satellite: vec!["lan".to_owned()], device: "bentpipe0".to_owned(), ports: Vec::new() };
            let Satellite { rate, round_trip, .. } = satellite();
            let mut variant = Variant::named("constant-rack").expect("a row of the table");
            // For what clients send.
            variant.sack = true;
            let config = UplinkConfig {
                sender: UplinkSender {
                    tcp: TcpConfig { variant, timestamps: true, ..TcpConfig::default() },
                    window: Some(rate.bytes_in_floor(round_trip)),
                    rate,
                    round_trip,
                    mtu: 1500,
                },
                early_accept: false,
                max_streams: 10_000,
                memory: 256 << 20,
            };
            let gateway = UplinkGateway::uplink(&instance(), "bentpipe0", config, ClientAddress::Keep);
            let (mut gateway, lacks) = gateway.expect("root may");
            assert!(lacks.is_empty(), "{lacks:?}");
            rules.install(&instance()).expect("nft and ip work");
            send.send(gateway.stop()).expect("somebody waits");
            gateway.run(|_| show.store(cpu_of_thread(), Ordering::Relaxed)).expect("the system works");
            rules.remove(&instance()).expect("nft works");
        });
        Running { stop: receive.recv().expect("it starts"), thread: Some(thread), cpu, is_up }
    }
}

fn satellite() -> Satellite {
    Satellite {
        rate: Rate::from_bits_per_second(20_000_000_000).expect("not zero"),
        round_trip: units::Duration::from_millis(2),
        path_mtu: 1500,
        over_ipv6: false,
        reordering: 64,
        shared: false,
    }
}

struct Running {
    stop: Stop,
    thread: Option<JoinHandle<()>>,
    cpu: Arc<AtomicU64>,
    is_up: Arc<AtomicBool>,
}

impl Running {
    /// CPU time so far, ns, as of now.
    fn cpu(&self) -> u64 {
        self.stop.wake();
        std::thread::sleep(Duration::from_millis(20));
        self.cpu.load(Ordering::Relaxed)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.now();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the gateway panicked");
        }
    }
}

fn main() {
    let mut out = None;
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(word) = words.next() {
        match word.as_str() {
            "--out" => out = words.next(),
            other => panic!("unknown option {other}"),
        }
    }
    let mut json = String::from("[\n");
    let mut say = |what: &str, value: f64, unit: &str| {
        println!("{what:44} {value:10.2} {unit}");
        writeln!(json, "  {{\"name\": \"{what}\", \"value\": {value:.3}, \"unit\": \"{unit}\"}},").expect("memory");
    };
    let per_core = |bytes: u64, nanos: u64| bytes as f64 * 8.0 / nanos.max(1) as f64;
    {
        let row = Row::new();
        let (server, received) = sink(&row);
        let (speed, _) = transfer(&row, server, &received, |_| {});
        say("forwarded by the kernel", speed, "Gbit/s by the clock");
        say("connections, forwarded by the kernel", connections(&row, 8000), "per second");
        let (at, cpu) = relay(&row, server);
        let mut looks = Vec::new();
        let (speed, bytes) = transfer(&row, at, &received, |_| looks.push(cpu.load(Ordering::Relaxed)));
        say("plain relay", speed, "Gbit/s by the clock");
        say("plain relay", per_core(bytes, looks[1] - looks[0]), "Gbit/s per core");
    }
    for shape in ["relay, one-sided", "uplink"] {
        let row = Row::new();
        let (server, received) = sink(&row);
        let gateway = if shape == "uplink" { row.uplink() } else { row.one_sided() };
        std::thread::sleep(Duration::from_millis(200));
        for way in ["up", "down"] {
            let mut looks = Vec::new();
            let look = |_| looks.push(gateway.cpu());
            let (speed, bytes) =
                if way == "up" { transfer(&row, server, &received, look) } else { download(&row, look) };
            say(&format!("{shape}, {way}"), speed, "Gbit/s by the clock");
            say(&format!("{shape}, {way}"), per_core(bytes, looks[1] - looks[0]), "Gbit/s per core");
        }
        let (before, count) = (gateway.cpu(), 8000);
        say(&format!("connections, {shape}"), connections(&row, count), "per second");
        say(&format!("connections, {shape}"), count as f64 * 1e9 / (gateway.cpu() - before) as f64, "per CPU-second");
    }
    for shape in ["split", "link"] {
        let row = Row::new();
        let (server, received) = sink(&row);
        let both = if shape == "split" { row.split() } else { row.link() };
        while !both.iter().all(|end| end.is_up.load(Ordering::Relaxed)) {
            both.iter().for_each(|end| end.stop.wake());
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_millis(200));
        let mut looks = Vec::new();
        let look = |_| looks.push([both[0].cpu(), both[1].cpu()]);
        let (speed, bytes) = transfer(&row, server, &received, look);
        say(&format!("{shape}, encrypted"), speed, "Gbit/s by the clock");
        for (n, end) in ["far", "near"].into_iter().enumerate() {
            let spent = looks[1][n] - looks[0][n];
            say(&format!("{shape}, encrypted, {end} end"), per_core(bytes, spent), "Gbit/s per core");
        }
        if shape == "split" {
            let before = [both[0].cpu(), both[1].cpu()];
            let count = 8000;
            say("connections, split", connections(&row, count), "per second");
            for (n, end) in ["far", "near"].into_iter().enumerate() {
                let spent = both[n].cpu() - before[n];
                say(&format!("connections, split, {end} end"), count as f64 * 1e9 / spent as f64, "per CPU-second");
            }
        }
    }
    let json = json.trim_end().trim_end_matches(',').to_owned() + "\n]\n";
    if let Some(out) = out {
        std::fs::write(&out, json).expect("the file can be written");
    }
}
