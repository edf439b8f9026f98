//! Claims about single packets: figures 2, 3, 6, 7 and 8.

use super::super::forced::{Burst, burst_on_packets};
use super::super::lab::Lab;
use super::super::record::FlowTrace;
use super::super::setting::Setting;
use super::super::variant::Variant;
use crate::finding::{Checked, Finding};
use crate::published::TRANSAT;
use crate::request::ReproduceError;

/// Losses farther apart than this, about four round trips, belong to different episodes.
const EPISODE_GAP: f64 = 2.0;

/// ns-2's usual limit on the segments sent for one ACK (Fall and Floyd 1996, `maxburst_`).
const MAX_BURST: u32 = 4;

/// Start times of the loss episodes at the queue, seconds.
fn episodes(flow: &FlowTrace) -> Vec<f64> {
    let mut begins = Vec::new();
    let mut last = f64::NEG_INFINITY;
    for &(at, _) in &flow.queue_drops {
        if at - last > EPISODE_GAP {
            begins.push(at);
        }
        last = at;
    }
    begins
}

fn shown(times: &[f64]) -> String {
    let shown: Vec<_> = times.iter().map(|t| format!("{t:.1}")).collect();
    shown.join(", ")
}

/// At overflow about half of the window is lost.
pub(super) fn t_c07(lab: &Lab<'_>) -> Checked {
    let (_, trace) = lab.traced(&Setting::one_flow())?;
    let flow = &trace.flows[0];
    let entered = flow.entered.first().copied().unwrap_or(f64::INFINITY);
    // Packets sent before the loss is detected can still be lost until they reach the queue.
    let lost = flow.queue_drops.iter().filter(|p| p.0 <= entered + 0.1).count();
    let window = flow.windows.iter().filter(|w| w.at <= entered).map(|w| w.flight).fold(0.0, f64::max);
    let note = format!("{lost} packets lost of {window:.0} outstanding when the loss is detected");
    Ok(Finding::new(lost as f64 / window.max(1.0), note))
}

/// Packets lost from the second episode on.
fn lost_again(flow: &FlowTrace) -> usize {
    let second = episodes(flow).get(1).copied().unwrap_or(f64::INFINITY);
    flow.queue_drops.iter().filter(|p| p.0 >= second).count()
}

/// Beside CBR 0.8 a second loss episode follows the first recovery; beside CBR 1.7 none does.
pub(super) fn t_c09(lab: &Lab<'_>) -> Checked {
    let (_, less) = lab.traced(&Setting::one_flow().with_cbr(800))?;
    let (_, more) = lab.traced(&Setting::one_flow().with_cbr(1700))?;
    let (less, more) = (&less.flows[0], &more.flows[0]);
    let (again_less, again_more) = (lost_again(less), lost_again(more));
    let (less, more) = (episodes(less), episodes(more));
    let note = format!(
        "beside 0.8 Mbit/s losses from {} s, {again_less} packets in the second episode; beside 1.7 Mbit/s from {} s, \
         {again_more} packets",
        shown(&less),
        shown(&more)
    );
    let milder = again_more < again_less;
    Ok(Finding::new(less.len() as f64, note).and(more.len() == 1).or_shape(less.len() > 1 && milder))
}

/// A limit on the segments sent per ACK removes the second loss episode.
pub(super) fn t_c10(lab: &Lab<'_>) -> Checked {
    let base = Setting::one_flow().with_cbr(800);
    let (_, free) = lab.traced(&base)?;
    let (_, limited) = lab.traced(&base.with_max_burst(MAX_BURST))?;
    let (free_drops, drops) = (free.flows[0].queue_drops.len(), limited.flows[0].queue_drops.len());
    let (before, after) = (episodes(&free.flows[0]), episodes(&limited.flows[0]));
    let note = format!(
        "at most {MAX_BURST} segments per ACK: losses from {} s, {drops} in all; without the limit from {} s, {free_drops}",
        shown(&after),
        shown(&before)
    );
    Ok(Finding::new(after.len() as f64, note).or_shape(after.len() < before.len() || drops < free_drops))
}

/// The congestion window at a time, packets.
fn window_at(flow: &FlowTrace, time: f64) -> f64 {
    flow.windows.iter().take_while(|w| w.at <= time).last().map_or(1.0, |w| w.cwnd)
}

/// IW4 and DAASS open the window about five times faster.
pub(super) fn t_c24(lab: &Lab<'_>) -> Checked {
    let (_, reference) = lab.traced(&Setting::one_flow())?;
    let (_, enhanced) = lab.traced(&Setting::one_flow().with_variant(Variant::Enh))?;
    let (reference, enhanced) = (&reference.flows[0], &enhanced.flows[0]);
    // During Enhanced's first slow start, sampled every 0.1 s from the third second on: before that the windows are
    // a few packets and their ratio jumps.
    let end = enhanced.queue_drops.first().map_or(4.0, |p| p.0);
    let times: Vec<f64> = (0..).map(|i| 2.0 + 0.1 * f64::from(i)).take_while(|&t| t < end).collect();
    let ratios: Vec<f64> = times.iter().map(|&t| window_at(enhanced, t) / window_at(reference, t)).collect();
    let mean = (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len().max(1) as f64).exp();
    let last = ratios.last().copied().unwrap_or(f64::NAN);
    let note = format!("mean ratio of the windows from 2 s to Enhanced's first loss at {end:.1} s; there {last:.1}");
    Ok(Finding::new(mean, note).or_shape(mean > 1.5))
}

/// NewReno repairs one segment per round trip, SACK all within about one.
pub(super) fn t_c25(lab: &Lab<'_>) -> Checked {
    let figure = TRANSAT.figure("T-F07").expect("a published figure");
    let repair = |variant| {
        let setting = burst_on_packets(lab, figure, variant, Burst::Loses)?;
        let (_, trace) = lab.traced(&setting)?;
        let flow = &trace.flows[0];
        // From the first retransmission to the ACK that ends the recovery.
        let entered = flow.entered.first().copied().unwrap_or(f64::NAN);
        let left = flow.left.first().copied().unwrap_or(f64::NAN);
        Ok::<_, ReproduceError>(((left - entered) / Setting::BASE_RTT, flow.channel_drops.len()))
    };
    let ((newreno, lost), (sack, _)) = (repair(Variant::Ref)?, repair(Variant::Sack)?);
    let note = format!("{lost} packets lost; Reference repairs them in {newreno:.1} round trips, SACK in {sack:.1}");
    Ok(Finding::new(newreno, note).and(sack <= 3.0).or_shape(sack < newreno))
}

/// The link's repair appears to TCP only as delay, without loss or timeout. The ACKs release a burst of as many packets as in
/// print. They come in the same pauses as without the delay, because it moves all packets of the burst alike.
pub(super) fn t_c26(lab: &Lab<'_>) -> Checked {
    let figure = TRANSAT.figure("T-F08").expect("a published figure");
    let setting = burst_on_packets(lab, figure, Variant::Ref, Burst::Delays)?;
    let (_, ideal) = lab.traced(&setting.clone().without_bursts())?;
    let (_, delayed) = lab.traced(&setting)?;
    let printed = |name| figure.value(name).expect("the figure prints it");
    let hit = [printed("first_packet"), printed("last_packet")];
    let released = [printed("release_first"), printed("release_last")];
    Ok(only_later([&ideal.flows[0], &delayed.flows[0]], hit, released))
}

/// Compares a flow without and with the delay of the packets `first` to `last`; `printed` are the packets that the ACKs of these
/// release in print.
fn only_later([ideal, delayed]: [&FlowTrace; 2], [first, last]: [f64; 2], printed: [f64; 2]) -> Finding {
    let arrival =
        |flow: &FlowTrace, packet: f64| flow.received.iter().find(|p| p.1 == packet).map_or(f64::NAN, |p| p.0);
    let late = arrival(delayed, first) - arrival(ideal, first);
    let released = |flow: &FlowTrace| {
        let (from, to) = release_burst(flow, first, last);
        (
            from,
            to,
            format!("{:.0} ms apart at most, release packets {from} to {to}", longest_pause(flow, first, last) * 1e3),
        )
    };
    let ((from, to, ours), (.., without)) = (released(delayed), released(ideal));
    let [printed_from, printed_to] = printed;
    let note = format!(
        "{} lost, {} timeouts; their ACKs, {ours} (printed: {printed_from} to {printed_to}); {}",
        delayed.channel_drops.len(),
        delayed.timeouts.len(),
        if ours == without { "the same without the delay".to_owned() } else { format!("without the delay {without}") },
    );
    let clean = delayed.channel_drops.is_empty() && delayed.timeouts.is_empty();
    let as_many = to.wrapping_sub(from) as f64 == printed_to - printed_from;
    Finding::new(late, note).and(clean && as_many).or_shape(clean)
}

/// Arrival times of the ACKs for the packets `first` to `last`.
fn acks_of(flow: &FlowTrace, first: f64, last: f64) -> Vec<f64> {
    // With an ACK for every second packet, the last one may be acknowledged together with the next one.
    flow.acks.iter().filter(|p| (first..=last + 1.0).contains(&p.1)).map(|p| p.0).collect()
}

/// The first and the last packet sent for these ACKs.
fn release_burst(flow: &FlowTrace, first: f64, last: f64) -> (u64, u64) {
    let acks = acks_of(flow, first, last);
    let released: Vec<_> = flow.sent.iter().filter(|s| acks.contains(&s.0.0)).map(|s| s.0.1 as u64).collect();
    (released.first().copied().unwrap_or(0), released.last().copied().unwrap_or(0))
}

/// The longest pause between two of these ACKs, seconds.
fn longest_pause(flow: &FlowTrace, first: f64, last: f64) -> f64 {
    acks_of(flow, first, last).windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    /// Packets 1 to 4, 4 ms apart, arrive at `at`. An ACK for every two comes 100 ms later and releases `each` packets.
    fn flow(at: f64, each: u32) -> FlowTrace {
        let arrival = |packet: u32| (at + 0.004 * f64::from(packet), f64::from(packet));
        let received = (1..=4).map(arrival).collect();
        let acks: Vec<_> = [2, 4].map(arrival).map(|(at, packet)| (at + 0.1, packet)).into();
        let sent = acks
            .iter()
            .flat_map(|ack| vec![ack.0; each as usize])
            .zip(5..)
            .map(|(at, packet)| ((at, packet as f64), false));
        FlowTrace { received, sent: sent.collect(), acks, ..FlowTrace::default() }
    }

    #[test]
    fn a_delay_alone_releases_as_many_packets_as_printed() {
        let claim = TRANSAT.claim("T-C26").expect("a claim of the paper");
        let judged = |delayed: &FlowTrace, printed| only_later([&flow(1.0, 3), delayed], [1.0, 4.0], printed);
        let found = judged(&flow(1.55, 3), [5.0, 10.0]);
        assert_eq!(found.verdict(claim), Verdict::Match, "{found:?}");
        assert_eq!(
            found.note,
            "0 lost, 0 timeouts; their ACKs, 8 ms apart at most, release packets 5 to 10 (printed: 5 to 10); the same without the delay"
        );
        // As many from another packet on.
        assert_eq!(judged(&flow(1.55, 3), [7.0, 12.0]).verdict(claim), Verdict::Match);
        // Fewer, a loss, or nothing that was late.
        let few = judged(&flow(1.55, 2), [5.0, 10.0]);
        assert_eq!(few.verdict(claim), Verdict::Shape, "{few:?}");
        assert!(few.note.ends_with("without the delay 8 ms apart at most, release packets 5 to 10"), "{few:?}");
        let lossy = FlowTrace { channel_drops: vec![(1.0, 2.0)], ..flow(1.55, 3) };
        assert_eq!(judged(&lossy, [5.0, 10.0]).verdict(claim), Verdict::Differs);
        assert_eq!(judged(&flow(1.0, 3), [5.0, 10.0]).verdict(claim), Verdict::Shape);
    }
}
