//! Statistics of each logical channel of a link layer, in one direction.

use bentpipe_engine::network::LinkId;
use bentpipe_engine::slacp::{ChannelStats, Stats};
use bentpipe_engine::units::Duration;
use bentpipe_study::scenario::Scenario;
use serde::Serialize;

/// A channel in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChannelSummary {
    /// Name of its link layer or gateway.
    pub layer: String,
    /// The link that it sends on.
    pub link: String,
    /// Its name.
    pub channel: String,
    /// Packets taken from above.
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
    /// Frames sent again into an idle line before their fate was known.
    pub copied_frames: u64,
    /// Repair frames sent.
    pub repair_frames: u64,
    /// Packets recovered from repair frames at the far end.
    pub recovered: u64,
    /// Packets delivered at the far end.
    pub delivered: u64,
    /// Packets given up.
    pub skipped: u64,
    /// Mean waiting time until the first transmission, in seconds.
    pub mean_wait_s: f64,
    /// Maximum waiting time, in seconds.
    pub longest_wait_s: f64,
    /// Mean time between arrival and release at the far end, seconds.
    pub mean_hold_s: f64,
    /// Maximum of that time, in seconds.
    pub longest_hold_s: f64,
}

fn mean(sum: Duration, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum.as_secs_f64() / count as f64 }
}

/// Name, links and channel names of each pair of S-LACP ends: first the layers, then the gateways.
fn lines(scenario: &Scenario) -> impl Iterator<Item = (&str, [LinkId; 2], Vec<&str>)> {
    let layers = scenario.layers.iter().map(|layer| {
        let names = layer.channels.iter().map(|channel| channel.name.as_str()).collect();
        (layer.name.as_str(), layer.over, names)
    });
    let pairs = scenario.gateways.pairs.iter();
    layers.chain(pairs.map(|pair| (pair.name.as_str(), pair.over, pair.carries.channels().to_vec())))
}

/// A summary per layer or gateway, direction and channel with packets; `layers` has the counters of their ends.
pub fn channels(scenario: &Scenario, layers: &[[Stats; 2]]) -> Vec<ChannelSummary> {
    let mut all = Vec::new();
    for ((name, over, names), ends) in lines(scenario).zip(layers) {
        for side in 0..2 {
            let pairs = ends[side].channels.iter().zip(&ends[1 - side].channels);
            for ((here, there), channel) in pairs.zip(&names).filter(|((here, _), _)| here.packets > 0) {
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
                    layer: name.to_owned(),
                    link: scenario[over[side]].name.clone(),
                    channel: (*channel).to_owned(),
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
