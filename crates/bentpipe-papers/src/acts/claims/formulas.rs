//! Claims that are arithmetic: the rate ladder, windows, slow start and recovery.

use bentpipe_study::model::window;
use bentpipe_study::stats::mean;

use super::super::tables::{rate_ladder, rate_of};
use super::super::worlds::{CLEAN, MIB, TRIALS, maximum, rates, world};
use super::{number, published, round_trip};
use crate::finding::{Checked, Finding};
use crate::lab::Lab;
use crate::published::ACTS;
use crate::request::ReproduceError;

/// The window of the satellite experiments, bytes.
const WINDOW: f64 = 10.0 * MIB;

/// Number of windows in a GB.
fn windows() -> f64 {
    (1024.0 * MIB / WINDOW).floor()
}

/// Round trips until the window is open, with an ACK for every second segment of the MSS.
pub(super) fn slow_start_rounds() -> f64 {
    window::slow_start_rounds((WINDOW / 9140.0).ceil(), true)
}

/// The window in segments of the MTU (A-Q03).
fn segments_of_the_mtu() -> f64 {
    (WINDOW / 9180.0).ceil()
}

/// Table 2, except the cell that has a printing error.
pub(super) fn c01(_: &Lab<'_>) -> Checked {
    let cells = &ACTS.table(2).expect("table 2").cells;
    let off = cells.iter().filter(|cell| cell.note.is_none());
    let off: Vec<_> = off.filter_map(|cell| Some((rate_of(cell) - cell.value?).abs())).collect();
    Ok(Finding::new(maximum(&off), format!("{} rates derived from frame, cell and headers", off.len())))
}

/// The rate of a window of 10 MB.
pub(super) fn c04(_: &Lab<'_>) -> Checked {
    Ok(Finding::new(window::rate_for(WINDOW, round_trip("ACTS")) / 1e6, "10 MiB per round trip"))
}

/// The share of slow start in the transfer of a GB.
pub(super) fn c16(_: &Lab<'_>) -> Checked {
    let share = 100.0 * (1.0 - window::efficiency(windows(), slow_start_rounds()));
    Ok(Finding::new(share, format!("formula, {} windows", windows())))
}

/// The time of a GB.
pub(super) fn c17(_: &Lab<'_>) -> Checked {
    let rounds = window::transfer_rounds(windows(), slow_start_rounds());
    Ok(Finding::new(rounds * round_trip("ACTS"), format!("formula, {rounds:.3} round trips")))
}

/// Linear growth from half of the window.
pub(super) fn c18(_: &Lab<'_>) -> Checked {
    let ours = window::linear_recovery(segments_of_the_mtu(), round_trip("ACTS"));
    Ok(Finding::new(ours, "formula, half of 1143 segments of the MTU (A-Q03)"))
}

/// The same after fast recovery, on the satellite, the WAN and the LAN.
pub(super) fn c19(_: &Lab<'_>) -> Checked {
    let claim = published("A-C19");
    let of = |place| window::fast_recovery(segments_of_the_mtu(), round_trip(place));
    let [satellite, wan, lan] = ["ACTS", "WAN", "LAN"].map(of);
    let near = |ours: f64, printed: f64, off: &str| (ours - printed).abs() <= claim.limit(off);
    let holds = near(wan, number("A-V40"), "wan_s") && near(lan, number("A-V41"), "lan_s");
    let note = format!("WAN {wan:.2} s and LAN {lan:.4} s for a window that they did not use (A-Q04)");
    Ok(Finding::new(satellite, note).and(holds))
}

/// The windows that fill OC-3 and OC-12.
pub(super) fn c24(lab: &Lab<'_>) -> Checked {
    let [three, twelve] =
        [3, 12].map(|n| window::window_for(rate_ladder(n).application, round_trip("ACTS")) / 8.0 / MIB);
    let printed = number("A-V20") * 1e6 / 8.0 / MIB;
    let near = (twelve / printed - 1.0).abs() <= published("A-C24").limit("oc12");
    Ok(Finding::new(three, format!("OC-12: {twelve:.3} MB. {}", full_window(lab)?)).and(near))
}

/// Throughput of scenario 2 in Mbit/s with a window that fills the channel, without loss.
fn full_window(lab: &Lab<'_>) -> Result<String, ReproduceError> {
    let bytes = window::window_for(rate_ladder(12).application, round_trip("ACTS")) / 8.0;
    let buffer = format!("{} B", bytes.ceil() as u64);
    let clean = world(2, &[("tcp.receive_buffer", &buffer), CLEAN[0], CLEAN[1]]);
    let ours = maximum(&rates(&lab.runs("acts, scenario 2, full window", &clean, 2)?));
    let ten = mean(&rates(&lab.runs("acts, scenario 2", &world(2, &[]), TRIALS)?));
    Ok(format!(
        "A GB in scenario 2: with a window of 10 MB at the printed error rates {ten:.1} Mbit/s, with {buffer} without loss \
         {ours:.1} Mbit/s; slow start takes the rest"
    ))
}
