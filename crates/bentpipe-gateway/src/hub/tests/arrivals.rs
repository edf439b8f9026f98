//! Datagrams of several terminals take turns. What they cost stands in a table; only that takes time.

use super::*;
use crate::hub::arrivals::{QUANTUM, STRIDE};

/// The CPU time of a terminal's datagram, by slot, and when which was worked off.
struct Table {
    costs: Vec<Duration>,
    now: Time,
    read_at: Time,
    laps: usize,
    worked_off: Vec<(Slot, Time)>,
    /// The process is stopped for this long while it works off the next datagram of the first terminal.
    pause: Duration,
}

impl Meter for Table {
    fn lap(&mut self) -> Duration {
        self.laps += 1;
        self.now - std::mem::replace(&mut self.read_at, self.now)
    }

    fn worked_off(&mut self, slot: Slot) {
        self.now += self.costs[usize::from(slot.0)];
        if slot == Slot(0) {
            self.now += std::mem::take(&mut self.pause);
        }
        self.worked_off.push((slot, self.now));
    }
}

/// A hub that runs as its driver does, and its socket: when a datagram has come, and whose it is.
struct Driven {
    world: World,
    table: Table,
    socket: VecDeque<(Time, usize, Vec<u8>)>,
    /// The clock of each terminal.
    clocks: Vec<Time>,
    max_waiting: u64,
    out: Vec<u8>,
}

impl Driven {
    /// All terminals are up, and have been silent for this long.
    fn new(costs: &[Duration], silent: Duration) -> Self {
        let mut world = World::new(costs.len(), 1_000_000_000, 1_000_000_000);
        world.quiet(3);
        world.now += silent;
        let (now, costs) = (world.now, costs.to_vec());
        let table = Table { costs, now, read_at: now, laps: 0, worked_off: Vec::new(), pause: Duration::ZERO };
        let clocks = vec![now; world.terminals.len()];
        Driven { world, table, socket: VecDeque::new(), clocks, max_waiting: 0, out: vec![0; 1 << 16] }
    }

    /// At least this many datagrams of a terminal, one per `interval` from now on. Returns their number.
    fn send(&mut self, terminal: usize, count: usize, interval: Duration) -> usize {
        let carrier = &mut self.world.terminals[terminal];
        let mut now = self.clocks[terminal].max(self.table.now);
        let mut sent = 0;
        for n in 0..count {
            carrier.send_on(now, 0, n as u64, &[7; 100]).expect("it fits");
            loop {
                match carrier.poll(now, 1, &mut self.out) {
                    Step::Wait(_) if carrier.waiting(0) == 0 => break,
                    Step::Wait(until) => now = until.expect("it goes on"),
                    Step::Do(Carried::Send(sealed)) if sealed.len > 100 => {
                        let at = self.table.now + interval.saturating_mul(sent as u64);
                        sent += 1;
                        self.socket.push_back((at, terminal, self.out[..sealed.len].to_vec()));
                    }
                    Step::Do(_) => {}
                }
            }
        }
        self.clocks[terminal] = now;
        self.socket.make_contiguous().sort_by_key(|(at, ..)| *at);
        sent
    }

    /// Until all is worked off. Returns how long each terminal's datagrams waited, in their order.
    fn run(&mut self) -> Vec<Vec<Duration>> {
        let (mut came, before) = (vec![Vec::new(); self.table.costs.len()], self.table.worked_off.len());
        while !self.socket.is_empty() || self.world.hub.has_waiting() {
            self.turn(&mut came);
            if let Some((at, ..)) = self.socket.front().filter(|_| !self.world.hub.has_waiting()) {
                self.table.now = self.table.now.max(*at);
            }
        }
        let mut waits = vec![Vec::new(); came.len()];
        for &(slot, at) in &self.table.worked_off[before..] {
            let (n, waits) = (usize::from(slot.0), &mut waits[usize::from(slot.0)]);
            waits.push(at - came[n][waits.len()]);
        }
        waits
    }

    fn turn(&mut self, came: &mut [Vec<Time>]) {
        let now = self.table.now;
        let (hub, table) = (&mut self.world.hub, &mut self.table);
        loop {
            let mut batch = 0;
            while batch < BATCH
                && self.socket.front().is_some_and(|(at, ..)| *at <= table.now)
                && let Some((at, terminal, mut datagram)) = self.socket.pop_front()
            {
                batch += 1;
                came[terminal].push(at);
                hub.receive(now, address(terminal), &mut datagram, table);
            }
            if batch == 0 || !hub.has_waiting() {
                break;
            }
        }
        self.max_waiting = self.max_waiting.max(hub.arrivals.waiting_bytes());
        assert_eq!(hub.take_event(), None, "no link begins or ends");
        while let Step::Do(_) = hub.poll(now, 1, &mut self.out, table) {}
        hub.forget_served();
    }

    fn dropped(&self) -> Vec<u64> {
        self.world.hub.carriers().map(|(slot, _)| self.world.hub.dropped(slot)).collect()
    }
}

/// Datagrams that the socket gives at once.
const BATCH: usize = 1024;
const MS: fn(u64) -> Duration = Duration::from_millis;
const US: fn(u64) -> Duration = Duration::from_micros;

/// A terminal sends 400 datagrams at once that take 5 ms each. In a queue for all, those of the other one would wait up to two seconds.
#[test]
fn costly_datagrams_hold_up_no_others() {
    let (dear, cheap) = (MS(5), US(5));
    let mut driven = Driven::new(&[dear, cheap], MS(0));
    let sent = [driven.send(0, 400, MS(0)), driven.send(1, 1000, MS(1))];
    let waits = driven.run();
    assert_eq!([waits[0].len(), waits[1].len()], sent);
    // It is not known yet that they are dear.
    let at_first = dear.saturating_mul(STRIDE.into());
    let round = dear + QUANTUM.saturating_mul(2);
    let late: Vec<_> = waits[1].iter().filter(|&&wait| wait > round + cheap.saturating_mul(10)).collect();
    assert!(waits[1].iter().all(|&wait| wait <= at_first + round + cheap.saturating_mul(30)), "{late:?}");
    assert!(late.len() <= 20, "{late:?}");
    // Nor does the time that the cheap one leaves go to waste.
    let all = dear.saturating_mul(sent[0] as u64) + cheap.saturating_mul(sent[1] as u64);
    let begun = driven.world.now;
    assert_eq!((driven.table.now - begun, driven.dropped()), (all, vec![0, 0]));
}

/// Terminals that want more CPU time than there is get equal parts of it, whatever the cost of one of their datagrams.
#[test]
fn time_is_shared_and_not_datagrams() {
    let costs = [MS(5), US(400), US(20)];
    let mut driven = Driven::new(&costs, MS(0));
    for (n, count) in [(0, 400), (1, 5000), (2, 20_000)] {
        driven.send(n, count, MS(0));
    }
    driven.run();
    let until = driven.world.now + MS(300);
    let mut took = [Duration::ZERO; 3];
    for (slot, _) in driven.table.worked_off.iter().filter(|(_, at)| *at <= until) {
        took[usize::from(slot.0)] += costs[usize::from(slot.0)];
    }
    let first = MS(5).saturating_mul(STRIDE.into());
    assert!(took.iter().all(|took| *took + MS(6) > MS(100) - first && *took < MS(106) + first), "{took:?}");
}

/// The CPU time of each terminal is counted, except for the few datagrams of a turn that are not measured.
#[test]
fn the_time_of_each_is_shown() {
    let costs = [MS(5), US(20)];
    let mut driven = Driven::new(&costs, MS(0));
    let sent = [driven.send(0, 100, MS(1)), driven.send(1, 1000, MS(1))];
    driven.run();
    let spent = [0, 1].map(|n| driven.world.hub.spent(Slot(n)).expect("of several").as_millis_f64());
    let whole = [0, 1].map(|n| costs[n].as_millis_f64() * sent[n] as f64);
    // Four datagrams measured together may be of both.
    let doubt = costs[0].as_millis_f64() * f64::from(STRIDE);
    assert!((spent[0] - whole[0]).abs() <= doubt, "{spent:?} of {whole:?}");
    assert!(spent[1] <= whole[1] + doubt, "{spent:?} of {whole:?}");
    drop(driven.world.hub.remove(Slot(0)));
    assert_eq!(driven.world.hub.spent(Slot(1)), None, "a single one is not measured");
}

/// The process was stopped for an hour while it worked off a datagram of one terminal. That terminal has its turns again soon.
#[test]
fn a_pause_is_nobodys_work() {
    let mut driven = Driven::new(&[US(20); 2], MS(0));
    driven.send(0, 500, MS(0));
    driven.send(1, 30_000, MS(0));
    driven.table.pause = Duration::from_secs(3600);
    driven.run();
    let mut times = driven.table.worked_off.iter().filter(|(slot, _)| *slot == Slot(0)).map(|(_, at)| *at);
    let resumed = times.next().expect("the one that took an hour");
    // Those that are measured with it, and the next one.
    let next = times.nth(STRIDE as usize).expect("there are more");
    assert!(next - resumed < MS(150), "{:?}", next - resumed);
    assert!(driven.world.hub.spent(Slot(0)).expect("of several") < MS(200));
}

/// A terminal of several that alone has something to say: nothing is copied, and the clock is seldom read.
#[test]
fn alone_nothing_waits() {
    let mut driven = Driven::new(&[US(2), US(2)], MS(150));
    driven.send(0, 1, MS(0));
    driven.run();
    driven.table.now += MS(150);
    let sent = driven.send(0, 2000, MS(0));
    let before = driven.table.laps;
    driven.run();
    assert_eq!((driven.max_waiting, driven.dropped()), (0, vec![0, 0]));
    // One for each four, and some for each turn.
    let laps = driven.table.laps - before;
    assert!(laps <= sent / 4 + 4 * (sent / BATCH + 1), "{laps} of {sent}");
}

/// A single terminal is never measured.
#[test]
fn a_single_one_takes_no_turns() {
    let mut driven = Driven::new(&[MS(5)], MS(0));
    driven.send(0, 500, MS(0));
    driven.run();
    assert_eq!((driven.table.laps, driven.max_waiting), (0, 0));
    let stats = driven.world.hub.carrier(Slot(0)).expect("it is there").tunnel().stats();
    assert!(stats.received >= 500, "{stats:?}");
}

/// The queue is bounded. A greedy terminal leaves another one as much room as it takes, and nothing of it remains after its removal.
#[test]
fn what_waits_is_bounded() {
    let mut driven = Driven::new(&[MS(50), MS(50), US(5)], MS(0));
    let mut came = vec![Vec::new(); 3];
    let mut waiting = 0;
    // Half of all, and half of what the first one has left.
    for (n, mebibytes) in [(0, 4), (1, 2)] {
        driven.send(n, 30_000, MS(0));
        driven.turn(&mut came);
        let more = driven.max_waiting - waiting;
        assert!(more <= mebibytes << 20 && more > (mebibytes << 20) - 5000, "{more}");
        assert!(driven.dropped()[n] > 0);
        waiting += more;
    }
    let sent = driven.send(2, 10, MS(0));
    driven.turn(&mut came);
    let worked_off = driven.table.worked_off.iter().filter(|(slot, _)| *slot == Slot(2)).count();
    assert_eq!((worked_off, driven.dropped()[2]), (sent, 0));
    drop(driven.world.hub.remove(Slot(0)));
    drop(driven.world.hub.remove(Slot(1)));
    assert!(!driven.world.hub.has_waiting() && driven.world.hub.arrivals.waiting_bytes() == 0);
}

/// A first message is read at once, whatever else waits; a datagram of no session takes no place in the queue.
#[test]
fn handshakes_do_not_wait() {
    let mut driven = Driven::new(&[MS(5), MS(5)], MS(0));
    driven.send(0, 100, MS(0));
    driven.turn(&mut [Vec::new(), Vec::new()]);
    assert!(driven.world.hub.has_waiting());
    let (mut out, now) = (vec![0; 1 << 16], driven.table.now);
    let unknown = |driven: &Driven| driven.world.hub.carrier(Slot(0)).expect("it is there").tunnel().stats().unknown;
    let waiting = driven.world.hub.arrivals.waiting_bytes();
    let mut stranger = vec![3; 100];
    stranger[1..5].copy_from_slice(&0x1234_0000u32.to_le_bytes());
    driven.world.hub.receive(now, address(0), &mut stranger, &mut driven.table);
    assert_eq!((unknown(&driven), driven.world.hub.arrivals.waiting_bytes()), (1, waiting));
    let tunnel = TunnelConfig::new(driven.world.keys[0].clone(), driven.world.key.public(), Some(HUB.into()));
    let mut again = Tunnel::new(tunnel, now);
    let Step::Do(Todo::Send(sealed)) = again.poll(now, 2_000_000_000_000_000_000, &mut out) else {
        panic!("it begins")
    };
    driven.world.hub.receive(now, address(0), &mut out[..sealed.len], &mut driven.table);
    let mut answered = false;
    while let Step::Do((_, carried)) = driven.world.hub.poll(now, 1, &mut driven.out, &mut driven.table) {
        answered |= matches!(carried, Carried::Send(sealed) if matches!(classify(&driven.out[..sealed.len]), Some(Kind::Response { .. })));
    }
    assert!(answered && driven.world.hub.has_waiting());
}
