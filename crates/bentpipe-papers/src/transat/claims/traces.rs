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

/// The link's repair appears to TCP only as delay, without loss or timeout. The bunched ACKs release a burst of packets.
pub(super) fn t_c26(lab: &Lab<'_>) -> Checked {
    let figure = TRANSAT.figure("T-F08").expect("a published figure");
    let setting = burst_on_packets(lab, figure, Variant::Ref, Burst::Delays)?;
    let (_, ideal) = lab.traced(&setting.clone().without_bursts())?;
    let (_, delayed) = lab.traced(&setting)?;
    let (ideal, delayed) = (&ideal.flows[0], &delayed.flows[0]);
    let arrival =
        |flow: &FlowTrace, packet: f64| flow.received.iter().find(|p| p.1 == packet).map_or(f64::NAN, |p| p.0);
    let printed = |name| figure.value(name).expect("the figure prints it");
    let (first, last) = (printed("first_packet"), printed("last_packet"));
    let late = arrival(delayed, first) - arrival(ideal, first);
    let (from, to) = release_burst(delayed, first, last);
    let note = format!(
        "{} lost, {} timeouts; their ACKs, {:.0} ms apart at most, release packets {from} to {to} (printed: {} to {})",
        delayed.channel_drops.len(),
        delayed.timeouts.len(),
        longest_pause(delayed, first, last) * 1e3,
        printed("release_first"),
        printed("release_last"),
    );
    let clean = delayed.channel_drops.is_empty() && delayed.timeouts.is_empty();
    Ok(Finding::new(late, note).and(clean && to > from).or_shape(clean))
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
