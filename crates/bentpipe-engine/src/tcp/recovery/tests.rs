//! Recovery at its edges: when a loss may begin another, and timeouts.

use super::*;

fn recovery(name: &str) -> LossRecovery {
    LossRecovery::new(&Variant::named(name).expect("a row"), SsthreshBase::FlightSize)
}

/// The end of what was sent when the last loss was found: bytes up to 10 000.
const END: u64 = 10_001;

/// RFC 6582 §3.2 step 2: the acknowledgement has to cover more than `recover`, a byte behind it. RFC 6675 §5: HighACK
/// has to reach the recovery point. Before the first loss, anything may.
#[test]
fn another_loss_is_of_later_data() {
    for (name, allowed) in
        [("newreno", [false, false, true]), ("reno", [false, false, true]), ("sack", [false, true, true])]
    {
        let mut recovery = recovery(name);
        assert!(recovery.may_enter(1));
        recovery.recover = Some(END);
        assert_eq!([END - 1, END, END + 1].map(|una| recovery.may_enter(una)), allowed, "{name}");
        assert_eq!([END - 1, END].map(|ack| recovery.covers(ack)), [false, true]);
    }
}

/// RFC 6582 §3.2 step 4: a timeout stores the highest number sent in `recover`, and ends fast recovery. Everything is sent again, and what
/// limited transmit or a partial ACK has asked for is not sent besides. Without SACK, nothing is known of what has arrived.
#[test]
fn a_timeout_begins_anew() {
    for (name, snd_nxt) in [("newreno", 1), ("tahoe", 1), ("sack", END)] {
        let mut recovery = recovery(name);
        let mut seq = SequenceSpace::new(1, 1 << 30);
        (seq.snd_nxt, seq.snd_max, seq.data_end) = (END, END, END);
        let mut scoreboard = Scoreboard::default();
        scoreboard.sack(5001, 6001);
        (recovery.phase, recovery.retransmit_now, recovery.spreads) = (Phase::Recovery, Some(1), true);
        recovery.limited.allow();
        recovery.on_timeout(&mut seq, &mut scoreboard, true);
        assert_eq!((recovery.phase(), recovery.recover()), (Phase::Loss, Some(END)), "{name}");
        assert!(!recovery.has_request() && !recovery.spreads);
        assert_eq!(
            (seq.snd_nxt, scoreboard.sacked_bytes()),
            (snd_nxt, if name == "sack" { 1000 } else { 0 }),
            "{name}"
        );
        // A timeout that was needless: what is outstanding may be lost all the same.
        recovery.on_spurious_timeout(2001);
        assert_eq!((recovery.phase(), recovery.recover()), (Phase::Open, Some(2001)));
    }
}
