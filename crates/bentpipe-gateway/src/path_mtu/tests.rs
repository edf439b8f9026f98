//! The machine over a path that takes datagrams up to a size.

use super::*;

const DELAY: Duration = Duration::from_millis(300);

struct Path {
    machine: PathMtu,
    now: Time,
    /// The largest size that passes.
    takes: u16,
    /// Acknowledgements in flight.
    acks: std::collections::VecDeque<(Time, u32)>,
    changes: Vec<(u16, bool)>,
    probes: Vec<u16>,
    /// Large datagrams sent every 10 ms.
    is_busy: bool,
    /// The kernel refuses what is too long.
    says: bool,
}

impl Path {
    fn new(max: u16, takes: u16) -> Self {
        let now = Time::ZERO + Duration::from_secs(10);
        Path {
            machine: PathMtu::new(max, now),
            now,
            takes,
            acks: Default::default(),
            changes: Vec::new(),
            probes: Vec::new(),
            is_busy: false,
            says: false,
        }
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            while let Some(&(at, id)) = self.acks.front().filter(|(at, _)| *at <= self.now) {
                self.acks.pop_front();
                self.machine.on_ack(at, id);
            }
            if self.is_busy {
                self.machine.on_sent(usize::from(self.machine.size()));
            }
            while let Step::Do(ask) = self.machine.poll(self.now) {
                match ask {
                    Ask::Probe { id, size } => {
                        self.probes.push(size);
                        if size <= self.takes {
                            self.acks.push_back((self.now + DELAY.saturating_mul(2), id));
                        } else if self.says {
                            self.machine.on_too_long(self.now, usize::from(size));
                        }
                    }
                    Ask::Changed { size, black_hole } => self.changes.push((size, black_hole)),
                }
            }
            self.now += Duration::from_millis(10);
        }
    }
}

#[test]
fn the_whole_length_takes_two_round_trips() {
    let mut path = Path::new(1472, 9000);
    path.run(Duration::from_millis(1250));
    assert_eq!((path.machine.size(), &path.probes[..]), (1472, &[1200, 1472][..]));
    path.run(Duration::from_secs(600));
    assert_eq!((path.probes.len(), &path.changes[..]), (2, &[][..]), "what is idle is not confirmed");
}

/// Finds every size that a path may have, from 576 to 1500 bytes of IP, and never reports one that does not pass.
#[test]
fn every_size_is_found() {
    for takes in (548..=1472).step_by(7) {
        let mut path = Path::new(1472, takes);
        path.run(Duration::from_secs(60));
        let size = path.machine.told();
        assert_eq!(size, path.machine.size());
        let expected = if takes < BASE { MIN..=MIN } else { takes.saturating_sub(STEP).max(BASE)..=takes };
        assert!(expected.contains(&size), "{takes}: {size}");
    }
}

/// If a size stops passing while it is used, this is noticed within 5 s over GEO; the search finds the size that passes, and later
/// the old one again.
#[test]
fn a_dip_is_noticed() {
    for takes in [1232, 1252, 1372, 1471] {
        let mut path = Path::new(1472, 1472);
        path.is_busy = true;
        path.run(Duration::from_secs(10));
        path.takes = takes;
        let begun = path.now;
        while path.machine.size() > takes {
            path.run(Duration::from_millis(10));
        }
        // The size was confirmed up to a second and a round trip before; three probes of a timer of 0.95 s each.
        let took = path.now.saturating_since(begun);
        assert!(took < Duration::from_secs(5), "{takes}: {took:?}");
        assert_eq!(path.changes, [(BASE, true)]);
        path.run(Duration::from_secs(30));
        let size = path.machine.told();
        assert!(size <= takes && size + STEP >= takes.max(BASE + STEP), "{takes}: {size}");
        path.takes = 1472;
        path.run(Duration::from_secs(90));
        assert_eq!(path.machine.told(), 1472);
    }
}

/// A refusal by the kernel takes effect at once.
#[test]
fn the_kernel_knows_its_interface() {
    let mut path = Path::new(1472, 1372);
    path.says = true;
    path.run(Duration::from_secs(5));
    assert!(path.machine.told() > 1372 - STEP && path.machine.told() <= 1372);
    path.takes = 1252;
    path.machine.on_too_long(path.now, 1300);
    assert_eq!(path.machine.size(), BASE);
    // A refusal of a size above the known limit says nothing new.
    path.machine.on_too_long(path.now, 1400);
    path.run(Duration::from_secs(5));
    assert!((1252 - STEP..=1252).contains(&path.machine.told()));
}

/// An outage is not a black hole.
#[test]
fn an_outage_changes_nothing() {
    let mut path = Path::new(1472, 1472);
    path.is_busy = true;
    path.run(Duration::from_secs(10));
    path.takes = 0;
    path.run(Duration::from_secs(60));
    path.takes = 1472;
    path.run(Duration::from_secs(60));
    assert_eq!((path.machine.size(), &path.changes[..]), (1472, &[][..]));
}

/// Probes are a small part of the traffic.
#[test]
fn confirmation_is_cheap() {
    let mut path = Path::new(1472, 1472);
    path.is_busy = true;
    path.run(Duration::from_secs(10));
    path.probes.clear();
    path.run(Duration::from_secs(100));
    let bytes: u64 = path.probes.iter().map(|&size| u64::from(size)).sum();
    // 10 000 datagrams were sent, and a large probe in each 1.1 s.
    assert!(bytes < 10_000 * 1472 / 100, "{bytes}");
}
