//! Careful resume with an initial window of 10 segments of 1000 bytes, and a saved window of 400 over 600 ms.

use super::*;
use crate::tcp::config::TcpConfig;
use crate::tcp::loss::FoundBy;
use crate::units::Time;

const MSS: u64 = 1000;

struct Sender {
    resuming: Resuming,
    window: Window,
    start: SlowStart,
    una: u64,
    max: u64,
    now: u64,
}

impl Sender {
    fn new() -> Self {
        let config = TcpConfig { mss: MSS as u16, ..TcpConfig::default() };
        let saved = Resume { cwnd: 400_000, min_rtt: Duration::from_millis(600) };
        let window = Window::new(&config, 10);
        let resuming = Resuming::new(Control::new(&config), saved, window.exact());
        Sender { resuming, window, start: SlowStart::new(&config.variant), una: 1, max: 1 + 10 * MSS, now: 600 }
    }

    /// An ACK of this many segments; nothing new is sent.
    fn ack(&mut self, acked: u64, rtt: u64) {
        let flight = self.max - self.una;
        self.una += acked * MSS;
        self.now += 1;
        let ack = AckSample {
            acked: acked * MSS,
            flight,
            now: Time::from_nanos(self.now * 1_000_000),
            rtt: Some(Duration::from_millis(rtt)),
            snd_una: self.una,
            snd_max: self.max,
            ..AckSample::default()
        };
        self.resuming.on_ack(&mut self.window, &mut self.start, &ack);
    }

    /// Sends until the window is full.
    fn fill(&mut self) {
        self.max = self.max.max(self.una + self.window.cwnd());
    }

    fn loss(&mut self) {
        let loss = LossReport { found_by: FoundBy::DuplicateAcks, flight: self.max - self.una, peer_window: u64::MAX };
        self.resuming.on_loss(&mut self.window, &loss);
    }

    /// Up to the jump: five ACKs of two segments. The window grows by two each until the last, 18, which lets as many out; with the
    /// last of the initial window acknowledged it jumps to 200.
    fn jumped() -> Self {
        let mut sender = Sender::new();
        for n in 1..5 {
            sender.ack(2, 600);
            sender.fill();
            assert_eq!((sender.window.segments(), sender.resuming.phase), (10 + 2 * n, Phase::Reconnaissance));
        }
        sender.ack(2, 600);
        sender
    }
}

/// The jump is to half of the saved window, and its pace is that window per round trip: 200 000 bytes in 600 ms.
#[test]
fn the_jump_is_half_of_what_was_saved_and_paced() {
    let sender = Sender::jumped();
    assert_eq!(sender.window.segments(), 200);
    assert!(matches!(sender.resuming.phase, Phase::Unvalidated(_)));
    let rate = sender.resuming.pacing_rate(&sender.window).expect("it is paced").bits_per_second();
    assert_eq!(rate, 2_666_666);
    // 26 segments of 28 sent, less the 10 acknowledged: 16 in flight.
    assert_eq!(sender.resuming.pipe_size, 16 * MSS);
}

/// Unvalidated data of a whole round trip: the first of it is acknowledged, with 200 in flight, so that the window stays 200 and is
/// validated. It grows as always, and the last unvalidated segment ends it.
#[test]
fn what_was_sent_is_validated() {
    let mut sender = Sender::jumped();
    sender.ack(8, 600);
    sender.fill();
    assert_eq!(sender.window.segments(), 200, "no growth but the jump");
    sender.ack(10, 600);
    assert!(matches!(sender.resuming.phase, Phase::Validating(_)), "{:?}", sender.resuming.phase);
    let last = sender.max;
    assert!((188..=200).contains(&sender.window.segments()), "{}", sender.window.segments());
    assert!(sender.resuming.pacing_rate(&sender.window).is_none());
    while sender.una < last {
        sender.fill();
        sender.ack(2, 600);
    }
    assert_eq!(sender.resuming.phase, Phase::Normal);
    assert!(sender.window.segments() > 350, "slow start goes on: {}", sender.window.segments());
}

/// A sender with nothing more to send keeps what the path has carried: the 16 in flight and what was acknowledged since, 34.
#[test]
fn an_idle_sender_keeps_what_the_path_carried() {
    let mut sender = Sender::jumped();
    sender.ack(16, 600);
    sender.max = sender.una + 2 * MSS;
    sender.ack(1, 600);
    assert_eq!(sender.resuming.phase, Phase::Normal);
    assert_eq!(sender.window.segments(), 33);
}

/// A loss of unvalidated data: half of what the path has carried, no growth, and at the end a threshold of half of it.
#[test]
fn a_loss_retreats() {
    let mut sender = Sender::jumped();
    sender.fill();
    sender.ack(10, 600);
    sender.loss();
    // 16 in flight at the jump and 10 since: half of 26.
    assert_eq!((sender.window.segments(), sender.window.ssthresh()), (13, 13_000));
    let last = sender.max;
    while sender.una + 10 * MSS < last {
        sender.ack(10, 600);
        assert_eq!(sender.window.segments(), 13, "no growth");
    }
    sender.ack((last - sender.una).div_ceil(MSS), 600);
    assert_eq!(sender.resuming.phase, Phase::Normal);
    // All 200 and the 16: the path has carried them, though not at once.
    assert!(sender.window.ssthresh() >= 100_000, "{}", sender.window.ssthresh());
}

/// A sender that has sent less than its initial window since the jump shows nothing about the path: of the five segments one has arrived,
/// and the window is the initial one.
#[test]
fn less_than_the_initial_window_validates_nothing() {
    let mut sender = Sender::new();
    sender.ack(10, 600);
    assert_eq!((sender.window.segments(), sender.resuming.pipe_size), (200, 0));
    sender.max += 5 * MSS;
    sender.ack(1, 600);
    assert_eq!((sender.resuming.phase, sender.window.segments()), (Phase::Normal, 10));
}

/// The jump lasts at most a round trip: it began at 605 ms, so an ACK at 1205 ms still belongs to it, and the next ends it, with the 63 in
/// flight as the window. None of the 50 sent since the jump is acknowledged yet.
#[test]
fn the_jump_lasts_a_round_trip() {
    let mut sender = Sender::jumped();
    assert_eq!(sender.now, 605);
    sender.max += 50 * MSS;
    sender.now = 1204;
    for (phase, segments) in [(Phase::Unvalidated(26_001), 200), (Phase::Validating(76_001), 63)] {
        sender.ack(if segments == 200 { 1 } else { 2 }, 600);
        assert_eq!((sender.resuming.phase, sender.window.segments()), (phase, segments), "{} ms", sender.now);
    }
}

/// While the jump is being sent, a round trip of half of the saved one shows another path: 16 were in flight at the jump, and one has
/// arrived since, so 8.5 remain. A longer round trip only slows the jump down.
#[test]
fn another_path_during_the_jump_is_a_retreat() {
    for (rtt, retreats) in [(300, true), (301, false), (7000, false)] {
        let mut sender = Sender::jumped();
        sender.ack(1, rtt);
        assert_eq!(matches!(sender.resuming.phase, Phase::SafeRetreat(_)), retreats, "{rtt} ms");
        let (cwnd, ssthresh) = if retreats { (8_500, 8_500) } else { (200_000, u64::MAX) };
        assert_eq!((sender.window.cwnd(), sender.window.ssthresh()), (cwnd, ssthresh), "{rtt} ms");
    }
}

/// The phase ends when not even one more segment fits into the window, before anything unvalidated is acknowledged: with 199 of 200 in
/// flight it goes on.
#[test]
fn a_full_window_is_validated() {
    for (more, phase) in [(183, Phase::Unvalidated(26_001)), (184, Phase::Validating(210_001))] {
        let mut sender = Sender::jumped();
        sender.max += more * MSS;
        sender.ack(2, 600);
        assert_eq!(sender.resuming.phase, phase, "{more}");
    }
}

/// A timeout after the jump, and one in a retreat: the control slow starts from the one segment that is left, a segment more with each ACK.
#[test]
fn a_timeout_ends_it() {
    for retreats in [false, true] {
        let mut sender = Sender::jumped();
        sender.fill();
        sender.ack(10, 600);
        if retreats {
            sender.loss();
            assert!(matches!(sender.resuming.phase, Phase::SafeRetreat(_)));
        }
        let found_by = FoundBy::Timeout { repeated: false };
        sender.resuming.on_loss(&mut sender.window, &LossReport { found_by, flight: 200 * MSS, peer_window: u64::MAX });
        assert_eq!((sender.window.segments(), sender.resuming.phase), (1, Phase::Normal));
        for expected in [2, 3, 4, 5] {
            sender.ack(1, 600);
            assert_eq!(sender.window.segments(), expected);
        }
    }
}

/// Half of the saved round trip or less is another path, and so is more than ten times as much; so is a loss of the initial window.
#[test]
fn another_path_is_not_resumed() {
    for (rtt, resumes) in [(299, false), (301, true), (5999, true), (6001, false)] {
        let mut sender = Sender::new();
        sender.ack(10, rtt);
        assert_eq!(sender.window.segments() == 200, resumes, "{rtt} ms");
    }
    let mut sender = Sender::new();
    sender.ack(2, 600);
    sender.loss();
    sender.ack(8, 600);
    assert_eq!(sender.resuming.phase, Phase::Normal);
    assert!(sender.window.segments() < 15);
}

/// RFC 9959 §3.3: a configured bound limits the jump.
#[test]
fn a_jump_has_a_bound() {
    for (bound, segments) in [(100_000.0, 100), (300_000.0, 200), (12_000.0, 12)] {
        let mut sender = Sender::new();
        sender.resuming.max_jump = bound;
        sender.ack(10, 600);
        assert_eq!(sender.window.segments(), segments, "{bound}");
    }
}

/// RFC 9959 §3.5: "The CWND MUST NOT be increased in the Safe Retreat Phase". The round trip shows another path, so 8.5 segments remain. A
/// loss of the 200 in flight would leave half of them by itself, and the window stays, also if the loss turns out to be none.
#[test]
fn a_loss_in_a_retreat_opens_nothing() {
    let mut sender = Sender::jumped();
    sender.fill();
    sender.ack(1, 300);
    assert_eq!(sender.window.cwnd(), 8_500);
    sender.loss();
    assert_eq!(sender.window.cwnd(), 8_500);
    sender.resuming.on_spurious_timeout(&mut sender.window, 200_000, 100_000);
    assert_eq!(sender.window.cwnd(), 8_500);
}

/// A window that is as large already does not jump.
#[test]
fn a_small_saved_window_changes_nothing() {
    let mut sender = Sender::new();
    sender.resuming.saved.cwnd = 20_000;
    sender.ack(10, 600);
    assert_eq!(sender.resuming.phase, Phase::Normal);
    assert!(sender.window.segments() <= 20);
}
