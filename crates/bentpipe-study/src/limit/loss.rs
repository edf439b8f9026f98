//! The losses of a channel in the long run.

use bentpipe_engine::link::{ChannelConfig, LinkConfig, LossConfig, PacketBursts, Track};

use super::line_bytes;
use crate::scenario::bursts::mean_secs;

/// The probability that the channel loses a packet of this length at a random time. A schedule of bursts ends, so in
/// the long run its channel is good. A loss that follows a schedule without a period has no mean: that with which it begins.
/// The loss in the outages of phases does not count, since the line then sends nothing.
pub fn mean_loss(link: &LinkConfig, wire: u32) -> f64 {
    let track = link.moves.as_ref().and_then(|moves| moves.loss.as_ref()).filter(|track| track.period().is_some());
    let packet = track.map_or(link.good.packet, |track| Track::probability(track.mean()));
    loss_with(link, LossConfig { packet, ..link.good }, wire)
}

/// The same with this loss while the channel is good.
pub(super) fn loss_with(link: &LinkConfig, good: LossConfig, wire: u32) -> f64 {
    let loss = |config: &LossConfig| {
        let by_bits = config.bit.any_of_bits(line_bytes(link, wire) * 8).get();
        config.packet.get() + (1.0 - config.packet.get()) * by_bits
    };
    let bad = match &link.channel {
        ChannelConfig::OnOff { gap, burst } => {
            let (gap, burst) = (mean_secs(gap), mean_secs(burst));
            if gap + burst > 0.0 { burst / (gap + burst) } else { 0.0 }
        }
        ChannelConfig::Clear | ChannelConfig::Schedule(_) => 0.0,
    };
    let in_time = (1.0 - bad) * loss(&good) + bad * loss(&link.bad);
    1.0 - (1.0 - in_time) * (1.0 - link.packet_bursts.as_ref().map_or(0.0, mean_loss_of_sequence))
}

/// Numbers of consecutive arrivals are geometric with mean (1-p)/p; numbers of consecutive losses are geometric with
/// mean 1/(1-b), or fixed.
fn mean_loss_of_sequence(bursts: &PacketBursts) -> f64 {
    let (start, in_a_row) = match *bursts {
        // A loss that is never followed by an arrival.
        PacketBursts::Conditional { start, again } if again.get() >= 1.0 => return (start.get() > 0.0) as u8 as f64,
        PacketBursts::Conditional { start, again } => (start.get(), 1.0 / (1.0 - again.get().max(start.get()))),
        PacketBursts::Runs { start, length } => (start.get(), length as f64),
    };
    // After a run of the first kind, the next packet arrives by definition; runs of the second kind may follow one
    // another.
    match bursts {
        PacketBursts::Conditional { .. } => start * in_a_row / (start * in_a_row + 1.0),
        PacketBursts::Runs { .. } => start * in_a_row / (start * in_a_row + 1.0 - start),
    }
}
