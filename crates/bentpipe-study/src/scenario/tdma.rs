//! `tdma` of a link: the bursts in which its line sends.

use bentpipe_engine::link::{BadSchedule, BurstSchedule};
use bentpipe_engine::units::Rate;
use bentpipe_language::error::{Mistake, Problems, Span};
use bentpipe_language::reader::Item;
use bentpipe_language::shape::Shape;

use super::grammar::TDMA;
use super::model::{LinkSpec, Scenario};

/// Reads a schedule for a line that has `rate` during its bursts.
pub(super) fn schedule(item: &Item<'_>, rate: Option<Rate>, problems: &mut Problems) -> Option<BurstSchedule> {
    let view = item.table(TDMA, problems)?;
    let Some(rate) = rate else {
        let expected = "`rate` within a burst, such as \"622.08 Mbit/s\"".to_owned();
        item.refuse(problems, "bursts need a line rate and exclude a trace", Some(expected));
        return None;
    };
    let frame = view.require("frame", problems).and_then(|item| item.duration(problems));
    let list = view.require("bursts", problems)?;
    let entries = list.list(&Shape::List(&Shape::Pair(&Shape::DURATION)), problems)?;
    let mut bursts = Vec::new();
    for entry in &entries {
        let [start, length] = entry.pair(&Shape::DURATION, problems)?;
        bursts.push((start.duration(problems)?, length.duration(problems)?));
    }
    let expected =
        "bursts in order that do not overlap, such as [[\"0 us\", \"250 us\"], [\"500 us\", \"250 us\"]]".to_owned();
    let (place, message) = match BurstSchedule::new(frame?, bursts, rate) {
        Ok(schedule) => return Some(schedule),
        Err(BadSchedule::Empty) => (&list, "the frame has no bursts".to_owned()),
        Err(BadSchedule::NoLength(n)) => (&entries[n], "a burst cannot have zero length".to_owned()),
        Err(BadSchedule::Overlaps(n)) => (&entries[n], "it begins before the previous burst has ended".to_owned()),
        Err(BadSchedule::TooLong) => (&list, "the last burst ends after the frame".to_owned()),
    };
    place.refuse(problems, message, Some(expected));
    None
}

/// Refuses links of one beam that send at the same time: an antenna sends and receives one burst at a time, and a
/// satellite's switch connects an uplink beam to one downlink beam at a time.
pub(super) fn check(scenario: &Scenario, place: Option<Span>, problems: &mut Problems) {
    let Some(place) = place else { return };
    let links = &scenario.links;
    let with_schedule = |link: &LinkSpec| link.config.tdma.clone();
    for (n, link) in links.iter().enumerate() {
        let Some(schedule) = with_schedule(link) else { continue };
        for other in &links[..n] {
            let Some(before) = with_schedule(other) else { continue };
            let (node, way) = match (link.from == other.from, link.to == other.to) {
                (true, _) => (link.from, "leaves"),
                (_, true) => (link.to, "reaches"),
                _ => continue,
            };
            let node = &scenario[node];
            let path = format!("links.{}.tdma", link.name);
            if schedule.frame() != before.frame() {
                let message = format!("`{}` {way} `{node}` too and has a frame of another length", other.name);
                problems.add(place, Mistake::new(&path, message).expected("one frame for all links of a node"));
            } else if schedule.collides(&before) {
                let message = format!("a burst {way} `{node}` while one of `{}` does", other.name);
                problems.add(place, Mistake::new(&path, message).expected("bursts that take turns"));
            }
        }
    }
}
