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
    /// The length of datagrams that are sent every 10 ms and acknowledged by the link, and the acknowledgements in flight.
    data: Option<u16>,
    arrivals: std::collections::VecDeque<(Time, u16)>,
    /// The kernel refuses longer datagrams.
    says: bool,
    /// How many of a hundred datagrams are lost in each direction.
    loss: u64,
    random: u64,
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
            data: None,
            arrivals: Default::default(),
            says: false,
            loss: 0,
            random: 1,
        }
    }

    /// xorshift64* (Vigna 2016): true if a probe and its acknowledgement arrive.
    fn is_lucky(&mut self) -> bool {
        let mut arrives = || {
            self.random ^= self.random >> 12;
            self.random ^= self.random << 25;
            self.random ^= self.random >> 27;
            (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % 100 >= self.loss
        };
        arrives() && arrives()
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
            while let Some((at, size)) = self.arrivals.pop_front_if(|(at, _)| *at <= self.now) {
                self.machine.on_arrived(at, usize::from(size));
            }
            if let Some(size) = self.data.map(|size| size.min(self.machine.size())) {
                self.machine.on_sent(usize::from(size));
                if size <= self.takes {
                    self.arrivals.push_back((self.now + DELAY.saturating_mul(2), size));
                }
            }
            while let Step::Do(ask) = self.machine.poll(self.now) {
                match ask {
                    Ask::Probe { id, size } => {
                        self.probes.push(size);
                        if size <= self.takes && self.is_lucky() {
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
fn the_whole_length_takes_a_round_trip() {
    let mut path = Path::new(1472, 9000);
    path.run(Duration::from_millis(650));
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

/// If not even the base size passes any more, the minimum is used as soon, and a larger size once one passes again.
#[test]
fn a_dip_below_the_base_size_is_noticed() {
    for (from, takes) in [(1472, 1199), (1472, 548), (1203, 1000)] {
        let mut path = Path::new(1472, from);
        path.is_busy = true;
        path.run(Duration::from_secs(40));
        let before = path.machine.size();
        assert!(before + STEP > from, "{from}: {before}");
        path.changes.clear();
        path.takes = takes;
        path.run(Duration::from_secs(5));
        assert_eq!((path.machine.size(), &path.changes[..]), (MIN, &[(MIN, true)][..]), "{from}, {takes}");
        path.run(Duration::from_secs(100));
        assert_eq!((path.machine.size(), path.changes.len()), (MIN, 1), "{from}, {takes}");
        path.takes = from;
        path.run(Duration::from_secs(90));
        assert_eq!((path.machine.size(), path.machine.told()), (before, before), "{from}, {takes}");
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

/// Losses in either direction, of small and large datagrams alike, are not taken for a black hole, and every size is still found.
#[test]
fn losses_are_no_black_hole() {
    for loss in [30, 45, 60] {
        let (mut black_holes, mut found) = (0, 0);
        for seed in 1..=20 {
            let mut path = Path::new(1472, 1472);
            (path.loss, path.random, path.is_busy) = (loss, seed << 32 | 1, true);
            path.run(Duration::from_secs(30));
            found += u32::from(path.machine.size() == 1472);
            path.run(Duration::from_secs(30));
            black_holes += path.changes.iter().filter(|change| change.1).count();
        }
        println!("{loss} %: found {found} of 20, {black_holes} black holes in 20 minutes");
        // A size that passes is taken for one that does not with a probability of 2^-5, and by a full round with 0.25 % in each: some 4 %
        // of confirmations that begin with a loss, of which there are at most one per second. It is noticed a minute later.
        assert!(found >= 15 && black_holes <= 40, "{loss} %: {found}, {black_holes}");
    }
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

/// A peer with two uplinks of different MTU, which take turns every 20 ms: both are found, new packets fit both, and
/// nothing changes any more.
#[test]
fn alternating_paths_are_both_known() {
    let takes = [1472, 1372];
    let mut now = Time::ZERO + Duration::from_secs(10);
    let mut paths = Paths::new(1472, now);
    let (mut acks, mut changes, mut probes) = (std::collections::VecDeque::new(), Vec::new(), 0);
    for n in 0..10_000_u64 {
        now += Duration::from_millis(20);
        let uplink = (n % 2) as usize;
        paths.lead_to(now, Some([192, 0, 2, uplink as u8].into()));
        while let Some((_, id)) = acks.pop_front_if(|(at, _)| *at <= now) {
            paths.on_ack(now, id);
        }
        paths.current.on_sent(paths.current.size().into());
        while let Step::Do(ask) = paths.current.poll(now) {
            match ask {
                Ask::Probe { id, size } if size <= takes[uplink] => acks.push_back((now + DELAY.saturating_mul(2), id)),
                Ask::Probe { .. } => {}
                Ask::Changed { size, .. } => changes.push((now, size)),
            }
            probes += 1;
        }
    }
    let all: Vec<_> = (0..2)
        .map(|uplink| {
            paths.lead_to(now, Some([192, 0, 2, uplink].into()));
            (paths.current.size(), paths.current.told())
        })
        .collect();
    let small = all[1].0;
    assert!(small > 1372 - STEP && small <= 1372, "{all:?}");
    assert_eq!(all, [(1472, small), (small, small)]);
    assert!(changes.len() == 1 && probes < 1000, "{changes:?}, {probes} probes");
}

/// A peer that stays where it was before gets whole datagrams at once, and packets of their size after the next confirmation.
#[test]
fn a_path_that_is_known_is_not_searched() {
    let mut path = Path::new(1472, 1472);
    path.run(Duration::from_secs(5));
    let mut paths = Paths::new(1472, path.now);
    let [home, away] = [1, 2].map(|n| Some([192, 0, 2, n].into()));
    paths.lead_to(path.now, home);
    std::mem::swap(&mut paths.current, &mut path.machine);
    for (n, to) in [away, home].into_iter().enumerate() {
        paths.lead_to(path.now, to);
        path.takes = [1300, 1472][n];
        assert_eq!(paths.current.size(), [BASE, 1472][n]);
        std::mem::swap(&mut paths.current, &mut path.machine);
        path.is_busy = true;
        path.run(Duration::from_secs(20));
        std::mem::swap(&mut paths.current, &mut path.machine);
    }
    let told: Vec<_> = path.changes.iter().map(|change| change.0).collect();
    assert!(told.len() == 2 && told[0] > 1300 - STEP && told[0] <= 1300 && told[1] == 1472, "{told:?}");
}

/// However many addresses a peer has, four paths are remembered.
#[test]
fn paths_are_bounded() {
    let now = Time::ZERO;
    let mut paths = Paths::new(1472, now);
    for n in (0..=255).chain(0..=2) {
        paths.lead_to(now, Some([192, 0, 2, n].into()));
        assert!(paths.remembered() <= 4);
    }
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

/// Data of any length that arrives needs no probes. What no longer arrives is noticed, and so is a path that takes more again.
#[test]
fn data_that_arrives_is_a_confirmation() {
    for size in [600, 1400, 1472] {
        let mut path = Path::new(1472, 1472);
        path.data = Some(size);
        path.run(Duration::from_secs(10));
        path.probes.clear();
        path.run(Duration::from_secs(100));
        assert_eq!((path.probes.len(), path.machine.size()), (0, 1472), "{size}");
        // Shorter datagrams that arrive beside do not count for the longer ones.
        path.takes = size - 1;
        let begun = path.now;
        while path.machine.size() >= size {
            path.machine.on_arrived(path.now, 560);
            path.run(Duration::from_millis(10));
            let took = path.now.saturating_since(begun);
            assert!(took < Duration::from_secs(5) + DELAY.saturating_mul(2), "{size}: {took:?}");
        }
        path.takes = 1472;
        path.run(Duration::from_secs(130));
        assert_eq!((path.machine.size(), path.machine.told()), (1472, 1472), "{size}");
    }
}

/// A size below the base size was refused, and then the base size passes: the path is another one, and larger sizes are tried again.
#[test]
fn a_base_size_that_passes_again_refutes_the_refusal() {
    for takes in [1000, 600] {
        let mut path = Path::new(1500, 1500);
        (path.is_busy, path.says) = (true, true);
        path.run(Duration::from_secs(20));
        assert_eq!(path.machine.size(), 1500);
        path.takes = takes;
        path.machine.on_too_long(path.now, usize::from(takes) + 1);
        path.run(Duration::from_secs(1));
        assert_eq!(path.machine.size(), MIN);
        path.takes = 1500;
        path.run(Duration::from_secs(700));
        assert_eq!((path.machine.size(), path.machine.told()), (1500, 1500));
    }
}
