//! How many packets the emulator moves per second of its own CPU time: a bulk transfer of the kernel's TCP through two
//! namespaces and a link of 10 Gbit/s, with offloads as always.
//!
//! The emulator's thread pays for more than its own code: a packet written to a device is taken in by the receiving
//! host's stack in the same call.
//!
//! usage, as root: cargo run --release -p bentpipe-io --example emulator_speed [SECONDS]

use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bentpipe_engine::units::Time;
use bentpipe_io::Namespace;
use bentpipe_io::emulator::Lab;
use bentpipe_study::scenario::Scenario;
use nix::sys::resource::{UsageWho, getrusage};

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

fn main() -> Result<(), Box<dyn Error>> {
    let seconds: f64 = std::env::args().nth(1).map_or(Ok(5.0), |text| text.parse())?;
    let scenario = Scenario::parse(LINK, "speed.toml", &[])?;
    let mut lab = Lab::build(&scenario, &[])?;
    let [a, b] = [0, 1].map(|n| Namespace::named(&lab.hosts()[n].namespace));
    let (a, b) = (a?, b?);
    for namespace in [&a, &b] {
        namespace.inside(|| {
            for name in ["tcp_rmem", "tcp_wmem"] {
                std::fs::write(format!("/proc/sys/net/ipv4/{name}"), "4096 4000000 32000000")?;
            }
            Ok(())
        })?;
    }
    let address = lab.hosts()[1].v4;
    let listener = b.inside(|| TcpListener::bind((address, 0)))?;
    let to = listener.local_addr()?;
    let over = AtomicBool::new(false);
    let over = &over;
    std::thread::scope(|scope| -> Result<(), Box<dyn Error>> {
        scope.spawn(move || {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut block = vec![0; 1 << 20];
            while stream.read(&mut block).is_ok_and(|got| got > 0) && !over.load(Ordering::Relaxed) {}
        });
        scope.spawn(move || {
            let Ok(mut stream) = a.inside(|| TcpStream::connect(to)) else { return };
            let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
            let block = vec![0; 1 << 20];
            while !over.load(Ordering::Relaxed) {
                let _ = stream.write(&block);
            }
        });
        let cpu = || -> Result<f64, nix::Error> {
            let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
            let both = [usage.user_time(), usage.system_time()];
            Ok(both.iter().map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6).sum())
        };
        let emulator = lab.emulator_mut();
        let end = Time::ZERO + bentpipe_engine::units::Duration::from_secs_f64_rounded(seconds);
        let start = cpu()?;
        while emulator.clock().now() < end {
            emulator.turn(Some(end))?;
        }
        let spent = cpu()? - start;
        over.store(true, Ordering::Relaxed);
        let traffic = emulator.traffic();
        let packets = traffic.arrived as f64;
        println!(
            "{packets} packets, {:.2} Gbit/s, {spent:.2} s of CPU in {seconds} s: {:.0} packets per CPU-second; late by {} us (median)",
            traffic.arrived_bytes as f64 * 8.0 / seconds / 1e9,
            packets / spent,
            emulator.lateness().median().as_nanos() / 1000,
        );
        // The sockets see their end in their own time.
        let grace = emulator.clock().now() + bentpipe_engine::units::Duration::from_millis(500);
        while emulator.clock().now() < grace {
            emulator.turn(Some(grace))?;
        }
        Ok(())
    })
}
