//! Measures packets per second of the emulator's CPU time, for a bulk transfer of the kernel's TCP and for a flood of
//! single datagrams. Both go through two namespaces and a link of 10 Gbit/s, with offloads. For comparison, it measures
//! the same with nothing between the devices: each train is forwarded as it was read.
//!
//! The emulator's thread also pays for kernel work: a packet written to a device is processed by the receiving host's
//! stack in the same call. It has a processor of its own if there are several; the programs share the others. Otherwise
//! the scheduler would decide how many packets the thread finds at a time.
//!
//! usage, as root: cargo run --release -p bentpipe-emulator --example emulator_speed [SECONDS]

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bentpipe_emulator::Lab;
use bentpipe_engine::units::Duration as Span;
use bentpipe_io::Namespace;
use bentpipe_study::scenario::Scenario;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::unistd::Pid;
use tun_rs::{DeviceBuilder, SyncDevice, VIRTIO_NET_HDR_LEN, VirtioNetHdr};

const LINK: &str = r#"
name = "speed"
[[links]]
name = "wire"
between = ["A", "B"]
rate = "10 Gbit/s"
delay = "2 ms"
queue = "20 ms"
[[flows]]
name = "data"
from = "A"
to = "B"
bytes = "1 GB"
"#;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let seconds: f64 = std::env::args().nth(1).map_or(Ok(5.0), |text| text.parse())?;
    let control = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")?;
    println!("TCP's congestion control here: {}", control.trim());
    for load in [Load::Trains, Load::Datagrams] {
        println!("\n{load:?}:");
        let ours = emulated(load, seconds)?;
        let kernels = passed_on(load, seconds)?;
        println!("the emulator moves {:.0} % of what the kernel alone does per CPU-second", 100.0 * ours / kernels);
    }
    Ok(())
}

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    /// A TCP connection, whose data the kernel hands over as trains.
    Trains,
    /// Datagrams of 1400 bytes, one by one, as fast as they can be sent.
    Datagrams,
}

/// Sends the load through the emulator. Returns packets per second of CPU time.
fn emulated(load: Load, seconds: f64) -> Outcome<f64> {
    let scenario = Scenario::parse(LINK, "speed.toml", &[])?;
    let mut lab = Lab::build(&scenario, &[])?;
    let [a, b] = [0, 1].map(|n| Namespace::named(&lab.hosts()[n].namespace));
    let address = lab.hosts()[1].v4;
    transfer(load, &a?, &b?, address, |over| {
        let emulator = lab.emulator_mut();
        let end = emulator.clock().now() + Span::from_secs_f64_rounded(seconds);
        let start = cpu()?;
        while emulator.clock().now() < end {
            emulator.turn(Some(end))?;
        }
        let spent = cpu()? - start;
        over();
        let traffic = emulator.traffic();
        let packets = traffic.arrived as f64;
        println!(
            "{packets} packets, {:.2} Gbit/s, {spent:.2} s of CPU in {seconds} s: {:.0} packets per CPU-second",
            traffic.arrived_bytes as f64 * 8.0 / seconds / 1e9,
            packets / spent,
        );
        println!(
            "trains of {:.1} packets in and {:.1} out, acknowledgements among them; {:.0} turns a second; late by {} us \
             (median)",
            traffic.sent as f64 / traffic.reads as f64,
            packets / traffic.writes as f64,
            emulator.turns() as f64 / seconds,
            emulator.lateness().median().as_nanos() / 1000,
        );
        // The sockets notice the end later.
        let grace = emulator.clock().now() + Span::from_millis(500);
        while emulator.clock().now() < grace {
            emulator.turn(Some(grace))?;
        }
        Ok(packets / spent)
    })
}

/// Sends the load from device to device. Returns packets per second of CPU time.
fn passed_on(load: Load, seconds: f64) -> Outcome<f64> {
    let hosts = [Namespace::fresh()?, Namespace::fresh()?];
    let addresses = [1, 2].map(|n| Ipv4Addr::new(198, 18, 0, n));
    let mut devices = Vec::new();
    for (host, address) in hosts.iter().zip(addresses) {
        devices.push(host.inside(|| {
            let device = DeviceBuilder::new().name("speed0").offload(true).ipv4(address, 24, None).build_sync()?;
            device.set_nonblocking(true)?;
            device.set_tx_queue_len(4096)?;
            Ok(device)
        })?);
    }
    transfer(load, &hosts[0], &hosts[1], addresses[1], |over| {
        let mut train = vec![0; VIRTIO_NET_HDR_LEN + 65_536];
        let (mut packets, mut bytes) = (0, 0);
        let mut pass = |span: Duration| -> Outcome<()> {
            let end = Instant::now() + span;
            while Instant::now() < end {
                let mut ready =
                    devices.iter().map(|device| PollFd::new(device.as_fd(), PollFlags::POLLIN)).collect::<Vec<_>>();
                poll(&mut ready, PollTimeout::from(10_u8))?;
                for (from, to) in [(0, 1), (1, 0)] {
                    while let Some(length) = next(&devices[from], &mut train)? {
                        let header = VirtioNetHdr::decode(&train)?;
                        let payload = length - VIRTIO_NET_HDR_LEN - usize::from(header.hdr_len);
                        packets += if header.gso_size > 0 { payload.div_ceil(header.gso_size.into()) } else { 1 };
                        bytes += length;
                        devices[to].send(&train[..length])?;
                        if Instant::now() >= end {
                            return Ok(());
                        }
                    }
                }
            }
            Ok(())
        };
        let start = cpu()?;
        pass(Duration::from_secs_f64(seconds))?;
        let spent = cpu()? - start;
        over();
        pass(Duration::from_millis(500))?;
        let packets = packets as f64;
        println!(
            "the kernel alone: {:.2} Gbit/s, {spent:.2} s of CPU: {:.0} packets per CPU-second",
            bytes as f64 * 8.0 / seconds / 1e9,
            packets / spent
        );
        Ok(packets / spent)
    })
}

/// The number of processors, asked before this thread stays on one of them: afterwards the answer would be one.
static PROCESSORS: LazyLock<usize> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));

/// Runs the load from `a` to `b` while `moves` moves the packets. `moves` receives a flag that tells it to end.
fn transfer<T>(
    load: Load,
    a: &Namespace,
    b: &Namespace,
    address: Ipv4Addr,
    moves: impl FnOnce(&dyn Fn()) -> Outcome<T>,
) -> Outcome<T> {
    for namespace in [a, b] {
        namespace.inside(|| {
            for name in ["tcp_rmem", "tcp_wmem"] {
                std::fs::write(format!("/proc/sys/net/ipv4/{name}"), "4096 4000000 32000000")?;
            }
            Ok(())
        })?;
    }
    let processors = *PROCESSORS;
    let [own, others] = [processors - 1..processors, 0..(processors - 1).max(1)];
    let as_program = move || {
        // Without it, the figures depend on the scheduler.
        let _ = stay_on(others.clone());
    };
    let as_program = &as_program;
    stay_on(own)?;
    let listener = b.inside(|| TcpListener::bind((address, 0)))?;
    let to = listener.local_addr()?;
    let over = AtomicBool::new(false);
    let over = &over;
    if load == Load::Datagrams {
        let sink = b.inside(|| UdpSocket::bind((address, 0)))?;
        let source = a.inside(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
        source.connect(sink.local_addr()?)?;
        sink.set_read_timeout(Some(Duration::from_millis(100)))?;
        return std::thread::scope(|scope| {
            scope.spawn(move || {
                as_program();
                let mut block = [0; 2000];
                while !over.load(Ordering::Relaxed) {
                    let _ = sink.recv(&mut block);
                }
            });
            scope.spawn(move || {
                as_program();
                while !over.load(Ordering::Relaxed) {
                    let _ = source.send(&[0; 1400]);
                }
            });
            moves(&|| over.store(true, Ordering::Relaxed))
        });
    }
    std::thread::scope(|scope| {
        scope.spawn(move || {
            as_program();
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut block = vec![0; 1 << 20];
            while stream.read(&mut block).is_ok_and(|got| got > 0) && !over.load(Ordering::Relaxed) {}
        });
        scope.spawn(move || {
            as_program();
            let Ok(mut stream) = a.inside(|| TcpStream::connect(to)) else { return };
            let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
            let block = vec![0; 1 << 20];
            while !over.load(Ordering::Relaxed) {
                let _ = stream.write(&block);
            }
        });
        moves(&|| over.store(true, Ordering::Relaxed))
    })
}

/// Runs this thread on these processors only.
fn stay_on(processors: std::ops::Range<usize>) -> nix::Result<()> {
    let mut set = CpuSet::new();
    processors.into_iter().try_for_each(|processor| set.set(processor))?;
    sched_setaffinity(Pid::from_raw(0), &set)
}

fn next(device: &SyncDevice, train: &mut [u8]) -> std::io::Result<Option<usize>> {
    match device.recv(train) {
        Ok(length) => Ok(Some(length)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// CPU time of this thread, seconds.
fn cpu() -> Result<f64, nix::Error> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
    let both = [usage.user_time(), usage.system_time()];
    Ok(both.iter().map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6).sum())
}
