//! A hub with many terminals, each a gateway of the command: `client ── hub ══ field`.
//!
//! Ten terminals share a namespace, a field. What each serves is an address of its own there. In one namespace each of 200 terminals of
//! `link` would look at the devices of all others every second.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::Measured;
use crate::hosts::many_descriptors;
use crate::namespace::Namespace;
use crate::pair::{Hosts, Running, attach, bentpipe, folder, inside};

struct Field {
    hosts: Hosts,
    hub: Arc<Namespace>,
    fields: Vec<Arc<Namespace>>,
    terminals: Vec<Running>,
    running: Running,
}

fn address(n: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 100 + (n / 200) as u8, (n % 200) as u8, 2)
}

/// The first address of the terminals' devices.
const TUNS: u32 = u32::from_be_bytes([10, 8, 0, 1]);

/// Terminals of a field.
const PER_FIELD: usize = 10;

/// Connections per second that are opened to the flooded terminal and reset.
const RESETS: f64 = 1000.0;

/// The port of the servers, which send back what they are sent.
const ECHO: u16 = 80;

impl Field {
    /// `count` terminals, on a line of `rate` together. They run with the hub.
    fn new(count: usize, rate: &str, is_link: bool) -> Field {
        many_descriptors();
        let namespace = || Arc::new(Namespace::new().expect("root and namespaces"));
        let [client, hub] = [(); 2].map(|()| namespace());
        attach(&client, &hub, "lan", 2);
        let fields: Vec<_> = (0..count.div_ceil(PER_FIELD)).map(|_| namespace()).collect();
        for (n, field) in fields.iter().enumerate() {
            inside(&hub, &format!("ip link add sky{n} type veth peer name sky netns {}", field.name()));
            for (at, device, end) in [(&hub, format!("sky{n}"), 1), (field, "sky".to_owned(), 2)] {
                inside(at, &format!("ip addr add 10.9.{n}.{end}/24 dev {device}"));
                inside(at, &format!("ip link set {device} up"));
            }
            inside(field, "ip link set lo up");
            // Terminals of a field are one host, and what comes for one of them goes out by its own device.
            inside(field, "sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0");
        }
        let folder = folder();
        let keygen = |name: &str| {
            let output = bentpipe(folder.path(), &["keygen", &format!("{name}.key")]);
            String::from_utf8(output.stdout).expect("text").trim().to_owned()
        };
        let write = |name: &str, text: String| {
            std::fs::write(folder.path().join(format!("{name}.toml")), text).expect("a file");
        };
        let hub_key = keygen("hub");
        let mut peers = String::new();
        for n in 0..count {
            let (name, key, at) = (format!("t{n}"), keygen(&format!("t{n}")), address(n));
            inside(&fields[n / PER_FIELD], &format!("ip addr add {at}/32 dev lo"));
            peers += &format!("[[peers]]\nname = \"{name}\"\nkey = \"{key}\"\nprefixes = [\"{at}\"]\n");
            let text = format!(
                "name = \"{name}\"\ncontrol = \"{name}.sock\"\n[tunnel]\nprivate_key = \"{name}.key\"\npeer_key = \"{hub_key}\"\n\
                 state = \"{name}.state\"\npeer = \"10.9.{}.1:4500\"\nlisten = \"0.0.0.0:{}\"\n[satellite]\nrate = \"{rate}\"\n\
                 round_trip = \"600 ms\"\n{}",
                n / PER_FIELD,
                5000 + n,
                match is_link {
                    true => format!(
                        "[link]\ndevice = \"{name}\"\naddresses = [\"{}/32\"]\n",
                        Ipv4Addr::from(TUNS + n as u32)
                    ),
                    false => format!("[split]\nclient_address = \"replace\"\nallow = [\"{at}\"]\n"),
                }
            );
            write(&name, text);
        }
        let text = format!(
            "name = \"hub\"\ncontrol = \"hub.sock\"\n[tunnel]\nprivate_key = \"hub.key\"\nstate = \"hub.state\"\n[satellite]\nrate = \
             \"{rate}\"\nround_trip = \"600 ms\"\n{}\n{peers}",
            if is_link { "[link]\naddresses = [\"10.8.255.1/32\"]" } else { "[split]\ncapture = [\"lan\"]" }
        );
        write("hub", text);
        let running = Running::start(&hub, folder.path(), "hub", 8192);
        let terminals =
            (0..count).map(|n| start_without_rules(&fields[n / PER_FIELD], folder.path(), &format!("t{n}")));
        let terminals = terminals.collect();
        let server = fields[0].clone();
        let made = Field { hosts: Hosts { client, server, folder }, hub, fields, terminals, running };
        made.serve(ECHO, |mut stream| {
            if let Ok(mut reader) = stream.try_clone() {
                let _ = std::io::copy(&mut reader, &mut stream);
            }
        });
        made
    }

    fn serve(&self, port: u16, work: fn(TcpStream)) {
        for field in &self.fields {
            let at = (Ipv4Addr::UNSPECIFIED, port);
            let listener = field.inside(move || TcpListener::bind(at).expect("a free port"));
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    std::thread::spawn(move || work(stream));
                }
            });
        }
    }

    fn peers_up(&self) -> u64 {
        self.hosts.status("hub").and_then(|status| status["tunnel"]["peers_up"].as_u64()).unwrap_or(0)
    }

    /// Of `link`: sends what is for terminals into the hub's device, and what a terminal answers into the terminal's.
    fn route(&self) {
        inside(&self.hub, "ip route replace 10.100.0.0/14 dev bentpipe0");
        for n in 0..self.terminals.len() {
            let (at, table, field) = (address(n), 1000 + n, &self.fields[n / PER_FIELD]);
            inside(field, &format!("ip rule add from {at} lookup {table}"));
            inside(field, &format!("ip route replace default dev t{n} table {table}"));
        }
    }

    /// How long it takes until all are up.
    fn until_up(&self) -> f64 {
        let start = Instant::now();
        while self.peers_up() < self.terminals.len() as u64 && start.elapsed() < Duration::from_secs(120) {
            std::thread::sleep(Duration::from_millis(100));
        }
        start.elapsed().as_secs_f64()
    }

    /// The hub's resident memory, bytes, and its CPU time, seconds.
    fn cost(&self) -> (f64, f64) {
        let process = &self.hosts.fresh_status("hub")["process"];
        let of = |key: &str| process[key].as_f64().expect("a number");
        (of("resident_bytes"), of("cpu_ms") / 1000.0)
    }

    /// Bytes per second that uploads to these terminals have together, one to each: they go over the line of the hub.
    fn bulk(&self, from: impl Iterator<Item = usize>, span: Duration) -> f64 {
        let (ended, sum) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let readers: Vec<_> = from.map(|n| self.uploads(n, ended.clone(), sum.clone())).collect();
        // Slow start and rates are over.
        std::thread::sleep(Duration::from_secs(3));
        let before = sum.load(Ordering::Relaxed);
        let start = Instant::now();
        std::thread::sleep(span);
        let rate = (sum.load(Ordering::Relaxed) - before) as f64 / start.elapsed().as_secs_f64();
        ended.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().expect("no panic"));
        rate
    }

    /// One upload from the client to a terminal until it is ended; what has come back is counted.
    fn uploads(&self, n: usize, ended: Arc<AtomicBool>, sum: Arc<AtomicU64>) -> std::thread::JoinHandle<()> {
        let to = SocketAddr::from((address(n), ECHO));
        let stream = self.hosts.connect(to);
        std::thread::spawn(move || {
            let Ok(mut stream) = stream else { return };
            let Ok(mut reader) = stream.try_clone() else { return };
            let _ = stream.set_write_timeout(Some(Duration::from_millis(500)));
            let _ = reader.set_read_timeout(Some(Duration::from_millis(500)));
            let stop = ended.clone();
            // What the far server has answered it has received.
            let counter = std::thread::spawn(move || {
                let mut buffer = vec![0; 1 << 16];
                while !stop.load(Ordering::Relaxed) {
                    match reader.read(&mut buffer) {
                        Ok(0) => return,
                        Ok(count) => drop(sum.fetch_add(count as u64, Ordering::Relaxed)),
                        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                        Err(_) => return,
                    }
                }
            });
            while !ended.load(Ordering::Relaxed) {
                match stream.write(&[7; 1000]) {
                    Ok(_) => {}
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                    Err(_) => break,
                }
            }
            let _ = counter.join();
        })
    }
}

/// Terminals that only serve need no rules of the kernel, of which there would be 200 tables.
fn start_without_rules(host: &Namespace, folder: &std::path::Path, name: &str) -> Running {
    let said = std::fs::File::create(folder.join(format!("{name}.said"))).expect("a file");
    let line = format!("exec \"$0\" run --no-rules {name}.toml");
    let child = std::process::Command::new("ip")
        .args(["netns", "exec", host.name(), "sh", "-c", &line, env!("CARGO_BIN_EXE_bentpipe-gateway")])
        .current_dir(folder)
        .stderr(std::process::Stdio::from(said))
        .spawn();
    Running(child.expect("iproute2 is there"))
}

fn count(is_short: bool) -> usize {
    if is_short { 20 } else { 200 }
}

/// The hub's memory and CPU for each terminal that is up and idle, beside a hub with one.
pub(super) fn cost(is_short: bool, is_link: bool) -> Measured {
    let (count, span) = (count(is_short), Duration::from_secs(if is_short { 10 } else { 60 }));
    let [one, all] = [1, count].map(|count| {
        let field = Field::new(count, "50 Mbit/s", is_link);
        let took = field.until_up();
        let (_, before) = field.cost();
        let start = Instant::now();
        std::thread::sleep(span);
        let (memory, after) = field.cost();
        (memory, (after - before) / start.elapsed().as_secs_f64(), took, field.peers_up())
    });
    let others = (count - 1) as f64;
    let (memory, cpu) = ((all.0 - one.0) / others, (all.1 - one.1) / others);
    let text = format!(
        "{} of {count} up; {:.0} kB and {:.3} % of a core each (hub with one: {:.1} MB, {:.2} %; with {count}: {:.1} MB, {:.2} %)",
        all.3,
        memory / 1e3,
        cpu * 100.0,
        one.0 / 1e6,
        one.1 * 100.0,
        all.0 / 1e6,
        all.1 * 100.0,
    );
    // A terminal of 500 kB and a thousandth of a core: 200 of them take 100 MB and a fifth of one.
    Measured { text, is_met: all.3 == count as u64 && memory < 500e3 && cpu < 0.001 }
}

/// From the start of the hub, after it was killed, until all terminals are up.
pub(super) fn storm(is_short: bool, is_link: bool) -> Measured {
    let mut field = Field::new(count(is_short), "50 Mbit/s", is_link);
    let first = field.until_up();
    let mut took = Vec::new();
    for _ in 0..if is_short { 1 } else { 3 } {
        field.running.0.kill().expect("it runs");
        field.running.0.wait().expect("it ends");
        field.running = Running::start(&field.hub, field.hosts.folder.path(), "hub", 8192);
        took.push(field.until_up());
    }
    let worst = took.iter().copied().fold(0.0, f64::max);
    let text =
        format!("{} up; worst of {} restarts {worst:.1} s (first start {first:.1} s)", field.peers_up(), took.len());
    Measured { text, is_met: field.peers_up() == field.terminals.len() as u64 && worst < 20.0 }
}

/// Five terminals' bulk, before one other's hosts take fifty times as much, there and back, and connect and reset besides, and
/// meanwhile.
pub(super) fn flood(is_short: bool, is_link: bool) -> Measured {
    let field = Field::new(count(is_short), "20 Mbit/s", is_link);
    field.until_up();
    if is_link {
        field.route();
    }
    let span = Duration::from_secs(if is_short { 10 } else { 30 });
    let before = field.bulk(1..6, span);
    let (ended, sum) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let greedy: Vec<_> = (0..50).map(|_| field.uploads(0, ended.clone(), sum.clone())).collect();
    let (client, stop) = (field.hosts.client.clone(), ended.clone());
    let resets = std::thread::spawn(move || {
        client.inside(move || {
            let (mut count, start) = (0_u64, Instant::now());
            while !stop.load(Ordering::Relaxed) {
                if count as f64 >= start.elapsed().as_secs_f64() * RESETS {
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                }
                let made = TcpStream::connect_timeout(&(address(0), ECHO).into(), Duration::from_secs(1));
                if let Ok(stream) = made {
                    let _ = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
                }
                count += 1;
            }
            count
        })
    });
    std::thread::sleep(Duration::from_secs(3));
    let (_, cpu) = field.cost();
    let start = Instant::now();
    let during = field.bulk(1..6, span);
    let cpu = (field.cost().1 - cpu) / start.elapsed().as_secs_f64();
    ended.store(true, Ordering::Relaxed);
    greedy.into_iter().for_each(|reader| reader.join().expect("no panic"));
    let resets = resets.join().expect("no panic");
    let share = during / before;
    let text = format!(
        "{:.2} Mbit/s before, {:.2} meanwhile: {:.0} %; the flood had {:.2} MB and {resets} resets; the hub {:.0} % of a core",
        before * 8e-6,
        during * 8e-6,
        share * 100.0,
        sum.load(Ordering::Relaxed) as f64 / 1e6,
        cpu * 100.0,
    );
    Measured { text, is_met: share >= 0.7 }
}
