//! Measures how late packets reach their receiver. Datagrams are sent every two milliseconds over links of 10 Mbit/s to
//! 1 Gbit/s and 20 ms, either alone or beside a load of 80 %. The sender notes the time of day before it sends, and the
//! receiver's kernel notes when a datagram arrives (SO_TIMESTAMPNS). So the wake-ups of the programs do not count, but
//! the time that the kernel needs to send does.
//!
//! usage, as root: chrt -r 10 cargo run --release -p bentpipe-emulator --example emulator_delay [SECONDS]

use std::error::Error;
use std::io::IoSliceMut;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bentpipe_emulator::Lab;
use bentpipe_engine::units::Duration as Span;
use bentpipe_io::Namespace;
use bentpipe_study::scenario::Scenario;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::time::{ClockId, clock_gettime};

type Outcome<T> = Result<T, Box<dyn Error>>;

const DELAY_S: f64 = 0.020;
/// Length of a datagram on the line: payload, UDP, IPv4.
const PAYLOAD: usize = 172;
const ON_THE_LINE: f64 = PAYLOAD as f64 + 28.0;

fn main() -> Outcome<()> {
    let seconds: f64 = std::env::args().nth(1).map_or(Ok(10.0), |text| text.parse())?;
    println!("late by, us:          median    99 %   worst   CPU");
    for mbit in [10.0, 100.0, 1000.0] {
        measure(mbit, false, seconds)?;
    }
    measure(1000.0, true, seconds)
}

fn measure(mbit: f64, is_busy: bool, seconds: f64) -> Outcome<()> {
    let text = format!(
        "name = \"delay\"\n[[links]]\nname = \"wire\"\nbetween = [\"A\", \"B\"]\nrate = \"{mbit} Mbit/s\"\ndelay = \"20 ms\"\n\
         [[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 GB\"\n"
    );
    let scenario = Scenario::parse(&text, "delay.toml", &[])?;
    let mut lab = Lab::build(&scenario, &[])?;
    let [a, b] = [0, 1].map(|n| Namespace::named(&lab.hosts()[n].namespace));
    let (a, b, address) = (a?, b?, lab.hosts()[1].v4);
    let sink = b.inside(|| UdpSocket::bind((address, 0)))?;
    setsockopt(&sink, sockopt::ReceiveTimestampns, &true)?;
    sink.set_read_timeout(Some(Duration::from_millis(200)))?;
    let source = a.inside(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
    source.connect(sink.local_addr()?)?;
    let over = AtomicBool::new(false);
    let over = &over;
    let line = ON_THE_LINE * 8.0 / (mbit * 1e6);
    let (mut late, spent) = std::thread::scope(|scope| -> Outcome<_> {
        let receiver = scope.spawn(|| received(sink, over));
        let times = source.try_clone()?;
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let mut datagram = [0; PAYLOAD];
                datagram[..8].copy_from_slice(&time_of_day().to_be_bytes());
                let _ = times.send(&datagram);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        if is_busy {
            // 80 %, in bursts of 20, as from a sender without trains.
            let gap = Duration::from_secs_f64(20.0 * 1428.0 * 8.0 / (0.8 * mbit * 1e6));
            let other = a.inside(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
            // Its buffer fills up and drops the rest.
            let discard = b.inside(|| UdpSocket::bind((address, 0)))?;
            scope.spawn(move || {
                let Ok(to) = discard.local_addr() else { return };
                let start = std::time::Instant::now();
                for n in 0.. {
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    for _ in 0..20 {
                        let _ = other.send_to(&[0; 1400], to);
                    }
                    std::thread::sleep((gap * n).saturating_sub(start.elapsed()));
                }
            });
        }
        let ran = run(&mut lab, seconds);
        over.store(true, Ordering::Relaxed);
        let grace = lab.emulator().clock().now() + Span::from_millis(300);
        while lab.emulator().clock().now() < grace {
            lab.emulator_mut().turn(Some(grace))?;
        }
        let late = receiver.join().expect("no panic")?;
        Ok((late, ran?))
    })?;
    late.sort_by(f64::total_cmp);
    let at = |part: f64| (late[((late.len() - 1) as f64 * part) as usize] - DELAY_S - line) * 1e6;
    let load = if is_busy { "80 %" } else { "quiet" };
    let cpu = 100.0 * spent / seconds;
    println!("{mbit:>5} Mbit/s, {load:>5} {:>7.0} {:>7.0} {:>7.0}   {cpu:.0} %", at(0.5), at(0.99), at(1.0));
    Ok(())
}

/// Runs the links. Returns the CPU time of this thread in seconds.
fn run(lab: &mut Lab, seconds: f64) -> Outcome<f64> {
    bentpipe_io::hurry();
    let emulator = lab.emulator_mut();
    let end = emulator.clock().now() + Span::from_secs_f64_rounded(seconds);
    let start = cpu()?;
    while emulator.clock().now() < end {
        emulator.turn(Some(end))?;
    }
    Ok(cpu()? - start)
}

/// The seconds that each datagram was on its way.
fn received(sink: UdpSocket, over: &AtomicBool) -> Result<Vec<f64>, nix::Error> {
    let (mut took, mut bytes) = (Vec::new(), [0; PAYLOAD]);
    let mut space = nix::cmsg_space!(nix::sys::time::TimeSpec);
    loop {
        let mut slices = [IoSliceMut::new(&mut bytes)];
        let got = recvmsg::<()>(sink.as_raw_fd(), &mut slices, Some(&mut space), MsgFlags::empty());
        let at = match got {
            Ok(message) => message.cmsgs()?.find_map(|control| match control {
                ControlMessageOwned::ScmTimestampns(at) => Some(at),
                _ => None,
            }),
            Err(nix::Error::EAGAIN) if over.load(Ordering::Relaxed) => return Ok(took),
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => continue,
            Err(error) => return Err(error),
        };
        if let Some(at) = at {
            let sent = u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"));
            let arrived = at.tv_sec() as u64 * 1_000_000_000 + at.tv_nsec() as u64;
            took.push((arrived - sent) as f64 / 1e9);
        }
    }
}

/// Nanoseconds since 1970.
fn time_of_day() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_REALTIME).expect("every Linux has it");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// CPU time of this thread, seconds.
fn cpu() -> Result<f64, nix::Error> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
    let both = [usage.user_time(), usage.system_time()];
    Ok(both.iter().map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6).sum())
}
