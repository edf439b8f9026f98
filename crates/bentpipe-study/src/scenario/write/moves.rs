//! What changes with time on a link.

use std::sync::Arc;

use bentpipe_engine::link::{Jitter, Moves, Phases, QueueLimit, Track};
use bentpipe_engine::units::Duration;
use bentpipe_language::quantity::{RATE, format_rate};
use toml::{Table, Value};

use super::values::{distribution, duration, limit, probability, table};

/// Writes the schedule of a link and, as traces, properties that repeat with another period.
pub(super) fn put(moves: &Moves, put: &mut impl FnMut(&str, Value)) {
    let traced = |track: &&Arc<Track>| is_trace(track);
    let lanes = [&moves.rate, &moves.delay, &moves.loss];
    let [rate, delay, loss] = lanes.map(|track| track.as_ref().filter(|track| !traced(track)));
    let scheduled = [rate, moves.queue.as_ref(), delay, loss];
    let period = scheduled.into_iter().flatten().next().and_then(|track| track.period());
    let mut changes: Vec<(Duration, Value)> = Vec::new();
    let mut add = |track: &Track, key: &str, value: &dyn Fn(u64) -> Value| {
        for change in track.changes() {
            let mut entry = Table::new();
            entry.insert("at".to_owned(), duration(change.at));
            entry.insert(key.to_owned(), value(change.value));
            if change.over > Duration::ZERO {
                entry.insert("over".to_owned(), duration(change.over));
            }
            changes.push((change.at, Value::Table(entry)));
        }
    };
    if let Some(queue) = &moves.queue {
        let at = |n: u64| limit(moves.limits.get(n as usize).unwrap_or(&QueueLimit::Unlimited));
        add(queue, "queue", &at);
    }
    let delay = |ticks| duration(Duration::from_ticks(ticks));
    let loss = |value| probability(Track::probability(value));
    let rate = |bits| RATE.format(bits).into();
    for (track, key, trace, value) in [
        (&moves.rate, "rate", "rate_trace", &rate as &dyn Fn(u64) -> Value),
        (&moves.delay, "delay", "delay_trace", &delay),
        (&moves.loss, "loss", "loss_trace", &loss),
    ] {
        let Some(track) = track else { continue };
        if is_trace(track) {
            put(trace, self::trace(track, value));
        } else {
            add(track, key, value);
        }
    }
    changes.sort_by_key(|(at, _)| *at);
    if !changes.is_empty() {
        put("schedule", Value::Array(changes.into_iter().map(|(_, entry)| entry).collect()));
        if let Some(period) = period {
            put("schedule_period", duration(period));
        }
    }
}

/// True if the track is written as a trace: it consists of steps that repeat, and its first value also applies before
/// the first step.
pub(super) fn is_trace(track: &Track) -> bool {
    let starts = track.changes().first().is_some_and(|first| first.value == track.initial());
    starts && track.period().is_some() && track.changes().iter().all(|change| change.over == Duration::ZERO)
}

fn trace(track: &Track, value: &dyn Fn(u64) -> Value) -> Value {
    let values = track.changes().iter().map(|change| Value::Array(vec![duration(change.at), value(change.value)]));
    let period = duration(track.period().unwrap_or_default());
    table([("values", Value::Array(values.collect())), ("period", period)])
}

pub(super) fn phases(phases: &Phases) -> Value {
    let Phases { length, first, outage, loss, rate, delay } = phases;
    let mut all = Table::new();
    let mut put = |key: &str, value: Value| _ = all.insert(key.to_owned(), value);
    put("length", duration(*length));
    put("first", duration(*first));
    if *outage > Duration::ZERO {
        put("outage", duration(*outage));
        put("loss", probability(Track::probability(*loss)));
    }
    if let Some((low, high)) = rate {
        put("rate", Value::Array(vec![format_rate(*low).into(), format_rate(*high).into()]));
    }
    if let Some((low, high)) = delay {
        put("delay", Value::Array(vec![duration(*low), duration(*high)]));
    }
    Value::Table(all)
}

pub(super) fn jitter(jitter: &Jitter) -> Value {
    let Jitter { delay, correlation, every, reorder } = jitter;
    table([
        ("delay", distribution(delay)),
        ("correlation", probability(*correlation)),
        ("every", duration(*every)),
        ("reorder", Value::Boolean(*reorder)),
    ])
}
