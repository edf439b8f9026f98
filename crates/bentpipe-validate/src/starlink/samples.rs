//! Samples of a quantity, and how two sets of them are compared.

use bentpipe_study::report::{Mark, Series};

/// A sampled quantity: time in seconds, and value.
pub(super) type Samples = Vec<(f64, f64)>;

/// What is compared of a quantity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) p50: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
    pub(super) after_1s: f64,
    pub(super) after_15s: f64,
}

pub(super) fn quantile(sorted: &[f64], p: f64) -> f64 {
    sorted.get((p * (sorted.len().saturating_sub(1)) as f64).round() as usize).copied().unwrap_or(f64::NAN)
}

pub(super) fn sorted(samples: &Samples) -> Vec<f64> {
    let mut values: Vec<f64> = samples.iter().map(|sample| sample.1).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Autocorrelation of the means by second at a lag in seconds.
pub(super) fn correlation(samples: &Samples, lag: usize) -> f64 {
    let mut seconds: std::collections::BTreeMap<i64, (f64, f64)> = std::collections::BTreeMap::new();
    for &(at, value) in samples {
        let entry = seconds.entry(at.floor() as i64).or_default();
        *entry = (entry.0 + value, entry.1 + 1.0);
    }
    let mean_of = |&(sum, count): &(f64, f64)| sum / count;
    let mean = seconds.values().map(mean_of).sum::<f64>() / seconds.len() as f64;
    let square = seconds.values().map(|entry| (mean_of(entry) - mean).powi(2)).sum::<f64>() / seconds.len() as f64;
    let pairs = seconds.iter().filter_map(|(at, entry)| {
        let other = seconds.get(&(at + lag as i64))?;
        Some((mean_of(entry) - mean) * (mean_of(other) - mean))
    });
    let products: Vec<f64> = pairs.collect();
    // A link that does not vary has none.
    if square < 1e-6 { 0.0 } else { products.iter().sum::<f64>() / products.len() as f64 / square }
}

pub(super) fn shape(samples: &Samples) -> Shape {
    let values = sorted(samples);
    let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|p| quantile(&values, p));
    Shape { p50, p95, p99, after_1s: correlation(samples, 1), after_15s: correlation(samples, 15) }
}

/// The Kolmogorov-Smirnov distance: the most by which two distribution functions differ.
pub(super) fn distance(a: &Samples, b: &Samples) -> f64 {
    let (a, b) = (sorted(a), sorted(b));
    let share = |values: &[f64], x: f64| values.partition_point(|value| *value <= x) as f64 / values.len() as f64;
    a.iter().chain(&b).map(|&x| (share(&a, x) - share(&b, x)).abs()).fold(0.0, f64::max)
}

/// A distribution function as 201 points.
pub(super) fn curve(name: &str, samples: &Samples) -> Series {
    let values = sorted(samples);
    let points = (0..=200).map(|n| (quantile(&values, f64::from(n) / 200.0), f64::from(n) / 200.0)).collect();
    Series { name: name.to_owned(), mark: Mark::Line, points }
}

/// A row of a table; `distance` is that from `against`.
pub(super) fn row(name: &str, samples: &Samples, against: Option<&Samples>) -> String {
    let far = against.map_or_else(|| "–".to_owned(), |against| format!("{:.3}", distance(samples, against)));
    let Shape { p50, p95, p99, after_1s, after_15s } = shape(samples);
    format!(
        "| {name} | {} | {far} | {p50:.1} | {p95:.1} | {p99:.1} | {after_1s:.2} | {after_15s:.2} |\n",
        samples.len()
    )
}

pub(super) const HEAD: &str =
    "| | samples | distance | p50 | p95 | p99 | after 1 s | after 15 s |\n|---|---:|---:|---:|---:|---:|---:|---:|\n";

/// Whether ours meet the targets: a distance under 0.1, and the median and the 99th percentile within 10 %.
pub(super) fn is_met(ours: &Samples, recorded: &Samples) -> bool {
    let (have, want) = (shape(ours), shape(recorded));
    let near = |a: f64, b: f64| (a / b - 1.0).abs() <= 0.1;
    distance(ours, recorded) < 0.1 && near(have.p50, want.p50) && near(have.p99, want.p99)
}
