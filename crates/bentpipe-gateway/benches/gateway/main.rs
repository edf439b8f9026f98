//! What a gateway gains: kernel TCP at both hosts, with and without gateways on the same path. `make bench-gateway`.
//!
//! GEO, 10 Mbit/s, 600 ms round trip, 500 packets of drop-tail; a bulk transfer with a ping beside it, and objects on new connections.
//! Losses and outages have run for up to a minute when a seed begins. Options: `--seeds N`, `--jobs N` seeds at once, `--rate "20 Mbit/s"`
//! of the link, `--up "3 Mbit/s"` from client to server if that is another, `--round-trip "650 ms"`, `--queue PACKETS`, `--told "20
//! Mbit/s"` to the gateways (99.5 % of the rate if not given), `--bulk BYTES`, `--modes direct,split,link,uplink`, `--losses
//! 0,0.01,outages`, `--direction up|down` of the bulk, `--kernel cubic|reno` at the hosts, `--memory MIB` of a box of `split` (256 if not
//! given), `--objects 100000,1000000` or `no`, `--shared yes` for gateways that find their share, `--beside cubic|bbr` for a greedy
//! connection of the kernel's from box to box outside of all tunnels, `--out FILE` for JSON.
//!
//! `uplink` is the box with the burst-loss sender; `uplink-ROW` takes another row of the table of variants, and
//! `uplink-ROW-fixed` that row with a window of one bandwidth-delay product from the first segment on. It serves
//! downloads: compare it with `direct` under `--direction down`. `uplink-kernel-NAME` is the same box with the kernel's
//! sender and that congestion control.
//!
//! `--ping no`: no ping beside the bulk transfer. Through gateways it takes 13 kbit/s, which is 1 % of a slow link.
//!
//! `--paced yes`: hosts whose default is bbr. Their sockets are paced, also under the control that they are given later.
#![allow(dead_code)] // What the tests use and this does not.

#[path = "../../tests/it/hosts.rs"]
mod hosts;
#[path = "../../../bentpipe-io/tests/it/real_time/namespace.rs"]
mod namespace;
#[path = "../../tests/it/sky.rs"]
mod sky;
#[path = "../../tests/it/world.rs"]
mod world;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bentpipe_engine::stream::Stream;
use bentpipe_engine::tcp::variant::Startup;
use bentpipe_engine::units;
use bentpipe_gateway::{ClientAddress, RelayConfig};

use serde_json::json;
use world::{Path, SERVER, World, run};

struct Options {
    seeds: u64,
    jobs: usize,
    rate: u64,
    up: Option<u64>,
    round_trip: u64,
    queue: u32,
    told: Option<u64>,
    bulk: usize,
    /// Bytes.
    memory: u64,
    modes: Vec<String>,
    losses: Vec<String>,
    down: bool,
    kernel: String,
    paced: bool,
    ping: bool,
    /// Their lengths, bytes.
    objects: Vec<usize>,
    shared: bool,
    beside: Option<String>,
    out: Option<String>,
}

fn rate(text: &str) -> u64 {
    let number = text.strip_suffix(" Mbit/s").and_then(|number| number.parse::<u64>().ok());
    1_000_000 * number.unwrap_or_else(|| panic!("{text} is no rate such as \"20 Mbit/s\""))
}

fn milliseconds(text: &str) -> u64 {
    let number = text.strip_suffix(" ms").and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("{text} is no time such as \"650 ms\""))
}

fn options() -> Options {
    let mut options = Options {
        seeds: 5,
        jobs: 1,
        rate: 10_000_000,
        up: None,
        round_trip: 600,
        queue: 500,
        told: None,
        bulk: 30_000_000,
        memory: 256 << 20,
        modes: ["direct", "split", "link"].map(str::to_owned).into(),
        losses: ["0", "0.001", "0.01", "0.05", "outages"].map(str::to_owned).into(),
        down: false,
        kernel: "cubic".to_owned(),
        paced: false,
        ping: true,
        objects: vec![100_000, 1_000_000],
        shared: false,
        beside: None,
        out: None,
    };
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        let list = || value.split(',').map(str::to_owned).collect();
        match word.as_str() {
            "--seeds" => options.seeds = value.parse().expect("a number"),
            "--jobs" => options.jobs = value.parse().expect("a number"),
            "--rate" => options.rate = rate(&value),
            "--up" => options.up = Some(rate(&value)),
            "--round-trip" => options.round_trip = milliseconds(&value),
            "--queue" => options.queue = value.parse().expect("a number of packets"),
            "--told" => options.told = Some(rate(&value)),
            "--bulk" => options.bulk = value.parse().expect("a number of bytes"),
            "--memory" => options.memory = value.parse::<u64>().expect("a number of MiB") << 20,
            "--modes" => options.modes = list(),
            "--losses" => options.losses = list(),
            "--direction" => {
                options.down = match value.as_str() {
                    "up" => false,
                    "down" => true,
                    other => panic!("{other} is no direction, which is up or down"),
                }
            }
            "--kernel" => options.kernel = value,
            "--paced" => options.paced = value != "no",
            "--ping" => options.ping = value != "no",
            "--objects" if value == "no" => options.objects.clear(),
            "--objects" => options.objects = value.split(',').map(|len| len.parse().expect("bytes")).collect(),
            "--shared" => options.shared = value != "no",
            "--beside" => options.beside = Some(value),
            "--out" => options.out = Some(value),
            other => panic!("unknown option {other}"),
        }
    }
    options
}

/// What one seed gave; `None` where it was not asked for.
#[derive(Clone, Debug, Default)]
struct Sample {
    mbits: f64,
    offered: f64,
    ping: f64,
    beside: f64,
    /// Seconds that three objects of each length take.
    objects: Vec<[f64; 3]>,
}

/// A transfer is given up after so long: kernel cubic at 5 % would take half an hour.
const PATIENCE: Duration = Duration::from_secs(40);
/// It is given up sooner if nothing has arrived for so long.
const SILENCE: Duration = Duration::from_secs(5);

/// Cubic is the kernel's default nearly everywhere; every kernel has reno.
fn congestion(stream: &TcpStream, kernel: &str) {
    socket2::SockRef::from(stream).set_tcp_congestion(kernel.as_bytes()).expect("the kernel has it");
}

/// Reads until the end, for at most [`PATIENCE`], and while something arrives at least every [`SILENCE`]; how much, and when.
fn take(mut stream: &TcpStream) -> (usize, Instant) {
    let (mut count, mut buffer, start) = (0, vec![0; 1 << 16], Instant::now());
    stream.set_read_timeout(Some(SILENCE)).expect("not zero");
    while start.elapsed() < PATIENCE {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(got) => count += got,
        }
    }
    (count, Instant::now())
}

/// Writes so many bytes and waits for the other side's end.
fn give(mut stream: &TcpStream, bytes: usize) {
    // The other side may give up before all is sent.
    let _ = stream.write_all(&vec![7; bytes]).and_then(|()| stream.shutdown(Shutdown::Write));
    let _ = stream.read(&mut [0]);
}

/// A greedy connection from the near box to the far one, besides all else on the link; what it had through so far.
fn rival(world: &World, kernel: &str) -> (TcpStream, Arc<AtomicU64>) {
    let through = Arc::new(AtomicU64::new(0));
    let count = through.clone();
    let (at, _) = hosts::serve(&world.far, "10.9.0.2", 1, move |mut stream, _| {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(got @ 1..) = stream.read(&mut buffer) {
            count.fetch_add(got as u64, Ordering::Relaxed);
        }
    });
    let stream = hosts::connect(&world.near, at);
    congestion(&stream, kernel);
    let mut sender = stream.try_clone().expect("descriptors are left");
    std::thread::spawn(move || {
        let block = vec![7; 1 << 16];
        while sender.write_all(&block).is_ok() {}
    });
    (stream, through)
}

/// Between client and server; megabits per second of what arrived, bytes offered to the sky per useful byte, median ping,
/// megabits per second of the rival.
fn bulk(world: &World, options: &Options) -> [f64; 4] {
    let rival = options.beside.as_ref().map(|kernel| rival(world, kernel));
    let (bytes, down, kernel) = (options.bulk, options.down, options.kernel.clone());
    let (at, server) = hosts::serve(&world.server, SERVER, 1, move |mut stream, _| {
        if !down {
            return Some(take(&stream));
        }
        congestion(&stream, &kernel);
        // The client may give up before its request has come.
        match stream.read_exact(&mut [0]) {
            Ok(()) => give(&stream, bytes),
            Err(error) => eprintln!("no request came: {error}"),
        }
        None
    });
    let ping = || {
        Command::new("ip")
            .args(["netns", "exec", world.client.name(), "ping", "-i", "0.2", "-w", "60", SERVER])
            .stdout(Stdio::piped())
            .spawn()
            .expect("iproute2 is there")
    };
    let ping = options.ping.then(ping);
    let way = usize::from(down);
    let offered = world.sky.offered[way].load(Ordering::Relaxed);
    let start = Instant::now();
    let through = || rival.as_ref().map_or(0, |(_, through)| through.load(Ordering::Relaxed));
    let through_before = through();
    let mut stream = hosts::connect(&world.client, at);
    congestion(&stream, &options.kernel);
    let (count, end) = if down {
        stream.write_all(&[1]).expect("it is open");
        let taken = take(&stream);
        // Aloud, where it was given up: the server writes no more then.
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("a setting");
        drop(stream);
        server.join().expect("the server ends");
        taken
    } else {
        let sender = std::thread::spawn(move || give(&stream, bytes));
        let taken = server.join().expect("the server ends")[0].expect("it took");
        let _ = sender.join();
        taken
    };
    let offered = world.sky.offered[way].load(Ordering::Relaxed) - offered;
    let through = through() - through_before;
    if let Some((stream, _)) = &rival {
        let _ = stream.shutdown(Shutdown::Both);
    }
    let times = ping.map_or_else(Vec::new, round_trips);
    let seconds = (end - start).as_secs_f64();
    let mega = |bytes: u64| bytes as f64 * 8.0 / seconds / 1e6;
    [mega(count as u64), offered as f64 / count.max(1) as f64, median(times), mega(through)]
}

/// What a ping has seen, milliseconds. It ends.
fn round_trips(mut ping: Child) -> Vec<f64> {
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(ping.id() as i32), nix::sys::signal::Signal::SIGINT);
    let mut text = String::new();
    ping.stdout.take().expect("piped").read_to_string(&mut text).expect("text");
    let _ = ping.wait();
    text.lines().filter_map(|line| line.split("time=").nth(1)?.split(' ').next()?.parse().ok()).collect()
}

/// Server to client on a new connection: from the client's SYN to the last byte.
fn object(world: &World, bytes: usize, kernel: &str) -> f64 {
    let kernel = kernel.to_owned();
    let (at, server) = hosts::serve(&world.server, SERVER, 1, move |mut stream: TcpStream, _| {
        congestion(&stream, &kernel);
        stream.read_exact(&mut [0; 100]).expect("a request");
        stream.write_all(&vec![7; bytes]).expect("the client listens");
    });
    let start = Instant::now();
    let mut stream = hosts::connect(&world.client, at);
    stream.write_all(&[1; 100]).expect("it is open");
    assert_eq!(hosts::take(&mut stream).0, bytes);
    let took = start.elapsed().as_secs_f64();
    server.join().expect("the server ends");
    took
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn sample(mode: &str, loss: &str, seed: u64, options: &Options) -> Sample {
    let path = Path {
        rate: options.rate,
        up: options.up,
        delay: units::Duration::from_millis(options.round_trip / 2),
        queue: options.queue,
        loss: loss.parse().unwrap_or(0.0),
        outages: loss == "outages",
        age: units::Duration::from_secs_f64_rounded(60.0 * Stream::named(seed, "age").uniform()),
    };
    let mut world = World::new(path, seed);
    world.shared = options.shared;
    world.told = options.told;
    world.memory = options.memory;
    for (host, at_an_end) in [(&world.client, true), (&world.near, false), (&world.far, false), (&world.server, true)] {
        // A connection that was opened while bbr was the default is paced ever after, whatever control it is given then.
        let default = if options.paced && at_an_end { "bbr" } else { "reno" };
        run(host, &format!("sysctl -qw net.ipv4.tcp_congestion_control={default}"));
    }
    for host in [&world.client, &world.server] {
        // Connections of one run teach the next ones nothing.
        run(host, "sysctl -qw net.ipv4.tcp_no_metrics_save=1");
    }
    let (split, link) = ((mode == "split").then(|| world.split()), (mode == "link").then(|| world.link()));
    let relay = mode
        .strip_prefix("uplink-kernel-")
        .map(|congestion| world.relay(RelayConfig { congestion: congestion.to_owned(), ..world.relay_config() }));
    let uplink = mode.strip_prefix("uplink").filter(|_| relay.is_none()).map(|row| {
        let row = row.strip_prefix('-').unwrap_or("burst");
        let mut config = world.uplink_config(row.strip_suffix("-fixed").unwrap_or(row));
        if row.ends_with("-fixed") {
            config.sender.tcp.variant.startup = Startup::FixedWindow(1);
            config.sender.window = Some(config.sender.rate.bytes_in_floor(config.sender.round_trip));
        }
        world.uplink(config, ClientAddress::Keep)
    });
    let took = |&bytes: &usize| [(); 3].map(|()| object(&world, bytes, &options.kernel));
    let objects = options.objects.iter().map(took).collect();
    let [mbits, offered, ping, beside] = if options.bulk > 0 { bulk(&world, options) } else { [f64::NAN; 4] };
    drop((split, link, relay, uplink));
    Sample { mbits, offered, ping, beside, objects }
}

/// What all seeds gave, in their order; `jobs` of them run at once.
fn samples(mode: &str, loss: &str, options: &Options) -> Vec<Sample> {
    let (next, found) = (AtomicU64::new(1), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > options.seeds {
                        break;
                    }
                    let sample = sample(mode, loss, seed, options);
                    found.lock().expect("nobody panics").push((seed, sample));
                }
            });
        }
    });
    let mut found = found.into_inner().expect("nobody panics");
    found.sort_by_key(|&(seed, _)| seed);
    found.into_iter().map(|(_, sample)| sample).collect()
}

fn main() {
    let options = options();
    let mut found = Vec::new();
    print!("{:20} {:>8}  {:>8} {:>8} {:>8} {:>8}", "", "loss", "Mbit/s", "offered", "ping ms", "beside");
    options.objects.iter().for_each(|len| print!(" {:>12}", format!("{} kB, s", len / 1000)));
    println!();
    for loss in &options.losses {
        for mode in &options.modes {
            let samples = samples(mode, loss, &options);
            let of = |get: fn(&Sample) -> f64| samples.iter().map(get).collect::<Vec<_>>();
            let [mbits, offered] = [of(|sample| sample.mbits), of(|sample| sample.offered)];
            let [ping, beside] = [of(|sample| sample.ping), of(|sample| sample.beside)].map(median);
            let objects: Vec<Vec<f64>> = (0..options.objects.len())
                .map(|n| samples.iter().flat_map(|sample| sample.objects[n]).collect())
                .collect();
            print!(
                "{mode:20} {loss:>8}  {:8.2} {:8.3} {ping:8.0} {beside:8.2}",
                median(mbits.clone()),
                median(offered.clone())
            );
            objects.iter().for_each(|took| print!(" {:12.2}", median(took.clone())));
            println!();
            found.push(json!({
                "mode": mode, "loss": loss, "seeds": options.seeds, "mbits": median(mbits.clone()), "offered": median(offered.clone()),
                "ping_ms": ping, "beside_mbits": beside, "object_bytes": options.objects,
                "object_s": objects.iter().cloned().map(median).collect::<Vec<_>>(),
                "mbits_runs": mbits, "offered_runs": offered, "object_s_runs": objects,
            }));
        }
    }
    if let Some(out) = options.out {
        std::fs::write(&out, format!("{:#}\n", json!(found))).expect("the file can be written");
    }
}
