//! Values shared by links, layers and flows.

use bentpipe_engine::link::{Distribution, QueueLimit};
use bentpipe_engine::units::{Duration, Probability};
use bentpipe_language::quantity::{SIZE, format_duration, format_probability};
use toml::Value;

/// A table of these keys and values.
pub(super) fn table<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Table(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

pub(super) fn text(text: impl Into<String>) -> Value {
    Value::String(text.into())
}

pub(super) fn duration(span: Duration) -> Value {
    text(format_duration(span))
}

pub(super) fn probability(p: Probability) -> Value {
    text(format_probability(p.get()))
}

/// TOML integers are signed: larger values are written as text, which reads back as equal.
pub(super) fn integer(value: u64) -> Value {
    i64::try_from(value).map_or_else(|_| text(value.to_string()), Value::Integer)
}

pub(super) fn distribution(distribution: &Distribution) -> Value {
    let pair = |low: Duration, high: Duration| Value::Array(vec![duration(low), duration(high)]);
    match *distribution {
        Distribution::Fixed(span) => table([("fixed", duration(span))]),
        Distribution::Uniform(low, high) => table([("uniform", pair(low, high))]),
        Distribution::Exponential { mean } => table([("exponential", duration(mean))]),
        Distribution::ExponentialClipped { mean, min, max } => {
            table([("exponential", duration(mean)), ("clip", pair(min, max))])
        }
        Distribution::ExponentialTruncated { mean, min, max } => {
            table([("exponential", duration(mean)), ("truncate", pair(min, max))])
        }
        Distribution::Normal { mean, deviation } => table([("normal", pair(mean, deviation))]),
        Distribution::Pareto { min, mean } => table([("pareto", pair(min, mean))]),
    }
}

pub(super) fn limit(limit: &QueueLimit) -> Value {
    match limit {
        QueueLimit::Unlimited => text("unlimited"),
        QueueLimit::Packets(count) => text(format!("{count} packets")),
        QueueLimit::Bytes(bytes) => text(SIZE.format(bytes.get())),
    }
}
