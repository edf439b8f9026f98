//! Cases that packet scripts cannot express, at the level of [`Connection`]: openings without packets (ns-2's), connections that inherit
//! state (RFC 9040), and a connection that is closed or listens without a host around it. The scripts of `bentpipe-script` cover everything
//! else.

use bentpipe_engine::probe::{Event, Probe, Who};

use bentpipe_engine::tcp::variant::Growth;
use bentpipe_engine::tcp::{
    AckPolicy, Connection, Flags, Handshake, Input, Output, Resume, Role, RtoConfig, Segment, Shortcuts, State,
    SynOptions, TcbCache, TcbSharing, TcpConfig, Variant,
};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::{Context, Machine, Step};

const MSS: u64 = 1000;

#[derive(Default)]
struct Watch {
    recoveries: u32,
    recoveries_left: u32,
}

impl Probe for Watch {
    fn event(&mut self, _: Time, _: Who, event: &Event) {
        match event {
            Event::RecoveryEntered { .. } => self.recoveries += 1,
            Event::RecoveryLeft => self.recoveries_left += 1,
            _ => {}
        }
    }
}

/// A connection with a clock, and the segments that it has sent since they were last read.
struct One {
    connection: Connection,
    config: TcpConfig,
    watch: Watch,
    now: Time,
    timer: Option<Time>,
    sent: Vec<(Time, Segment)>,
}

impl One {
    fn new(config: TcpConfig, role: Role) -> Self {
        let connection = Connection::new(config, role);
        One { connection, config, watch: Watch::default(), now: Time::ZERO, timer: None, sent: Vec::new() }
    }

    fn opened(config: TcpConfig) -> Self {
        let mut one = One::new(config, Role::Active);
        one.handle(Input::Open);
        one
    }

    fn handle(&mut self, input: Input) {
        let mut cx = Context { now: self.now, who: Who(0), probe: &mut self.watch };
        self.connection.handle(&mut cx, input);
        self.poll();
    }

    fn poll(&mut self) {
        loop {
            let mut cx = Context { now: self.now, who: Who(0), probe: &mut self.watch };
            match self.connection.poll(&mut cx) {
                Step::Do(Output::Transmit(segment)) => self.sent.push((self.now, segment)),
                Step::Do(_) => {}
                Step::Wait(timer) => {
                    self.timer = timer;
                    return;
                }
            }
        }
    }

    /// Lets time pass; timers act on the way.
    fn wait(&mut self, millis: u64) {
        let until = self.now + Duration::from_millis(millis);
        while let Some(at) = self.timer.filter(|at| *at <= until) {
            self.now = at;
            self.poll();
        }
        self.now = until;
    }

    /// The segments sent: flags, first sequence number and length.
    #[track_caller]
    fn sends(&mut self, expected: &[(Flags, u64, u16)]) {
        let sent: Vec<_> = self.sent.drain(..).map(|(_, s)| (s.flags, s.seq, s.len)).collect();
        assert_eq!(sent, expected);
    }

    /// Checks that full segments were sent in order from `first` on, with PSH only if no data is left.
    #[track_caller]
    fn sends_full(&mut self, first: u64, count: u64) {
        let expected: Vec<_> = (0..count).map(|n| (Flags::ACK, first + n * MSS, MSS as u16)).collect();
        self.sends(&expected);
    }

    fn ack(&mut self, ack: u64, sack: Option<(u64, u64)>) {
        let mut segment = Segment { seq: 1, ack, window: 65_535, ..Segment::new(Flags::ACK) };
        if let Some((start, end)) = sack {
            assert!(segment.sack.push(ack, start, end));
        }
        self.handle(Input::Segment(segment));
    }

    /// The three segments of an opening.
    fn establish(&mut self, rtt: u64) {
        self.establish_with(rtt, false);
    }

    fn establish_with(&mut self, rtt: u64, sack_permitted: bool) {
        self.handle(Input::Open);
        self.sent.clear();
        self.wait(rtt);
        let syn = SynOptions { mss: Some(MSS as u16), sack_permitted, ..SynOptions::default() };
        let flags = Flags::SYN | Flags::ACK;
        self.handle(Input::Segment(Segment { ack: 1, window: 65_535, syn, ..Segment::new(flags) }));
        self.sends(&[(Flags::ACK, 1, 0)]);
    }

    /// A new connection to the same host.
    fn successor(&mut self) {
        let mut cache = TcbCache::default();
        self.connection.bequeath(&mut cache, self.now);
        self.connection = Connection::new(self.config, Role::Active);
        self.connection.inherit(&mut cache, self.now);
        self.timer = None;
        self.sent.clear();
    }
}

fn base(variant: &str, window: u32) -> TcpConfig {
    TcpConfig {
        mss: MSS as u16,
        ack: AckPolicy::IMMEDIATE,
        receive_buffer: 100_000,
        variant: Variant { initial_window: window, ..Variant::named(variant).expect("a row of the table") },
        ..TcpConfig::default()
    }
}

fn ns2(variant: &str, window: u32) -> TcpConfig {
    let mut config = base(variant, window);
    config.variant.growth = Growth::PerAck;
    config.shortcuts = Shortcuts { handshake: Handshake::None, ..Shortcuts::NS2 };
    config
}

/// ns-2's agents without SYN: both ends are established at once, the peer's window is unlimited.
#[test]
fn no_opening() {
    let mut one = One::opened(ns2("newreno", 2));
    assert_eq!(one.connection.state(), State::Established);
    one.handle(Input::Write(5000));
    one.sends_full(1, 2);
}

/// ns-2's one-way agents: a SYN of the header alone, an ACK, then data; windows in full from the start.
#[test]
fn one_way_opening() {
    let mut config = ns2("newreno", 2);
    config.shortcuts = Shortcuts::NS2;
    let mut one = One::opened(config);
    assert_eq!(one.sent[0].1.syn, SynOptions::default());
    one.sends(&[(Flags::SYN, 0, 0)]);
    one.wait(100);
    let answer = Segment { seq: 1, ack: 1, window: 100_000, ..Segment::new(Flags::ACK) };
    let stray = Segment { ack: 2, ..answer };
    assert!(one.connection.would_accept(one.now, &answer) && !one.connection.would_accept(one.now, &stray));
    one.handle(Input::Segment(answer));
    assert_eq!(one.connection.state(), State::Established);
    one.handle(Input::Write(5000));
    one.sends_full(1, 2);
}

/// ns-2 makes no fast retransmit before the first ACK of data.
#[test]
fn no_fast_retransmit_of_the_first() {
    let mut one = One::opened(ns2("reno", 6));
    one.handle(Input::Write(40_000));
    one.sends_full(1, 6);
    one.wait(100);
    for _ in 0..4 {
        one.ack(1, None);
    }
    one.sends(&[]);
    assert_eq!((one.watch.recoveries, one.connection.stats().retransmits), (0, 0));
}

/// ns-2's NewReno: at most two new segments per ACK within a recovery, and the ACK that ends it opens the window.
#[test]
fn newreno_two_segments_per_ack() {
    let mut config = ns2("newreno", 10);
    config.variant.limited_transmit = false;
    config.initial_ssthresh = Some(20);
    let mut one = One::opened(config);
    one.handle(Input::Write(40_000));
    one.sends_full(1, 10);
    one.wait(100);
    one.ack(1001, None);
    one.sends_full(10_001, 2);
    for _ in 0..3 {
        one.ack(1001, None);
    }
    one.sends_full(1001, 1);
    assert_eq!((one.connection.cwnd(), one.connection.ssthresh()), (5500, 5 * MSS));
    one.wait(100);
    one.ack(12_001, None);
    // 5.5 + 1 / 5.5
    assert_eq!((one.connection.cwnd(), one.watch.recoveries_left), (5681, 1));
    one.sends_full(12_001, 5);
}

/// ns-2's sack1 (Fall and Floyd 1996): pipe counts segments, three fewer than the window at the third duplicate, one down
/// per ACK and one up per segment sent.
#[test]
fn ns2_pipe() {
    let mut config = ns2("sack-ns2", 10);
    config.initial_ssthresh = Some(20);
    let mut one = One::opened(config);
    one.handle(Input::Write(30_000));
    one.sends_full(1, 10);
    one.wait(100);
    one.ack(1001, None);
    one.sends_full(10_001, 2);
    for end in [3001, 4001, 5001] {
        one.ack(1001, Some((2001, end)));
    }
    one.sends_full(1001, 1);
    // pipe 11 - 3 = 8, window 5.5.
    assert_eq!((one.connection.cwnd(), one.connection.ssthresh()), (5500, 5 * MSS));
    for end in [6001, 7001, 8001] {
        one.ack(1001, Some((2001, end)));
    }
    one.sends(&[]);
    one.ack(1001, Some((2001, 9001)));
    one.sends_full(12_001, 1);
}

/// The profile with an RFC's SACK sender: what the scoreboard holds survives a timeout, and the ACK of the first
/// retransmission sends the next segment. (Without the scoreboard everything counts as in flight and nothing is sent until the
/// next timeout.)
#[test]
fn ns2_keeps_the_scoreboard_of_other_senders() {
    for variant in ["sack", "sack-3517", "rack"] {
        let mut one = One::opened(ns2(variant, 10));
        one.handle(Input::Write(30_000));
        one.sends_full(1, 10);
        // Only the last one arrives.
        one.wait(100);
        one.ack(1, Some((9001, 10_001)));
        one.sent.clear();
        one.wait(10_000);
        assert_eq!(one.sent[0].1.seq, 1, "{variant}: a timeout");
        one.sent.clear();
        one.ack(1001, Some((9001, 10_001)));
        assert_eq!(one.sent.first().map(|(_, segment)| segment.seq), Some(1001), "{variant}: stalls");
    }
}

/// A connection that has lost a segment of a window of 8, which leaves a threshold of 4.
fn with_a_loss(sharing: TcbSharing, rtt: u64, timeout: u64) -> One {
    let mut config = base("newreno", 8);
    config.tcb_sharing = sharing;
    config.rto.min = Duration::from_millis(if rtt == 200 { 100 } else { 1000 });
    let mut one = One::new(config, Role::Active);
    one.establish(rtt);
    one.handle(Input::Write(8000));
    assert_eq!(one.sent.len(), 8);
    one.sent.clear();
    one.wait(timeout - 1);
    one.sends(&[]);
    one.wait(1);
    one.sends_full(1, 1);
    one
}

/// RFC 9040 §1: sharing is optional: without it, every connection starts from the defaults.
#[test]
fn sharing_off() {
    let mut one = with_a_loss(TcbSharing::Off, 200, 600);
    one.successor();
    one.handle(Input::Open);
    one.sends(&[(Flags::SYN, 0, 0)]);
    one.wait(999);
    one.sends(&[]);
    one.wait(1);
    one.sends(&[(Flags::SYN, 0, 0)]);
    assert_eq!(one.connection.ssthresh(), u64::MAX);
}

/// RFC 9040 §6: a new connection to the same host may start from the slow start threshold of an earlier one.
#[test]
fn sharing_the_threshold() {
    let mut one = with_a_loss(TcbSharing::Ssthresh, 100, 1000);
    assert_eq!(one.connection.ssthresh(), 4 * MSS);
    one.successor();
    one.establish(100);
    assert_eq!((one.connection.ssthresh(), one.connection.cwnd()), (4 * MSS, 8 * MSS));
}

/// The threshold is in bytes: a peer with small segments does not make it smaller, nor does each connection after it.
#[test]
fn sharing_the_threshold_with_a_peer_of_small_segments() {
    let mut one = with_a_loss(TcbSharing::Ssthresh, 100, 1000);
    for _ in 0..3 {
        one.successor();
        one.handle(Input::Open);
        let syn = SynOptions { mss: Some(536), ..SynOptions::default() };
        let answer = Segment { ack: 1, window: 65_535, syn, ..Segment::new(Flags::SYN | Flags::ACK) };
        one.handle(Input::Segment(answer));
        assert_eq!((one.connection.ssthresh(), one.connection.cwnd()), (4 * MSS, 8 * 536));
    }
}

/// RFC 9040 §6: and from its round trip: the SYN's timeout is then the estimate's.
#[test]
fn sharing_the_round_trip() {
    let mut config = base("newreno", 4);
    config.tcb_sharing = TcbSharing::SsthreshAndRtt;
    config.rto.min = Duration::from_millis(100);
    let mut one = One::new(config, Role::Active);
    one.establish(200);
    one.successor();
    one.handle(Input::Open);
    one.sends(&[(Flags::SYN, 0, 0)]);
    // 200 + 4 * 100
    one.wait(599);
    one.sends(&[]);
    one.wait(1);
    one.sends(&[(Flags::SYN, 0, 0)]);
}

/// Linux's `tcp_init_metrics`: where the SYN comes back sooner than data did before, the first timeout is three times the round trip of
/// before. A connection that ends while its timer is backed off leaves none; without one it is that of the SYN, 900 ms and four times half
/// of it.
#[test]
fn sharing_as_linux_does() {
    let mut config = base("linux-reno", 4);
    config.tcb_sharing = TcbSharing::Linux;
    config.rto = RtoConfig::LINUX;
    config.variant.tail_probe = false;
    let mut one = One::new(config, Role::Active);
    one.establish_with(500, true);
    for (rtt, timeout) in [(100, 1500), (900, 2700)] {
        one.successor();
        one.establish_with(rtt, true);
        one.handle(Input::Write(1000));
        one.wait(timeout - 1);
        assert_eq!((one.sent.len(), one.connection.ssthresh()), (1, u64::MAX), "{rtt}");
        one.wait(1);
        assert_eq!(one.sent.len(), 2, "{rtt}");
    }
}

/// Linux's `tcp_update_metrics`: data has come six segments late, and a loss is being repaired. The next connection waits
/// for a quarter of a round trip, until so many segments are SACKed, where it would have sent again at the third.
#[test]
fn linux_remembers_reordering() {
    for (sharing, sent_again) in [(TcbSharing::Off, true), (TcbSharing::Linux, false)] {
        let mut config = base("linux-reno", 10);
        config.tcb_sharing = sharing;
        config.rto = RtoConfig::LINUX;
        config.variant.tail_probe = false;
        let mut one = One::new(config, Role::Active);
        one.establish_with(100, true);
        one.handle(Input::Write(10_000));
        one.wait(100);
        // The sixth segment first: the first comes late, before it is found lost; the timer finds the second lost.
        one.ack(1, Some((5001, 6001)));
        one.ack(1001, Some((5001, 6001)));
        one.wait(40);
        assert_eq!(one.watch.recoveries, 1);
        one.successor();
        one.establish_with(100, true);
        one.handle(Input::Write(10_000));
        one.sent.clear();
        one.wait(100);
        one.ack(1, Some((1001, 4001)));
        assert_eq!(!one.sent.is_empty(), sent_again, "{sharing:?}");
    }
}

/// Slow start, an ACK for each segment: 4, 8, 16 and then 32 segments.
fn slow_start(one: &mut One) {
    let mut acked = 1;
    for segments in [4, 8, 16] {
        one.wait(100);
        for _ in 0..segments {
            acked += 1000;
            one.ack(acked, None);
        }
    }
}

/// RFC 9959 §3: a connection with RACK leaves its window and least round trip; the next one jumps to half of the window when its initial
/// window is acknowledged.
#[test]
fn sharing_the_window() {
    for (sharing, cwnd) in [(TcbSharing::Off, 8 * MSS), (TcbSharing::Resume, 16 * MSS)] {
        let mut config = base("rack", 4);
        config.tcb_sharing = sharing;
        let mut one = One::new(config, Role::Active);
        one.establish_with(100, true);
        one.handle(Input::Write(200_000));
        slow_start(&mut one);
        assert_eq!(one.connection.cwnd(), 32 * MSS);
        one.successor();
        one.establish_with(100, true);
        one.handle(Input::Write(200_000));
        one.wait(100);
        for n in 1..=4 {
            one.ack(1 + 1000 * n, None);
        }
        assert_eq!(one.connection.cwnd(), cwnd, "{sharing:?}");
    }
}

/// RFC 9959 §3.2, §4.3.1: what is older than its lifetime is not used, and is deleted; so is what a change of the path has made worthless.
/// A lifetime that ends in the reconnaissance phase ends that.
#[test]
fn a_measurement_has_a_lifetime() {
    let saved = |lifetime: u64| {
        let mut config = base("rack", 4);
        (config.tcb_sharing, config.resume_lifetime) = (TcbSharing::Resume, Duration::from_millis(lifetime));
        let mut one = One::new(config, Role::Active);
        one.establish_with(100, true);
        one.handle(Input::Write(64_000));
        slow_start(&mut one);
        let mut cache = TcbCache::default();
        one.connection.bequeath(&mut cache, one.now);
        (one, cache)
    };
    // The next connection opens 1000 ms later; the ACK of its initial window comes 200 ms after that.
    for (lifetime, forgets, jumps) in
        [(1200, false, true), (1199, false, false), (999, false, false), (60_000, true, false)]
    {
        let (mut one, mut cache) = saved(lifetime);
        one.wait(1000);
        if forgets {
            cache.forget_path();
        }
        one.connection = Connection::new(one.config, Role::Active);
        one.connection.inherit(&mut cache, one.now);
        (one.timer, one.sent) = (None, Vec::new());
        one.establish_with(100, true);
        one.handle(Input::Write(200_000));
        one.wait(100);
        (1..=4).for_each(|n| one.ack(1 + 1000 * n, None));
        assert_eq!(one.connection.cwnd(), if jumps { 16 * MSS } else { 8 * MSS }, "{lifetime} ms");
    }
}

/// RFC 9959 §3.2, §3.3: a signal that the path is another one ends careful resume before the jump. During the jump the sender retreats to
/// half of what the path has carried: six segments were in flight at the jump.
#[test]
fn a_changed_path_is_not_resumed() {
    for (acked, cwnd) in [(0, 8 * MSS), (3, 8 * MSS), (4, 3 * MSS)] {
        let mut config = base("rack", 4);
        config.resume = Some(Resume { cwnd: 32 * MSS, min_rtt: Duration::from_millis(100) });
        let mut one = One::new(config, Role::Active);
        one.establish_with(100, true);
        one.handle(Input::Write(64_000));
        one.wait(100);
        (1..=acked).for_each(|n| one.ack(1 + 1000 * n, None));
        one.connection.on_path_changed();
        (acked + 1..=4).for_each(|n| one.ack(1 + 1000 * n, None));
        assert_eq!(one.connection.cwnd(), cwnd, "after {acked} segments");
    }
}

/// RFC 9937 §6.1, §6.2: the ACK that begins a recovery also acknowledges two of 20 segments, and SACKs three. RecoverFS is 20 segments: 18
/// outstanding, all of the SACKed ones new, and two more. Of the target of 9 segments, five twentieths may leave: 2.25. 14 are in flight.
#[test]
fn an_ack_that_advances_begins_a_recovery() {
    for variant in ["sack", "rack"] {
        let mut config = base(variant, 20);
        (config.variant.prr, config.variant.tail_probe) = (true, false);
        let mut one = One::new(config, Role::Active);
        one.establish_with(100, true);
        one.handle(Input::Write(60_000));
        one.wait(100);
        one.ack(2001, Some((3001, 6001)));
        assert_eq!((one.watch.recoveries, one.connection.cwnd()), (1, 16_250), "{variant}");
    }
}

/// RFC 9293 §3.10.7.1: "If the ACK bit is off, sequence number zero is used, <SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK>
/// [...] If the ACK bit is on, <SEQ=SEG.ACK><CTL=RST>".
#[test]
fn closed_answers_reset() {
    let mut one = One::new(base("newreno", 4), Role::Passive);
    one.handle(Input::Segment(Segment { window: 65_535, ..Segment::new(Flags::SYN) }));
    assert_eq!(one.sent[0].1.ack, 1);
    one.sends(&[(Flags::RST | Flags::ACK, 0, 0)]);
    one.handle(Input::Segment(Segment { seq: 1, len: 500, ack: 77, ..Segment::new(Flags::ACK) }));
    one.sends(&[(Flags::RST, 77, 0)]);
    // "An incoming segment containing a RST is discarded."
    one.handle(Input::Segment(Segment { seq: 1, ack: 77, ..Segment::new(Flags::RST | Flags::ACK) }));
    one.sends(&[]);
    assert_eq!(one.connection.state(), State::Closed);
}

/// RFC 9293 §3.10.7.2: "Any acknowledgment is bad if it arrives on a connection still in the LISTEN state".
#[test]
fn listen_answers_ack_with_reset() {
    let mut one = One::new(base("newreno", 4), Role::Passive);
    one.handle(Input::Open);
    one.handle(Input::Segment(Segment { seq: 1, ack: 42, ..Segment::new(Flags::ACK) }));
    one.sends(&[(Flags::RST, 42, 0)]);
    one.handle(Input::Segment(Segment { seq: 1, ..Segment::new(Flags::RST) }));
    one.sends(&[]);
    assert_eq!(one.connection.state(), State::Listen);
}
