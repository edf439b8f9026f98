//! Section 5.3: the senders under bursts of losses.

use bentpipe_engine::link::PacketBursts;

use crate::finding::{Checked, Finding};
use crate::lab::Lab;
use crate::minei::world::{RUNS, World, packets_sent, throughputs};
use crate::published::MINEI;
use crate::request::ReproduceError;

/// Base rates of the sweep, percent; the paper prints none (M-Q10).
const RATES: [f64; 5] = [0.1, 0.2, 0.5, 1.0, 2.0];
/// The compared base rate (M-Q10), and factors up to 0.5, where half of the packets after a loss are lost.
const BASE: f64 = 1.0;
const FACTORS: [f64; 4] = [0.0, 0.1, 0.3, 0.5];
/// Probabilities that a run starts, percent (M-Q11), and the compared one.
const STARTS: [f64; 6] = [0.1, 0.2, 0.5, 1.0, 1.5, 2.0];
const START: f64 = 0.5;

/// Throughput of two senders, kbit/s.
fn two(lab: &Lab<'_>, senders: [&str; 2], world: impl Fn() -> World) -> Result<[f64; 2], ReproduceError> {
    let worlds = senders.map(|variant| world().sender(variant));
    let rates = throughputs(lab, "bursts", &worlds, RUNS)?;
    Ok([rates[0].mean, rates[1].mean])
}

fn bursty(lab: &Lab<'_>, new: &str, old: &str, rate: f64, factor: f64) -> Result<f64, ReproduceError> {
    let [ours, theirs] = two(lab, [new, old], || World::split().bursty(rate, factor))?;
    Ok(ours / theirs)
}

/// The constant window against a sender with congestion avoidance, over the factors of figure 17.
fn constant(lab: &Lab<'_>, old: &str) -> Result<(f64, Vec<f64>, Vec<f64>), ReproduceError> {
    let over = |rate: f64| FACTORS.iter().map(|f| bursty(lab, "burst", old, rate, *f)).collect::<Result<Vec<_>, _>>();
    let at_base = over(BASE)?;
    let mean = at_base.iter().sum::<f64>() / at_base.len() as f64;
    let elsewhere = RATES.iter().map(|rate| bursty(lab, "burst", old, *rate, 0.3)).collect::<Result<Vec<_>, _>>()?;
    Ok((mean, at_base, elsewhere))
}

fn against(lab: &Lab<'_>, old: &str, more: &str) -> Checked {
    let (mean, ratios, elsewhere) = constant(lab, old)?;
    let note = format!(
        "mean over factors 0, 0.1, 0.3, 0.5 at 1 %: {ratios:.2?}; at factor 0.3 and base rates {RATES:?} %: \
         {elsewhere:.2?}{more}"
    );
    Ok(Finding::new(mean, note).or_shape(ratios.iter().all(|ratio| *ratio > 1.0)))
}

pub(super) fn c35(lab: &Lab<'_>) -> Checked {
    against(lab, "reno", "")
}

pub(super) fn c36(lab: &Lab<'_>) -> Checked {
    against(lab, "newreno-sbs", "")
}

pub(super) fn c37(lab: &Lab<'_>) -> Checked {
    let constant = two(lab, ["burst", "sack-ns2"], || World::split().bursty(BASE, 0.3).constant())?;
    let more = format!(
        "; against SACK with a constant window too {:.2}: SACK halves its window like NewReno, which costs more than the repair at these rates; the paper's SACK halves less than its NewReno, without explanation",
        constant[0] / constant[1]
    );
    against(lab, "sack-ns2", &more)
}

fn avoiding(lab: &Lab<'_>, factor: f64) -> Checked {
    let gain = |rate| Ok::<_, ReproduceError>(100.0 * (bursty(lab, "burst-ca", "reno", rate, factor)? - 1.0));
    let elsewhere = RATES.iter().map(|rate| gain(*rate)).collect::<Result<Vec<_>, _>>()?;
    let fine = two(lab, ["burst-ca", "reno"], || World::split().bursty(BASE, factor).fine_clock())?;
    let note = format!(
        "base rate 1 %. The gain depends on the base rate, which is not printed (M-Q10): at {RATES:?} % it is {elsewhere:.0?} %; \
         with a clock of 100 ms it is {:.0} %",
        100.0 * (fine[0] / fine[1] - 1.0)
    );
    let number = gain(BASE)?;
    Ok(Finding::new(number, note))
}

pub(super) fn c38(lab: &Lab<'_>) -> Checked {
    avoiding(lab, 0.7)
}

pub(super) fn c39(lab: &Lab<'_>) -> Checked {
    avoiding(lab, 0.5)
}

pub(super) fn c40(lab: &Lab<'_>) -> Checked {
    avoiding(lab, 0.3)
}

/// The new sender with congestion avoidance against another, at factors 0.3, 0.5, 0.7.
fn avoiding_against(lab: &Lab<'_>, old: &str) -> Result<(f64, Vec<f64>), ReproduceError> {
    let factors = [0.3, 0.5, 0.7];
    let ratios = factors.iter().map(|f| bursty(lab, "burst-ca", old, BASE, *f)).collect::<Result<Vec<_>, _>>()?;
    Ok((ratios.iter().sum::<f64>() / 3.0, ratios))
}

pub(super) fn c41(lab: &Lab<'_>) -> Checked {
    let (mean, ratios) = avoiding_against(lab, "sack-ns2")?;
    // The other reading of M-Q09, for the new sender only: SACK retransmits what its scoreboard says.
    let oldest = |factor| -> Result<f64, ReproduceError> {
        let world = || World::split().bursty(BASE, factor);
        let new = world().sender("burst-ca").leg("timeout_repair", "oldest");
        let rates = throughputs(lab, "bursts", &[new, world().sender("sack-ns2")], RUNS)?;
        Ok(rates[0].mean / rates[1].mean)
    };
    let oldest = [oldest(0.3)?, oldest(0.5)?, oldest(0.7)?];
    let note = format!(
        "mean over factors 0.3, 0.5, 0.7: {ratios:.2?}. The result depends on what a timeout retransmits (M-Q09): here all packets from the loss on; with only the oldest packet {oldest:.2?}"
    );
    Ok(Finding::new(mean, note))
}

pub(super) fn c42(lab: &Lab<'_>) -> Checked {
    let (mean, ratios) = avoiding_against(lab, "newreno-sbs")?;
    Ok(Finding::new(mean, format!("at factors 0.3, 0.5, 0.7: {ratios:.3?}")))
}

/// Four further losses in a row, by the channel of the runs.
pub(super) fn c43(_: &Lab<'_>) -> Checked {
    let scenario = World::split().bursty(BASE, 0.3).scenario();
    let data = scenario.link("sat").map(|link| &scenario[link].config);
    let again = match data.and_then(|config| config.packet_bursts) {
        Some(PacketBursts::Conditional { again, .. }) => again.get(),
        _ => f64::NAN,
    };
    Ok(Finding::new(again.powi(4), "of the channel of the runs; a test in link/sequence.rs checks how often it loses"))
}

/// Gain over Reno and NewReno for lost runs of `length`. The claim prints both; the second has bounds as wide as the
/// first.
fn runs(lab: &Lab<'_>, id: &str, length: u32) -> Checked {
    let gain = |old, start| {
        let rates = two(lab, ["burst-ca", old], || World::split().runs_of(length, start))?;
        Ok::<_, ReproduceError>(100.0 * (rates[0] / rates[1] - 1.0))
    };
    let (reno, newreno) = (gain("reno", START)?, gain("newreno-sbs", START)?);
    let elsewhere = STARTS
        .iter()
        .map(|start| Ok((gain("reno", *start)?, gain("newreno-sbs", *start)?)))
        .collect::<Result<Vec<_>, ReproduceError>>()?;
    let at_once = |old| {
        let rates = two(lab, ["burst-ca", old], || World::split().runs_of(length, START).leg("ack.delay", "0 s"))?;
        Ok::<_, ReproduceError>(100.0 * (rates[0] / rates[1] - 1.0))
    };
    let note = format!(
        "over NewReno {newreno:.0} %; a run starts with a probability of 0.5 %. The gain over Reno depends on this \
         probability, which is not printed (M-Q11): with {STARTS:?} % the two are {elsewhere:.0?} %. With ACKs at once {:.0} and \
         {:.0} %; over NewReno with an impatient timer {:.0} %",
        at_once("reno")?,
        at_once("newreno-sbs")?,
        gain("newreno", START)?,
    );
    let claim = MINEI.claim(id).expect("a claim of the paper");
    let near = second(id).is_some_and(|(printed, width)| (newreno - printed).abs() <= width);
    Ok(Finding::new(reno, note).and(near).or_shape(reno > 0.0 && newreno > claim.limit("newreno_low")))
}

/// The second number of a claim, and its allowed distance.
fn second(id: &str) -> Option<(f64, f64)> {
    let claim = MINEI.claim(id)?;
    let printed = claim.printed.split('/').nth(1)?.trim().parse().ok()?;
    Some((printed, claim.high? - claim.value?))
}

pub(super) fn c44(lab: &Lab<'_>) -> Checked {
    runs(lab, "M-C44", 7)
}

pub(super) fn c45(lab: &Lab<'_>) -> Checked {
    runs(lab, "M-C45", 5)
}

pub(super) fn c46(lab: &Lab<'_>) -> Checked {
    runs(lab, "M-C46", 3)
}

/// Packets for a file of 10000, by sender, at factors 0.3, 0.5 and 0.7.
fn sent(lab: &Lab<'_>, senders: &[&str]) -> Result<Vec<Vec<f64>>, ReproduceError> {
    let mut all = Vec::new();
    for variant in senders {
        let worlds = [0.3, 0.5, 0.7].map(|f| World::split().packets(10_000).bursty(BASE, f).sender(variant));
        all.push(packets_sent(lab, "packets sent", &worlds)?.iter().map(|mean| mean.mean).collect());
    }
    Ok(all)
}

pub(super) fn c47(lab: &Lab<'_>) -> Checked {
    let sent = sent(lab, &["burst", "reno"])?;
    let ratios: Vec<_> = sent[0].iter().zip(&sent[1]).map(|(new, reno)| new / reno).collect();
    let max = ratios.iter().copied().fold(0.0, f64::max);
    Ok(Finding::new(max, format!("at factors 0.3, 0.5, 0.7: {ratios:.3?}")))
}

pub(super) fn c48(lab: &Lab<'_>) -> Checked {
    let sent = sent(lab, &["sack-ns2", "reno", "newreno-sbs", "burst", "burst-ca"])?;
    let of = |n: usize| {
        let min = sent[1..].iter().map(|other| other[n]).fold(f64::INFINITY, f64::min);
        sent[0][n] / min
    };
    let ratios = [of(0), of(1), of(2)];
    let worst = ratios.iter().copied().fold(0.0, f64::max);
    Ok(Finding::new(worst, format!("SACK over the minimum of the others at 0.3, 0.5, 0.7: {ratios:.4?}")))
}
