//! Claims about single packets: the timer, Reno's limits (§5.1), the new sender's phase (§5.3).

use bentpipe_engine::stream::Stream;
use bentpipe_engine::tcp::{RtoConfig, RttClock, RttEstimator};
use bentpipe_engine::units::{Duration, Time};

use crate::finding::{Checked, Finding};
use crate::lab::Lab;
use crate::minei::cases::{self, ACK_TIME, Case, RTT, WINDOW, patterns};
use crate::request::ReproduceError;

/// Mean idle time of the sender before a timeout, from its last packet, seconds.
pub(super) fn c11(lab: &Lab<'_>) -> Checked {
    let trace = Case::new("reno", 32, 1..=6).run(lab)?.trace;
    let mut silences = Vec::new();
    for timeout in &trace.timeouts {
        let before = trace.sent.iter().map(|sent| sent.0.0).filter(|at| at < timeout).fold(0.0, f64::max);
        silences.push(timeout - before);
    }
    let mean = silences.iter().sum::<f64>() / silences.len().max(1) as f64;
    Ok(Finding::new(mean, format!("six packets in a row lost of a window of 32: {silences:.2?}")))
}

/// Mean RTO of 4.3BSD's estimator for this round trip, with samples at random phases of the tick, seconds.
fn mean_rto(lab: &Lab<'_>, millis: u64) -> f64 {
    let tick = Duration::from_millis(500);
    let clock = RttClock::Ticks { tick, phase: Duration::ZERO, fire_on_tick: false, bsd: true };
    let mut estimator = RttEstimator::new(RtoConfig { clock, ..RtoConfig::RFC6298 });
    let mut stream = Stream::named(lab.seed(), "minei/phase");
    let (mut sum, count) = (0.0, 100_000);
    for n in 0..count {
        let sent = Time::ZERO + Duration::from_secs(n) + Duration::from_secs_f64_rounded(0.5 * stream.uniform());
        estimator.sample(sent, sent + Duration::from_millis(millis));
        sum += estimator.rto().as_secs_f64();
    }
    sum / count as f64
}

pub(super) fn c12(lab: &Lab<'_>) -> Checked {
    Ok(Finding::new(mean_rto(lab, 50), "100 000 samples at random phases of the tick"))
}

pub(super) fn c13(lab: &Lab<'_>) -> Checked {
    Ok(Finding::new(mean_rto(lab, 290), "100 000 samples at random phases of the tick"))
}

/// The smallest window for which no case times out, neither with it nor with a larger one up to 20 packets; 21 if none.
fn min_window(lab: &Lab<'_>, cases: impl Fn(u64) -> Vec<Case>) -> Result<f64, ReproduceError> {
    const MAX: u64 = 20;
    let mut min = MAX + 1;
    for window in (2..=MAX).rev() {
        for case in cases(window) {
            if case.run(lab)?.timeouts > 0 {
                return Ok(min as f64);
            }
        }
        min = window;
    }
    Ok(min as f64)
}

pub(super) fn c23(lab: &Lab<'_>) -> Checked {
    let at_once = min_window(lab, |window| vec![Case::unbounded("reno", window, [1])])?;
    // The paper's receivers delay ACKs (§3.1). Whether an ACK is pending at the loss depends on which packet is lost.
    let delayed = |window| [1, 2].map(|lost| Case::new("reno", window, [lost]).with("ack.delay", "200 ms")).into();
    let min = min_window(lab, delayed)?;
    let note = format!(
        "smallest window of 2 to 20 without a timeout, whichever of two packets is lost; ACKs are delayed as in the paper, \
         and an ACK that is pending when the loss appears is not a duplicate. If every packet is acknowledged at once it is \
         {at_once}: three packets after the lost one give three duplicates"
    );
    Ok(Finding::new(min, note))
}

pub(super) fn c24(lab: &Lab<'_>) -> Checked {
    let min = min_window(lab, |window| vec![Case::unbounded("reno", window, [1, 2])])?;
    // A window limited by the receiver allows no new data on duplicate ACKs.
    let bounded = min_window(lab, |window| vec![Case::new("reno", window, [1, 2])])?;
    let note = format!(
        "smallest window of 2 to 20 without a timeout; only the congestion window limits it, as in the paper's count. If the receiver's window does, it is {bounded} (21: none)"
    );
    Ok(Finding::new(min, note))
}

pub(super) fn c25(lab: &Lab<'_>) -> Checked {
    let (mut min, mut exceptions) = (u64::MAX, Vec::new());
    for window in 5..=42u64 {
        for losses in 3..=6.min(window - 1) {
            let timeouts = Case::unbounded("reno", window, 1..=losses).run(lab)?.timeouts;
            min = min.min(timeouts);
            if timeouts == 0 {
                exceptions.push((window, losses));
            }
        }
    }
    let note = format!("windows 5 to 42, three to six in a row; without a timeout (window, losses): {exceptions:?}");
    Ok(Finding::new(min as f64, note))
}

/// Round trips after the timeout until the window is four, with the first `lost` packets of a window of 20 lost.
fn rounds_to_four(lab: &Lab<'_>, lost: u64) -> Result<f64, ReproduceError> {
    let trace = Case::new("reno", 20, 1..=lost).run(lab)?.trace;
    let timeout = trace.timeouts.first().copied().unwrap_or(f64::NAN);
    let open = trace.windows.iter().find(|point| point.at > timeout && point.cwnd >= 4.0).map_or(f64::NAN, |p| p.at);
    Ok((open - timeout) / RTT)
}

/// Round trips after a timeout with a window below four: windows of 1 and 2.
pub(super) fn c26(lab: &Lab<'_>) -> Checked {
    let (all, three) = (rounds_to_four(lab, 20)?, rounds_to_four(lab, 3)?);
    let again = Case::new("reno", 20, 1..=20).losing_again(2).run(lab)?.timeouts;
    let note = format!(
        "{all:.2} round trips until cwnd is four if the whole window of 20 was lost; a second loss in that time makes {again} \
         timeouts in total. If only three packets were lost it takes {three:.2}: the two packets of the second round trip fill \
         the gap, so one ACK covers everything and the window grows by one"
    );
    Ok(Finding::new(all.floor(), note).and(again >= 2))
}

pub(super) fn c27(lab: &Lab<'_>) -> Checked {
    let (mut worst, mut newreno_ok, mut reno_ok) = (0.0f64, true, true);
    for losses in 2..=15u64 {
        let new = Case::new("burst", 32, 1..=losses).run(lab)?;
        worst = worst.max(new.recovery().unwrap_or(f64::INFINITY));
        let newreno = Case::new("newreno-sbs", 32, 1..=losses).run(lab)?;
        // At least a round trip for each loss; 0.1 allows for serialisation times.
        newreno_ok &= newreno.recovery().is_some_and(|rounds| rounds >= losses as f64 - 0.1);
        reno_ok &= losses < 3 || Case::new("reno", 32, 1..=losses).run(lab)?.timeouts > 0;
    }
    let note = format!(
        "longest recovery from 2 to 15 losses in a row, window of 32; NewReno takes a round trip for each: {newreno_ok}; Reno \
         times out from three on: {reno_ok}"
    );
    Ok(Finding::new(worst, note).and(newreno_ok && reno_ok))
}

pub(super) fn c28(lab: &Lab<'_>) -> Checked {
    let outcome = cases::one_hole().run(lab)?;
    let right = outcome.repeated == [1, 2, 3, 4] && outcome.timeouts == 0;
    Ok(Finding::new(outcome.repeated.len() as f64 - 1.0, format!("retransmitted: {:?}", outcome.repeated)).and(right))
}

pub(super) fn c29(lab: &Lab<'_>) -> Checked {
    let outcome = cases::two_holes().run(lab)?;
    let right = outcome.repeated == [1, 2, 3, 4, 6, 7, 8] && outcome.timeouts == 0;
    let needless = outcome.needless(&[1, 2, 6, 7]) as f64;
    Ok(Finding::new(needless, format!("retransmitted: {:?}", outcome.repeated)).and(right))
}

pub(super) fn c30(lab: &Lab<'_>) -> Checked {
    let outcome = cases::one_hole().losing_again(2).run(lab)?;
    let right = outcome.repeated == [1, 2, 3, 4, 2, 3, 4] && outcome.timeouts == 0;
    // Packet 2 had to be sent twice.
    let needless = outcome.needless(&[1, 2, 3, 4]) as f64 - 1.0;
    Ok(Finding::new(needless, format!("retransmitted: {:?}", outcome.repeated)).and(right))
}

pub(super) fn c31(lab: &Lab<'_>) -> Checked {
    let lost = [1, 2, 4, 5, 7, 8];
    let case = cases::tight_holes();
    let (plain, skipping) = (case.run(lab)?, case.with("burst.in_burst_skip", "true").run(lab)?);
    let first: Vec<_> = skipping.repeated.iter().take(6).copied().collect();
    let needless = first.iter().filter(|packet| !lost.contains(packet)).count();
    let note = format!(
        "needless in the first burst; retransmitted with the in-burst rule {:?}, without {:?}",
        skipping.repeated, plain.repeated
    );
    Ok(Finding::new(needless as f64, note).and(first == [1, 2, 3, 4, 5, 6]))
}

pub(super) fn c32(lab: &Lab<'_>) -> Checked {
    let (mut excess, mut seen) = (f64::NEG_INFINITY, Vec::new());
    for (window, spacing) in [(27u64, 2u64), (64, 9), (128, 12)] {
        for n in [2u64, 3, 4, 5, 6, 8, 10] {
            let lost: Vec<u64> = (0..n).map(|i| 1 + i * spacing).collect();
            if lost[lost.len() - 1] + 4 > window {
                continue;
            }
            let needless = Case::new("burst", window, lost.iter().copied()).run(lab)?.needless(&lost);
            excess = excess.max(needless as f64 - ((n - 1) * (n - 2)) as f64);
            seen.push((n, needless));
        }
    }
    Ok(Finding::new(excess, format!("losses, and needless retransmissions: {seen:?}")))
}

pub(super) fn c33(lab: &Lab<'_>) -> Checked {
    let (mut worst, all) = (0.0f64, patterns());
    for (holes, lost) in &all {
        let case = Case::new("burst", WINDOW, lost.iter().copied());
        let outcome = case.run(lab)?;
        let pushing = (outcome.repeated.len() as f64 * ACK_TIME + WINDOW as f64 * (ACK_TIME - 0.01024)) / RTT;
        let rounds = outcome.recovery().unwrap_or(f64::INFINITY);
        worst = worst.max((rounds - pushing) / (1 + holes) as f64);
    }
    Ok(Finding::new(worst, format!("max over {} patterns; thousands more in the engine's tests", all.len())))
}

pub(super) fn c34(lab: &Lab<'_>) -> Checked {
    let (mut timeouts, all) = (0, patterns());
    for (_, lost) in &all {
        let case = Case::new("burst", WINDOW, lost.iter().copied());
        debug_assert_eq!(case.losses(), lost.len() as u64);
        timeouts += case.run(lab)?.timeouts;
    }
    Ok(Finding::new(timeouts as f64, format!("{} patterns; thousands more in the engine's tests", all.len())))
}

pub(super) fn c49(lab: &Lab<'_>) -> Checked {
    let outcome = cases::one_hole().losing_again(1).run(lab)?;
    Ok(Finding::new(outcome.timeouts as f64, format!("retransmitted: {:?}", outcome.repeated)))
}

pub(super) fn c50(lab: &Lab<'_>) -> Checked {
    let lost: Vec<u64> = (0..6).map(|i| 1 + 9 * i).collect();
    let entries = |guard: &str| {
        let case = Case::new("burst", 64, lost.iter().copied()).with("burst.guard", guard);
        Ok::<_, ReproduceError>(case.run(lab)?.trace.entered.len() as f64 - 1.0)
    };
    let (off, recover, credit) = (entries("off")?, entries("recover")?, entries("credit")?);
    let note = format!("false phases after six isolated losses; with the guards recover {recover}, credit {credit}");
    Ok(Finding::new(off, note).and(recover == 0.0 && credit == 0.0))
}
