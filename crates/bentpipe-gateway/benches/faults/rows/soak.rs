//! Many connections for a long time, or for many bytes, and a fault every minute. A transfer that waits for long is shown from all four
//! hosts.

mod looks;
mod one_box;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bentpipe_engine::stream::Stream;

use self::looks::{LOOK_AFTER, Looks};
use crate::Measured;
use crate::hosts::many_descriptors;
use crate::namespace::Namespace;
use crate::pair::{Line, NAMES, Running, inside};
pub(super) use one_box::run as run_one_box;

/// No transfer may wait longer for its connection or its next byte.
const MAX_STALL: Duration = Duration::from_secs(60);
/// Objects have up to so many bytes.
const MAX_OBJECT: u32 = 400_000;

#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill(usize),
    Restart(usize),
    LinkDown,
    Loss,
    Mtu,
    Reload,
}

const FAULTS: [Fault; 8] = [
    Fault::Kill(0),
    Fault::LinkDown,
    Fault::Restart(1),
    Fault::Loss,
    Fault::Kill(1),
    Fault::Mtu,
    Fault::Restart(0),
    Fault::Reload,
];

#[derive(Default)]
struct Counts {
    /// Transfers that ended cleanly with all their bytes.
    whole: AtomicU64,
    /// Transfers that were reset, or refused: their programs know.
    broken: AtomicU64,
    /// Transfers that ended cleanly with other bytes, or had other bytes before their end.
    wrong: AtomicU64,
    stalled: AtomicU64,
    /// The longest wait for a next byte, milliseconds.
    longest: AtomicU64,
    /// Bytes that were as they should be.
    bytes: AtomicU64,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let got = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        write!(f, "{} whole, {} reset, {} wrong, ", got(&self.whole), got(&self.broken), got(&self.wrong))?;
        write!(f, "{} stalled, longest wait {:.1} s, ", got(&self.stalled), got(&self.longest) as f64 / 1e3)?;
        write!(f, "{:.1} GB", got(&self.bytes) as f64 / 1e9)
    }
}

/// Object `n`: a piece of bytes at random, whose place and length the number decides. Parts of two objects, or of one in another
/// order, are other bytes.
fn object(n: u32) -> &'static [u8] {
    const PLACES: u32 = 1 << 20;
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    let bytes = BYTES.get_or_init(|| {
        let mut random = Stream::named(1, "objects");
        (0..PLACES + MAX_OBJECT).map(|_| (random.uniform() * 256.0) as u8).collect()
    });
    let at = (n.wrapping_mul(2_654_435_761) % PLACES) as usize;
    &bytes[at..at + 1 + (n.wrapping_mul(0x85eb_ca6b) % MAX_OBJECT) as usize]
}

/// Sends the object that is asked for by its number, and ends.
fn serve_object(mut stream: TcpStream) {
    let mut number = [0; 4];
    if stream.read_exact(&mut number).is_ok() {
        let _ = stream.write_all(object(u32::from_be_bytes(number)));
    }
}

/// Connects. Waiting for that counts as waiting for a byte does.
fn connect(to: SocketAddr, counts: &Counts) -> std::io::Result<TcpStream> {
    let begun = Instant::now();
    let stream = TcpStream::connect_timeout(&to, MAX_STALL);
    counts.longest.fetch_max(begun.elapsed().as_millis() as u64, Ordering::Relaxed);
    stream
}

/// Asks for an object and judges what comes.
fn fetch(stream: std::io::Result<TcpStream>, n: u32, counts: &Counts, looks: &Looks) {
    let count = |counter: &AtomicU64| {
        counter.fetch_add(1, Ordering::Relaxed);
    };
    let mut stream = match stream {
        Ok(stream) => stream,
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut => return count(&counts.stalled),
        Err(_) => return count(&counts.broken),
    };
    stream.set_read_timeout(Some(LOOK_AFTER)).expect("not zero");
    let port = stream.local_addr().map_or(0, |at| at.port());
    if stream.write_all(&n.to_be_bytes()).is_err() {
        return count(&counts.broken);
    }
    let (object, mut buffer, mut got) = (object(n), vec![0; 1 << 16], 0);
    let mut begun = Instant::now();
    loop {
        let read = stream.read(&mut buffer);
        counts.longest.fetch_max(begun.elapsed().as_millis() as u64, Ordering::Relaxed);
        match read {
            Ok(0) if got == object.len() => return count(&counts.whole),
            Ok(0) => {
                let (all, since) = (object.len(), begun.elapsed());
                looks.take(port, &format!("ended cleanly after {got} of {all} bytes, {since:.1?} after the last"));
                return count(&counts.wrong);
            }
            Ok(len) => {
                if object.get(got..got + len) != Some(&buffer[..len]) {
                    looks.take(port, &format!("has other bytes after {got} of {}", object.len()));
                    return count(&counts.wrong);
                }
                got += len;
                counts.bytes.fetch_add(len as u64, Ordering::Relaxed);
                begun = Instant::now();
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                if begun.elapsed() >= MAX_STALL {
                    return count(&counts.stalled);
                }
                looks.take(port, &format!("has waited for {LOOK_AFTER:?}"));
            }
            Err(_) => return count(&counts.broken),
        }
    }
}

/// Clients that fetch objects one after the other.
struct Load {
    counts: Arc<Counts>,
    is_over: Arc<AtomicBool>,
    clients: Vec<std::thread::JoinHandle<()>>,
}

impl Load {
    fn begin(client: &Arc<Namespace>, server: SocketAddr, open: u32, looks: Looks) -> Load {
        let (counts, is_over) = (Arc::new(Counts::default()), Arc::new(AtomicBool::new(false)));
        let looks = Arc::new(looks);
        let clients = (0..open).map(|first| {
            let (counts, is_over, looks, namespace) = (counts.clone(), is_over.clone(), looks.clone(), client.clone());
            std::thread::spawn(move || {
                let mut n = first;
                while !is_over.load(Ordering::Relaxed) {
                    let of_connecting = counts.clone();
                    let stream = namespace.inside(move || connect(server, &of_connecting));
                    let is_refused = stream.is_err();
                    fetch(stream, n, &counts, &looks);
                    n = n.wrapping_add(open);
                    // A box that is down refuses at once.
                    std::thread::sleep(Duration::from_millis(if is_refused { 500 } else { 0 }));
                }
            })
        });
        Load { clients: clients.collect(), counts, is_over }
    }

    /// What was found, and whether nothing was wrong.
    fn end(self) -> (String, bool) {
        self.is_over.store(true, Ordering::Relaxed);
        self.clients.into_iter().for_each(|client| client.join().expect("no panic"));
        let got = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counts = &self.counts;
        (counts.to_string(), got(&counts.wrong) == 0 && got(&counts.stalled) == 0 && got(&counts.whole) > 0)
    }
}

/// Gateways that carry a load while faults meet them.
trait Gateways {
    type Fault: Copy + std::fmt::Debug;

    /// Brings a fault about and, unless it is one for good, ends it within `span`.
    fn suffer(&mut self, fault: Self::Fault, span: Duration);

    /// Resident memory, MB, and descriptors.
    fn held(&self) -> (f64, usize);
}

/// How long a load lasts.
#[derive(Clone, Copy)]
enum Lasts {
    /// Each fault so many times.
    Rounds(usize),
    /// Until so many bytes have arrived.
    Bytes(u64),
}

/// A load, the line that it has, and how often a fault meets it.
#[derive(Clone, Copy)]
pub(super) struct Form {
    rate: &'static str,
    open: u32,
    span: Duration,
    lasts: Lasts,
}

impl Form {
    /// 200 connections for `rounds` of all faults, a fault every minute. Short: 20 for one round.
    pub(super) fn long(is_short: bool, rate: &'static str, rounds: usize) -> Form {
        let (open, span, rounds) = if is_short { (20, 8, 1) } else { (200, 60, rounds) };
        Form { rate, open, span: Duration::from_secs(span), lasts: Lasts::Rounds(rounds) }
    }

    /// 100 GB through a line that the processors fill, a fault every minute. Short: 1 GB.
    pub(super) fn wide(is_short: bool) -> Form {
        let (open, span, bytes) = if is_short { (20, 8, 1_000_000_000) } else { (200, 60, 100_000_000_000) };
        Form { rate: "10 Gbit/s", open, span: Duration::from_secs(span), lasts: Lasts::Bytes(bytes) }
    }
}

/// Each of the faults in its turn, one per `span`.
fn endure<G: Gateways>(
    gateways: &mut G,
    faults: &[G::Fault],
    Form { span, lasts, .. }: Form,
    load: impl FnOnce(&G) -> Load,
) -> Measured {
    let before = gateways.held();
    let load = load(gateways);
    std::thread::sleep(span);
    let (start, mut most) = (Instant::now(), 0.0_f64);
    let rounds = if let Lasts::Rounds(rounds) = lasts { rounds } else { usize::MAX };
    let is_over = || matches!(lasts, Lasts::Bytes(bytes) if load.counts.bytes.load(Ordering::Relaxed) >= bytes);
    for fault in faults.iter().cycle().take(rounds.saturating_mul(faults.len())) {
        let begun = Instant::now();
        gateways.suffer(*fault, span);
        while begun.elapsed() < span && !is_over() {
            std::thread::sleep(span.saturating_sub(begun.elapsed()).min(Duration::from_secs(1)));
        }
        let (resident, descriptors) = gateways.held();
        most = most.max(resident);
        // An hour is long: what was seen so far is worth something.
        let minutes = start.elapsed().as_secs_f64() / 60.0;
        println!("  {minutes:.1} min, after {fault:?}: {}; {resident:.1} MB, {descriptors} descriptors", load.counts);
        if is_over() {
            break;
        }
    }
    let (counts, is_met) = load.end();
    std::thread::sleep(Duration::from_secs(5));
    let after = gateways.held();
    let text = format!(
        "{counts}; {:.0} MB and {} descriptors idle before, {:.0} and {} after, {most:.0} MB at most",
        before.0, before.1, after.0, after.1
    );
    Measured { text, is_met: is_met && after.1 < 64 }
}

struct Boxes {
    line: Line,
    running: [Running; 2],
    is_link: bool,
}

impl Boxes {
    fn start(&mut self, end: usize) {
        self.running[end] = self.line.start(NAMES[end], 4096);
        self.route(end);
    }

    /// What should go over the link is routed into the TUN device, once there is one.
    fn route(&self, end: usize) {
        if self.is_link {
            let gate = if end == 0 { &self.line.near } else { &self.line.far };
            self.line.wait_until_up(&NAMES[end..=end], true);
            inside(gate, &format!("ip route replace 10.{}.0.0/24 dev bentpipe0", 2 - end));
        }
    }
}

impl Gateways for Boxes {
    type Fault = Fault;

    fn suffer(&mut self, fault: Fault, span: Duration) {
        let gates = [self.line.near.clone(), self.line.far.clone()];
        match fault {
            Fault::Kill(end) => {
                self.running[end].0.kill().expect("it runs");
                self.running[end].0.wait().expect("it ends");
                self.start(end);
            }
            Fault::Restart(end) => {
                self.running[end].signal("TERM");
                std::thread::sleep(Duration::from_secs(1));
                // What drains for longer is told once more, and ends at once.
                self.running[end].signal("TERM");
                self.running[end].ends();
                self.start(end);
            }
            Fault::LinkDown => {
                inside(&gates[0], "ip link set sat down");
                std::thread::sleep(Duration::from_secs(5));
                inside(&gates[0], "ip link set sat up");
                inside(&gates[0], "ip route replace 10.2.0.0/24 via 10.9.0.2");
                self.route(0);
            }
            Fault::Loss => {
                for gate in &gates {
                    inside(gate, "nft add table inet soak");
                    inside(gate, "nft add chain inet soak input { type filter hook input priority 0 ; }");
                    inside(gate, "nft add rule inet soak input iifname sat numgen random mod 100 < 20 drop");
                }
                std::thread::sleep(span / 2);
                gates.iter().for_each(|gate| drop(inside(gate, "nft delete table inet soak")));
            }
            Fault::Mtu => {
                gates.iter().for_each(|gate| drop(inside(gate, "ip link set sat mtu 1280")));
                std::thread::sleep(span / 2);
                gates.iter().for_each(|gate| drop(inside(gate, "ip link set sat mtu 1500")));
            }
            Fault::Reload => self.running.iter().for_each(|gateway| gateway.signal("HUP")),
        }
    }

    /// What the larger of the two takes: resident memory, MB, and descriptors.
    fn held(&self) -> (f64, usize) {
        let count =
            |gateway: &Running| std::fs::read_dir(format!("/proc/{}/fd", gateway.0.id())).expect("it runs").count();
        let of = |name: &str| self.line.fresh_status(name)["process"]["resident_bytes"].as_f64().expect("a number");
        let resident = NAMES.iter().map(|name| of(name)).fold(0.0, f64::max);
        (resident / 1e6, self.running.iter().map(count).max().expect("two"))
    }
}

pub(super) fn run(form: Form, is_link: bool) -> Measured {
    many_descriptors();
    let line = Line::new(form.rate);
    if is_link {
        line.edit("near", "[split]\ncapture = [\"lan\"]", "[link]\naddresses = [\"10.8.0.1/24\"]");
        line.edit("far", "[split]", "[link]\naddresses = [\"10.8.0.2/24\"]");
    }
    let server = line.serve(80, serve_object);
    let running = NAMES.map(|name| line.start(name, 4096));
    let mut boxes = Boxes { line, running, is_link };
    boxes.line.wait_until_up(&NAMES, true);
    (0..2).for_each(|end| boxes.route(end));
    endure(&mut boxes, &FAULTS, form, |Boxes { line, .. }| {
        let hosts = [&line.client, &line.near, &line.far, &line.server].map(|host| host.name());
        let looks = Looks::new(line, &["client", "near", "far", "server"], &hosts, &NAMES);
        Load::begin(&line.client, server, form.open, looks)
    })
}
