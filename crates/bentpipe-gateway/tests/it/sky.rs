//! The link in between: two TUN devices and the engine's own links.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use bentpipe_engine::link::{Link, LinkConfig, Outcome};
use bentpipe_engine::probe::Who;
use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::{Context, NoProbe};
use bentpipe_io::{Clock, Datagram, Tun};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

/// Both directions of a link; it ends when it is dropped.
pub(crate) struct Sky {
    stop: Arc<AtomicBool>,
    /// Nothing passes while this is set.
    pub(crate) cut: Arc<AtomicBool>,
    /// Longer packets are lost silently.
    pub(crate) mtu: Arc<AtomicUsize>,
    /// Bytes offered to the two links.
    pub(crate) offered: Arc<[AtomicU64; 2]>,
    /// Settings to apply at the next poll.
    change: Change,
    thread: Option<JoinHandle<()>>,
}

type Change = Arc<Mutex<Option<[LinkConfig; 2]>>>;

impl Sky {
    /// A link between two devices; `configs` from the first to the second and back.
    pub(crate) fn over(doors: [Tun; 2], configs: [LinkConfig; 2], seed: u64) -> Sky {
        Sky::aged(doors, configs, seed, Duration::ZERO)
    }

    /// The same, whose channels have run for `age` already.
    pub(crate) fn aged(doors: [Tun; 2], configs: [LinkConfig; 2], seed: u64, age: Duration) -> Sky {
        let stop = Arc::new(AtomicBool::new(false));
        let cut = Arc::new(AtomicBool::new(false));
        let mtu = Arc::new(AtomicUsize::new(usize::MAX));
        let takes = mtu.clone();
        let offered = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let (ends, cuts, counts) = (stop.clone(), cut.clone(), offered.clone());
        let change = Change::default();
        let changes = change.clone();
        let thread =
            std::thread::spawn(move || run(&doors, &configs, (seed, age), &ends, (&cuts, &takes, &changes), &counts));
        Sky { stop, cut, mtu, offered, change, thread: Some(thread) }
    }

    /// Changes both directions within 50 ms. Packets on the link stay on it.
    #[allow(dead_code, reason = "the bench under faults does")]
    pub(crate) fn retune(&self, configs: [LinkConfig; 2]) {
        *self.change.lock().expect("nobody panics") = Some(configs);
    }
}

impl Drop for Sky {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(
    doors: &[Tun; 2],
    configs: &[LinkConfig; 2],
    (seed, age): (u64, Duration),
    stop: &AtomicBool,
    (cut, mtu, change): (&AtomicBool, &AtomicUsize, &Mutex<Option<[LinkConfig; 2]>>),
    offered: &[AtomicU64; 2],
) {
    let _ = nix::sys::prctl::set_timerslack(1);
    let clock = Clock::start();
    let time = || clock.now() + age;
    let names = ["there", "back"];
    let mut links = [0, 1].map(|side| Link::<Datagram>::new(&configs[side], seed, names[side]));
    let mut buffer = vec![0; 1 << 16];
    while !stop.load(Ordering::SeqCst) {
        let now = time();
        let mut more = false;
        if let Some(configs) = change.lock().expect("nobody panics").take() {
            (0..2).for_each(|side| links[side].retune(now, &configs[side], seed, names[side]));
        }
        for side in [0, 1] {
            let mut probe = NoProbe;
            let mut cx = Context { now, who: Who(side as u32), probe: &mut probe };
            for _ in 0..64 {
                let Some(length) = doors[side].read(&mut buffer).expect("the device is there") else { break };
                more = true;
                offered[side].fetch_add(length as u64, Ordering::Relaxed);
                if !cut.load(Ordering::Relaxed) && length <= mtu.load(Ordering::Relaxed) {
                    let _ = links[side].offer(&mut cx, Datagram(buffer[..length].to_vec()));
                }
            }
            while let Some(arrival) = links[side].take(&mut cx) {
                if arrival.outcome == Outcome::Delivered && !cut.load(Ordering::Relaxed) {
                    doors[1 - side].write(&arrival.packet.0).expect("the device is there");
                }
            }
        }
        if more {
            continue;
        }
        let next = Time::earliest(links[0].next_arrival(), links[1].next_arrival());
        // Wakes up regularly to see whether it should stop.
        let span = next.map_or(50_000_000, |at| at.saturating_since(time()).as_nanos().min(50_000_000));
        let mut fds = [0, 1].map(|side| PollFd::new(doors[side].as_fd(), PollFlags::POLLIN));
        let _ = ppoll(&mut fds, Some(TimeSpec::from_duration(std::time::Duration::from_nanos(span))), None);
    }
}
