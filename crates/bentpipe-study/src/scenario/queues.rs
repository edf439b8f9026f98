//! The `queue` of a link or channel.

use bentpipe_engine::link::{Codel, Discipline, DualPi2, QueueConfig, QueueLimit, RedConfig};
use bentpipe_engine::units::{Bytes, Duration, Probability, Rate};
use bentpipe_language::document::Value;
use bentpipe_language::error::{Mistake, Problems, Span};
use bentpipe_language::quantity::{self, BadQuantity, split};
use bentpipe_language::reader::{Item, View};

use super::grammar::{COUPLING, DISCIPLINES, QUEUE};

pub(super) fn queue(item: &Item<'_>, rate: Option<Rate>, problems: &mut Problems) -> Option<QueueConfig> {
    if let Value::Table(_) = item.node.value {
        let view = item.table(QUEUE, problems)?;
        let limit = view.require("limit", problems).and_then(|item| limit(&item, rate, problems));
        let discipline = view.get("discipline").map_or(Some("drop-tail"), |item| item.choice(DISCIPLINES, problems));
        let name = discipline?;
        for key in QUEUE.iter().map(|field| field.key) {
            let Some((kind, disciplines)) = only_with(key).filter(|(_, disciplines)| !disciplines.contains(&name))
            else {
                continue;
            };
            if let Some(item) = view.get(key) {
                let expected = format!("discipline = \"{}\" beside it", disciplines.join("\" or \""));
                item.refuse(problems, format!("`{}` applies only to {kind}", item.path), Some(expected));
            }
        }
        let discipline = match name {
            "red" => Discipline::Red(red(&view, rate, problems)?),
            "codel" => Discipline::Codel(codel(&view, problems)?),
            "fq-codel" => Discipline::FqCodel(codel(&view, problems)?),
            "dualpi2" => Discipline::DualPi2(dualpi2(&view, problems)?),
            _ => Discipline::DropTail,
        };
        let marking = view.get("marking").map_or(Some(name == "dualpi2"), |item| item.flag(problems));
        return Some(QueueConfig { limit: limit?, discipline, marking: marking? });
    }
    limit(item, rate, problems).map(|limit| QueueConfig { limit, discipline: Discipline::DropTail, marking: false })
}

/// The disciplines with which a key is allowed, and their name; `None` for keys that are always allowed.
fn only_with(key: &str) -> Option<(&'static str, &'static [&'static str])> {
    match key {
        "limit" | "discipline" => None,
        "marking" => Some(("RED and CoDel", &["red", "codel", "fq-codel"])),
        "target" => Some(("CoDel and DualPI2", &["codel", "fq-codel", "dualpi2"])),
        "interval" => Some(("CoDel", &["codel", "fq-codel"])),
        "max_rtt" | "coupling" | "l4s_threshold" | "l4s_range" | "classic_share" => Some(("DualPI2", &["dualpi2"])),
        _ => Some(("RED", &["red"])),
    }
}

/// "50 packets", "64 kB", "600 ms" or "unlimited".
pub(crate) fn limit(item: &Item<'_>, rate: Option<Rate>, problems: &mut Problems) -> Option<QueueLimit> {
    let shape = QUEUE[0].shape;
    let Some(text) = item.as_text() else {
        let message = match item.node.value {
            Value::Integer(_) | Value::Float(_) => format!("`{}` needs a unit", item.path),
            ref other => format!("`{}` cannot be {}", item.path, other.kind()),
        };
        item.refuse(problems, message, Some(shape.expected()));
        return None;
    };
    if text == "unlimited" {
        return Some(QueueLimit::Unlimited);
    }
    if let Some(name) = DISCIPLINES.iter().find(|name| text.replace('_', "-").eq_ignore_ascii_case(name)) {
        let table = format!("a table such as {{ limit = \"1000 packets\", discipline = \"{name}\" }}");
        item.refuse(problems, format!("`{text}` is a discipline, not a limit"), Some(table));
        return None;
    }
    let (_, unit) = split(text);
    let knows = |dimension: quantity::Dimension| dimension.parse(&format!("1 {unit}")).is_ok();
    let result = if knows(quantity::DURATION) {
        let Some(rate) = rate else {
            item.refuse(problems, "a queue as a time needs a rate", Some(shape.expected()));
            return None;
        };
        let span = quantity::DURATION.parse(text).map(Duration::from_nanos);
        span.map(|span| QueueLimit::Bytes(Bytes::new(rate.bytes_in_floor(span))))
    } else if knows(quantity::SIZE) {
        quantity::SIZE.parse(text).map(|bytes| QueueLimit::Bytes(Bytes::new(bytes)))
    } else {
        // An unknown unit is most likely a misspelt "packets".
        quantity::PACKETS.parse(text).map(|count| QueueLimit::Packets(count as u32))
    };
    result
        .map_err(|BadQuantity { message, help }| {
            let mistake = Mistake::new(&item.path, message).expected(shape.expected()).help(help);
            problems.add(item.node.span, mistake);
        })
        .ok()
}

fn codel(view: &View<'_>, problems: &mut Problems) -> Option<Codel> {
    let span = |key, default, problems: &mut Problems| match view.get(key) {
        Some(item) => item.duration(problems),
        None => Some(default),
    };
    let target = span("target", Codel::DEFAULT.target, problems)?;
    let interval = span("interval", Codel::DEFAULT.interval, problems)?;
    if target == Duration::ZERO || target > interval {
        let mistake = Mistake::new(&format!("{}.target", view.path), "`target` must be above 0 and at most `interval`");
        problems.add(view.span, mistake.expected("target = \"5 ms\", interval = \"100 ms\", for example"));
        return None;
    }
    Some(Codel { target, interval })
}

/// The defaults of RFC 9332 §A.1.
fn dualpi2(view: &View<'_>, problems: &mut Problems) -> Option<DualPi2> {
    let standard = DualPi2::standard();
    let span = |key, default, problems: &mut Problems| match view.get(key) {
        Some(item) => item.duration(problems),
        None => Some(default),
    };
    let target = span("target", standard.target, problems);
    let max_rtt = span("max_rtt", standard.max_rtt, problems);
    let l4s_threshold = span("l4s_threshold", standard.l4s_threshold, problems);
    let l4s_range = span("l4s_range", standard.l4s_range, problems);
    let coupling =
        view.get("coupling").map_or(Some(standard.coupling), |item| Some(item.count(COUPLING, problems)? as f64));
    let classic_share = probability(view.get("classic_share"), standard.classic_share, problems);
    let (target, max_rtt, classic_share) = (target?, max_rtt?, classic_share?);
    let refused = |key: &str, message: &str, expected: &str, problems: &mut Problems| {
        let mistake = Mistake::new(&format!("{}.{key}", view.path), message).expected(expected);
        problems.add(view.get(key).map_or(view.span, |item| item.node.span), mistake);
        None
    };
    // The controller updates once per target: with less, a run would never end.
    if target < Duration::from_micros(1) || target > max_rtt {
        return refused(
            "target",
            "`target` must be at least 1 us and at most `max_rtt`",
            "target = \"15 ms\", for example",
            problems,
        );
    }
    if max_rtt < Duration::from_millis(1) {
        return refused("max_rtt", "the controller updates three times per `max_rtt`", "at least 1 ms", problems);
    }
    if classic_share.get() >= 1.0 {
        return refused("classic_share", "L4S packets need a share too", "less than 100 %", problems);
    }
    Some(DualPi2 {
        target,
        max_rtt,
        coupling: coupling?,
        l4s_threshold: l4s_threshold?,
        l4s_range: l4s_range?,
        classic_share,
    })
}

/// ns-2's defaults: thresholds 5 and 15 packets, 1/linterm 0.1, gentle, wait, packets of 500 B.
fn red(view: &View<'_>, rate: Option<Rate>, problems: &mut Problems) -> Option<RedConfig> {
    let packets = |key, problems: &mut Problems| view.get(key).map(|item| threshold(&item, problems));
    let min_threshold = packets("min_threshold", problems).unwrap_or(Some(5.0));
    let max_threshold = packets("max_threshold", problems).unwrap_or(min_threshold.map(|min| 3.0 * min));
    let max_probability = probability(view.get("max_probability"), Probability::new(0.1)?, problems);
    let flag = |key, problems: &mut Problems| view.get(key).map_or(Some(true), |item| item.flag(problems));
    let (gentle, wait) = (flag("gentle", problems), flag("wait", problems));
    let mean_packet = view.get("mean_packet").map_or(Some(Bytes::new(500)), |item| item.size(problems));
    let span = |key| view.get(key).map_or(view.span, |item| item.node.span);
    if let (Some(min), Some(max)) = (min_threshold, max_threshold)
        && min >= max
    {
        let key = if view.get("max_threshold").is_some() { "max_threshold" } else { "min_threshold" };
        let mistake =
            Mistake::new(&format!("{}.{key}", view.path), "`min_threshold` must be less than `max_threshold`")
                .expected(format!("more than {min} packets"));
        problems.add(span(key), mistake);
        return None;
    }
    if mean_packet.is_some_and(|bytes| bytes.get() == 0) {
        problems
            .add(span("mean_packet"), Mistake::new(&format!("{}.mean_packet", view.path), "packets cannot be empty"));
        return None;
    }
    let weight = match view.get("weight") {
        Some(item) if item.as_text() != Some("auto") => item.weight(problems),
        _ => auto_weight(rate, mean_packet?, span("weight"), view, problems),
    };
    Some(RedConfig {
        min_threshold: min_threshold?,
        max_threshold: max_threshold?,
        max_probability: max_probability?,
        weight: weight?,
        gentle: gentle?,
        wait: wait?,
        mean_packet: mean_packet?,
    })
}

/// Thresholds are averages, so "7.5 packets" makes sense.
fn threshold(item: &Item<'_>, problems: &mut Problems) -> Option<f64> {
    let value = item.as_text().map(split).filter(|(_, unit)| matches!(*unit, "packets" | "packet"));
    let value = value.and_then(|(number, _)| number.parse::<f64>().ok()).filter(|value| *value >= 0.0 && *value < 1e9);
    if value.is_none() {
        // Reports errors in terms of whole packets.
        match item.quantity(quantity::PACKETS, problems) {
            Some(value) => return Some(value as f64),
            None => return None,
        }
    }
    value
}

/// ns-2's `q_weight_ -1` (Floyd, Gummadi and Shenker 2001): 1-exp(-1/C), a time constant of one second.
fn auto_weight(rate: Option<Rate>, mean: Bytes, span: Span, view: &View<'_>, problems: &mut Problems) -> Option<f64> {
    let Some(rate) = rate else {
        let mistake = Mistake::new(&format!("{}.weight", view.path), "an automatic weight needs a rate")
            .expected("a number above 0 and at most 1, or a link with a rate");
        problems.add(span, mistake);
        return None;
    };
    let packets_per_second = rate.bits_per_second() as f64 / (8.0 * mean.get() as f64);
    Some(-libm::expm1(-1.0 / packets_per_second))
}

pub(super) fn probability(
    item: Option<Item<'_>>,
    default: Probability,
    problems: &mut Problems,
) -> Option<Probability> {
    item.map_or(Some(default), |item| item.probability(problems))
}
