//! Properties of a link that change with time (`schedule`, traces and `phases`), and effects on single packets
//! (`jitter`, `reorder`, `duplicate`, `corrupt`).

use std::sync::Arc;

use bentpipe_engine::link::{BadTrack, Change, Jitter, LinkConfig, Moves, Phases, QueueLimit, Reorder, Track};
use bentpipe_engine::units::{Duration, Probability, Rate};
use bentpipe_language::error::Problems;
use bentpipe_language::quantity;
use bentpipe_language::reader::{Item, View};
use bentpipe_language::shape::Shape;

use super::beside::Beside;
use super::bursts::distribution;
use super::directions::Direction;
use super::grammar::{JITTER, PHASES, REORDER, SCHEDULE};
use super::queues::{limit, probability};
use super::series::{DELAYS, LOSSES, RATES};

/// A setting that a schedule changes: its changes so far, and their places in the text.
#[derive(Default)]
struct Lane<'a> {
    changes: Vec<Change>,
    items: Vec<Item<'a>>,
}

impl<'a> Lane<'a> {
    fn add(&mut self, change: Change, item: Item<'a>) {
        self.changes.push(change);
        self.items.push(item);
    }

    /// The track from these changes, if there are any.
    fn track(self, initial: u64, period: Option<Duration>, problems: &mut Problems) -> Option<Option<Arc<Track>>> {
        if self.changes.is_empty() {
            return Some(None);
        }
        let is_step = |change: &Change| change.over == Duration::ZERO;
        let is_lost = |two: &[Change]| two[0].at == two[1].at && two.iter().all(is_step);
        if let Some(n) = self.changes.windows(2).position(is_lost) {
            let expected = "one change of a setting at an instant".to_owned();
            self.items[n].refuse(problems, "the change never holds: the next one is at the same time", Some(expected));
            return None;
        }
        let (n, message) = match Track::new(initial, self.changes, period) {
            Ok(track) => match track.never_holds() {
                Some(n) => (n, "the change never holds: at `schedule_period` the schedule starts again"),
                None => return Some(Some(Arc::new(track))),
            },
            Err(BadTrack::Overlaps(n)) => (n, "the change begins before the previous one of this setting has ended"),
            Err(BadTrack::AfterPeriod(n)) => (n, "the change ends after `schedule_period`"),
            Err(BadTrack::ShortPeriod) => unreachable!("a short period has been refused"),
        };
        self.items[n].refuse(problems, message, Some("changes in order of time, within the period".to_owned()));
        None
    }
}

/// The settings that the schedule replaces.
struct Own {
    rate: Option<Rate>,
    delay: Duration,
    loss: Probability,
    queue: QueueLimit,
}

/// The rates over time to which a `rate_trace` refers or which it contains.
pub(super) fn rates(item: &Item<'_>, beside: Beside<'_>, problems: &mut Problems) -> Option<Track> {
    let track = RATES.track(item, beside, problems)?;
    if !track.ends_above_zero() {
        item.refuse(problems, "the line never sends", Some("at least one rate above 0 bit/s".to_owned()));
        return None;
    }
    Some(track)
}

/// Reads everything into `config`, whose other settings are complete. `rates` are those of a `rate_trace`.
pub(super) fn read(
    config: &mut LinkConfig,
    rates: Option<Track>,
    direction: &Direction<'_, '_>,
    beside: Beside<'_>,
    problems: &mut Problems,
) -> Option<()> {
    let own = Own { rate: config.rate, delay: config.delay, loss: config.good.packet, queue: config.queue.limit };
    let mut moves = match direction.get("schedule") {
        Some(item) => schedule(&item, direction.get("schedule_period"), &own, problems)?,
        None => {
            if let Some(item) = direction.get("schedule_period") {
                let expected = "schedule = [{ at = \"12 s\", delay = \"40 ms\" }] beside it".to_owned();
                item.refuse(problems, format!("`{}` needs `schedule`", item.path), Some(expected));
                return None;
            }
            Moves::default()
        }
    };
    let phases = match direction.get("phases") {
        Some(item) => Some(phases(&item, problems)?),
        None => None,
    };
    for (key, kind, what) in [("delay_trace", DELAYS, "delay"), ("loss_trace", LOSSES, "loss")] {
        let Some(item) = direction.get(key) else { continue };
        let lane = if what == "delay" { &mut moves.delay } else { &mut moves.loss };
        if lane.is_some() {
            return exclude(&item, &format!("`schedule` changes `{what}`, too"), problems);
        }
        *lane = Some(Arc::new(kind.track(&item, beside, problems)?));
    }
    if let (Some(rates), Some(item)) = (rates, direction.get("rate_trace")) {
        if moves.rate.is_some() {
            return exclude(&item, "`schedule` changes `rate`, too", problems);
        }
        moves.rate = Some(Arc::new(rates));
    }
    check(config, &moves, phases.as_ref(), direction, problems)?;
    if let Some(rate) = moves.rate.as_ref().filter(|track| track.period().is_some()) {
        // The rate used for queues, limits and layers.
        config.rate = Rate::from_bits_per_second(rate.mean().max(1));
    }
    let moves_any = moves != Moves::default();
    config.moves = moves_any.then(|| Arc::new(moves));
    config.phases = phases;
    single_packets(config, direction, problems)
}

fn exclude(item: &Item<'_>, why: &str, problems: &mut Problems) -> Option<()> {
    item.refuse(problems, format!("`{}` cannot be used here: {why}", item.path), Some("one of the two".to_owned()));
    None
}

/// Settings that exclude each other.
fn check(
    config: &LinkConfig,
    moves: &Moves,
    phases: Option<&Phases>,
    direction: &Direction<'_, '_>,
    problems: &mut Problems,
) -> Option<()> {
    let schedule = direction.get("schedule");
    let of_phases = direction.get("phases");
    let steers = phases.is_some_and(|phases| phases.rate.is_some() || phases.outage > Duration::ZERO);
    let trace = direction.get("rate_trace");
    let by = if moves.rate.is_none() {
        &of_phases
    } else if schedule.is_some() {
        &schedule
    } else {
        &trace
    };
    if let Some(item) = by.as_ref().filter(|_| moves.rate.is_some() || steers) {
        let line = [
            (config.rate.is_none(), "the line has no rate"),
            (config.rate_trace.is_some(), "the rate follows `rate_trace`"),
            (config.tdma.is_some(), "the line sends in bursts (`tdma`)"),
            (moves.rate.is_some() && steers, "the rate follows `schedule` or `rate_trace` and `phases`"),
        ];
        if let Some((_, why)) = line.iter().find(|(is, _)| *is) {
            return exclude(item, why, problems);
        }
    }
    if let Some(track) = moves.rate.as_ref().filter(|track| !track.ends_above_zero()) {
        let item = by.as_ref()?;
        let message = "the line stops and never starts again";
        let expected = format!("a last rate above 0 bit/s, not {}", track.values().last().unwrap_or(0));
        item.refuse(problems, message, Some(expected));
        return None;
    }
    if let (Some(item), Some(phases)) = (&of_phases, phases) {
        if moves.delay.is_some() && phases.delay.is_some() {
            return exclude(item, "the delay follows `schedule` or `delay_trace`", problems);
        }
        if moves.loss.is_some() && phases.loss > 0 {
            return exclude(item, "the loss follows `schedule` or `loss_trace`", problems);
        }
    }
    if let (true, true, Some(item)) = (moves.queue.is_some(), config.has_managed_queue(), &schedule) {
        return exclude(item, "a queue with CoDel keeps its limit", problems);
    }
    if let (true, Some(item)) = (moves.loss.is_some(), direction.get("gilbert_elliott")) {
        return exclude(&item, "the loss follows `schedule` or `loss_trace`", problems);
    }
    Some(())
}

fn schedule(item: &Item<'_>, period: Option<Item<'_>>, own: &Own, problems: &mut Problems) -> Option<Moves> {
    let period = match period {
        Some(item) => {
            let period = item.duration(problems)?;
            if period < Track::MIN_PERIOD {
                item.refuse(problems, format!("`{}` is too short", item.path), Some("at least \"1 ms\"".to_owned()));
                return None;
            }
            Some(period)
        }
        None => None,
    };
    let (mut rate, mut delay, mut loss, mut queue) = <(Lane<'_>, Lane<'_>, Lane<'_>, Lane<'_>)>::default();
    let mut limits = vec![own.queue];
    let mut last = Duration::ZERO;
    for entry in item.list(&Shape::List(&Shape::Table(SCHEDULE)), problems)? {
        let view = entry.table(SCHEDULE, problems)?;
        let at = view.require("at", problems)?.duration(problems)?;
        let over = view.get("over").map_or(Some(Duration::ZERO), |item| item.duration(problems))?;
        let change = |value| Change { at, over, value };
        if at < last {
            entry.refuse(
                problems,
                "the change is earlier than the previous one",
                Some("changes in order of time".into()),
            );
            return None;
        }
        last = at;
        if let Some(item) = view.get("rate") {
            rate.add(change(item.quantity(quantity::RATE, problems)?), item);
        }
        if let Some(item) = view.get("delay") {
            delay.add(change(item.duration(problems)?.as_ticks()), item);
        }
        if let Some(item) = view.get("loss") {
            loss.add(change(Track::of_probability(item.probability(problems)?)), item);
        }
        if let Some(item) = view.get("queue") {
            limits.push(limit(&item, own.rate, problems)?);
            queue.add(Change { at, over: Duration::ZERO, value: limits.len() as u64 - 1 }, item);
        }
        nothing_changes(&entry, &view, problems)?;
    }
    let initial_rate = own.rate.map_or(1, Rate::bits_per_second);
    Some(Moves {
        rate: rate.track(initial_rate, period, problems)?,
        delay: delay.track(own.delay.as_ticks(), period, problems)?,
        loss: loss.track(Track::of_probability(own.loss), period, problems)?,
        limits: if queue.changes.is_empty() { Vec::new() } else { limits },
        queue: queue.track(0, period, problems)?,
    })
}

fn nothing_changes(entry: &Item<'_>, view: &View<'_>, problems: &mut Problems) -> Option<()> {
    let ramps = ["rate", "delay", "loss"].iter().any(|key| view.get(key).is_some());
    if !ramps && view.get("queue").is_none() {
        entry.refuse(problems, "the change changes nothing", Some("rate, delay, loss or queue".to_owned()));
        return None;
    }
    if let (false, Some(over)) = (ramps, view.get("over")) {
        over.refuse(problems, "a queue changes at once", Some("`over` with rate, delay or loss".to_owned()));
        return None;
    }
    Some(())
}

fn phases(item: &Item<'_>, problems: &mut Problems) -> Option<Phases> {
    let view = item.table(PHASES, problems)?;
    let length_item = view.require("length", problems)?;
    let length = length_item.duration(problems)?;
    if length < Track::MIN_PERIOD {
        length_item.refuse(problems, "a phase is shorter than 1 ms", Some(Shape::DURATION.expected()));
        return None;
    }
    let span = |key: &str, default, problems: &mut Problems| match view.get(key) {
        None => Some(default),
        Some(item) => {
            let span = item.duration(problems)?;
            let is_outage = key == "outage";
            if span > length || is_outage && span == length {
                let (what, than) =
                    if is_outage { ("leaves nothing of", "less than") } else { ("is longer than", "at most") };
                let expected = format!("{than} `length`, {}", quantity::format_duration(length));
                item.refuse(problems, format!("`{}` {what} a phase", item.path), Some(expected));
                return None;
            }
            Some(span)
        }
    };
    let first = span("first", length, problems)?;
    let outage = span("outage", Duration::ZERO, problems)?;
    let loss = probability(view.get("loss"), Probability::ZERO, problems)?;
    if let (Some(item), Duration::ZERO) = (view.get("loss"), outage) {
        item.refuse(
            problems,
            format!("`{}` needs `outage`", item.path),
            Some("an outage in which packets are lost".into()),
        );
        return None;
    }
    let rate = pair(view.get("rate"), &Shape::RATE, |item, problems| item.rate(problems), problems)?;
    let delay = pair(view.get("delay"), &Shape::DURATION, |item, problems| item.duration(problems), problems)?;
    Some(Phases { length, first, outage, loss: Track::of_probability(loss), rate, delay })
}

/// Two bounds in order, if they are given.
fn pair<T: Copy + PartialOrd>(
    item: Option<Item<'_>>,
    shape: &'static Shape,
    read: impl Fn(&Item<'_>, &mut Problems) -> Option<T>,
    problems: &mut Problems,
) -> Option<Option<(T, T)>> {
    let Some(item) = item else { return Some(None) };
    let [low, high] = item.pair(shape, problems)?;
    let (low, high) = (read(&low, problems)?, read(&high, problems)?);
    if low > high {
        let expected = Shape::Pair(shape).expected() + ", the smaller first";
        item.refuse(problems, format!("`{}`: the minimum is more than the maximum", item.path), Some(expected));
        return None;
    }
    Some(Some((low, high)))
}

fn single_packets(config: &mut LinkConfig, direction: &Direction<'_, '_>, problems: &mut Problems) -> Option<()> {
    if let Some(item) = direction.get("jitter") {
        config.jitter = Some(jitter(&item, problems)?);
    }
    if let Some(item) = direction.get("reorder") {
        let view = item.table(REORDER, problems)?;
        let probability = view.require("probability", problems).and_then(|item| item.probability(problems));
        let delay = view.require("delay", problems).and_then(|item| item.duration(problems));
        config.reorder = Some(Reorder { probability: probability?, delay: delay? });
    }
    config.duplicate = probability(direction.get("duplicate"), Probability::ZERO, problems)?;
    config.corrupt = probability(direction.get("corrupt"), Probability::ZERO, problems)?;
    Some(())
}

fn jitter(item: &Item<'_>, problems: &mut Problems) -> Option<Jitter> {
    let view = item.table(JITTER, problems)?;
    let delay = view.require("delay", problems).and_then(|item| distribution(&item, problems));
    let reorder = view.get("reorder").map_or(Some(false), |item| item.flag(problems));
    let every = match view.get("every") {
        None => Duration::from_millis(1),
        Some(item) => {
            let every = item.duration(problems)?;
            if every < Duration::from_micros(1) {
                item.refuse(problems, format!("`{}` is too short", item.path), Some("at least \"1 us\"".to_owned()));
                return None;
            }
            every
        }
    };
    let correlation = probability(view.get("correlation"), Probability::ZERO, problems)?;
    // Closer to 1, the process would have to look back over more than 40 000 slots.
    if correlation.get() > 0.999
        && let Some(item) = view.get("correlation")
    {
        let expected = "at most \"99.9 %\"; for slower changes, a longer `every`".to_owned();
        item.refuse(problems, format!("`{}` is too close to 1", item.path), Some(expected));
        return None;
    }
    Some(Jitter { delay: delay?, correlation, every, reorder: reorder? })
}
