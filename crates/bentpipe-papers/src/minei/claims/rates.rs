//! Sections 3 and 4: throughput without loss, with independent losses, split, and with the two modifications.

use crate::finding::{Checked, Finding};
use crate::lab::Lab;
use crate::minei::world::{FILE, Mean, RUNS, World, throughputs};
use crate::published::MINEI;
use crate::request::ReproduceError;

fn one(lab: &Lab<'_>, world: World) -> Result<f64, ReproduceError> {
    Ok(throughputs(lab, "without loss", &[world], 1)?[0].mean)
}

fn lossy(lab: &Lab<'_>, worlds: &[World]) -> Result<Vec<Mean>, ReproduceError> {
    throughputs(lab, "with losses", worlds, RUNS)
}

pub(super) fn c01(lab: &Lab<'_>) -> Checked {
    Ok(Finding::new(one(lab, World::direct())?, "one run, deterministic"))
}

pub(super) fn c02(lab: &Lab<'_>) -> Checked {
    // 400 kbit/s: minei §3.1.
    Ok(Finding::new(one(lab, World::direct())? / 400.0, "of 400 kbit/s"))
}

pub(super) fn c03(lab: &Lab<'_>) -> Checked {
    Ok(Finding::new(one(lab, World::split())?, "one run, deterministic"))
}

/// The smallest window that reaches 99 % of the best.
fn knee(lab: &Lab<'_>, key: &str, world: impl Fn() -> World) -> Result<f64, ReproduceError> {
    let windows: Vec<u32> = (4..=64).collect();
    let worlds: Vec<_> = windows.iter().map(|w| world().with(key, format!("{w} segments"))).collect();
    let rates = throughputs(lab, "windows", &worlds, 1)?;
    let best = rates.iter().map(|rate| rate.mean).fold(0.0, f64::max);
    let index = rates.iter().position(|rate| rate.mean >= 0.99 * best).expect("the best does");
    Ok(f64::from(windows[index]))
}

pub(super) fn c04(lab: &Lab<'_>) -> Checked {
    let window = knee(lab, "flows.file.tcp.window_clamp", World::direct)?;
    let modem = |rate: &str| one(lab, World::direct().with("links.modem.rate", rate));
    let (slow, printed, fast) = (modem("19.2 kbit/s")?, modem("28.8 kbit/s")?, modem("33.6 kbit/s")?);
    let every = one(lab, World::direct().leg("ack.delay", "0 s"))?;
    let note = format!(
        "with a return link of 19.2, 28.8 and 33.6 kbit/s: {slow:.1}, {printed:.1}, {fast:.1} kbit/s; the return link \
         matters if every packet is acknowledged: {every:.1}"
    );
    Ok(Finding::new(window, note).and(fast <= 1.01 * printed))
}

pub(super) fn c05(lab: &Lab<'_>) -> Checked {
    let sat = knee(lab, "flows.file.split.0.tcp.window_clamp", World::split)?;
    let internet = knee(lab, "flows.file.tcp.window_clamp", World::split)?;
    // The claim prints both windows; the first has the same tolerance as the second.
    let claim = MINEI.claim("M-C05").expect("a claim of the paper");
    let printed = claim.printed.split('/').next().and_then(|first| first.trim().parse::<f64>().ok());
    let width = claim.high.zip(claim.value).map_or(0.0, |(high, value)| high - value);
    let near = printed.is_some_and(|printed| (internet - printed).abs() <= width);
    let note = format!("the Internet leg: {internet}; the smallest windows that reach 99 % of the best");
    Ok(Finding::new(sat, note).and(near).or_shape(printed.is_some_and(|printed| internet < sat && internet <= printed)))
}

pub(super) fn c06(lab: &Lab<'_>) -> Checked {
    let of = |packets: u64| one(lab, World::direct().packets(packets));
    let (whole, mega, double, four) = (of(FILE)?, of(FILE / 5)?, of(2 * FILE)?, of(4 * FILE)?);
    let note = format!("1 MB {:.3}, 10 MB {:.3}, 20 MB {:.3} of 5 MB", mega / whole, double / whole, four / whole);
    Ok(Finding::new(four / whole, note).and(mega < whole))
}

/// Throughput with 10 % ACK loss over that without, at this data loss.
fn acks_lost(lab: &Lab<'_>, data: f64) -> Result<f64, ReproduceError> {
    let world = || World::direct().sat_loss(data);
    let rates = lossy(lab, &[world(), world().with("links.modem.loss", "10 %")])?;
    Ok(rates[1].mean / rates[0].mean)
}

pub(super) fn c07(lab: &Lab<'_>) -> Checked {
    Ok(Finding::new(acks_lost(lab, 0.0)?, "10 % of the ACKs lost"))
}

pub(super) fn c08(lab: &Lab<'_>) -> Checked {
    let (clean, dirty) = (acks_lost(lab, 0.0)?, acks_lost(lab, 1.0)?);
    let note = format!("10 % ACK loss leaves {clean:.3} without and {dirty:.3} with 1 % data loss");
    Ok(Finding::new(100.0 * (clean - dirty), note))
}

fn direct_drop(lab: &Lab<'_>, percent: f64) -> Checked {
    let clean = one(lab, World::direct())?;
    let rate = lossy(lab, &[World::direct().sat_loss(percent)])?[0];
    Ok(Finding::new(100.0 * (1.0 - rate.mean / clean), format!("{} kbit/s", rate.text())))
}

pub(super) fn c09(lab: &Lab<'_>) -> Checked {
    direct_drop(lab, 0.04)
}

pub(super) fn c10(lab: &Lab<'_>) -> Checked {
    direct_drop(lab, 1.0)
}

pub(super) fn c14(lab: &Lab<'_>) -> Checked {
    let parted = || World::split().with("links.internet.forward.loss", "1 %");
    // Settings of the leg from the server.
    let at_once = parted().with("flows.file.tcp.ack.delay", "0 s");
    let fine = parted().with("flows.file.tcp.rto.tick", "100 ms").with("flows.file.tcp.rto.min", "200 ms");
    let wide = parted().with("flows.file.tcp.window_clamp", "32 segments");
    let rates = lossy(lab, &[parted(), World::direct().with("links.internet.loss", "1 %"), at_once, fine, wide])?;
    let note = format!(
        "{} kbit/s against {} direct. The gateway's delayed ACKs cost most: with ACKs at once {:.0}; with a clock of 100 ms \
         {:.0}, with a window of 32 packets {:.0}. The paper does not say whether its gateway delays ACKs",
        rates[0].text(),
        rates[1].text(),
        rates[2].mean,
        rates[3].mean,
        rates[4].mean
    );
    let wanted = MINEI.claim("M-C14").expect("a claim of the paper").limit("over_direct");
    Ok(Finding::new(rates[0].mean, note).or_shape(rates[0].mean > wanted * rates[1].mean))
}

pub(super) fn c15(lab: &Lab<'_>) -> Checked {
    let mut ratios = Vec::new();
    for percent in [0.1, 0.4, 1.0, 5.0] {
        let rates = lossy(lab, &[World::split().sat_loss(percent), World::direct().sat_loss(percent)])?;
        ratios.push(rates[0].mean / rates[1].mean);
    }
    let furthest = ratios.iter().copied().fold(1.0, |a: f64, b| if (b - 1.0).abs() > (a - 1.0).abs() { b } else { a });
    Ok(Finding::new(furthest, format!("at 0.1, 0.4, 1 and 5 %: {ratios:.2?}; the furthest from 1")))
}

/// The gain of a change of the satellite's leg at this loss.
fn gain(lab: &Lab<'_>, percent: f64, change: impl Fn(World) -> World) -> Result<(f64, String), ReproduceError> {
    let world = || World::split().sat_loss(percent);
    let rates = lossy(lab, &[world(), change(world())])?;
    let note = format!("{} against {} kbit/s", rates[1].text(), rates[0].text());
    Ok((rates[1].mean / rates[0].mean, note))
}

fn super_fast(lab: &Lab<'_>, percent: f64) -> Result<(f64, String), ReproduceError> {
    let (ratio, note) = gain(lab, percent, |world| world.sender("reno-super-fast"))?;
    Ok((100.0 * (ratio - 1.0), note))
}

/// The gain at high loss, and its cause: settings that make Reno's timeouts rarer or shorter remove it.
fn super_fast_varied(lab: &Lab<'_>, percent: f64) -> Checked {
    let (gain_here, note) = super_fast(lab, percent)?;
    let varied = |change: fn(World) -> World| -> Result<f64, ReproduceError> {
        let world = || change(World::split().sat_loss(percent));
        let rates = lossy(lab, &[world(), world().sender("reno-super-fast")])?;
        Ok(100.0 * (rates[1].mean / rates[0].mean - 1.0))
    };
    let note = format!(
        "{note}; super fast retransmit avoids the timeouts of windows too small for three duplicate ACKs. With limited transmit (RFC 3042), which gives Reno these ACKs, the gain is {:.0} %, with a clock of 100 ms {:.0} %, with one fast retransmit per window \
         {:.0} %; the paper mentions none of these",
        varied(|world| world.leg("limited_transmit", "true"))?,
        varied(World::fine_clock)?,
        varied(|world| world.leg("once_per_window", "true"))?,
    );
    Ok(Finding::new(gain_here, note))
}

pub(super) fn c16(lab: &Lab<'_>) -> Checked {
    super_fast_varied(lab, 10.0)
}

pub(super) fn c17(lab: &Lab<'_>) -> Checked {
    super_fast_varied(lab, 5.0)
}

pub(super) fn c18(lab: &Lab<'_>) -> Checked {
    let (percent, note) = super_fast(lab, 0.4)?;
    let high = super_fast(lab, 10.0)?.0;
    Ok(Finding::new(percent, format!("at 0.4 %: {note}")).or_shape(percent < high))
}

fn constant(lab: &Lab<'_>, percent: f64) -> Result<(f64, String), ReproduceError> {
    gain(lab, percent, World::constant)
}

/// The same if a timeout retransmits only the oldest packet, the other reading of M-Q09.
fn constant_oldest(lab: &Lab<'_>, percent: f64) -> Result<f64, ReproduceError> {
    Ok(gain(lab, percent, |world| world.constant().leg("timeout_repair", "oldest"))?.0)
}

pub(super) fn c19(lab: &Lab<'_>) -> Checked {
    let (ratio, note) = constant(lab, 0.4)?;
    Ok(Finding::new(ratio, note))
}

pub(super) fn c20(lab: &Lab<'_>) -> Checked {
    let (ratio, note) = constant(lab, 1.0)?;
    Ok(Finding::new(ratio, note))
}

/// The cause of the difference at high loss.
const RESENT: &str = "a timeout retransmits the whole constant window (M-Q09), which repairs many losses at once; \
                      if it retransmits only the oldest packet, the gain is gone, but so is most of the throughput";

pub(super) fn c21(lab: &Lab<'_>) -> Checked {
    let gains = [constant(lab, 5.0)?.0, constant(lab, 10.0)?.0];
    let oldest = [constant_oldest(lab, 5.0)?, constant_oldest(lab, 10.0)?];
    let note = format!("gains at 5 and 10 %: {gains:.2?}, with only the oldest packet {oldest:.2?}: {RESENT}");
    Ok(Finding::new(gains[1] - gains[0], note).or_shape(oldest[1] < oldest[0]))
}

pub(super) fn c22(lab: &Lab<'_>) -> Checked {
    let (ratio, note) = constant(lab, 10.0)?;
    let oldest = constant_oldest(lab, 10.0)?;
    Ok(Finding::new(ratio, format!("{note}; with only the oldest packet {oldest:.2}: {RESENT}")))
}
