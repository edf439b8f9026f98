//! A stranger who repeats what a box once said.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use crate::Measured;
use crate::namespace::Namespace;
use crate::pair::{Line, asks, echo};

const PER_SECOND: u64 = 10_000;
/// The boxes' addresses and port, as [`Line`] has them.
const NEAR: [u8; 4] = [10, 9, 0, 1];
const FAR: [u8; 4] = [10, 9, 0, 2];
const PORT: u16 = 4500;

/// The first datagram that the near box sends: a genuine init, which the far box has not seen.
fn recorded(line: &Line) -> Vec<u8> {
    let socket = line.far.inside(move || UdpSocket::bind(SocketAddr::from((FAR, PORT)))).expect("a free port");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("not zero");
    let _near = line.start("near", 1024);
    let mut buffer = [0; 2048];
    let len = socket.recv(&mut buffer).expect("the box that names its peer begins");
    buffer[..len].to_vec()
}

/// An IPv4 packet from the near box to the far one. UDP's checksum is left out, as IPv4 allows.
fn packet(datagram: &[u8]) -> Vec<u8> {
    let udp = 8 + datagram.len() as u16;
    let mut packet = vec![0x45, 0];
    packet.extend_from_slice(&(20 + udp).to_be_bytes());
    // The kernel fills in the identification and the header's checksum.
    packet.extend_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0]);
    packet.extend_from_slice(&NEAR);
    packet.extend_from_slice(&FAR);
    for half in [PORT, PORT, udp, 0] {
        packet.extend_from_slice(&half.to_be_bytes());
    }
    packet.extend_from_slice(datagram);
    packet
}

/// Sends the datagram to the far box with the near box's address until it is over. Returns how often.
fn replay(
    from: &Arc<Namespace>,
    datagram: &[u8],
    sent: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
) -> std::thread::JoinHandle<()> {
    let packet = packet(datagram);
    let socket = from.inside(|| Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255)))).expect("root");
    socket.set_header_included_v4(true).expect("a raw socket");
    std::thread::spawn(move || {
        let (start, to) = (Instant::now(), SocketAddr::from((FAR, 0)).into());
        while !is_over.load(Ordering::Relaxed) {
            let due = (start.elapsed().as_secs_f64() * PER_SECOND as f64) as u64;
            while sent.load(Ordering::Relaxed) < due {
                // ENOBUFS loses one, as the way would.
                let _ = socket.send_to(&packet, &to);
                sent.fetch_add(1, Ordering::Relaxed);
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    })
}

/// A genuine init of the near box, replayed: a tunnel that is up holds, and a box that restarts is up again.
pub(super) fn replays(is_short: bool) -> Measured {
    let line = Line::new("20 Mbit/s");
    let server = line.serve(80, echo);
    let init = recorded(&line);
    let (mut near, _far) = (line.start("near", 1024), line.start("far", 1024));
    line.wait_until_up(&["near", "far"], true);

    let (sent, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let start = Instant::now();
    let attack = replay(&line.near, &init, sent.clone(), is_over.clone());
    let mut stream = line.connect(server).expect("it connects");
    let (mut longest, mut lost) = (Duration::ZERO, 0);
    while start.elapsed() < Duration::from_secs(if is_short { 20 } else { 600 }) {
        let asked = Instant::now();
        if asks(&mut stream).is_err() {
            lost += 1;
            stream = line.connect(server).expect("it connects");
        }
        longest = longest.max(asked.elapsed());
        std::thread::sleep(Duration::from_millis(100));
    }

    let mut worst = Duration::ZERO;
    for _ in 0..if is_short { 2 } else { 5 } {
        near.0.kill().expect("it runs");
        near.0.wait().expect("it ends");
        let restarted = Instant::now();
        near = line.start("near", 1024);
        while !super::serves(&line, server) && restarted.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(20));
        }
        worst = worst.max(restarted.elapsed());
    }
    let rate = sent.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64();
    is_over.store(true, Ordering::Relaxed);
    attack.join().expect("no panic");
    let text = format!(
        "{rate:.0} replays/s: {lost} connections lost, longest answer {:.2} s; up {:.2} s after kill -9",
        longest.as_secs_f64(),
        worst.as_secs_f64()
    );
    let is_attacked = rate >= 0.95 * PER_SECOND as f64;
    Measured { text, is_met: is_attacked && lost == 0 && longest.as_secs() < 5 && worst.as_secs_f64() < 5.0 }
}
