//! Claims about the formulas.

use bentpipe_engine::units::Probability;
use bentpipe_study::model::hybrid::splitting::Split;
use bentpipe_study::model::hybrid::throughput::EndToEnd;
use bentpipe_study::model::hybrid::{asymptotics, delay, queueing};

use super::super::setting::{Scheme, Setting};
use super::{percent, published};
use crate::finding::{Checked, Finding};
use crate::lab::Lab;

pub(super) fn c07(_: &Lab<'_>) -> Checked {
    let path = Setting::new(Scheme::EndToEnd, 100, 1, 500, 0.1).path();
    let products = asymptotics::fills_pipe(&path) / path.bdp();
    Ok(Finding::new(products, "min B with B >= (1+rho) mu T2 at T1 = 1 ms, T2 = 500 ms"))
}

/// A path whose pipe holds this many packets: T2 is set accordingly, and T1 is 0.
fn pipe(packets: u64) -> Setting {
    Setting::new(Scheme::EndToEnd, 100, 0, packets * 4, 0.1)
}

/// The buffer that a scheme needs to use this share of the capacity, packets: its formula is inverted by bisection.
fn buffer_for(setting: Setting, share: f64) -> f64 {
    let path = setting.path();
    let reaches = |buffer: f64| {
        let at = path.with_buffer(buffer).expect("above one");
        let used = match setting.scheme {
            Scheme::EndToEnd => EndToEnd::new(&at).expect("in range").per_mu / (1.0 - path.p()),
            Scheme::Split => Split::new(&at).per_capacity,
        };
        used >= share
    };
    let (mut low, mut high) = (2.0, 1000.0 * path.bdp());
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if reaches(middle) { high = middle } else { low = middle }
    }
    high
}

/// Share of the capacity at which buffers are compared; end to end it needs more than 2 BDP, as Eq. 53 requires.
const USED: f64 = 0.8;

pub(super) fn c08(_: &Lab<'_>) -> Checked {
    let (x, y) = (1_000, 100_000);
    let grows = buffer_for(pipe(y), USED) / buffer_for(pipe(x), USED);
    let (x, y) = (x as f64, y as f64);
    let like = y * y.ln() / (x * x.ln());
    let what = format!(
        "growth of the buffer for {USED} of the capacity by Eq. 39, from a pipe of 1000 to one of 100 000 packets, over the \
         growth of x ln x; over the growth of x it is {:.2}",
        grows / (y / x)
    );
    let ratio = grows / like;
    Ok(Finding::new(ratio, what))
}

pub(super) fn c09(_: &Lab<'_>) -> Checked {
    let grows = |x| buffer_for(Setting { scheme: Scheme::Split, ..pipe(x) }, USED);
    let ratio = grows(100_000) / grows(1_000) / 100.0;
    let what = format!("growth of the buffer for {USED} of the capacity by Eq. 52, a pipe 100 times as long, over 100");
    Ok(Finding::new(ratio, what))
}

/// Packets one T2 apart rarely overtake each other.
pub(super) fn c18(_: &Lab<'_>) -> Checked {
    Ok(Finding::new(queueing::overtakes(0.1), "p²/(1+p) at p = 0.1, the exact sum of Eq. 16"))
}

/// Error of the logarithm against the exact delay.
pub(super) fn c19(_: &Lab<'_>) -> Checked {
    let off = |k: u32, p: f64| (delay::logarithm(f64::from(k), p) / delay::exact(f64::from(k), p) - 1.0).abs();
    let mut worst = (0.0, 0.0, 0);
    for p in (0..=40).map(|n| 0.1 + 0.01 * f64::from(n)) {
        for k in (10..=100).chain((200..=5000).step_by(100)) {
            if off(k, p) > worst.0 {
                worst = (off(k, p), p, k);
            }
        }
    }
    let (greatest, p, k) = worst;
    let note = format!(
        "max distance of Eq. 72 from Eq. 65 over 0.1 <= p <= 0.5, 10 <= k <= 5000: at p = {p:.2}, k = {k}; at p = 0.5, k = \
         5000 {:.2} %",
        percent(off(5000, 0.5))
    );
    // The logarithm is closer for longer bursts.
    Ok(Finding::new(percent(greatest), note).or_shape([0.1, 0.5].iter().all(|&p| off(5000, p) < off(10, p))))
}

/// The bit error rates that correspond to the packet losses.
pub(super) fn c20(_: &Lab<'_>) -> Checked {
    let claim = published("H-C20");
    let rate = |p: f64| {
        let packet = Probability::new(p).expect("a probability");
        packet.of_each_bit(8 * super::super::setting::PACKET).get()
    };
    let (few, many) = (rate(0.1), rate(0.5));
    let holds = (claim.limit("many_low")..=claim.limit("many_high")).contains(&many);
    let note = format!("1-(1-p)^(1/4000) at p = 0.1; at p = 0.5 {many:.2e}");
    Ok(Finding::new(few, note).and(holds).or_shape(holds || claim.holds_for(few)))
}
