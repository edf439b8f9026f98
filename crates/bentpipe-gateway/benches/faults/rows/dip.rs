//! A link that carries a tenth of its rate for a while, as in a fade: between the boxes lie the engine's own links, retuned while packets
//! are on them.

use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bentpipe_engine::link::{LinkConfig, QueueLimit};
use bentpipe_engine::units::{self, Rate};

use super::floods::counted;
use crate::Measured;
use crate::pair::{Line, SERVER, inside};
use crate::sky::Sky;

/// Seconds until the dip, of which the last five are compared with, and after its end.
const BEFORE: usize = 10;
const AFTER: usize = 9;

/// One direction: 600 ms there and back, and a queue of 500 packets.
fn link(megabits: u64) -> LinkConfig {
    let rate = Rate::from_bits_per_second(megabits * 1_000_000);
    let mut link = LinkConfig::clean(rate, units::Duration::from_millis(300));
    link.queue.limit = QueueLimit::Packets(500);
    link
}

/// What arrives in each tenth of a second, bytes: before, in and after a dip of so many seconds.
fn watched(sky: &Sky, got: &AtomicU64, dip: usize) -> Vec<u64> {
    let (start, mut seen, mut last) = (Instant::now(), Vec::new(), got.load(Ordering::Relaxed));
    for (rate, seconds) in [(20, BEFORE), (2, dip), (20, AFTER)] {
        sky.retune([link(rate), link(rate)]);
        for _ in 0..10 * seconds {
            let due = start + Duration::from_millis(100) * (seen.len() as u32 + 1);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let now = got.load(Ordering::Relaxed);
            seen.push(now - last);
            last = now;
        }
    }
    seen
}

fn judged(seen: &[u64], dip: usize) -> Measured {
    let mean = |tenths: std::ops::Range<usize>| {
        let seconds = tenths.len() as f64 / 10.0;
        seen[tenths].iter().sum::<u64>() as f64 * 8e-6 / seconds
    };
    let (begin, end) = (10 * BEFORE, 10 * (BEFORE + dip));
    let before = mean(begin - 50..begin);
    let in_dip = mean(begin + 30..end);
    let after = mean(end + 50..end + 80);
    // The first second that is as good as before.
    let back = (end + 10..seen.len()).find(|&tenth| mean(tenth - 10..tenth) >= 0.95 * before);
    let back = back.map_or(f64::INFINITY, |tenth| (tenth - end) as f64 / 10.0);
    let text = format!(
        "{before:.1} Mbit/s before, {in_dip:.2} in the dip; {:.0} % from 5 s after it on, 95 % after {back:.1} s",
        100.0 * after / before
    );
    Measured { text, is_met: in_dip >= 1.7 && back <= 5.0 && after >= 0.95 * before }
}

pub(super) fn dip(is_short: bool, is_link: bool) -> Measured {
    let seconds = if is_short { 8 } else { 20 };
    let line = Line::new("19.9 Mbit/s");
    let sky = line.over_sky([link(20), link(20)]);
    for (name, address) in [("near", "10.8.0.1/24"), ("far", "10.8.0.2/24")] {
        line.edit(name, "20 ms", "600 ms");
        if is_link {
            line.edit(name, "[split]", &format!("[link]\naddresses = [\"{address}\"]"));
        }
    }
    if is_link {
        line.edit("near", "capture = [\"lan\"]", "");
    }
    let both = [line.start("near", 1024), line.start("far", 1024)];
    line.wait_until_up(&["near", "far"], true);
    let is_over = Arc::new(AtomicBool::new(false));
    let (got, sender) = if is_link { datagrams(&line, &is_over) } else { transfer(&line, &is_over) };
    let seen = watched(&sky, &got, seconds);
    is_over.store(true, Ordering::Relaxed);
    // A writer that waits for the line is woken by its end.
    drop((both, sky));
    drop(sender.join());
    judged(&seen, seconds)
}

type Load = (Arc<AtomicU64>, std::thread::JoinHandle<()>);

/// An upload without end.
fn transfer(line: &Line, is_over: &Arc<AtomicBool>) -> Load {
    let (sink, got) = counted(line);
    let mut stream = line.connect(sink).expect("it connects");
    let is_over = is_over.clone();
    let sender =
        std::thread::spawn(move || while !is_over.load(Ordering::Relaxed) && stream.write_all(&[7; 65_536]).is_ok() {});
    (got, sender)
}

/// Datagrams at 24 Mbit/s: no host slows down, so what arrives is what the boxes make of the link.
fn datagrams(line: &Line, is_over: &Arc<AtomicBool>) -> Load {
    const LEN: usize = 1372;
    inside(&line.near, "ip route replace 10.2.0.0/24 dev bentpipe0");
    inside(&line.far, "ip route replace 10.1.0.0/24 dev bentpipe0");
    let sink = line.server.inside(|| UdpSocket::bind(SocketAddr::from((SERVER, 9))).expect("a free port"));
    let got = Arc::new(AtomicU64::new(0));
    let counted = got.clone();
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok(len) = sink.recv(&mut buffer) {
            counted.fetch_add(len as u64, Ordering::Relaxed);
        }
    });
    let socket = line.client.inside(|| UdpSocket::bind("0.0.0.0:0").expect("a free port"));
    let is_over = is_over.clone();
    let sender = std::thread::spawn(move || {
        let (start, mut sent) = (Instant::now(), 0_u64);
        while !is_over.load(Ordering::Relaxed) {
            let due = (start.elapsed().as_secs_f64() * 24e6 / (8 * LEN) as f64) as u64;
            while sent < due {
                // What the system refuses is lost, as it would be in a network.
                let _ = socket.send_to(&[7; LEN], SocketAddr::from((SERVER, 9)));
                sent += 1;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    (got, sender)
}
