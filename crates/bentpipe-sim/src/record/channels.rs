//! Statistics of each logical channel of a link layer, in one direction.

use bentpipe_engine::slacp::{ChannelStats, Stats};
use bentpipe_engine::units::Duration;
use bentpipe_study::scenario::Scenario;
use serde::Serialize;

/// A channel in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChannelSummary {
    /// Name of its layer.
    pub layer: String,
    /// The link that it sends on.
    pub link: String,
    /// Its name.
    pub channel: String,
    /// Packets from above.
    pub packets: u64,
    /// Refused because the queue was full.
    pub dropped_full: u64,
    /// Dropped by CoDel.
    pub dropped_early: u64,
    /// ACKs replaced by a later one.
    pub superseded: u64,
    /// Frames that the line lost.
    pub lost_frames: u64,
    /// Retransmitted frames.
    pub resent_frames: u64,
    /// Frames sent again into an idle line, before their fate was known.
    pub copied_frames: u64,
    /// Repair frames sent.
    pub repair_frames: u64,
    /// Packets recovered from repair frames at the far end.
    pub recovered: u64,
    /// Packets delivered at the far end.
    pub delivered: u64,
    /// Abandoned packets.
    pub skipped: u64,
    /// Mean wait for the first transmission, seconds.
    pub mean_wait_s: f64,
    /// The maximum, seconds.
    pub longest_wait_s: f64,
    /// Mean time between arrival and release at the far end, seconds.
    pub mean_hold_s: f64,
    /// The maximum, seconds.
    pub longest_hold_s: f64,
}

fn mean(sum: Duration, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum.as_secs_f64() / count as f64 }
}

/// A summary per layer, direction and channel with packets; `layers` has the counters of their ends.
pub fn channels(scenario: &Scenario, layers: &[[Stats; 2]]) -> Vec<ChannelSummary> {
    let mut all = Vec::new();
    for (spec, ends) in scenario.layers.iter().zip(layers) {
        for side in 0..2 {
            let pairs = ends[side].channels.iter().zip(&ends[1 - side].channels);
            for ((here, there), channel) in pairs.zip(&spec.channels).filter(|((here, _), _)| here.packets > 0) {
                let ChannelStats {
                    packets,
                    dropped_full,
                    dropped_early,
                    superseded,
                    lost,
                    resent,
                    copies,
                    repairs,
                    ..
                } = *here;
                all.push(ChannelSummary {
                    layer: spec.name.clone(),
                    link: scenario[spec.over[side]].name.clone(),
                    channel: channel.name.clone(),
                    packets,
                    dropped_full,
                    dropped_early,
                    superseded,
                    lost_frames: lost,
                    resent_frames: resent,
                    copied_frames: copies,
                    repair_frames: repairs,
                    recovered: there.recovered,
                    delivered: there.delivered,
                    skipped: there.skipped,
                    mean_wait_s: mean(here.waited, here.sent),
                    longest_wait_s: here.longest_wait.as_secs_f64(),
                    mean_hold_s: mean(there.held, there.delivered),
                    longest_hold_s: there.longest_hold.as_secs_f64(),
                });
            }
        }
    }
    all
}
