//! Every row of `validation/hybrid` against the model; its README says how they were made.

use bentpipe_engine::units::{Bytes, Duration, Probability, Rate};
use serde::Deserialize;

use super::splitting::Split;
use super::throughput::{EndToEnd, integrated, summed};
use super::window::{Delay, WindowChain};
use super::{OutOfRange, Path, asymptotics, delay};

const MODEL_VALUES: &str = include_str!("../../../../../validation/hybrid/model_values.csv");
const EMAX_VALUES: &str = include_str!("../../../../../validation/hybrid/emax_values.csv");
const FIGURE_CURVES: &str = include_str!("../../../../../validation/hybrid/figure_curves.csv");

/// The tables have ten significant digits, so a number that begins with 1 is off by up to 5e-10 of itself.
const PRINTED: f64 = 1e-9;

/// A path with μ = 250 packets/s: 1 Mbit/s and packets of 500 B, as in all of the paper's figures.
pub(super) fn path(buffer: f64, t1_ms: u64, t2_ms: u64, p: f64, segments: u32) -> Path {
    let round_trips = (Duration::from_millis(t1_ms), Duration::from_millis(t2_ms));
    let rate = Rate::from_bits_per_second(1_000_000).expect("not zero");
    let loss = Probability::new(p).expect("in range");
    Path::new(buffer, round_trips, rate, Bytes::new(500), loss, segments).expect("in range")
}

fn rows<T: for<'de> Deserialize<'de>>(text: &str) -> Vec<T> {
    csv::Reader::from_reader(text.as_bytes()).deserialize().map(|row| row.expect("well formed")).collect()
}

fn close(what: &str, ours: f64, table: f64, relative: f64) {
    assert!((ours - table).abs() <= relative * table.abs(), "{what}: {ours} against {table}");
}

#[derive(Debug, Deserialize)]
struct Parameters {
    #[serde(rename = "B_pkts")]
    buffer: f64,
    #[serde(rename = "T1_s")]
    t1: f64,
    #[serde(rename = "T2_s")]
    t2: f64,
    #[serde(rename = "mu_pkt_per_s")]
    mu: f64,
    p: f64,
    #[serde(rename = "S")]
    segments: u32,
}

impl Parameters {
    fn path(&self) -> Path {
        // The rates of the tables have one decimal, so packets of 10 B make them whole bits per second.
        let bits = self.mu * 80.0;
        assert_eq!(bits, bits.round());
        let rate = Rate::from_bits_per_second(bits as u64).expect("not zero");
        let span = Duration::from_secs_f64_rounded;
        let loss = Probability::new(self.p).expect("in range");
        Path::new(self.buffer, (span(self.t1), span(self.t2)), rate, Bytes::new(10), loss, self.segments)
            .expect("in range")
    }
}

#[derive(Debug, Deserialize)]
struct ModelRow {
    id: u32,
    beta: f64,
    alpha: f64,
    nu: f64,
    upsilon: f64,
    rho: f64,
    w_max: f64,
    case: i32,
    #[serde(rename = "A1")]
    a1: f64,
    #[serde(rename = "A2")]
    a2: f64,
    #[serde(rename = "A3")]
    a3: f64,
    e2e_over_mu_eq39: f64,
    e2e_over_mu_sum73: f64,
    e2e_over_mu_integral73: f64,
    e2e_over_mu_sum73_exact_emax: f64,
    e2e_over_mu1mp_eq39: f64,
    split_over_mu1mp_eq52: f64,
    split_over_mu_eq52: f64,
    #[serde(rename = "split_over_mu1mp_Bminus1")]
    split_over_mu1mp_less_one: f64,
}

#[test]
fn every_point_of_the_model() {
    let parameters: Vec<Parameters> = rows(MODEL_VALUES);
    let values: Vec<ModelRow> = rows(MODEL_VALUES);
    assert_eq!(values.len(), 240);
    for (parameters, row) in parameters.iter().zip(&values) {
        let path = parameters.path();
        let model = EndToEnd::new(&path).expect("in range");
        let split = Split::new(&path);
        assert_eq!(model.case as i32, row.case, "row {}", row.id);
        let kept = 1.0 - path.p();
        for (name, ours, table) in [
            ("beta", path.beta(), row.beta),
            ("alpha", path.alpha(), row.alpha),
            ("nu", model.nu, row.nu),
            ("upsilon", model.upsilon, row.upsilon),
            ("rho", model.rho, row.rho),
            ("w_max", model.max_window, row.w_max),
            ("A1", model.a[0], row.a1),
            ("A2", model.a[1], row.a2),
            ("A3", model.a[2], row.a3),
            ("eq. 39", model.per_mu, row.e2e_over_mu_eq39),
            ("eq. 39 per capacity", model.per_mu / kept, row.e2e_over_mu1mp_eq39),
            ("eq. 52", split.per_capacity, row.split_over_mu1mp_eq52),
            ("eq. 52 per mu", split.per_mu, row.split_over_mu_eq52),
            ("eq. 48", split.per_capacity_less_one, row.split_over_mu1mp_less_one),
            ("eq. 73 summed", summed(&path, Delay::Logarithm), row.e2e_over_mu_sum73),
            ("eq. 73 with eq. 65", summed(&path, Delay::Exact), row.e2e_over_mu_sum73_exact_emax),
        ] {
            close(&format!("row {}, {name}", row.id), ours, table, PRINTED);
        }
        // The table's integral is a midpoint sum of 4000 steps h = w_max/8000. Where E τ(w) has a kink, at μ T2 and at
        // B, such a sum is off by up to h²/8 times the change of slope, which is at most 1/(μ (1-p)) + ν T2/((1-p) w)
        // + 1/(4 μ); its curvature adds less.
        let w = model.max_window / 2.0;
        let bend = 1.0 / (path.mu() * kept) + path.nu() * path.t2() / (kept * w) + 0.25 / path.mu();
        let step = w / 4000.0;
        let off = 2.0 * step * step / 8.0 * bend / (w * path.transfer_s(w, Delay::Logarithm));
        assert!(off < 1e-6, "{off}");
        let what = format!("row {}, integral", row.id);
        close(&what, integrated(&path), row.e2e_over_mu_integral73, PRINTED + off);
    }
}

#[derive(Debug, Deserialize)]
struct EmaxRow {
    p: f64,
    #[serde(rename = "K")]
    k: u32,
    emax_exact: f64,
    eq72: f64,
    eq5: f64,
    eq66: f64,
    #[serde(rename = "asym_half_plus_HK")]
    harmonic: f64,
}

#[test]
fn every_delay_of_a_burst() {
    let rows: Vec<EmaxRow> = rows(EMAX_VALUES);
    assert_eq!(rows.len(), 165);
    for EmaxRow { p, k, emax_exact, eq72, eq5, eq66, harmonic } in rows {
        let burst = f64::from(k);
        let what = |name: &str| format!("p = {p}, k = {k}, {name}");
        close(&what("eq. 65"), delay::exact(burst, p), emax_exact, PRINTED);
        close(&what("eq. 72"), delay::logarithm(burst, p), eq72, PRINTED);
        close(&what("eq. 5"), delay::many(burst, p), eq5, PRINTED);
        close(&what("eq. 66"), delay::few(burst, p), eq66, PRINTED);
        close(&what("harmonic"), delay::harmonic(k, p), harmonic, PRINTED);
        // What the docstrings promise of the approximations.
        if (0.1..=0.5).contains(&p) && k >= 10 {
            close(&what("range of eq. 72"), eq72, emax_exact, 0.0565);
        }
        if p >= 0.1 && k >= 10 {
            close(&what("range of the harmonic form"), harmonic, emax_exact, 0.01);
        }
    }
}

#[derive(Debug, Deserialize)]
struct CurveRow {
    figure: u8,
    curve: String,
    value_over_mu: f64,
}

#[test]
fn every_point_of_the_curves() {
    let parameters: Vec<Parameters> = rows(FIGURE_CURVES);
    let values: Vec<CurveRow> = rows(FIGURE_CURVES);
    assert_eq!(values.len(), 765);
    for (parameters, row) in parameters.iter().zip(&values) {
        // The curves of figure 12 are given by α; their T1 stands rounded in the table.
        let alpha = row.curve.split_once("alpha=").map(|(_, alpha)| alpha.parse().expect("a number"));
        let path = alpha.map_or(parameters.path(), |alpha| parameters.path().with_alpha(alpha).expect("in range"));
        let splits = matches!(row.figure, 10 | 11) || row.curve.starts_with("split");
        let ours = if splits { Split::new(&path).per_mu } else { EndToEnd::new(&path).expect("in range").per_mu };
        close(
            &format!("figure {}, {}, B = {}", row.figure, row.curve, parameters.buffer),
            ours,
            row.value_over_mu,
            PRINTED,
        );
    }
}

#[test]
fn sums_in_closed_form_are_the_sums() {
    for (b, t1, t2, p, s) in [
        (200.0, 100, 100, 0.1, 1),
        (30.0, 100, 100, 0.3, 2),
        (20.0, 500, 250, 0.5, 8),
        (7.5, 10, 90, 0.1, 1),
        (3.0, 1, 20, 0.0, 1),
    ] {
        let path = path(b, t1, t2, p, s);
        for form in [Delay::Logarithm, Delay::Exact] {
            let first = (path.max_window() / 2.0).round_ties_even() as u64;
            let all = first..=2 * first;
            let packets = all.clone().sum::<u64>() as f64;
            let time: f64 = all.map(|w| path.transfer_s(w as f64, form)).sum();
            close(&format!("{path:?}, {form:?}"), summed(&path, form), packets / time / path.mu(), 1e-12);
        }
    }
}

/// Each would take hours, window by window: a buffer that no window fills, and bursts of up to 4e9 packets.
#[test]
fn huge_buffers_take_no_longer() {
    let buffer = f64::from(u32::MAX);
    // Nearly all windows are larger than the pipe: Eq. 73 nears its integral like 1/B.
    let queue = path(buffer, 100, 500, 0.1, 1);
    close("queue", summed(&queue, Delay::Exact), integrated(&queue), 1e-6);
    // The pipe holds as much as the buffer: 1e15 bit/s in packets of 500 B for 17.2 ms.
    let rate = Rate::from_bits_per_second(1_000_000_000_000_000).expect("not zero");
    let round_trips = (Duration::ZERO, Duration::from_micros(17_200));
    for p in [0.1, 0.9999] {
        let loss = Probability::new(p).expect("in range");
        let pipe = Path::new(buffer, round_trips, rate, Bytes::new(500), loss, 1).expect("in range");
        assert!(pipe.bdp() > buffer);
        // The exact delay differs from Eq. 5 by the range that `every_delay_of_a_burst` tests, less for such long bursts.
        close(&format!("pipe, p = {p}"), summed(&pipe, Delay::Exact), summed(&pipe, Delay::Logarithm), 0.06);
    }
}

#[test]
fn the_closed_form_nears_the_integral_at_least_like_one_over_the_buffer() {
    // Three values of β, one for each case of Eq. 40; the buffer and the pipe grow together.
    for beta in [0.5, 1.4, 3.0] {
        let off = |buffer: f64| {
            let bits = (buffer / beta / 0.25 * 4000.0).round() as u64;
            let rate = Rate::from_bits_per_second(bits).expect("not zero");
            let round_trips = (Duration::from_millis(100), Duration::from_millis(250));
            let loss = Probability::new(0.1).expect("in range");
            let path = Path::new(buffer, round_trips, rate, Bytes::new(500), loss, 1).expect("in range");
            (EndToEnd::new(&path).expect("in range").per_mu / integrated(&path) - 1.0).abs()
        };
        let ratio = off(6400.0) / off(102_400.0);
        // What is left out is a step or two of sums that grow like B or B ln B.
        assert!(
            ratio > 16.0 * 6400f64.ln() / 102_400f64.ln(),
            "β = {beta}: 16 times the buffer divides the difference by {ratio}"
        );
    }
}

#[test]
fn the_cases_meet() {
    for t1 in [100, 2000] {
        let around = |b: f64| EndToEnd::new(&path(b, t1, 250, 0.1, 1)).expect("in range");
        for edge in [62.5, asymptotics::fills_pipe(&path(100.0, t1, 250, 0.1, 1))] {
            let (below, above) = (around(edge * (1.0 - 1e-9)), around(edge * (1.0 + 1e-9)));
            assert_ne!(below.case, above.case);
            // The print takes the sum over ln w to B where β < 1 and to μ T2 - 1 beyond, and begins it at
            // w_max/2 = (B+1)/(1+ρ), not B/(1+ρ): A3 alone jumps, by a term that vanishes like ln B / B.
            let one = |upper: f64, lower: f64| {
                (1.0 + above.rho) / edge * above.nu * (libm::lgamma(upper) - libm::lgamma(lower))
            };
            let jump = if edge == 62.5 { one(62.5, 63.5) } else { one(above.max_window / 2.0, 62.5) };
            for (n, jump) in [0.0, 0.0, jump].into_iter().enumerate() {
                // The step of 1e-9 itself moves A by some times as much.
                assert!((above.a[n] - below.a[n] - jump).abs() < 1e-7, "A{}: {below:?} {above:?}", n + 1);
            }
        }
    }
}

#[test]
fn asymptotes() {
    // Without a terrestrial part and beyond two bandwidth-delay products Eq. 54 is Eq. 39, with w_max = B+1 aside.
    let satellite = path(150.0, 0, 250, 0.1, 1);
    let exact = EndToEnd::new(&satellite).expect("in range");
    assert_eq!(exact.rho, 1.0);
    close("eq. 54", asymptotics::satellite_dominates(&satellite), exact.per_mu, 1e-12);
    let share = 0.7;
    let buffer = asymptotics::buffer_for_share(&satellite, share).expect("below one");
    let used = asymptotics::long_pipe(&satellite.with_buffer(buffer).expect("in range")) / 0.9;
    close("eq. 55 inverted", used, share, 1e-12);
    assert_eq!(asymptotics::buffer_for_share(&satellite, 1.0), None);
    close("eq. 53", asymptotics::fills_pipe(&satellite), 125.0, 1e-9);
    let mixed = path(80.0, 300, 100, 0.3, 1);
    let needed = asymptotics::fills_pipe(&mixed);
    let there = mixed.with_buffer(needed).expect("in range");
    close("eq. 53, its fixed point", there.beta(), 1.0 + there.rho(), 1e-9);
    let full = mixed.with_buffer(asymptotics::split_fills_link(&mixed)).expect("in range");
    close("eq. 52", full.beta() / (1.0 + 2.0 * full.alpha()), 1.0, 1e-12);
    assert_eq!(asymptotics::split_satellite_dominates(&full), 1.0);
}

#[test]
fn end_to_end_is_better_below_the_crossing() {
    let step = 0.01;
    let at = |alpha: f64| path(100.0, 0, 100, 0.1, 1).with_alpha(alpha).expect("in range");
    let x = asymptotics::crossing(&at(10.0), step).expect("it crosses");
    let gain = |x: f64| {
        let path = at(10.0).with_beta(x * 21.0).expect("in range");
        EndToEnd::new(&path).expect("in range").per_mu - Split::new(&path).per_mu
    };
    assert!(gain(x) > 0.0 && gain(x + step) <= 0.0, "{x}");
    assert_eq!(asymptotics::crossing(&at(0.1), step), None, "with a short terrestrial part nowhere");
}

#[test]
fn the_simplified_chain_is_the_saw_tooth() {
    let chain = WindowChain::simplified(49).expect("a buffer");
    let windows: Vec<_> = chain.stationary().collect();
    assert_eq!((windows[0].0, windows[windows.len() - 1].0), (25, 50));
    assert!(windows.iter().all(|(_, share)| (share - 1.0 / 26.0).abs() < 1e-15));
    // Eq. 38 with w_max = B+1, which is what Eq. 73 sums for T1 = 0.
    let path = path(49.0, 0, 100, 0.1, 1);
    close("throughput", chain.throughput(&path, Delay::Logarithm), summed(&path, Delay::Logarithm), 1e-12);
    close("exact", chain.throughput(&path, Delay::Exact), summed(&path, Delay::Exact), 1e-12);
}

/// The renewals against the balance equations of Eq. 24 themselves.
#[test]
fn the_chain_is_stationary() {
    let (buffer, held) = (40, [0.3, 0.0, 0.25, 0.25, 0.15, 0.05]);
    let chain = WindowChain::new(buffer, &held).expect("probabilities");
    let shares: std::collections::BTreeMap<_, _> = chain.stationary().collect();
    assert!((shares.values().sum::<f64>() - 1.0).abs() < 1e-12);
    let mut next = std::collections::BTreeMap::new();
    for (&w, &share) in &shares {
        let excess = w.saturating_sub(buffer) as usize;
        let rises: f64 = held.iter().skip(excess).sum();
        *next.entry(w + 1).or_insert(0.0) += share * rises;
        for (c, p) in held.iter().enumerate().take(excess) {
            *next.entry((w >> (excess - c)).max(1)).or_insert(0.0) += share * p;
        }
    }
    next.retain(|_, share| *share > 1e-12);
    assert_eq!(next.keys().collect::<Vec<_>>(), shares.keys().collect::<Vec<_>>());
    for (w, share) in &shares {
        assert!((next[w] - share).abs() < 1e-12, "window {w}: {share} then {}", next[w]);
    }
    assert_eq!(WindowChain::new(40, &[0.5, 0.4]), None, "not all of it");
    assert_eq!(WindowChain::new(1, &[0.5, 0.5]), None, "a window above 2 B");
    assert_eq!(WindowChain::new(40, &[]), None);
}

#[test]
fn what_the_model_cannot_say_is_refused() {
    let rate = Rate::from_bits_per_second(1_000_000).expect("not zero");
    let with = |buffer, t2, packet, p, s| {
        let round_trips = (Duration::ZERO, Duration::from_millis(t2));
        Path::new(buffer, round_trips, rate, Bytes::new(packet), Probability::new(p).expect("in range"), s)
    };
    assert_eq!(with(0.5, 100, 500, 0.1, 1), Err(OutOfRange::Buffer(0.5)));
    assert!(matches!(with(f64::NAN, 100, 500, 0.1, 1), Err(OutOfRange::Buffer(_))));
    assert_eq!(with(5.0, 0, 500, 0.1, 1), Err(OutOfRange::SatelliteRoundTrip));
    assert_eq!(with(5.0, 100, 500, 1.0, 1), Err(OutOfRange::Loss));
    assert_eq!(with(5.0, 100, 500, 0.99991, 1), Err(OutOfRange::HighLoss(0.99991)));
    assert!(with(5.0, 100, 500, 0.9999, 1).is_ok());
    assert!(matches!(with(5.0, 100, 0, 0.1, 1), Err(OutOfRange::Packet(_))));
    assert!(matches!(with(5.0, 100, 500, 0.1, 0), Err(OutOfRange::Packet(_))));
    // 1 ms at 250 packets/s: a quarter of a packet in flight.
    let short = with(5.0, 1, 500, 0.1, 1).expect("a path");
    assert_eq!(EndToEnd::new(&short), Err(OutOfRange::InFlight(0.25)));
    assert!(matches!(short.with_alpha(-1.0), Err(OutOfRange::Ratio("alpha", _))));
}
