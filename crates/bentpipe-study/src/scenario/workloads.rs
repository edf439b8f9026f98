//! The workload of a flow, and its timing.

use bentpipe_engine::units::{Bytes, Duration};
use bentpipe_language::document::Value;
use bentpipe_language::error::{Mistake, Problems};
use bentpipe_language::quantity::{self, SIZE, split};
use bentpipe_language::reader::{Item, View};
use bentpipe_language::shape::{Counted, Shape};

use super::bursts;
use super::grammar::{AMOUNT, GREEDY, MPEG, ON_OFF, PACED, PATTERNS, REQUEST_RESPONSE, VIDEO};
use super::model::{Mpeg, UdpPattern, Workload};

/// Maximum bytes of all requests or all responses of a flow, as of a transfer.
const MAX_MESSAGES: u64 = 1_000_000_000_000_000;

/// "10 MB", or "1042 segments" of the sender's MSS; above 0.
pub(super) fn amount(item: &Item<'_>, mss: u16, problems: &mut Problems) -> Option<Bytes> {
    let bytes = match item.as_text().map(split) {
        Some((_, "segments" | "segment")) => {
            item.quantity(quantity::SEGMENTS, problems).map(|count| Bytes::new(count * mss as u64))
        }
        Some(_) => item.size(problems),
        None => {
            item.mismatch(problems, &Shape::SIZE);
            None
        }
    };
    if bytes == Some(Bytes::new(0)) {
        item.refuse(problems, format!("`{}` cannot be 0", item.path), Some(AMOUNT.expected()));
        return None;
    }
    bytes
}

pub(super) fn workload(view: &View<'_>, mss: u16, problems: &mut Problems) -> Option<Workload> {
    let given: Vec<_> =
        ["bytes", "greedy", "paced", "request_response"].iter().filter_map(|key| view.get(key)).collect();
    if given.len() != 1 {
        let message = format!("`{}` must have exactly one of bytes, greedy, paced, request_response", view.path);
        let mistake = Mistake::new(&view.path, message).expected("bytes = \"10 MB\", for example");
        problems.add(given.get(1).map_or(view.span, |item| item.node.span), mistake);
        return None;
    }
    if let Some(item) = view.get("bytes") {
        return amount(&item, mss, problems).map(Workload::Bulk);
    }
    if let Some(item) = view.get("greedy") {
        return match &item.node.value {
            Value::Flag(true) => Some(Workload::Greedy { duration: None }),
            Value::Table(_) => {
                let view = item.table(GREEDY, problems)?;
                let duration = match view.get("duration") {
                    Some(item) => Some(item.duration(problems)?),
                    None => None,
                };
                Some(Workload::Greedy { duration })
            }
            other => {
                let message = match other {
                    Value::Flag(_) => format!("`{}` = false has no effect: remove it", item.path),
                    _ => format!("`{}` cannot be {}", item.path, other.kind()),
                };
                item.refuse(problems, message, Some("true, or { duration = \"60 s\" }".to_owned()));
                None
            }
        };
    }
    if let Some(item) = view.get("paced") {
        return paced(&item, mss, problems);
    }
    let view = view.get("request_response")?.table(REQUEST_RESPONSE, problems)?;
    let sizes = ["request", "response"].map(|key| {
        let item = view.require(key, problems)?;
        amount(&item, mss, problems)
    });
    let think = view.get("think").map_or(Some(Duration::ZERO), |item| item.duration(problems));
    let counted = Counted::new("requests", 1, u32::MAX as u64);
    let count = view.get("count").map_or(Some(1), |item| item.count(counted, problems));
    let ([Some(request), Some(response)], Some(think), Some(count)) = (sizes, think, count) else { return None };
    let is_countable = |size: Bytes| size.get().checked_mul(count).is_some_and(|all| all <= MAX_MESSAGES);
    if !is_countable(request) || !is_countable(response) {
        let message = format!("`{}` is more than {} of requests or responses", view.path, SIZE.format(MAX_MESSAGES));
        let item = view.get("count").or(view.get("request"))?;
        item.refuse(problems, message, Some("fewer or smaller ones".to_owned()));
        return None;
    }
    Some(Workload::RequestResponse { request, response, think, count: count as u32 })
}

fn paced(item: &Item<'_>, mss: u16, problems: &mut Problems) -> Option<Workload> {
    let view = item.table(PACED, problems)?;
    let rate = view.require("rate", problems).and_then(|item| item.rate(problems));
    let write = match view.get("write") {
        Some(item) => amount(&item, mss, problems).filter(|bytes| {
            let fits = bytes.get() <= u32::MAX as u64;
            if !fits {
                item.refuse(problems, "a write can have at most 4 GiB", Some(AMOUNT.expected()));
            }
            fits
        }),
        None => Some(Bytes::new(mss as u64)),
    };
    let pattern = pattern(view.get("pattern"), problems);
    let total = match view.get("bytes") {
        Some(item) => amount(&item, mss, problems).map(Some),
        None => Some(None),
    };
    Some(Workload::Paced { rate: rate?, write: write?, pattern: pattern?, total: total? })
}

pub(super) fn pattern(item: Option<Item<'_>>, problems: &mut Problems) -> Option<UdpPattern> {
    match item {
        None => Some(UdpPattern::Cbr),
        Some(item) if matches!(&item.node.value, Value::Table(table) if table.get("mpeg").is_some()) => {
            let view = item.table(VIDEO, problems)?;
            mpeg(&view.require("mpeg", problems)?, problems).map(UdpPattern::Mpeg)
        }
        Some(item) if matches!(item.node.value, Value::Table(_)) => on_off(&item, problems),
        Some(item) => item.choice(PATTERNS, problems).map(|_| UdpPattern::Cbr),
    }
}

fn mpeg(item: &Item<'_>, problems: &mut Problems) -> Option<Mpeg> {
    let view = item.table(MPEG, problems)?;
    let interval = view.require("interval", problems).and_then(|item| {
        let span = item.duration(problems)?;
        if span == Duration::ZERO {
            item.refuse(problems, "the time between frames cannot be zero", Some("\"40 ms\", for example".to_owned()));
            return None;
        }
        Some(span)
    });
    let count = |key, otherwise, problems: &mut Problems| match view.get(key) {
        Some(item) => item.count(Counted::new("frames", 1, 255), problems).map(|count| count as u8),
        None => Some(otherwise),
    };
    // ISO/IEC 11172-2, annex D: IBBPBBPBBPBB is the usual group.
    let (group, distance) = (count("group", 12, problems), count("distance", 3, problems));
    let size = |key, problems: &mut Problems| {
        let item = view.require(key, problems)?;
        let bytes = item.size(problems)?.get();
        let fits = u32::try_from(bytes).ok().filter(|bytes| *bytes > 0);
        if fits.is_none() {
            item.refuse(problems, "a frame must have 1 B to 4 GiB", Some(Shape::SIZE.expected()));
        }
        fits
    };
    let [i, p, b] = ["i", "p", "b"].map(|key| size(key, problems));
    Some(Mpeg { interval: interval?, group: group?, distance: distance?, i: i?, p: p?, b: b? })
}

fn on_off(item: &Item<'_>, problems: &mut Problems) -> Option<UdpPattern> {
    let view = item.table(ON_OFF, problems)?;
    let [on, off] = ["on", "off"].map(|key| {
        let item = view.require(key, problems)?;
        bursts::distribution(&item, problems)
    });
    let (on, off) = (on?, off?);
    bursts::check_alternation(item, &on, &off, problems);
    if let Some(item) = view.get("on").filter(|_| bursts::mean_secs(&on) == 0.0) {
        item.refuse(
            problems,
            format!("`{}` is always 0: nothing would be sent", item.path),
            Some("a time above 0".to_owned()),
        );
    }
    Some(UdpPattern::OnOff { on, off })
}
