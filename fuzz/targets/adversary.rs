//! Two endpoints that send real bytes to each other, and an adversary between them.
//!
//! He sees every packet, so he knows all numbers, but not a byte before it is sent. He drops, delays, doubles and replays what
//! he has seen, cuts it short (as it is, or with a new checksum), and injects segments of his own with right checksums: any
//! flags, numbers, window, SACK blocks, timestamps and SYN options, with text that differs from the genuine one. After
//! [`MOVES`] moves, or when the input is used up, he stops, and every packet arrives.
//!
//! Each injected segment is of one of two classes when it arrives, by the state of the end that gets it ([`View`]):
//!
//! - *Harmless*: not acceptable by RFC 9293 §3.10.7, RFC 5961 or RFC 7323 (outside of the window; an ACK of what was not sent, or
//!   older than the widest window; an old timestamp, or none; no ACK flag; a RST elsewhere than at RCV.NXT; a SYN), or text that
//!   the end has reported by SACK with an ACK older than SND.UNA.
//! - *Harmful*: all others. Who sends one of them knows the sequence number, or the connection is not there yet: LISTEN takes
//!   any SYN, and so does SYN-SENT (RFC 9293 §3.5, simultaneous open).
//!
//! An adversary of the first kind sends harmless segments only; harmful ones are withheld, and so are the endpoints' own resets
//! that he has led them to send with the peer's RCV.NXT. The property:
//!
//! - a harmless segment changes nothing that an end shows: state, numbers, bytes, windows;
//! - bytes delivered are the peer's, in order, once;
//! - no end echoes a timestamp that its peer has not sent;
//! - the transfer ends, both ends `Ok`, within [`bound`] after he has stopped.
//!
//! An adversary of the second kind sends anything. Bytes may be his then. The property: no panic, memory bounded, and every
//! end comes to an end of its own or to a typed failure, unless it waits with nothing of its own on the way (LISTEN,
//! FIN-WAIT-2) or probes a window that he has closed, once in a minute or more often.

use arbitrary::{Arbitrary, Unstructured};
use bentpipe_engine::Step;
use bentpipe_engine::tcp::variant::VARIANTS;
use bentpipe_engine::tcp::{AckPolicy, Flags, RtoConfig, Segment, State, SynOptions, TcpConfig, Timestamps, Variant};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::wire::ip::{self, Addresses, Ports};
use bentpipe_engine::wire::tcp::Translation;
use bentpipe_io::{Endpoint, Receipt};

use crate::flight::{Flight, Packet};
use crate::user::{User, address, pattern};

#[path = "adversary_moves.rs"]
mod adversary_moves;
#[path = "adversary_view.rs"]
mod adversary_view;

use adversary_moves::{Forged, Move, Place, Settings, Stamp};
use adversary_view::{View, emit};

/// Packets at which he may do something.
const MOVES: usize = 300;
/// The way of a packet that nothing happens to.
const DELAY: Duration = Duration::from_millis(20);
/// Bytes that may be written ahead.
const SEND_BUFFER: usize = 30_000;
/// Retransmissions before an end gives up. An adversary of the first kind may drop every packet that he sees and cannot make
/// an end give up; one of the second kind can.
const RETRIES: [u32; 2] = [2 * MOVES as u32, 5];
/// Packets that he can replay.
const SEEN: usize = 64;

struct End {
    user: User,
    view: View,
    /// Bytes of memory that it may have.
    memory: u64,
}

enum Cargo {
    /// Bytes of the peer: whether they are whole, and as what they were read.
    Genuine(bool, Segment, Vec<u8>),
    Forged(Forged),
}

/// How many segments he injected, and how many harmful ones were withheld.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Injected {
    pub(crate) delivered: u64,
    pub(crate) withheld: u64,
}

struct World<'a> {
    now: Time,
    knows: bool,
    ends: [End; 2],
    moves: Unstructured<'a>,
    made: usize,
    flying: Flight<Cargo>,
    seen: Vec<(usize, Segment, Vec<u8>)>,
    /// When the last of what he does arrives.
    stopped: Time,
    injected: Injected,
}

fn millis(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

impl World<'_> {
    /// Writes, closes and reads, and checks what was read. Whether there was anything to do.
    fn use_it(&mut self, n: usize) -> bool {
        let (now, knows, there) = (self.now, self.knows, self.ends[1 - n].user.written);
        let user = &mut self.ends[n].user;
        let before = user.progress();
        user.write(now, 512);
        user.read(now, 512, |place, byte| {
            if !knows {
                assert!(place < there, "end {n} reads more than was written");
                assert_eq!(byte, pattern(1 - n, place), "end {n}, byte {place}");
            }
        });
        user.progress() != before
    }

    fn put(&mut self, to: usize, delay: Duration, cargo: Cargo) {
        self.flying.send(self.now + delay, to, cargo);
        if self.made < MOVES && !self.moves.is_empty() {
            self.stopped = self.stopped.max(self.now + delay);
        }
    }

    /// A packet goes out: he looks at it, and decides.
    fn send(&mut self, from: usize, bytes: Vec<u8>) {
        let to = 1 - from;
        let peer_max = self.ends[to].view.snd_max;
        let segment = self.ends[from].view.on_sent(&bytes[ip::parse(&bytes).expect("a packet").payload], peer_max);
        if segment.flags.has(Flags::SYN) {
            let numbering = self.ends[from].view.wire.irs.expect("just learnt");
            self.ends[to].view.on_peer_syn(numbering, segment.syn.window_scale);
        }
        self.check_echo(from, &segment);
        if self.seen.len() == SEEN {
            self.seen.remove(0);
        }
        self.seen.push((to, segment, bytes.clone()));
        let chosen = if self.made < MOVES && !self.moves.is_empty() {
            self.made += 1;
            self.moves.arbitrary().unwrap_or(Move::Deliver)
        } else {
            Move::Deliver
        };
        let late = |steps: u8| DELAY + Duration::from_millis(u64::from(steps) * 8);
        let genuine = |bytes: Vec<u8>| Cargo::Genuine(true, segment, bytes);
        match chosen {
            Move::Deliver => self.put(to, DELAY, genuine(bytes)),
            Move::Drop => self.stopped = self.stopped.max(self.now),
            Move::Double { late: steps } => {
                self.put(to, DELAY, genuine(bytes.clone()));
                self.put(to, late(steps), genuine(bytes));
            }
            Move::Delay { late: steps } => self.put(to, late(steps), genuine(bytes)),
            Move::Cut { length } => {
                let mut short = bytes;
                short.truncate(usize::from(length) % short.len());
                self.put(to, DELAY, Cargo::Genuine(false, segment, short));
            }
            Move::Shorten { length } => {
                let (segment, bytes) = self.shorten(to, segment, bytes, length);
                self.put(to, DELAY, Cargo::Genuine(true, segment, bytes));
            }
            Move::Replay { which, late: steps } => {
                self.put(to, DELAY, genuine(bytes));
                let (to, segment, bytes) = self.seen[usize::from(which) % self.seen.len()].clone();
                self.put(to, late(steps), Cargo::Genuine(true, segment, bytes));
            }
            Move::Inject { back, late: steps, forged } => {
                self.put(to, DELAY, genuine(bytes));
                self.put(if back { from } else { to }, late(steps), Cargo::Forged(forged));
            }
            Move::Barrage { back, forged, times } => {
                for _ in 0..times % 16 {
                    self.put(if back { from } else { to }, DELAY, Cargo::Forged(forged));
                }
                self.put(to, DELAY, genuine(bytes));
            }
        }
    }

    /// An end echoes what its peer has sent, which is not from the future.
    fn check_echo(&self, from: usize, segment: &Segment) {
        if let Some(timestamps) = segment.timestamps.filter(|_| !self.knows)
            && segment.flags.has(Flags::ACK)
        {
            let age = millis(self.now).wrapping_sub(timestamps.echo) as i32;
            assert!(age >= 0, "end {from} echoes what was not sent: {segment:?}");
        }
    }

    /// The beginning of a genuine segment with a right checksum, as a middlebox cuts it.
    fn shorten(&self, to: usize, segment: Segment, bytes: Vec<u8>, length: u8) -> (Segment, Vec<u8>) {
        let len = segment.len.min(u16::from(length));
        if len == 0 || segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST) {
            return (segment, bytes);
        }
        let whole = ip::parse(&bytes).expect("a packet").payload;
        let text = whole.end - usize::from(segment.len)..whole.end - usize::from(segment.len - len);
        let short = Segment { len, flags: Flags::ACK, ..segment };
        // What goes to an end is written as its peer writes it.
        (short, emit(&self.ends[to].view.wire, &short, &bytes[text]))
    }

    /// A forged segment as it is for the end that gets it now.
    fn forge(&self, to: usize, forged: &Forged) -> Segment {
        let End { user: User { endpoint, .. }, view, .. } = &self.ends[to];
        let (rcv_nxt, snd_una) = (endpoint.connection().rcv_nxt(), endpoint.connection().snd_una());
        let number = |place, base: u64, edge: u64, known: &dyn Fn(u8) -> u64| match place {
            Place::Next => base,
            Place::Near(by) => base.wrapping_add_signed(by.into()),
            Place::Edge(by) => edge.wrapping_add_signed(by.into()),
            Place::Known(which) => known(which),
            Place::Anywhere(number) => base.wrapping_add(number.into()),
        };
        let block = |which: u8| match view.sacked.len() {
            0 => rcv_nxt.wrapping_sub(u64::from(which)),
            blocks => view.sacked[usize::from(which) % blocks].0,
        };
        let older = |by: u8| {
            let oldest = if by.is_multiple_of(2) { snd_una } else { snd_una.wrapping_sub(view.max_window) };
            oldest.wrapping_sub(1 + u64::from(by / 2))
        };
        let mut segment = Segment::new(Flags::from_bits_truncate(forged.flags));
        segment.seq = number(forged.seq, rcv_nxt, view.edge, &block);
        segment.ack = number(forged.ack, snd_una, view.snd_max, &older);
        segment.len = forged.len.into();
        let shift = if segment.flags.has(Flags::SYN) { 0 } else { view.wire.send_shift() };
        segment.window = u32::from(forged.window) << shift;
        let value = match forged.stamp {
            Stamp::Now => Some(millis(self.now)),
            Stamp::Old(by) => Some(view.echo.unwrap_or(0).wrapping_sub(1 + u32::from(by))),
            Stamp::New(by) => Some(millis(self.now).wrapping_add(1 + by % (1 << 30))),
            Stamp::Missing => None,
        };
        segment.timestamps = value.map(|value| Timestamps { value, echo: millis(self.now) });
        if segment.flags.has(Flags::SYN) {
            let (mss, scale) = forged.syn;
            segment.syn =
                SynOptions { mss: Some(mss), window_scale: Some(scale), sack_permitted: scale.is_multiple_of(2) };
        } else if let Some((place, length)) = forged.sack {
            let start = number(place, snd_una, view.snd_max, &older);
            segment.sack.push(segment.ack, start, start.wrapping_add_signed(length.into()));
        }
        segment
    }

    fn arrive(&mut self, packet: Packet<Cargo>) {
        let to = packet.to;
        match packet.cargo {
            Cargo::Genuine(whole, segment, bytes) => {
                let reset = segment.flags.has(Flags::RST);
                if reset && !self.knows && !self.ends[to].view.is_harmless(&self.ends[to].user.endpoint, &segment) {
                    self.injected.withheld += 1;
                    return;
                }
                let widest = &mut self.ends[to].view.max_window;
                *widest = (*widest).max(segment.window.into());
                let heard = self.ends[to].user.call(self.now, |e, cx| e.receive(cx, &bytes));
                let taken = matches!(heard, Ok(Receipt::Taken(_)));
                assert!(if whole { heard.is_ok() } else { !taken }, "{heard:?} of {bytes:?}");
            }
            Cargo::Forged(forged) => {
                let segment = self.forge(to, &forged);
                let harmless = self.ends[to].view.is_harmless(&self.ends[to].user.endpoint, &segment);
                if !harmless && !self.knows {
                    self.injected.withheld += 1;
                    return;
                }
                self.injected.delivered += 1;
                if !harmless {
                    let widest = &mut self.ends[to].view.max_window;
                    *widest = (*widest).max(segment.window.into());
                }
                // He knows the bytes that have been sent, and says others.
                let text: Vec<u8> = (0..segment.len)
                    .map(|i| !pattern(1 - to, segment.seq.wrapping_add(i.into()).wrapping_sub(1)))
                    .collect();
                let bytes = emit(&self.ends[to].view.wire, &segment, &text);
                let before = shown(&self.ends[to].user.endpoint);
                let heard = self.ends[to].user.call(self.now, |e, cx| e.receive(cx, &bytes));
                assert!(heard.is_ok(), "{heard:?}");
                if harmless && !self.knows {
                    let after = shown(&self.ends[to].user.endpoint);
                    assert!(before == after, "{segment:?} changed end {to}: {before:?}, {after:?}");
                }
            }
        }
    }

    /// Lets both ends do what they want now.
    fn flush(&mut self) {
        let mut out = [0; 2048];
        for n in 0..2 {
            self.use_it(n);
            loop {
                match self.ends[n].user.call(self.now, |e, cx| e.poll(cx, &mut out)).expect("there is room") {
                    Step::Do(length) => self.send(n, out[..length].to_vec()),
                    Step::Wait(timer) => {
                        assert!(timer.is_none_or(|at| at >= self.now), "end {n} waits for the past");
                        self.ends[n].user.timer = timer;
                        // The poll may have opened the connection, or room in a buffer.
                        if !self.use_it(n) {
                            break;
                        }
                    }
                }
            }
            let memory = self.ends[n].user.endpoint.memory();
            assert!(memory <= self.ends[n].memory, "end {n} holds {memory} bytes");
        }
    }

    /// Goes on to the next instant at which something happens; false if nothing ever does.
    fn step(&mut self) -> bool {
        self.flush();
        let timer = Time::earliest(self.ends[0].user.timer, self.ends[1].user.timer);
        let Some(now) = Time::earliest(self.flying.next(), timer) else { return false };
        self.now = self.now.max(now);
        if let Some(packet) = self.flying.arrived(now) {
            self.arrive(packet);
        }
        true
    }

    /// Both directions are done, and both FINs acknowledged.
    fn is_done(&self) -> bool {
        self.ends.iter().all(|end| matches!(end.user.endpoint.connection().state(), State::TimeWait | State::Closed))
    }

    fn describe(&self) -> String {
        let [a, b] = [0, 1].map(|n| self.ends[n].user.describe());
        let (now, stopped) = (self.now, self.stopped);
        format!("at {now:?}, he stopped at {stopped:?}: {a}; {b}")
    }

    /// The end of a run with an adversary of the first kind.
    fn judge(&self) {
        for n in 0..2 {
            let (end, peer) = (&self.ends[n].user, &self.ends[1 - n].user);
            assert_eq!(end.endpoint.outcome(), Some(Ok(())), "end {n}: {}", self.describe());
            assert_eq!(end.read, peer.total, "end {n} has not everything: {}", self.describe());
            assert_eq!(end.endpoint.acknowledged(), end.total, "end {n}: {}", self.describe());
        }
    }

    /// The end of a run with one of the second kind.
    fn judge_fooled(&self) {
        for (n, end) in self.ends.iter().enumerate() {
            let end = &end.user;
            let waits = matches!(end.endpoint.connection().state(), State::Listen | State::FinWait2);
            let probes = end.timer.is_some_and(|at| at <= self.now + TIMER_MAX);
            assert!(end.endpoint.outcome().is_some() || waits || probes, "end {n} stands still: {}", self.describe());
        }
    }
}

/// What an end shows of itself.
fn shown(endpoint: &Endpoint) -> impl PartialEq + core::fmt::Debug + use<> {
    let connection = endpoint.connection();
    let numbers = [connection.rcv_nxt(), connection.snd_una(), connection.received(), connection.acknowledged()];
    let windows = [connection.cwnd(), connection.ssthresh(), connection.beyond_gaps()];
    (connection.state(), numbers, windows, endpoint.readable(), endpoint.outcome())
}

/// The longest that a retransmission or a probe waits (RFC 6298 §2.5).
const TIMER_MAX: Duration = RtoConfig::RFC6298.max;

fn config(settings: &Settings, n: usize) -> TcpConfig {
    let row = VARIANTS[usize::from(settings.variant) % VARIANTS.len()].2;
    let mss = 48 + 5 * u16::from(settings.mss[n]);
    TcpConfig {
        variant: Variant { frto: settings.variant >= 128, ..row },
        mss,
        receive_buffer: u32::from(settings.buffers[n] >> (settings.small % 12)).max(u32::from(mss)),
        ack: if settings.delayed_ack { AckPolicy::DELAYED } else { AckPolicy::IMMEDIATE },
        timestamps: settings.timestamps,
        window_scaling: settings.scaling,
        nagle: settings.nagle,
        rto: RtoConfig { max_retries: RETRIES[usize::from(settings.knows)], ..RtoConfig::RFC6298 },
        // The first kind: longer than any retransmission lasts, so that a FIN that comes again finds somebody.
        time_wait: Duration::from_secs(if settings.knows { 240 } else { 100_000 }),
        ..TcpConfig::default()
    }
}

/// How long a transfer may last without him. Each of opening, data and closing may begin with a timer of either end that he
/// has driven to its maximum. Then segments go, of at least 18 bytes (the least MSS here less timestamps and half of the rest
/// for SACK blocks), in the worst case each of them alone, with a delayed ACK.
fn bound(totals: u64) -> Duration {
    TIMER_MAX.saturating_mul(6) + (DELAY + DELAY + AckPolicy::DELAYED.delay).saturating_mul(totals / 18 + 6)
}

fn end(settings: &Settings, n: usize, now: Time) -> End {
    let config = config(settings, n);
    let user = User::open(n, now, config, SEND_BUFFER, u64::from(settings.totals[n] % 20_000));
    let (ours, theirs) = (address(n), address(1 - n));
    let addresses = Addresses::new(theirs.ip(), ours.ip()).expect("one IP version");
    let ports = Ports { source: theirs.port(), destination: ours.port() };
    let buffer = u64::from(config.receive_buffer);
    let view = View {
        wire: Translation::new(addresses, ports, 0),
        snd_max: 0,
        edge: 0,
        echo: None,
        sacked: Default::default(),
        max_window: 0,
        buffer,
        timestamps: config.timestamps,
    };
    // Ranges beyond gaps: one per full segment of the buffer and at least 64, in two lists; reported ones: 1024, or one per
    // segment of the send buffer. A list doubles when it grows.
    let ranges = 2 * (buffer / u64::from(config.mss)).max(64) + (SEND_BUFFER as u64 / 18).max(1024);
    let memory = SEND_BUFFER as u64 + buffer + 2 * 16 * (ranges + 2);
    End { user, view, memory }
}

/// Settings, then a move per packet.
pub(crate) fn run(data: &[u8]) -> Injected {
    let mut moves = Unstructured::new(data);
    let Ok(settings) = Settings::arbitrary(&mut moves) else { return Injected::default() };
    // Ten seconds before the clock of the timestamps goes through 0.
    let now = Time::from_nanos(if settings.wraps { ((1 << 32) - 10_000) * 1_000_000 } else { 0 });
    let ends = [0, 1].map(|n| end(&settings, n, now));
    let bound = bound(ends.iter().map(|end| end.user.total).sum());
    let mut world = World {
        now,
        knows: settings.knows,
        ends,
        moves,
        made: 0,
        flying: Flight::new(),
        seen: Vec::new(),
        stopped: now,
        injected: Injected::default(),
    };
    // The second kind: ends give up one after the other, then TIME-WAIT.
    let given_up = TIMER_MAX.saturating_mul(4 * u64::from(RETRIES[1] + 1)) + Duration::from_secs(240);
    while world.step() {
        let since = world.now.saturating_since(world.stopped);
        if world.knows && since > given_up + bound {
            break;
        }
        assert!(world.knows || world.is_done() || since <= bound, "not within {bound:?}: {}", world.describe());
    }
    if world.knows {
        world.judge_fooled()
    } else {
        world.judge()
    }
    world.injected
}
