//! A single burst at a chosen place: the settings of the figures that show what one does.

use super::lab::Lab;
use super::setting::Setting;
use super::variant::Variant;
use crate::published::PublishedFigure;
use crate::request::ReproduceError;

/// What a forced burst does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Burst {
    /// Every packet in it is lost.
    Loses,
    /// Every packet in it comes one round trip of the link later.
    Delays,
}

/// A setting whose only burst meets exactly the packets that the figure names. When they cross the satellite link is
/// found in a run without bursts.
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
    // A packet is lost by the state as it leaves the link, and delayed by the state as its transmission begins: 255 ms
    // and the 4 ms of its own transmission before. Packets are 4 ms apart, so 1 ms on either side meets no other.
    let shift = if kind == Burst::Delays { 0.259 } else { 0.0 };
    let micros = |seconds: f64| (seconds * 1e6).round() as u64;
    let (start, end) = (micros(first - shift - 0.001), micros(last - shift + 0.001));
    let at = (start, end - start);
    Ok(match kind {
        Burst::Loses => clean.with_burst_at(at, 100, 0),
        Burst::Delays => clean.with_burst_at(at, 0, 550),
    })
}
