//! RACK by hand, and beside the literal walk of RFC 8985.

use super::*;
use proptest::prelude::*;

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Ten segments of 1000 bytes, one per millisecond, over a round trip of 100 ms; the first is acknowledged at 100 ms.
fn flight() -> Rack {
    let mut rack = Rack::default();
    for n in 0..10 {
        rack.on_sent(1000 * n, 1000 * (n + 1), at(n));
    }
    rack.on_ack(1000, at(100));
    assert!(!rack.detect(at(100), false, Some(ms(100))));
    rack
}

/// A last segment of 10 bytes is lost and sent again as a probe. The line takes 1 ms for 100 bytes, the path 100 ms: SYN and
/// probe return after 100 ms, full segments after 110 ms. Only with the SYN's round trip the probe's ACK counts as its own.
#[test]
fn a_short_probe_is_no_earlier_than_the_syn() {
    for knows_syn in [true, false] {
        let mut rack = Rack::default();
        if knows_syn {
            rack.on_syn_acked(ms(100), at(0));
        }
        rack.on_sent(0, 1000, at(0));
        rack.on_sent(1000, 1010, at(1));
        rack.on_ack(1000, at(110));
        rack.on_sent(1000, 1010, at(300));
        rack.on_ack(1010, at(400));
        let counted = rack.rtt == Some(ms(100));
        assert_eq!(counted, knows_syn);
        assert_eq!(rack.xmit_ts, if knows_syn { at(300) } else { at(0) });
    }
}

/// The ACK of a lone segment that is not full may have been delayed: it does not replace a minimum round trip of 100 ms that is too old,
/// here after 1 s (Linux's `tcp_update_rtt_min`). That of a full one does, and that of two; and a shorter round trip always does.
#[test]
fn a_delayed_ack_is_no_minimum() {
    for (segments, millis, min) in
        [(&[999][..], 400, 100), (&[1000], 400, 400), (&[999, 999], 400, 399), (&[999], 50, 50)]
    {
        let mut rack = Rack::default();
        rack.set_full(1000);
        rack.forget_round_trips_after(ms(1000));
        rack.on_syn_acked(ms(100), at(0));
        let mut end = 0;
        for (n, len) in (0..).zip(segments) {
            rack.on_sent(end, end + len, at(2000 + n));
            end += len;
        }
        rack.on_ack(end, at(2000 + millis));
        assert_eq!(rack.min_rtt(), Some(ms(min)), "{segments:?} {millis} ms");
    }
}

/// RFC 8985 §6.2: a quarter of the round trip is waited for a segment that may be late, 25 ms here, and the timer runs as long.
#[test]
fn a_segment_is_lost_a_quarter_of_a_round_trip_after_a_later_one() {
    let mut rack = flight();
    // The second is missing; the third, sent at 2 ms, arrives with its round trip of 100 ms.
    rack.on_sack(2000, 3000, None, at(102));
    assert!(!rack.detect(at(102), false, Some(ms(100))));
    // Sent at 1 ms, with a patience of 125 ms; the timer is that of the third's transmission.
    assert_eq!(rack.deadline(), at(127));
    assert!(!rack.detect(at(125), false, Some(ms(100))));
    assert!(rack.detect(at(126), false, Some(ms(100))));
    assert_eq!((rack.first_lost(), rack.pipe(1000, 10_000)), (Some((1000, 2000)), 7000));
}

/// RFC 8985 §6.2 step 4: with three SACKed segments and no reordering seen nothing is waited for, as with duplicate ACKs.
#[test]
fn three_sacked_segments_mean_a_loss_at_once() {
    let mut rack = flight();
    for n in 2..4 {
        rack.on_sack(1000 * n, 1000 * (n + 1), None, at(100 + n));
        assert!(!rack.detect(at(100 + n), false, Some(ms(100))));
    }
    rack.on_sack(4000, 5000, None, at(104));
    assert!(rack.detect(at(104), false, Some(ms(100))));
    assert_eq!(rack.first_lost(), Some((1000, 2000)));
}

/// Once reordering was seen, three SACKed segments are no reason to hurry.
#[test]
fn reordering_makes_it_patient() {
    let mut rack = flight();
    rack.on_sack(2000, 3000, None, at(102));
    // The second comes late.
    rack.on_ack(3000, at(103));
    assert!(rack.reordering_seen);
    for n in 4..8 {
        rack.on_sack(1000 * n, 1000 * (n + 1), None, at(100 + n));
        assert!(!rack.detect(at(100 + n), false, Some(ms(100))), "{n}");
    }
    // The fourth was sent at 3 ms.
    assert!(rack.detect(at(128), false, Some(ms(100))));
    assert_eq!(rack.first_lost(), Some((3000, 4000)));
}

/// RFC 8985 §6.2 step 4: each round with a D-SACK widens the window by a quarter, up to a round trip, for 16 recoveries.
#[test]
fn duplicates_widen_the_window() {
    let mut rack = flight();
    rack.reordering_seen = true;
    assert_eq!(rack.reo_wnd(false, Some(ms(100))), ms(25));
    rack.on_duplicate_report(0, 10_000, false);
    rack.on_duplicate_report(9_000, 10_000, false);
    assert_eq!(rack.reo_wnd(false, Some(ms(100))), ms(50), "once a round");
    for round in 11..20 {
        rack.on_ack(1000 * (round - 1), at(100 * round));
        rack.on_sent(1000 * (round - 1), 1000 * round, at(100 * round));
        rack.on_duplicate_report(1000 * (round - 1), 1000 * round, false);
    }
    assert_eq!(rack.reo_wnd(false, Some(ms(100))), ms(100), "a round trip at most");
    (0..16).for_each(|_| rack.on_recovered());
    assert_eq!(rack.reo_wnd(false, Some(ms(100))), ms(25));
}

/// Linux: only if reordering was seen, and not by the tail probe, which is not RACK's.
#[test]
fn in_linux_duplicates_widen_the_window_of_reordering() {
    let mut rack = flight();
    rack.reorder_by(Reordering::Linux);
    rack.on_duplicate_report(0, 10_000, false);
    assert_eq!(rack.reo_wnd_mult(), 0, "no reordering");
    rack.reordering_seen = true;
    rack.on_duplicate_report(0, 10_000, true);
    assert_eq!(rack.reo_wnd_mult(), 0, "the probe");
    rack.on_duplicate_report(0, 10_000, false);
    assert_eq!(rack.reo_wnd_mult(), 2);
}

/// RFC 8985 §6.3: at 105 ms only the oldest segment is lost, since 125 ms are waited for; in Linux (`tcp_timeout_mark_lost`) all five that
/// were sent up to 5 ms.
#[test]
fn in_linux_a_timeout_does_not_wait_for_reordering() {
    for (rules, lost) in [(Reordering::Rfc8985, 1000), (Reordering::Linux, 5000)] {
        let mut rack = flight();
        rack.reorder_by(rules);
        rack.reordering_seen = true;
        rack.on_timeout(at(105), Some(ms(100)));
        assert_eq!(rack.pipe(1000, 10_000), 9000 - lost, "{rules:?}");
    }
}

/// Linux (`tcp_enter_loss`): what was late by five segments counts no more after a timeout with three SACKed segments.
#[test]
fn in_linux_a_timeout_doubts_reordering() {
    for (sacked, doubts) in [(2, false), (3, true)] {
        let mut rack = flight();
        rack.reorder_by(Reordering::Linux);
        rack.note_late(1000, 6000);
        assert!(rack.reordering_seen && rack.has_reordered(4999) && !rack.has_reordered(5000));
        (2..2 + sacked).for_each(|n| rack.on_sack(1000 * n, 1000 * (n + 1), None, at(100 + n)));
        rack.doubt_reordering();
        assert_eq!(!rack.has_reordered(3000), doubts, "{sacked}");
    }
}

/// Linux (`tcp_dsack_seen`): duplicates count as delivered again, at most as often as there were retransmissions.
#[test]
fn in_linux_repeated_data_is_delivered() {
    let mut rack = flight();
    rack.reorder_by(Reordering::Linux);
    assert!(!rack.count_repeated((1000, 2000), 0, 1000), "the network's");
    assert!(rack.count_repeated((1000, 3000), 2, 1000));
    assert!(!rack.count_repeated((1000, 2000), 2, 1000));
    assert!(!rack.count_repeated((2000, 1000), 1, 1000), "malformed");
    assert_eq!(rack.repeated_bytes(), 2000);
    let mut rfc = flight();
    assert!(rfc.count_repeated((1000, 2000), 0, 1000));
    assert_eq!(rfc.repeated_bytes(), 0);
}

/// The flight after its first segment was found lost, as four others were reported, and was sent again at 105 ms.
fn sent_again() -> Rack {
    let mut rack = flight();
    rack.on_sack(2000, 6000, None, at(105));
    assert!(rack.detect(at(105), false, Some(ms(100))));
    rack.on_sent(1000, 2000, at(105));
    rack
}

/// A lost retransmission is detected by the delivery of data sent after it, without a timeout (RFC 8985 §3).
#[test]
fn a_lost_retransmission_is_found() {
    let mut rack = sent_again();
    assert_eq!((rack.first_lost(), rack.pipe(1000, 10_000)), (None, 5000));
    // Data sent before the retransmission says nothing about it.
    rack.on_sack(6000, 10_000, None, at(109));
    assert!(!rack.detect(at(109), true, Some(ms(100))));
    // New data that was sent after it arrives.
    rack.on_sent(10_000, 11_000, at(106));
    rack.on_sack(10_000, 11_000, None, at(206));
    assert!(rack.detect(at(206), true, Some(ms(100))));
    assert_eq!(rack.first_lost(), Some((1000, 2000)));
}

/// Two lost segments of 100 bytes are sent again as one of 200, which is lost as well: data sent after it shows that both still are.
#[test]
fn a_lost_retransmission_of_two_segments_is_found() {
    let mut rack = Rack::default();
    (0..10).for_each(|n| rack.on_sent(100 * n, 100 * (n + 1), at(n)));
    rack.on_ack(100, at(100));
    rack.on_sack(300, 600, None, at(105));
    assert!(rack.detect(at(105), false, Some(ms(100))));
    assert_eq!(rack.lost.len(), 2);
    rack.on_sent(100, 300, at(105));
    rack.on_sent(1000, 1100, at(106));
    rack.on_sack(1000, 1100, None, at(206));
    assert!(rack.detect(at(206), true, Some(ms(100))));
    // The last four, which nobody has reported, are lost with them.
    assert_eq!(rack.lost.iter().copied().collect::<Vec<_>>(), [100, 200, 600, 700, 800, 900]);
}

/// Half of the second segment is sent again. The other half is as old as it was.
#[test]
fn the_rest_of_a_segment_can_be_lost() {
    let mut rack = flight();
    rack.on_sent(1000, 1500, at(101));
    rack.on_sack(2000, 5000, None, at(105));
    assert!(rack.detect(at(105), false, Some(ms(100))));
    assert_eq!((rack.first_lost(), rack.pipe(1000, 10_000)), (Some((1500, 2000)), 5500));
}

/// The same where the segment is a retransmission: it was sent at 105 ms, and its second half is overtaken by data sent at 106 ms.
#[test]
fn the_rest_of_a_retransmission_can_be_lost() {
    let mut rack = sent_again();
    rack.on_sent(10_000, 11_000, at(106));
    rack.on_sent(1000, 1500, at(107));
    rack.on_sack(10_000, 11_000, None, at(206));
    assert!(rack.detect(at(206), true, Some(ms(100))));
    assert!(rack.lost.contains(&1500), "{:?}", rack.lost);
}

/// The peer acknowledges a part of a lost segment: the rest is still lost, and still to be sent.
#[test]
fn the_rest_of_a_lost_segment_stays_lost() {
    let mut rack = flight();
    rack.on_sack(2000, 5000, None, at(105));
    assert!(rack.detect(at(105), false, Some(ms(100))));
    rack.on_ack(1400, at(106));
    assert_eq!((rack.first_lost(), rack.pipe(1400, 10_000)), (Some((1400, 2000)), 5000));
    rack.on_sent(1400, 2000, at(106));
    assert_eq!((rack.first_lost(), rack.pipe(1400, 10_000)), (None, 5600));
}

/// A peer that discards what it has reported: once the first segment's retransmission is acknowledged, the others are lost, those sent once
/// and those sent again.
#[test]
fn what_a_peer_discards_can_be_lost() {
    let mut rack = sent_again();
    rack.on_sack(1000, 10_000, None, at(205));
    rack.on_timeout(at(1000), Some(ms(100)));
    rack.on_reneging();
    assert_eq!((rack.first_lost(), rack.pipe(1000, 10_000)), (None, 9000));
    rack.on_sent(2000, 3000, at(1000));
    rack.on_sack(2000, 3000, None, at(1100));
    assert!(rack.detect(at(1100), true, Some(ms(100))));
    let starts: Vec<u64> = rack.lost.iter().copied().collect();
    assert_eq!(starts, [1000, 3000, 4000, 5000, 6000, 7000, 8000, 9000]);
}

/// An ACK that comes sooner than a round trip after a retransmission is the original's (RFC 8985 §6.2 step 2).
#[test]
fn an_early_ack_of_a_retransmission_is_the_originals() {
    let mut rack = flight();
    rack.on_sack(2000, 6000, None, at(105));
    rack.detect(at(105), false, Some(ms(100)));
    rack.on_sent(1000, 2000, at(105));
    let before = (rack.xmit_ts, rack.end_seq, rack.rtt);
    rack.on_ack(6000, at(110));
    assert_eq!((rack.xmit_ts, rack.end_seq, rack.rtt), before);
}

/// RFC 8985 §6.3: at a timeout, the first segment is lost, and so are segments older than a round trip. Newer ones are not.
#[test]
fn a_timeout_spares_what_was_just_sent() {
    let mut rack = flight();
    rack.on_sent(10_000, 11_000, at(390));
    rack.on_timeout(at(400), Some(ms(100)));
    assert_eq!((rack.lost.len(), rack.pipe(1000, 11_000)), (9, 1000));
    rack.forget_losses();
    assert_eq!(rack.pipe(1000, 11_000), 10_000);
    rack.on_sack(10_000, 11_000, None, at(490));
    assert!(rack.detect(at(490), true, Some(ms(100))), "what was taken for lost can be lost again");
    assert_eq!(rack.lost.len(), 9);
}

/// RFC 8985 §6.2 step 5 as it stands: all segments, at each ACK.
#[derive(Default)]
struct Literal {
    segments: Vec<Sent>,
    una: u64,
}

impl Literal {
    fn detect(&mut self, rack: &Rack, now: Time, repairing: bool, srtt: Duration) {
        let Some(rtt) = rack.rtt else { return };
        let reo_wnd = rack.reo_wnd(repairing, Some(srtt));
        for segment in self.segments.iter_mut().filter(|segment| segment.state == State::InFlight) {
            let before = (segment.at, segment.end) < (rack.xmit_ts, rack.end_seq);
            if before && segment.at + rtt + reo_wnd <= now {
                segment.state = State::Lost;
            }
        }
    }

    fn lost(&self) -> Vec<u64> {
        self.segments.iter().filter(|s| s.end > self.una && s.state == State::Lost).map(|s| s.start).collect()
    }
}

proptest! {
    /// The queue finds the same losses as the walk over all segments, after any transmissions, ACKs, SACKs and repairs.
    #[test]
    fn agrees_with_the_literal_walk(
        operations in prop::collection::vec((0u8..5, 0u64..24, 1u64..6, 0u64..40), 1..120)
    ) {
        let (mut rack, mut literal) = (Rack::default(), Literal::default());
        let (mut now, mut max) = (1000, 0);
        for (what, n, count, pause) in operations {
            // A repair takes time: one at the very instant of the loss's transmission cannot be told from it.
            now += pause + u64::from(what == 4);
            let time = at(now);
            match what {
                0 | 1 if max < 24 => {
                    for _ in 0..count.min(24 - max) {
                        let (start, end) = (1000 * max, 1000 * (max + 1));
                        rack.on_sent(start, end, time);
                        literal.segments.push(Sent { start, end, at: time, retransmitted: false, state: State::InFlight });
                        max += 1;
                    }
                }
                2 if n < max && 1000 * n >= literal.una => {
                    let end = (n + count).min(max);
                    rack.on_sack(1000 * n, 1000 * end, None, time);
                    literal.segments[n as usize..end as usize].iter_mut().for_each(|s| s.state = State::Sacked);
                }
                3 if n <= max && 1000 * n > literal.una => {
                    rack.on_ack(1000 * n, time);
                    literal.una = 1000 * n;
                    literal.segments[..n as usize].iter_mut().for_each(|s| s.state = State::Sacked);
                }
                4 => {
                    let Some((start, end)) = rack.first_lost() else { continue };
                    // It may be joined with those that follow it.
                    let end = (end + 1000 * (count / 3)).min(1000 * max);
                    rack.on_sent(start, end, time);
                    for segment in &mut literal.segments[(start / 1000) as usize..(end / 1000) as usize] {
                        if segment.state != State::Sacked {
                            (segment.state, segment.at, segment.retransmitted) = (State::InFlight, time, true);
                        }
                    }
                }
                _ => {}
            }
            let repairing = n % 2 == 0;
            rack.detect(time, repairing, Some(ms(30)));
            literal.detect(&rack, time, repairing, ms(30));
            let found: Vec<u64> = rack.lost.iter().copied().collect();
            prop_assert_eq!(&found, &literal.lost());
            let outstanding = literal.segments.iter().filter(|s| s.end > literal.una && s.state == State::InFlight).count();
            prop_assert_eq!(rack.pipe(literal.una, 1000 * max), 1000 * outstanding as u64);
        }
    }
}

proptest! {
    /// It makes no difference that segments which left together are one entry: beside it is a RACK whose segments are always listed.
    #[test]
    fn segments_that_left_together_are_told_apart(
        operations in prop::collection::vec((0u8..8, 0u64..24_000, 1u64..9, prop::sample::select(vec![100, 999, 1000]), 0u64..3), 1..150)
    ) {
        let (mut rack, mut listed) = (Rack::default(), Rack::default());
        let (mut now, mut max, mut una) = (1000, 0, 0);
        for (what, n, count, len, pause) in operations {
            now += 10 * pause;
            let time = at(now);
            let mut both = |operate: &dyn Fn(&mut Rack)| {
                operate(&mut rack);
                operate(&mut listed);
                listed.list_all();
            };
            match what {
                0..4 => {
                    for _ in 0..count {
                        both(&|rack| rack.on_sent(max, max + len, time));
                        max += len;
                    }
                }
                // Mostly a whole number of segments of the usual length.
                4 | 5 => {
                    una = if what == 4 { una + 1000 * count } else { una + n }.min(max);
                    both(&|rack| rack.on_ack(una, time));
                }
                6 => both(&|rack| rack.on_sack((una + n).min(max), (una + n + 1000 * count).min(max), None, time)),
                _ if count == 1 => both(&|rack| rack.on_timeout(time, Some(ms(30)))),
                _ => both(&|rack| {
                    if let Some((start, end)) = rack.first_lost() {
                        rack.on_sent(start, end.min(start + len), time);
                    }
                }),
            }
            if n % 3 > 0 {
                both(&|rack| _ = rack.detect(time, n % 3 == 1, Some(ms(30))));
            }
            prop_assert_eq!((rack.first_sent(), rack.last()), (listed.first_sent(), listed.last()));
            let mut twin = rack.clone();
            twin.list_all();
            prop_assert_eq!(format!("{twin:?}"), format!("{listed:?}"));
        }
    }
}

/// Earlier connections leave a number of segments (Linux's `tcp_init_metrics`), before the handshake has told how long these are.
#[test]
fn expected_reordering_is_in_segments() {
    for full in [1448, 536, 8960] {
        let mut rack = Rack::default();
        rack.reorder_by(Reordering::Linux);
        rack.set_full(1460);
        rack.expect_reordering(6);
        rack.set_full(full);
        assert_eq!((rack.dup_thresh(), rack.reordered_bytes()), (6, 6 * u64::from(full)), "{full}");
    }
}
