//! Claims about runs without errors: tables 1 and 2, sections 2.3 and 3.1.

use bentpipe_sim::RunResult;
use bentpipe_study::stats::Sample;

use super::super::lab::{Lab, elapsed};
use super::super::setting::Setting;
use super::super::single;
use super::super::variant::Variant;
use crate::finding::{Checked, Finding};
use crate::published::{TRANSAT_NS2, TRANSAT_TABLES};
use crate::request::ReproduceError;

fn run(lab: &Lab<'_>, table: u8, key: &str, variant: Variant) -> Result<(RunResult, bool), ReproduceError> {
    let (setting, last) = single::plan(table, key).expect("a row of the table");
    Ok((lab.single(&setting.with_variant(variant))?, last))
}

/// The time of a cell of table 1 or 2, seconds.
fn time(lab: &Lab<'_>, table: u8, key: &str, variant: Variant) -> Result<f64, ReproduceError> {
    let (result, last) = run(lab, table, key, variant)?;
    Ok(single::time(&result, last).expect("the lab refuses unfinished runs"))
}

/// The times of a row, in the order of [`Variant::WITHOUT_RED`].
fn times(lab: &Lab<'_>, key: &str) -> Result<Vec<f64>, ReproduceError> {
    Variant::WITHOUT_RED.iter().map(|&v| time(lab, 1, key, v)).collect()
}

/// ns-2's time of a cell of table 2, seconds.
fn ns2(key: &str, variant: Variant) -> f64 {
    TRANSAT_NS2.cell(2, key, variant.key()).expect("ns-2 has every cell").value
}

/// Max distance of a row from the published one, percent.
fn worst(key: &str, ours: &[f64]) -> f64 {
    let published = &TRANSAT_TABLES.table(1).expect("table 1").rows[key];
    ours.iter().zip(published).map(|(a, b)| 100.0 * (a / b - 1.0).abs()).fold(0.0, f64::max)
}

/// Enhanced is faster than IW4, DAASS and Reference, in this order; SACK and limited transmit equal Reference.
fn in_order(t: &[f64]) -> bool {
    let &[reference, iw4, daass, sack, sack_lt, enhanced] = t else { return false };
    enhanced < iw4 && iw4 < daass && daass < reference && reference == sack && reference == sack_lt
}

fn list(times: &[f64]) -> String {
    let shown: Vec<_> = times.iter().map(|t| format!("{t:.2}")).collect();
    shown.join(" / ")
}

/// Without errors and congestion: Enhanced, IW4, DAASS, then Reference, SACK and SACK + limited transmit equally.
pub(super) fn t_c01(lab: &Lab<'_>) -> Checked {
    let t = times(lab, "200-on")?;
    let note = format!("{} s in the order of the table", list(&t));
    Ok(Finding::new(worst("200-on", &t), note).and(in_order(&t)).or_shape(in_order(&t)))
}

/// Without window scaling the receiver's window limits the flow.
pub(super) fn t_c02(lab: &Lab<'_>) -> Checked {
    let t = times(lab, "200-off")?;
    let (result, _) = run(lab, 1, "200-off", Variant::Ref)?;
    let flight = result.flows[0].stats.max_flight / Setting::PAYLOAD;
    let window = u64::from(Setting::WINDOW_WITHOUT_SCALING);
    let note = format!("{} s; at most {flight} of {window} segments outstanding", list(&t));
    Ok(Finding::new(worst("200-off", &t), note).and(flight == window).or_shape(in_order(&t)))
}

/// Slow start overshoots a queue of 50 packets, and NewReno takes long to repair it.
pub(super) fn t_c03(lab: &Lab<'_>) -> Checked {
    let (small, large) = (time(lab, 1, "50-on", Variant::Ref)?, time(lab, 1, "200-on", Variant::Ref)?);
    Ok(Finding::new(small / large, format!("{small:.2} s against {large:.2} s")).or_shape(small > 2.0 * large))
}

/// Without scaling nothing is lost at 50 packets, and the times equal those of 200.
pub(super) fn t_c04(lab: &Lab<'_>) -> Checked {
    let mut drops = 0;
    let mut same = true;
    for &variant in Variant::WITHOUT_RED {
        drops += run(lab, 1, "50-off", variant)?.0.links.iter().map(|l| l.dropped()).sum::<u64>();
        same &= time(lab, 1, "50-off", variant)? == time(lab, 1, "200-off", variant)?;
    }
    let note = if same { "times equal to the nanosecond" } else { "times differ" };
    Ok(Finding::new(drops as f64, note).and(same))
}

/// IW4 or DAASS alone help little once slow start overshoots.
pub(super) fn t_c05(lab: &Lab<'_>) -> Checked {
    let t = times(lab, "50-on")?;
    let change = |i: usize| 100.0 * (t[i] / t[0] - 1.0);
    let little = |c: f64| (-20.0..=0.0).contains(&c);
    let note = format!("IW4 {:.1} %, DAASS {:.1} %", change(1), change(2));
    Ok(Finding::new(change(1), note).and(little(change(2))))
}

/// SACK repairs the overshoot far faster than NewReno.
pub(super) fn t_c06(lab: &Lab<'_>) -> Checked {
    let t = times(lab, "50-on")?;
    let note = format!("Ref {:.2} s, SACK {:.2} s, SACK + limited transmit {:.2} s", t[0], t[3], t[4]);
    Ok(Finding::new(t[0] / t[3], note).and(t[4] < t[0]).or_shape(t[3] < t[0]))
}

/// Reference is faster beside CBR 1.7 than beside CBR 0.8.
pub(super) fn t_c08(lab: &Lab<'_>) -> Checked {
    let (more, less) = (time(lab, 1, "50-cbr1.7-on", Variant::Ref)?, time(lab, 1, "50-cbr0.8-on", Variant::Ref)?);
    Ok(Finding::new(more / less, format!("{more:.2} s beside 1.7 Mbit/s, {less:.2} s beside 0.8")))
}

/// Window scaling makes no difference for four flows beside CBR 0.8.
pub(super) fn t_c11(lab: &Lab<'_>) -> Checked {
    let mut differences = Vec::new();
    for flow in ["fastest", "slowest"] {
        for variant in Variant::ALL {
            let on = time(lab, 2, &format!("{flow}-cbr0.8-on"), variant)?;
            let off = time(lab, 2, &format!("{flow}-cbr0.8-off"), variant)?;
            differences.push(((on - off).abs(), variant.name()));
        }
    }
    let (greatest, variant) = differences.iter().copied().fold((0.0, ""), |a, b| if b.0 > a.0 { b } else { a });
    let unchanged = differences.iter().filter(|(d, _)| *d <= 0.5).count();
    let note = format!("max at {variant}; {unchanged} of {} cells within 0.5 s", differences.len());
    Ok(Finding::new(greatest, note).or_shape(2 * unchanged > differences.len()))
}

/// With competing traffic the congestion window stays under 64 KB.
pub(super) fn t_c12(lab: &Lab<'_>) -> Checked {
    let mut greatest = Vec::new();
    for variant in Variant::ALL {
        let (result, _) = run(lab, 2, "fastest-cbr0.8-on", variant)?;
        let max = result.flows.iter().map(|f| f.stats.max_flight).max().unwrap_or(0);
        greatest.push((max as f64 / 1024.0, variant.name()));
    }
    let (max, variant) = greatest.iter().copied().fold((0.0, ""), |a, b| if b.0 > a.0 { b } else { a });
    let under = greatest.iter().filter(|(max, _)| *max < 64.0).count();
    let note =
        format!("max data outstanding in any of the four flows, with {variant}; {under} of 8 variants below 64 KB");
    Ok(Finding::new(max, note).or_shape(under >= 4))
}

/// Four flows do not share fairly.
pub(super) fn t_c13(lab: &Lab<'_>) -> Checked {
    let mut ratios = Vec::new();
    for row in ["on", "off", "cbr0.8-on", "cbr0.8-off"] {
        for variant in Variant::ALL {
            let slowest = time(lab, 2, &format!("slowest-{row}"), variant)?;
            ratios.push(slowest / time(lab, 2, &format!("fastest-{row}"), variant)?);
        }
    }
    let min = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let max = ratios.iter().copied().fold(0.0, f64::max);
    let unfair = ratios.iter().filter(|r| **r > 1.05).count();
    let note =
        format!("slowest against fastest flow from {min:.2} to {max:.2}, {unfair} of {} above 1.05", ratios.len());
    Ok(Finding::new(min, note).or_shape(2 * unfair > ratios.len()))
}

/// Median of the times of a cell of table 2 over the paper's number of replications. They differ if RED or random starts
/// are on.
fn typical(lab: &Lab<'_>, row: &str, change: impl Fn(Setting) -> Setting) -> Result<f64, ReproduceError> {
    let (setting, last) = single::plan(2, row).expect("a row of the table");
    let runs = lab.runs(&change(setting), TRANSAT_TABLES.replications as u32)?;
    let times = runs.iter().filter_map(|run| single::time(run, last)).collect();
    Ok(Sample::new(times).expect("the lab refuses unfinished runs").median())
}

/// RED helps the slowest Enhanced flow beside CBR and does not change the fastest.
pub(super) fn t_c14(lab: &Lab<'_>) -> Checked {
    let change = |flow: &str| {
        let key = format!("{flow}-cbr0.8-on");
        let red = typical(lab, &key, |setting| setting.with_variant(Variant::EnhRed))?;
        Ok::<_, ReproduceError>((time(lab, 2, &key, Variant::Enh)?, red))
    };
    let ((slow, slow_red), (fast, fast_red)) = (change("slowest")?, change("fastest")?);
    let key = "slowest-cbr0.8-on";
    let note = format!(
        "slowest {slow:.2} -> {slow_red:.2} s, fastest {fast:.2} -> {fast_red:.2} s, medians of {} draws of RED; ns-2 \
         itself: slowest {:.2} -> {:.2} s; not explained: none of the nine settings of RED in studies/transat/README.md makes the \
         slowest flow faster",
        TRANSAT_TABLES.replications,
        ns2(key, Variant::Enh),
        ns2(key, Variant::EnhRed)
    );
    Ok(Finding::new(slow_red - slow, note).and((fast_red / fast - 1.0).abs() < 0.1))
}

/// Without CBR RED does not help: its average stays low while slow start fills the queue. Compared with a queue of the
/// same size without RED, 50 waiting packets, so that any difference is due to RED.
pub(super) fn t_c15(lab: &Lab<'_>) -> Checked {
    let (setting, last) = single::plan(2, "fastest-on").expect("a row of the table");
    let same_room = lab.single(&setting.clone().with_variant(Variant::Enh).with_buffer(51))?;
    let fast = single::time(&same_room, last).expect("the lab refuses unfinished runs");
    let with_less = time(lab, 2, "fastest-on", Variant::Enh)?;
    let fast_red = time(lab, 2, "fastest-on", Variant::EnhRed)?;
    let (_, trace) = lab.traced(&setting.with_variant(Variant::EnhRed))?;
    let first_drop = trace.flows.iter().flat_map(|f| f.queue_drops.iter().map(|p| p.0)).fold(f64::INFINITY, f64::min);
    let average = trace.queue.iter().take_while(|q| q.at < first_drop).filter_map(|q| q.average).fold(0.0, f64::max);
    let waiting = trace.queue.iter().take_while(|q| q.at <= first_drop).map(|q| q.packets).max().unwrap_or(0);
    let below = average < Setting::RED_MIN_THRESHOLD;
    let note = format!(
        "fastest {fast:.2} s with a queue of the same size, {fast_red:.2} s with RED ({with_less:.2} s with a queue one packet \
         shorter, as in table 2); until the first drop the average is at most {average:.1} of {} packets while up to {waiting} \
         wait: no early drop and no harm; the printed harm is not explained",
        Setting::RED_MIN_THRESHOLD
    );
    Ok(Finding::new(fast_red - fast, note).and(below).or_shape(below))
}

/// Some variants finish sooner beside CBR, because they overshoot less.
pub(super) fn t_c16(lab: &Lab<'_>) -> Checked {
    let change = |variant| {
        Ok::<_, ReproduceError>(time(lab, 2, "fastest-cbr0.8-on", variant)? - time(lab, 2, "fastest-on", variant)?)
    };
    // The sign if the flows start within a second instead of together.
    let apart = |variant| {
        let at = |row| typical(lab, row, |setting| setting.with_variant(variant).with_starts_within(1000));
        Ok::<_, ReproduceError>(at("fastest-cbr0.8-on")? - at("fastest-on")?)
    };
    let (reference, daass) = (change(Variant::Ref)?, change(Variant::RefDaass)?);
    let ns2_change = |variant| ns2("fastest-cbr0.8-on", variant) - ns2("fastest-on", variant);
    let note = format!(
        "fastest flow: Reference {reference:+.2} s, DAASS {daass:+.2} s; ns-2 itself {:+.2} and {:+.2} s; which flow escapes the overshoot depends on when each starts: with starts within one second {:+.2} and {:+.2} s, medians of {} runs",
        ns2_change(Variant::Ref),
        ns2_change(Variant::RefDaass),
        apart(Variant::Ref)?,
        apart(Variant::RefDaass)?,
        TRANSAT_TABLES.replications
    );
    Ok(Finding::new(reference, note).and(daass < 0.0).or_shape(reference < 0.0 || daass < 0.0))
}

/// Against the text ("Enhanced is best in all cases"): beside CBR 1.7 SACK with limited transmit is faster.
pub(super) fn t_c19(lab: &Lab<'_>) -> Checked {
    let (result, _) = run(lab, 1, "50-cbr1.7-on", Variant::Enh)?;
    let enhanced = elapsed(&result.flows[0]).expect("the lab refuses unfinished runs");
    let sack_lt = time(lab, 1, "50-cbr1.7-on", Variant::SackLt)?;
    let timeouts = result.flows[0].stats.timeouts;
    let note = format!(
        "SACK + limited transmit {sack_lt:.2} s, Enhanced {enhanced:.2} s with {timeouts} timeout(s): \"Enhanced is best \
         in all cases\" is false"
    );
    Ok(Finding::new(sack_lt / enhanced, note))
}
