//! Settings with a single burst at a chosen position, for the figures that show its effect.

use super::lab::Lab;
use super::setting::Setting;
use super::variant::Variant;
use crate::published::PublishedFigure;
use crate::request::ReproduceError;

/// The effect of a forced burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Burst {
    /// Every packet in it is lost.
    Loses,
    /// Every packet in it arrives one round trip of the link later.
    Delays,
}

/// A setting whose only burst hits exactly the packets that the figure names. A run without bursts gives the time at
/// which they cross the satellite link.
pub(super) fn burst_on_packets(
    lab: &Lab<'_>,
    figure: &PublishedFigure,
    variant: Variant,
    kind: Burst,
) -> Result<Setting, ReproduceError> {
    let clean = Setting::one_flow().with_variant(variant);
    let (_, trace) = lab.traced(&clean)?;
    let crosses = |name| {
        let packet = figure.value(name).expect("the figure names its packets");
        trace.flows[0].crossed.iter().find(|p| p.1 == packet).expect("the transfer is longer").0
    };
    let (first, last) = (crosses("first_packet"), crosses("last_packet"));
    // The state at a packet's exit decides its loss; the state at the start of its transmission, 255 ms and 4 ms
    // earlier, decides its delay. Packets are 4 ms apart, so a margin of 1 ms on either side hits no other.
    let shift = if kind == Burst::Delays { 0.259 } else { 0.0 };
    let micros = |seconds: f64| (seconds * 1e6).round() as u64;
    let (start, end) = (micros(first - shift - 0.001), micros(last - shift + 0.001));
    let at = (start, end - start);
    Ok(match kind {
        Burst::Loses => clean.with_burst_at(at, 100, 0),
        Burst::Delays => clean.with_burst_at(at, 0, 550),
    })
}
