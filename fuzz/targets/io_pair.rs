//! Two endpoints with real bytes and IP packets, and a channel between them that follows the input.
//!
//! A packet is delivered, dropped, doubled, delayed, or damaged: one bit turned over, or cut short. Both kinds of damage
//! must be found (a ones' complement sum sees each single bit, and the length of an IP packet stands in it). After
//! [`BAD`] packets, or when the input is used up, the channel is clean.
//!
//! The property: what an end reads is a beginning of what its peer wrote, and each end comes to one of
//!
//! - both directions done: it has read everything and the peer has everything;
//! - a typed failure: it gave up, or heard that the peer did;
//! - waiting for ever, but only for a peer that has given up, and only with nothing of its own on the way. An end finds
//!   out about its peer by what it sends: a retransmission runs into the limit of RFC 9293 §3.8.3 or into the reset of
//!   §3.10.7.1. The reset that a peer might send when it gives up can be lost, and nobody repeats it. Who has nothing to
//!   send has no timer (§3.8.4: keep-alives are optional, and we have none). That is so in LISTEN (no SYN has come), in
//!   FIN-WAIT-2 (our FIN is acknowledged, the peer's is still to come), and in ESTABLISHED for a user who has not closed;
//!   here users write all they have and close, so the last has a FIN to send. In every other state something of ours is
//!   unacknowledged, or TIME-WAIT runs out.

use arbitrary::{Arbitrary, Unstructured};
use bentpipe_engine::Step;
use bentpipe_engine::tcp::variant::{CongestionControl, VARIANTS};
use bentpipe_engine::tcp::{AckPolicy, EcnUse, State, TcpConfig, Variant};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_io::Receipt;

use crate::flight::{Flight, Packet};
use crate::user::{User, pattern};

/// Packets that may meet something.
const BAD: usize = 400;
/// The way of a packet that nothing happens to.
const DELAY: Duration = Duration::from_millis(20);
/// Each step is a packet or a timer; the longest runs take some thousands.
const STEPS: usize = 200_000;

#[derive(Debug, Arbitrary)]
struct Settings {
    variant: u8,
    timestamps: bool,
    nagle: bool,
    delayed_ack: bool,
    scaling: bool,
    frto: bool,
    buffer: u16,
    mss: [u8; 2],
    totals: [u16; 2],
}

#[derive(Clone, Copy, Debug, Arbitrary)]
enum Fate {
    Deliver,
    Drop,
    Duplicate { late: u8 },
    Delay { late: u8 },
    Flip { bit: u16 },
    Truncate { length: u16 },
}

/// A packet, and whether it is whole.
struct Cargo {
    whole: bool,
    bytes: Vec<u8>,
}

struct World<'a> {
    now: Time,
    ends: [User; 2],
    fates: Unstructured<'a>,
    bad: usize,
    flying: Flight<Cargo>,
}

impl World<'_> {
    fn use_it(&mut self, n: usize) {
        let (now, there) = (self.now, self.ends[1 - n].written);
        self.ends[n].write(now, 512);
        self.ends[n].read(now, 512, |place, byte| {
            assert!(place < there, "end {n} reads more than was written");
            assert_eq!(byte, pattern(1 - n, place), "end {n}, byte {place}");
        });
    }

    fn send(&mut self, from: usize, bytes: Vec<u8>) {
        let fate = if self.bad < BAD && !self.fates.is_empty() {
            self.bad += 1;
            self.fates.arbitrary().unwrap_or(Fate::Deliver)
        } else {
            Fate::Deliver
        };
        let late = |steps: u8| DELAY + Duration::from_millis(u64::from(steps) * 8);
        let mut put = |delay: Duration, whole: bool, bytes: Vec<u8>| {
            self.flying.send(self.now + delay, 1 - from, Cargo { whole, bytes });
        };
        match fate {
            Fate::Deliver => put(DELAY, true, bytes),
            Fate::Drop => {}
            Fate::Duplicate { late: steps } => {
                put(DELAY, true, bytes.clone());
                put(late(steps), true, bytes);
            }
            Fate::Delay { late: steps } => put(late(steps), true, bytes),
            Fate::Flip { bit } => {
                let mut damaged = bytes;
                let bit = usize::from(bit) % (damaged.len() * 8);
                damaged[bit / 8] ^= 1 << (bit % 8);
                put(DELAY, false, damaged);
            }
            Fate::Truncate { length } => {
                let mut short = bytes;
                short.truncate(usize::from(length) % short.len());
                put(DELAY, false, short);
            }
        }
    }

    /// Lets both ends do what they want now.
    fn flush(&mut self) {
        let mut out = [0; 2048];
        for n in 0..2 {
            loop {
                self.use_it(n);
                match self.ends[n].call(self.now, |e, cx| e.poll(cx, &mut out)).expect("there is room") {
                    Step::Do(length) => self.send(n, out[..length].to_vec()),
                    Step::Wait(timer) => {
                        assert!(timer.is_none_or(|at| at >= self.now), "end {n} waits for the past");
                        self.ends[n].timer = timer;
                        if self.ends[n].endpoint.readable() == 0 {
                            break;
                        }
                    }
                }
            }
        }
    }

    /// Goes on to the next instant at which something happens; false if nothing ever does.
    fn step(&mut self) -> bool {
        self.flush();
        let timer = Time::earliest(self.ends[0].timer, self.ends[1].timer);
        let Some(now) = Time::earliest(self.flying.next(), timer) else { return false };
        self.now = self.now.max(now);
        if let Some(Packet { to, cargo: Cargo { whole, bytes }, .. }) = self.flying.arrived(now) {
            let heard = self.ends[to].call(self.now, |e, cx| e.receive(cx, &bytes));
            // Damage is an error, or, in a port, makes the packet somebody else's.
            let taken = matches!(heard, Ok(Receipt::Taken(_)));
            assert!(if whole { heard.is_ok() } else { !taken }, "{heard:?} of {bytes:?}");
        }
        true
    }

    fn describe(&self) -> String {
        let [a, b] = [0, 1].map(|n| self.ends[n].describe());
        format!("at {:?}: {a}; {b}", self.now)
    }

    fn judge(&self) {
        for n in 0..2 {
            let (end, peer) = (&self.ends[n], &self.ends[1 - n]);
            let peer_failed = matches!(peer.endpoint.outcome(), Some(Err(_)));
            match end.endpoint.outcome() {
                Some(Ok(())) => {
                    assert_eq!(end.read, peer.total, "end {n} has not everything: {}", self.describe());
                    assert_eq!(end.endpoint.acknowledged(), end.total, "end {n}: {}", self.describe());
                }
                Some(Err(_)) => {}
                None => {
                    let state = end.endpoint.connection().state();
                    assert!(peer_failed, "end {n} did not end: {}", self.describe());
                    let may_wait = matches!(state, State::Listen | State::FinWait2);
                    assert!(
                        may_wait,
                        "end {n} waits in a state in which it has something to send: {}",
                        self.describe()
                    );
                }
            }
        }
    }
}

fn config(settings: &Settings, n: usize) -> TcpConfig {
    let row = VARIANTS[usize::from(settings.variant) % VARIANTS.len()].2;
    let mss = 28 + 5 * u16::from(settings.mss[n]);
    TcpConfig {
        variant: Variant { frto: settings.frto, ..row },
        mss,
        receive_buffer: u32::from(settings.buffer).max(u32::from(mss)),
        ack: if settings.delayed_ack { AckPolicy::DELAYED } else { AckPolicy::IMMEDIATE },
        timestamps: settings.timestamps,
        window_scaling: settings.scaling,
        // Without it, Prague is Reno.
        ecn: if row.congestion == CongestionControl::Prague { EcnUse::Accurate } else { EcnUse::Off },
        nagle: settings.nagle,
        // Longer than any retransmission lasts: a FIN that comes again finds somebody.
        time_wait: Duration::from_secs(100_000),
        ..TcpConfig::default()
    }
}

/// Settings, then a fate per packet.
pub(crate) fn run(data: &[u8]) {
    let mut fates = Unstructured::new(data);
    let Ok(settings) = Settings::arbitrary(&mut fates) else { return };
    // Nothing to send is a case of its own: a direction that is closed at once.
    let total = |n: usize| u64::from(settings.totals[n] % 20_000);
    let ends = [0, 1].map(|n| User::open(n, Time::ZERO, config(&settings, n), 30_000, total(n)));
    let mut world = World { now: Time::ZERO, ends, fates, bad: 0, flying: Flight::new() };
    for _ in 0..STEPS {
        if !world.step() {
            world.judge();
            return;
        }
    }
    panic!("no end in sight: {}", world.describe());
}
