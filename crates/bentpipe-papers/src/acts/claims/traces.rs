//! Claims about windows and packets, from traces of runs.

use bentpipe_engine::atm::aal5::{self, Reassembler};
use bentpipe_engine::atm::cell::{Header, PayloadType};
use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_sim::{Observer, Packet, Passage, RunResult};
use bentpipe_study::scenario::Scenario;

use super::super::worlds::{CLEAN, MIB, world};
use super::formulas::slow_start_rounds;
use super::{published, round_trip};
use crate::finding::{Checked, Finding};
use crate::lab::Lab;
use crate::request::ReproduceError;

const LOST: &str = "links.sat.forward.drop_list";

/// Traces the first flow's window.
#[derive(Default)]
struct Windows {
    /// Time from the start of the flow until the window first reached 10 MiB.
    open: Option<Duration>,
    start: Time,
    /// Values of ssthresh after losses, in segments.
    cuts: Vec<f64>,
    last: u64,
}

impl Windows {
    fn open_s(&self) -> f64 {
        self.open.map_or(f64::NAN, |open| open.as_secs_f64())
    }
}

impl Probe for Windows {
    fn event(&mut self, now: Time, who: Who, event: &Event) {
        if who != Who(0) {
            return;
        }
        if let Event::Window { cwnd, ssthresh, .. } = *event {
            if cwnd as f64 >= 10.0 * MIB {
                self.open.get_or_insert(now.saturating_since(self.start));
            }
            // The initial threshold does not count.
            if ssthresh < u64::MAX && ssthresh != self.last {
                self.cuts.push(ssthresh as f64 / 9140.0);
            }
            self.last = ssthresh;
        }
    }
}

impl Observer for Windows {
    fn packet(&mut self, _: Time, _: LinkId, _: Passage, _: &Packet) {}
}

fn watch(lab: &Lab<'_>, scenario: &Scenario) -> Result<(Windows, RunResult), ReproduceError> {
    let scenario = scenario.with_seed(lab.seed());
    let mut windows = Windows { start: Time::ZERO + scenario.flows[0].start, ..Windows::default() };
    let result = lab.watched(&scenario, lab.seed(), &mut windows)?;
    Ok((windows, result))
}

/// The time of slow start to a window of 10 MB, in a run and by the formula.
pub(super) fn c15(lab: &Lab<'_>) -> Checked {
    let claim = published("A-C15");
    let (watched, _) = watch(lab, &world(1, &[]))?;
    let formula = slow_start_rounds() * round_trip("ACTS");
    let off = 100.0 * (formula / claim.value.expect("printed") - 1.0).abs();
    let note = format!("a run; the formula gives {formula:.3} s");
    Ok(Finding::new(watched.open_s(), note).and(off <= claim.limit("formula_percent")))
}

/// The sender's reactions to losses in one window.
struct Repair {
    fast: u64,
    timeouts: u64,
    cuts: Vec<f64>,
}

impl Repair {
    fn of(lab: &Lab<'_>, lost: &str, more: &[(&str, &str)]) -> Result<Repair, ReproduceError> {
        let (windows, result) = watch(lab, &world(1, &[&[(LOST, lost), CLEAN[0], CLEAN[1]], more].concat()))?;
        let stats = &result.flows[0].stats;
        Ok(Repair { fast: stats.fast_retransmits, timeouts: stats.timeouts, cuts: windows.cuts })
    }

    fn words(&self) -> String {
        let cuts: Vec<_> = self.cuts.iter().map(|segments| format!("{segments:.0}")).collect();
        format!(
            "fast retransmits {}, timeouts {}, thresholds of {} segments",
            self.fast,
            self.timeouts,
            cuts.join(", ")
        )
    }
}

/// Two losses in one window give two fast retransmits, each of which halves the window.
pub(super) fn c20(lab: &Lab<'_>) -> Checked {
    const TWO: &str = "[3500, 3600]";
    const ROOMY: [(&str, &str); 1] = [("tcp.receive_buffer", "34 MiB")];
    let full = Repair::of(lab, TWO, &[])?;
    let roomy = Repair::of(lab, TWO, &ROOMY)?;
    let growing = Repair::of(lab, "[2000, 2100]", &[])?;
    let three = Repair::of(lab, "[3500, 3600, 3700]", &ROOMY)?;
    let note = format!(
        "two losses in a window as large as the peer's buffer: {}. The full buffer allows no new data while the first loss \
         is repaired, so no duplicate ACKs report the second: with a buffer of 34 MiB {}; with the shipped buffer while the \
         window still grows {}. Three losses, 34 MiB: {}",
        full.words(),
        roomy.words(),
        growing.words(),
        three.words()
    );
    let several = |repair: &Repair| published("A-C20").holds_for(repair.fast as f64) && repair.timeouts == 0;
    Ok(Finding::new(full.fast as f64, note).and(full.timeouts == 0).or_shape(several(&roomy) || several(&growing)))
}

/// A loss early in slow start.
pub(super) fn c21(lab: &Lab<'_>) -> Checked {
    let sets = [(LOST, "[100]"), ("flows.data.greedy", "true"), CLEAN[0], CLEAN[1]];
    // An open window fills the line, which is slow to simulate. So a run ends soon after the window is expected to be open,
    // and is repeated with more time if it is not. The last limit is more than an hour.
    let open = |more: &[(&str, &str)]| -> Result<f64, ReproduceError> {
        for limit in ["120 s", "700 s", "1500 s", "5000 s"] {
            let scenario = world(1, &[&sets[..], &[("time_limit", limit)], more].concat());
            let seconds = watch(lab, &scenario)?.0.open_s();
            if seconds.is_finite() {
                return Ok(seconds);
            }
        }
        Ok(f64::NAN)
    };
    let plain = ("tcp.shortcuts.bsd_additive_constant", "false");
    let slow = open(&[plain])?;
    let each = open(&[plain, ("tcp.ack.every", "1")])?;
    let note = format!(
        "the hundredth packet lost, an ACK for every second segment: from then on 4.3BSD Reno adds an eighth of a segment per \
         ACK. With one segment per window, as the paper assumes, it takes {slow:.0} s, with an ACK for each segment \
         {each:.0} s: the paper's own arithmetic gives minutes"
    );
    Ok(Finding::new(open(&[])?, note).or_shape(published("A-C21").holds_for(slow)))
}

/// A lost cell costs its packet.
pub(super) fn c22(_: &Lab<'_>) -> Checked {
    Ok(Finding::new(useless_cells(), "each cell of a packet lost in turn, with reassembly of real bytes"))
}

/// Number of cells of a full packet that the loss of any one cell makes useless.
fn useless_cells() -> f64 {
    let packet = vec![0x5a; 9180 + 8];
    let pieces = [&packet[..]];
    let cells: Vec<_> = aal5::segment(Header::user(0, 100, false), &pieces).expect("it fits").collect();
    let survives = (0..cells.len()).any(|lost| {
        let mut reassembler = Reassembler::new();
        let rest = cells.iter().enumerate().filter(|(n, _)| *n != lost);
        rest.into_iter().any(|(_, cell)| {
            let Ok((Header { payload: PayloadType::User { last, .. }, .. }, payload)) = Header::of(cell) else {
                return false;
            };
            matches!(reassembler.push(payload, last), Ok(Some(_)))
        })
    });
    if survives { 0.0 } else { cells.len() as f64 }
}
