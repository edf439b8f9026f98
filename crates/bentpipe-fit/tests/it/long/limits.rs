//! Senders that something other than the path limits: a send buffer of 4 MB, the receiver's window, an application that writes slowly.
//!
//! A grid of links, queues, losses and limits, a run each. What is measured must hold the truth, bounds must be on its right side:
//! - The rate's and the queue's intervals follow from what a capture cannot tell, half a segment here and a held report there, so they hold
//!   the truth in every cell.
//! - The interval of the probability of loss is statistical: of 27 cells of a link 5 % miss, 1.4 on average, and more than 4 do with a
//!   probability of 1 % (binomial). Cells share a seed, so those whose sender never fills the queue have the same packets and losses. They count
//!   once.

use std::collections::BTreeSet;

use bentpipe_fit::losses::Prefers;
use bentpipe_fit::{Estimate, Transfer};

use crate::captures::{estimates, path, with_drops};

const LOSS_MISSES: usize = 4;
/// A slow start that overflows a queue loses one of two packets for a round trip, dozens. Fewer can be one run of losses, which is one
/// event and so no evidence: of the cells one has six, and only a bound.
const FEW_DROPS: u64 = 12;
const LOSSES: [(&str, f64); 3] = [
    ("", 0.0),
    ("forward.loss = \"0.1 %\"", 0.001),
    // Mean length 4.
    ("forward.packet_bursts = { start = 0.0005, burstiness = 0.75 }", 0.0005 / 0.2505),
];
const BUFFER: &str = "";
const NO_BUFFER: &str = "send_buffer = \"off\"";
const WINDOW: &str = "receive_buffer = \"256 kB\"";

/// Runs the cells of a link of `rate` Mbit/s and a delay of `delay` ms, captured at `host`; a queue is measured where it dropped more than
/// a few.
///
/// Near the receiver, a lost retransmission is invisible: in some cells one of 187 drops.
fn cells(host: &str, rate: f64, delay: u32, bytes: &str) {
    let mut missed = BTreeSet::new();
    for packets in [100_u32, 300, 1000] {
        for (loss, probability) in LOSSES {
            for limit in [BUFFER, NO_BUFFER, WINDOW] {
                let link = format!("forward.queue = \"{packets} packets\"\n{loss}");
                let (fit, drops) = with_drops(&path((rate, delay), limit, &link, bytes), 1, host);
                let what = format!("{host}, {rate} Mbit/s, {packets} packets, {limit}{loss}");
                assert!(fit.rate.allows(rate * 1e6), "{what}: {:?}", fit.rate);
                let queue = f64::from(packets) * 1500.0;
                assert!(fit.queue_bytes.allows(queue), "{what}: {:?}", fit.queue_bytes);
                // A full segment takes 12 us longer than the shortest on the host's line; the rate is known to 0.02 % of the wait.
                let wait = queue * 8.0 / (rate * 1e6);
                let allowed = fit.queue_time.allows(wait) || fit.queue_time.allows(wait * 1.0002 + 12e-6);
                assert!(allowed, "{what}: {:?} instead of {wait} s", fit.queue_time);
                if !fit.losses.probability.allows(probability) {
                    missed.insert((fit.losses.segments, fit.losses.lost));
                }
                let full: u64 = drops.iter().map(|drops| drops.queue_full).sum();
                let measured = matches!(fit.queue_bytes, Estimate::Measured { .. });
                assert!(full > 0 || !measured, "{what}: {:?} of {full} drops", fit.queue_bytes);
                assert!(full < FEW_DROPS || measured, "{what}: {:?} of {full} drops", fit.queue_bytes);
                // Losses of the link while the queue is full cannot be distinguished from the queue's.
                let channel: u64 = drops.iter().map(|drops| drops.channel).sum();
                let unseen = u64::from(host == "client");
                let told = (full.saturating_sub(unseen)..=full + channel).contains(&fit.queue_losses);
                assert!(told || !measured, "{what}: {} of {full} drops", fit.queue_losses);
                if probability == 0.0 {
                    assert_eq!(fit.losses.lost, 0, "{what}: {:?}", fit.losses);
                }
            }
        }
    }
    assert!(missed.len() <= LOSS_MISSES, "loss at {rate} Mbit/s, {host}: missed {missed:?}");
}

#[test]
fn geo() {
    cells("server", 10.0, 240, "6 MB");
    cells("client", 10.0, 240, "6 MB");
}

#[test]
fn fast_geo() {
    cells("server", 100.0, 240, "15 MB");
    cells("client", 100.0, 240, "15 MB");
}

#[test]
fn leo() {
    cells("server", 50.0, 20, "8 MB");
    cells("client", 50.0, 20, "8 MB");
}

/// Four packets in a row found the queue full, once: a burst of the link looks the same, so the interval has both.
#[test]
fn losses_at_the_longest_wait_may_be_either() {
    let text = path((100.0, 240), WINDOW, "forward.queue = \"153 packets\"\nforward.loss = \"0.1 %\"", "15 MB");
    for host in ["server", "client"] {
        let (fit, drops) = with_drops(&text, 1, host);
        assert_eq!(drops.iter().map(|drops| drops.queue_full).sum::<u64>(), 4);
        assert!(
            fit.losses.prefers == Prefers::Neither && fit.losses.probability.allows(0.001),
            "{host}: {:?}",
            fit.losses
        );
        let note = "4 losses in a row came when the wait was longest";
        assert!(fit.notes.iter().any(|other| other.starts_with(note)), "{host}: {:?}", fit.notes);
    }
}

fn why(estimate: &Estimate) -> &str {
    match estimate {
        Estimate::AtLeast { why, .. } => why,
        other => panic!("{other:?}"),
    }
}

/// One without losses, to read why its queue has only a bound.
fn unfilled(tcp: &str, link: &str) -> Transfer {
    estimates(&path((100.0, 240), tcp, &format!("forward.queue = \"1000 packets\"\n{link}"), "15 MB"), 1, "server")
}

#[test]
fn a_queue_that_never_filled_says_what_kept_it_from_that() {
    let buffer = unfilled(BUFFER, "");
    assert!(
        why(&buffer.queue_bytes).starts_with("the queue never filled: the sender kept 2."),
        "{:?}",
        buffer.queue_bytes
    );
    assert!(why(&buffer.queue_bytes).contains(" MB in flight and no more, by its send buffer or its application."));
    let window = unfilled(WINDOW, "");
    assert!(why(&window.queue_bytes).starts_with("the queue never filled: the receiver's window was full."));
    let text = path((50.0, 20), "", "", "")
        .replace("bytes = \"\"", "paced = { rate = \"4 Mbit/s\", bytes = \"2 MB\", write = \"20 kB\" }");
    let slow = estimates(&text, 1, "server");
    assert!(
        why(&slow.rate).starts_with("the link was never full for long: the sender kept 40.00 kB"),
        "{:?}",
        slow.rate
    );
    let text = path((50.0, 20), "", "", "")
        .replace("bytes = \"\"", "paced = { rate = \"500 kbit/s\", bytes = \"300 kB\", write = \"10 kB\" }");
    let paused = estimates(&text, 1, "server");
    assert!(why(&paused.rate).contains("the sender's application paused."), "{:?}", paused.rate);
}

/// Near the receiver. With `View::while_busy` switched off, the pauses of the first sender count as time in the queue, and the rate is
/// measured as 77 to 89 Mbit/s instead of 100. If of the segments that echo the same acknowledgement only the first gives a time, of the
/// second transfer's losses 165 are put down to the link, though the full queue dropped 163.
#[test]
fn near_the_receiver() {
    let slow = path((100.0, 240), "", "forward.queue = \"300 packets\"", "")
        .replace("bytes = \"\"", "paced = { rate = \"4 Mbit/s\", bytes = \"4 MB\", write = \"20 kB\" }");
    let fit = estimates(&slow, 1, "client");
    assert!(fit.rate.allows(100e6) && fit.queue_bytes.allows(450e3), "{:?} {:?}", fit.rate, fit.queue_bytes);
    let burst = path((10.0, 240), WINDOW, "forward.queue = \"100 packets\"\nforward.loss = \"0.1 %\"", "6 MB");
    let (fit, drops) = with_drops(&burst, 1, "client");
    let full: u64 = drops.iter().map(|drops| drops.queue_full).sum();
    assert!(fit.queue_losses >= full && fit.losses.probability.allows(0.001), "{full} {:?}", fit.losses);
    assert!(fit.queue_bytes.allows(150e3), "{:?}", fit.queue_bytes);
}

/// Near the receiver, while the sender repairs losses: it sends less than is acknowledged, so the first data with an echo may answer a
/// later acknowledgement of the same tick of 1 ms. If it always counts as the answer to the first one (in `Echoes::answer`: one
/// acknowledgement, none apart, none skipped), the rate is measured as 99.64 to 99.73 Mbit/s, and with seed 9 the queue of 100 packets as
/// 100.7 or more.
#[test]
fn the_first_echo_may_answer_a_later_acknowledgement() {
    let loss = "forward.loss = \"0.1 %\"";
    let fast = path((100.0, 240), BUFFER, &format!("forward.queue = \"1000 packets\"\n{loss}"), "15 MB");
    let fit = estimates(&fast, 2, "client");
    assert!(fit.rate.allows(100e6), "{:?}", fit.rate);
    let leo = path((50.0, 20), BUFFER, &format!("forward.queue = \"100 packets\"\n{loss}"), "8 MB");
    for seed in [5, 9] {
        let fit = estimates(&leo, seed, "client");
        assert!(fit.queue_bytes.allows(150e3) && fit.rate.allows(50e6), "{:?} {:?}", fit.queue_bytes, fit.rate);
    }
}

/// Bursts on the link, over a queue of 400 packets. With seed 8 the receiver delays an acknowledgement by 40 ms, with the queue empty: the
/// rate was 17.9 Mbit/s instead of 20. With seed 12 one burst of eight falls on the longest wait, 5.8 ms: the queue was measured as 9.5
/// packets.
#[test]
fn one_event_is_no_evidence() {
    let link = "forward.queue = \"400 packets\"\nforward.packet_bursts = { start = 0.002, burstiness = 0.75 }";
    for seed in [8, 12] {
        let (fit, drops) = with_drops(&path((20.0, 240), BUFFER, link, "8 MB"), seed, "server");
        assert!(drops.iter().all(|drops| drops.queue_full == 0), "{drops:?}");
        assert!(fit.rate.allows(20e6), "{seed}: {:?}", fit.rate);
        assert!(fit.queue_losses == 0 && fit.queue_bytes.allows(600e3), "{seed}: {:?}", fit.queue_bytes);
    }
}

/// A burst of 172 segments meets an empty queue of 100, once. Four segments next to losses show the waits on the sender's line, and the
/// receiver may have delayed the reports of all four by 1.1 ms, so they agree with any line of 5 to 23 times the bottleneck's rate. The
/// truth is 20 times. With the slowest of these lines the queue was measured as 79.5 to 87.3 packets.
#[test]
fn a_few_losses_leave_the_senders_line_open() {
    let link = "forward.queue = \"100 packets\"\nforward.packet_bursts = { start = 0.0005, burstiness = 0.75 }";
    let (fit, drops) = with_drops(&path((50.0, 20), WINDOW, link, "8 MB"), 2, "server");
    assert_eq!(fit.queue_losses, drops.iter().map(|drops| drops.queue_full).sum::<u64>());
    assert!(fit.queue_bytes.allows(150_000.0), "{:?}", fit.queue_bytes);
}

/// The SYNs say whether the ends use SACK: where nothing is lost, no acknowledgement has blocks.
#[test]
fn sack_without_losses() {
    for (variant, expected) in [("cubic", false), ("newreno", true)] {
        let text = path((20.0, 240), "", "forward.queue = \"3000 packets\"", "1 MB");
        let text = text.replace("variant = \"cubic\"", &format!("variant = \"{variant}\""));
        let fit = estimates(&text, 1, "server");
        assert_eq!(fit.losses.lost, 0, "{variant}");
        let noted = fit.notes.iter().any(|note| note.starts_with("without SACK"));
        assert_eq!(noted, expected, "{variant}: {:?}", fit.notes);
    }
}

/// A sender that paces answers an acknowledgement with many segments, the last of them long after it: only the first tells when the
/// acknowledgement came, up to a segment's time later. With the others, the 20 packets are at least 72 to 254 ms of the line.
#[test]
fn near_a_receiver_of_a_sender_that_paces() {
    let queue = "forward.queue = \"20 packets\"";
    let geo = path((10.0, 240), BUFFER, queue, "6 MB").replace("\"cubic\"", "\"bbr3\"");
    let fit = estimates(&geo, 1, "client");
    assert!(fit.queue_time.allows(0.024) && fit.queue_bytes.allows(30e3), "{:?} {:?}", fit.queue_time, fit.queue_bytes);
}

/// A receiver waits for a second segment before it acknowledges, 40 to 500 ms: not time in the queue of 10 packets, which is 12 ms.
#[test]
fn a_delayed_acknowledgement_of_a_lone_segment_is_no_queue() {
    for (profile, variant) in [("rfc", "sack"), ("windows", "cubic"), ("macos", "cubic")] {
        let lone = path((10.0, 240), BUFFER, "forward.queue = \"10 packets\"", "")
            .replace("bytes = \"\"", "paced = { rate = \"16 kbit/s\", bytes = \"40 kB\", write = \"1000 B\" }")
            .replace("\"linux\"", &format!("\"{profile}\""))
            .replace("\"cubic\"", &format!("\"{variant}\""));
        let fit = estimates(&lone, 1, "server");
        assert!(fit.queue_time.allows(0.012), "{profile}: {:?}", fit.queue_time);
    }
}
