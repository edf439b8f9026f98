//! The channel of a link: bursts by distribution, by schedule or from a recorded trace, and Gilbert-Elliott.

use bentpipe_engine::link::{ChannelConfig, Distribution};
use bentpipe_engine::units::Duration;
use bentpipe_language::error::{Mistake, Problems, Span};
use bentpipe_language::quantity::DURATION;
use bentpipe_language::reader::{Item, View};
use bentpipe_language::shape::Shape;

use super::beside::Beside;
use super::grammar::{DISTRIBUTION, DISTRIBUTION_SHAPE};

/// Minimum probability that a draw of a truncated distribution is kept. Below it, redrawing takes too long.
const MIN_KEPT: f64 = 1e-4;

fn bounds(item: &Item<'_>, problems: &mut Problems) -> Option<(Duration, Duration)> {
    let [low, high] = item.pair(&Shape::DURATION, problems)?;
    let (low, high) = (low.duration(problems)?, high.duration(problems)?);
    if low > high {
        let expected = Shape::Pair(&Shape::DURATION).expected() + ", the smaller first";
        item.refuse(problems, format!("`{}`: the minimum is more than the maximum", item.path), Some(expected));
        return None;
    }
    Some((low, high))
}

/// A distribution of durations.
pub(crate) fn distribution(item: &Item<'_>, problems: &mut Problems) -> Option<Distribution> {
    if item.as_text().is_some() {
        return item.duration(problems).map(Distribution::Fixed);
    }
    if !matches!(item.node.value, bentpipe_language::document::Value::Table(_)) {
        item.mismatch(problems, &DISTRIBUTION_SHAPE);
        return None;
    }
    let view = item.table(DISTRIBUTION, problems)?;
    let all = ["fixed", "uniform", "exponential", "normal", "pareto"];
    let kinds: Vec<_> = all.iter().filter_map(|key| view.get(key)).collect();
    let [kind] = kinds.as_slice() else {
        let message = format!("`{}` must be exactly one of {}", item.path, all.join(", "));
        item.refuse(problems, message, Some("{ uniform = [\"1 s\", \"10 s\"] }, for example".to_owned()));
        return None;
    };
    let limits: Vec<_> = ["clip", "truncate"].iter().filter_map(|key| view.get(key)).collect();
    let is_exponential = view.get("exponential").is_some();
    if let Some(limit) = limits.first().filter(|_| !is_exponential || limits.len() > 1) {
        let message = format!("`{}` needs `exponential`; only one of clip and truncate is allowed", limit.path);
        limit.refuse(problems, message, None);
        return None;
    }
    if view.get("uniform").is_some() {
        let (low, high) = bounds(kind, problems)?;
        return Some(Distribution::Uniform(low, high));
    }
    if view.get("normal").is_some() {
        let [mean, deviation] = kind.pair(&Shape::DURATION, problems)?;
        return Some(Distribution::Normal { mean: mean.duration(problems)?, deviation: deviation.duration(problems)? });
    }
    if view.get("pareto").is_some() {
        let (min, mean) = bounds(kind, problems)?;
        if min == mean || min == Duration::ZERO {
            let expected = "a minimum above 0 and a larger mean, such as [\"1 ms\", \"3 ms\"]".to_owned();
            kind.refuse(problems, format!("`{}` is no Pareto distribution", kind.path), Some(expected));
            return None;
        }
        return Some(Distribution::Pareto { min, mean });
    }
    let span = kind.duration(problems)?;
    if !is_exponential {
        return Some(Distribution::Fixed(span));
    }
    let Some(limit) = limits.first() else {
        return Some(Distribution::Exponential { mean: span });
    };
    let (min, max) = bounds(limit, problems)?;
    if view.get("clip").is_some() {
        return Some(Distribution::ExponentialClipped { mean: span, min, max });
    }
    let beyond = |edge: Duration| libm::exp(-edge.as_secs_f64() / span.as_secs_f64());
    let kept = beyond(min) - beyond(max);
    // NaN if the mean is zero.
    if kept.is_nan() || kept < MIN_KEPT {
        let message = format!("`{}` keeps almost no draw of an exponential distribution with that mean", limit.path);
        limit.refuse(problems, message, Some("bounds that keep at least one draw in 10 000".to_owned()));
        return None;
    }
    Some(Distribution::ExponentialTruncated { mean: span, min, max })
}

/// The mean of a distribution, in seconds.
pub fn mean_secs(distribution: &Distribution) -> f64 {
    let s = |span: &Duration| span.as_secs_f64();
    match distribution {
        Distribution::Fixed(span) => s(span),
        Distribution::Uniform(low, high) => (s(low) + s(high)) / 2.0,
        Distribution::Exponential { mean } | Distribution::Pareto { mean, .. } => s(mean),
        Distribution::Normal { mean, deviation } if s(deviation) == 0.0 => s(mean),
        // E[max(X, 0)] = m F(m/d) + d f(m/d), with the standard normal distribution F and density f.
        Distribution::Normal { mean, deviation } => {
            let z = s(mean) / s(deviation);
            let below = 0.5 * libm::erfc(-z / core::f64::consts::SQRT_2);
            s(mean) * below + s(deviation) * libm::exp(-z * z / 2.0) / libm::sqrt(2.0 * core::f64::consts::PI)
        }
        // E[clip(X, a, b)] = a + m (e^(-a/m) - e^(-b/m)).
        Distribution::ExponentialClipped { mean, min, .. } if s(mean) == 0.0 => s(min),
        Distribution::ExponentialClipped { mean, min, max } => {
            s(min) + s(mean) * (libm::exp(-s(min) / s(mean)) - libm::exp(-s(max) / s(mean)))
        }
        // E[X | a <= X <= b] = m + (a e^(-a/m) - b e^(-b/m)) / (e^(-a/m) - e^(-b/m)).
        Distribution::ExponentialTruncated { mean, min, max } => {
            let (ea, eb) = (libm::exp(-s(min) / s(mean)), libm::exp(-s(max) / s(mean)));
            s(mean) + (s(min) * ea - s(max) * eb) / (ea - eb)
        }
    }
}

/// Refuses alternating processes that switch so fast that a run would never end.
pub(crate) fn check_alternation(item: &Item<'_>, a: &Distribution, b: &Distribution, problems: &mut Problems) {
    if mean_secs(a) + mean_secs(b) < 1e-6 {
        let message = format!("`{}` changes its state more than a million times per second", item.path);
        item.refuse(problems, message, Some("means of at least 1 us together".to_owned()));
    }
}

/// The bad times of the channel, from the table `bursts`.
pub(crate) fn channel(
    item: &Item<'_>,
    view: &View<'_>,
    beside: Beside<'_>,
    problems: &mut Problems,
) -> Option<ChannelConfig> {
    let process = view.get("gap").or(view.get("length"));
    let given: Vec<_> = [process, view.get("schedule"), view.get("file")].into_iter().flatten().collect();
    if given.len() != 1 {
        let message = format!("`{}` must have exactly one of gap and length, schedule, file", item.path);
        let expected = "{ gap = { uniform = [\"1 s\", \"10 s\"] }, length = \"200 ms\" }, for example";
        item.refuse(problems, message, Some(expected.to_owned()));
        return None;
    }
    if let Some(schedule) = view.get("schedule") {
        return schedule_of(&schedule, problems).map(ChannelConfig::Schedule);
    }
    if let Some(file) = view.get("file") {
        return trace(&file, beside, problems).map(ChannelConfig::Schedule);
    }
    let gap = view.require("gap", problems);
    let length = view.require("length", problems);
    let gap = distribution(&gap?, problems);
    let burst = distribution(&length?, problems);
    let (gap, burst) = (gap?, burst?);
    check_alternation(item, &gap, &burst, problems);
    Some(ChannelConfig::OnOff { gap, burst })
}

/// True if a burst begins before the previous one has ended.
fn overlaps(before: Option<&(Duration, Duration)>, start: Duration) -> bool {
    before.is_some_and(|&(earlier, length)| start < earlier + length)
}

const EMPTY: &str = "a burst cannot be 0 s long";
const OVERLAP: &str = "a burst begins before the previous one has ended";

fn schedule_of(item: &Item<'_>, problems: &mut Problems) -> Option<Vec<(Duration, Duration)>> {
    let shape = Shape::List(&Shape::Pair(&Shape::DURATION));
    let mut bursts = Vec::new();
    let mut sound = true;
    for entry in item.list(&shape, problems)? {
        let burst = entry.pair(&Shape::DURATION, problems).and_then(|[start, length]| {
            let (start, length) = (start.duration(problems), length.duration(problems));
            Some((start?, length?))
        });
        let Some((start, length)) = burst else {
            sound = false;
            continue;
        };
        if length == Duration::ZERO || overlaps(bursts.last(), start) {
            let message = if length == Duration::ZERO { EMPTY } else { OVERLAP };
            entry.refuse(problems, message, Some("start and length, in order of time".to_owned()));
            sound = false;
        }
        bursts.push((start, length));
    }
    sound.then_some(bursts)
}

/// A recorded trace: CSV with the columns start_s and length_s, both in seconds; `#` begins a comment.
fn trace(item: &Item<'_>, beside: Beside<'_>, problems: &mut Problems) -> Option<Vec<(Duration, Duration)>> {
    let (text, source) = beside.text(item.text(problems)?, item, "a CSV file beside the scenario", problems)?;
    parse_trace(&text, source, &item.path, problems)
}

fn parse_trace(text: &str, source: usize, key: &str, problems: &mut Problems) -> Option<Vec<(Duration, Duration)>> {
    const HEADER: &str = "start_s,length_s";
    let mut bursts: Vec<(Duration, Duration)> = Vec::new();
    let mut at = 0;
    let mut header = false;
    let mut sound = true;
    for line in text.split_inclusive('\n') {
        let span = Span::new(source, at..at + line.trim_end().len());
        at += line.len();
        let content = line.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        if !header {
            header = true;
            if content.replace(' ', "") != HEADER {
                problems.add(span, Mistake::new(key, "the trace has other columns").expected(HEADER));
                return None;
            }
            continue;
        }
        let seconds = |text: &str| DURATION.parse(&format!("{} s", text.trim())).map(Duration::from_nanos);
        let burst = match content.split_once(',') {
            Some((start, length)) => {
                seconds(start).and_then(|start| Ok((start, seconds(length)?))).map_err(|bad| bad.message)
            }
            None => Err("the line does not have two columns".to_owned()),
        };
        let wrong = match burst {
            Ok((_, Duration::ZERO)) => EMPTY.to_owned(),
            Ok((start, _)) if overlaps(bursts.last(), start) => OVERLAP.to_owned(),
            Ok(burst) => {
                bursts.push(burst);
                continue;
            }
            Err(message) => message,
        };
        problems.add(span, Mistake::new(key, wrong).expected("start and length in seconds, in order of time"));
        sound = false;
        // A file of another kind has a mistake in every line.
        if problems.count() > 20 {
            return None;
        }
    }
    if !header {
        problems.add(Span::new(source, 0..0), Mistake::new(key, "the trace has no header").expected(HEADER));
        return None;
    }
    sound.then_some(bursts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn means_by_hand() {
        let s = Duration::from_secs;
        let near = |distribution: Distribution, mean: f64| {
            let found = mean_secs(&distribution);
            assert!((found - mean).abs() < 1e-6, "{distribution:?}: {found}");
        };
        // e^-1 = 0.367 879, e^-2 = 0.135 335: of an exponential with mean 1 clipped to 1..2, 1 + e^-1 - e^-2; of a truncated one
        // 1 + (e^-1 - 2 e^-2) / (e^-1 - e^-2).
        near(Distribution::ExponentialClipped { mean: s(1), min: s(1), max: s(2) }, 1.232_544);
        near(Distribution::ExponentialTruncated { mean: s(1), min: s(1), max: s(2) }, 1.418_023);
        near(Distribution::ExponentialClipped { mean: s(0), min: s(1), max: s(2) }, 1.0);
        // Half of the normal draws around 0 are negative, and count as 0: 1 / sqrt(2 pi).
        near(Distribution::Normal { mean: s(0), deviation: s(1) }, 0.398_942);
        near(Distribution::Normal { mean: s(3), deviation: s(0) }, 3.0);
        near(Distribution::Pareto { min: s(1), mean: s(3) }, 3.0);
    }

    fn errors(bursts: &str) -> Vec<String> {
        let link = "[[links]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\nrate = \"2 Mbit/s\"\ndelay = \"10 ms\"\n";
        match Scenario::parse(&format!("name = \"x\"\n{link}bursts = {bursts}\n"), "x.toml", &[]) {
            Ok(_) => Vec::new(),
            Err(errors) => errors.0.into_iter().map(|error| error.message).collect(),
        }
    }

    #[test]
    fn bursts_may_touch_and_not_overlap() {
        let second = |start: &str| errors(&format!("{{ schedule = [[\"1 s\", \"1 s\"], [\"{start}\", \"1 s\"]] }}"));
        assert_eq!((second("2 s"), second("1.999 s")), (vec![], vec![OVERLAP.to_owned()]));
    }

    #[test]
    fn a_pareto_distribution_begins_above_zero() {
        let found = errors("{ gap = \"1 s\", length = { pareto = [\"0 s\", \"1 s\"] } }");
        assert_eq!(found, ["`links.l.bursts.length.pareto` is no Pareto distribution"]);
    }

    /// A file without bursts is a link without them; an empty file is none.
    #[test]
    fn a_trace_has_its_header() {
        let read = |text: &str| {
            let mut problems = Problems::of("scenario");
            let source = problems.add_source("fades.csv", text);
            (parse_trace(text, source, "bursts.file", &mut problems), problems.count())
        };
        assert_eq!(["", "# no line but this\n"].map(read), [(None, 1), (None, 1)]);
        assert_eq!(read("start_s,length_s\n"), (Some(Vec::new()), 0));
    }

    /// A file of another kind has a mistake in each line: after 20 of them, one more says enough.
    #[test]
    fn a_wrong_file_has_few_messages() {
        let mut problems = Problems::of("scenario");
        let text = format!("start_s,length_s\n{}", "x\n".repeat(100));
        let source = problems.add_source("fades.csv", &text);
        assert_eq!(parse_trace(&text, source, "bursts.file", &mut problems), None);
        assert_eq!(problems.count(), 21);
    }
}
