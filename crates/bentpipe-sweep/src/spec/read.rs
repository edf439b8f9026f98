//! From text to a [`Spec`].

use std::path::Path;

use bentpipe_language::document::{self, Node, Value};
use bentpipe_language::error::{Mistake, Problems, ScenarioErrors};
use bentpipe_language::kind::Kind;
use bentpipe_language::reader::{Item, View, join};
use bentpipe_language::shape::Shape;
use bentpipe_sim::record::Measure;

use super::check;
use super::design;
use super::grammar::{
    AXIS, DESIGNS, MAX_AXES, MAX_RUNS, MAX_SETTINGS, MIN, POINTS, REPETITIONS, SCALES, SEED, STEPS, STOP, SWEEP,
};
use super::{Axis, Base, Design, Find, Range, Scale, Setting, Spec, Values};
use crate::candidate::{Candidate, GATEWAYS};
use crate::stop::{Stop, Tolerance};

const DEFAULT_REPETITIONS: u64 = 20;
const DEFAULT_MIN: u64 = 10;

pub(super) fn spec(text: &str, name: &str, find: Find<'_>) -> Result<Spec, ScenarioErrors> {
    let mut problems = Problems::of("sweep file");
    let source = problems.add_source(name, text);
    let root = document::parse(text, source, &mut problems);
    if problems.count() > 0 {
        return problems.finish(None);
    }
    let Value::Table(table) = &root.value else { return problems.finish(None) };
    if Kind::Sweep.is_another(table, &mut problems) {
        return problems.finish(None);
    }
    if let Some(entry) = table.get("transports") {
        let mistake = Mistake::new("transports", "`variants` names the transports of a sweep")
            .expected("variants = [\"sack\", \"quic-cubic\"], for example")
            .help("your own are in the scenario's [variants.NAME], or in [set.variants.NAME] here".to_owned());
        problems.add(entry.key_span, mistake);
        return problems.finish(None);
    }
    let view = View::open(table, String::new(), root.span, SWEEP, &mut problems);
    let Some(base) = base(&view, find, &mut problems) else { return problems.finish(None) };
    let mut read = read(&view, name, text, base, &mut problems);
    if let Some(spec) = &mut read
        && problems.count() == 0
    {
        let scenario = check::values(spec, &view, &mut problems)?;
        spec.measure = Measure::of(&scenario);
        if view.get("seed").is_none() {
            spec.seed = scenario.seed;
        }
    }
    problems.finish(read)
}

fn base(view: &View<'_>, find: Find<'_>, problems: &mut Problems) -> Option<Base> {
    let item = view.require("scenario", problems)?;
    let found = find(item.text(problems)?);
    let expected = "a scenario file, or the name of a shipped scenario";
    found.map_err(|message| item.refuse(problems, message, Some(expected.to_owned()))).ok()
}

fn read(view: &View<'_>, file: &str, text: &str, base: Base, problems: &mut Problems) -> Option<Spec> {
    let settings = view.get("set").map_or(Some(Vec::new()), |item| settings(&item, text, problems));
    let variants = view.get("variants").map_or(Some(Vec::new()), |item| {
        let entries = listed(&item, &Shape::List(&Shape::Text), problems)?;
        entries.iter().map(|entry| entry.text(problems).map(str::to_owned)).collect()
    });
    let gateways = view.get("gateways").map_or(Some(Vec::new()), |item| {
        let entries = listed(&item, &Shape::List(&Shape::Choice(GATEWAYS)), problems)?;
        entries.iter().map(|entry| entry.choice(GATEWAYS, problems)).collect()
    });
    let design = view.get("design").map_or(Some(DESIGNS[0]), |item| item.choice(DESIGNS, problems));
    let points = view.get("points").map(|item| (item.count(POINTS, problems), item));
    let is_drawn = design == Some(DESIGNS[2]);
    match &points {
        None if is_drawn => view.missing("points", problems),
        Some((_, item)) if !is_drawn => {
            item.refuse(problems, "`points` is only for a latin hypercube", Some("no `points`".to_owned()));
        }
        _ => {}
    }
    let axes = view.get("axes").map_or(Some(Vec::new()), |item| axes(&item, is_drawn, text, problems));
    let repetitions =
        view.get("repetitions").map_or(Some(DEFAULT_REPETITIONS), |item| item.count(REPETITIONS, problems));
    // By default it is the scenario's, which has not been read yet.
    let seed = view.get("seed").map_or(Some(0), |item| item.count(SEED, problems));
    let stop = view.get("stop").map(|item| stop(&item, problems));
    let output = view.get("output").map(|item| item.text(problems).map(str::to_owned));
    let candidates = Candidate::all(&variants?, &gateways?);
    unlike(&candidates, view, problems)?;
    let baseline = view.get("baseline").map_or(Some(0), |item| {
        let wanted = item.text(problems)?;
        let found = candidates.iter().position(|one| one.name == wanted);
        if found.is_none() {
            let names: Vec<_> = candidates.iter().map(|one| format!("\"{}\"", one.name)).collect();
            item.refuse(
                problems,
                format!("nothing is called \"{wanted}\""),
                Some(format!("one of {}", names.join(", "))),
            );
        }
        found
    });
    let design = match design? {
        "list" => Design::List,
        "latin-hypercube" => Design::LatinHypercube(points?.0? as u32),
        _ => Design::Grid,
    };
    let mut axes = axes?;
    if design == Design::Grid {
        axes.iter_mut().for_each(Axis::drop_repeats);
    }
    let spec = Spec {
        text: text.to_owned(),
        name: Path::new(file).file_stem().map_or("sweep".into(), |stem| stem.to_string_lossy().into_owned()),
        scenario: base.text,
        scenario_name: base.name,
        settings: base.settings.into_iter().chain(settings?).collect(),
        // That of the scenario with these values, which has not been read yet.
        measure: Measure::SlowestTimeS,
        candidates,
        baseline: baseline?,
        axes,
        design,
        repetitions: repetitions? as u32,
        seed: seed?,
        stop: stop.map_or(Some(None), |stop| stop.map(Some))?,
        output: output.map_or(Some(None), |output| output.map(Some))?,
    };
    amount(&spec, view, problems)?;
    Some(spec)
}

/// The entries of a list that is not empty.
fn listed<'a>(item: &Item<'a>, shape: &Shape, problems: &mut Problems) -> Option<Vec<Item<'a>>> {
    let entries = item.list(shape, problems)?;
    if entries.is_empty() {
        item.refuse(problems, format!("`{}` is empty", item.path), Some("at least one entry".to_owned()));
        return None;
    }
    Some(entries)
}

/// Refuses two candidates with one name.
fn unlike(candidates: &[Candidate], view: &View<'_>, problems: &mut Problems) -> Option<()> {
    let mut names: Vec<_> = candidates.iter().map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].to_owned());
    let Some(twice) = twice else { return Some(()) };
    let item = view.get("variants").or_else(|| view.get("gateways"))?;
    item.refuse(problems, format!("\"{twice}\" is there twice"), Some("different entries".to_owned()));
    None
}

/// Limits the number of points and runs.
fn amount(spec: &Spec, view: &View<'_>, problems: &mut Problems) -> Option<()> {
    let refuse = |message: String, expected: &str, problems: &mut Problems| {
        if let Some(item) = view.get("axes") {
            item.refuse(problems, message, Some(expected.to_owned()));
        }
    };
    let points = match design::count(spec) {
        Ok(points) => points,
        Err(message) => {
            refuse(message, "lists of one length", problems);
            return None;
        }
    };
    if points > u128::from(POINTS.max) {
        let expected = format!("at most {} points", POINTS.max);
        refuse(format!("the axes make {points} points"), &expected, problems);
        return None;
    }
    let runs = points * spec.candidates.len() as u128 * u128::from(spec.repetitions);
    if runs > u128::from(MAX_RUNS) {
        let message = format!(
            "{points} points, {} candidates and {} repetitions are {runs} runs",
            spec.candidates.len(),
            spec.repetitions
        );
        let expected = format!("at most {MAX_RUNS} runs");
        match view.get("repetitions") {
            Some(item) => item.refuse(problems, message, Some(expected)),
            None => refuse(message, &expected, problems),
        }
        return None;
    }
    Some(())
}

fn axes(item: &Item<'_>, is_drawn: bool, text: &str, problems: &mut Problems) -> Option<Vec<Axis>> {
    let entries = listed(item, &Shape::List(&Shape::Table(AXIS)), problems)?;
    if let Some(first) = entries.get(MAX_AXES) {
        let expected = format!("at most {MAX_AXES} axes; `[set]` sets keys that do not change");
        first.refuse(problems, format!("the sweep has {} axes", entries.len()), Some(expected));
        return None;
    }
    let read: Vec<_> = entries.iter().map(|entry| axis(entry, is_drawn, text, problems)).collect();
    let read: Vec<Axis> = read.into_iter().collect::<Option<_>>()?;
    for (n, axis) in read.iter().enumerate() {
        if read[..n].iter().any(|other| other.key == axis.key) {
            let expected = Some("one axis for each key".to_owned());
            entries[n].refuse(problems, format!("there is another axis for `{}`", axis.key), expected);
        }
    }
    Some(read)
}

fn axis(item: &Item<'_>, is_drawn: bool, text: &str, problems: &mut Problems) -> Option<Axis> {
    let view = item.table(AXIS, problems)?;
    let key = view.require("key", problems)?.text(problems)?.trim().to_owned();
    let scale = match view.get("scale") {
        Some(item) if item.choice(SCALES, problems)? == "log" => Scale::Log,
        _ => Scale::Linear,
    };
    if let Some(values) = view.get("values") {
        for other in ["from", "to", "count", "scale"] {
            if let Some(item) = view.get(other) {
                item.refuse(problems, format!("`{other}` is for ranges, but the axis has `values`"), None);
            }
        }
        let entries = listed(&values, &Shape::List(&Shape::Text), problems)?;
        let values = entries.iter().map(|entry| value(entry, text, problems)).collect::<Option<_>>()?;
        return Some(Axis { key, values: Values::List(values) });
    }
    if view.get("from").is_none() && view.get("to").is_none() {
        view.missing("values", problems);
        return None;
    }
    let (from, to) = (view.require("from", problems)?, view.require("to", problems)?);
    let ends = (value(&from, text, problems)?, value(&to, text, problems)?);
    let range = match Range::new(&ends.0, &ends.1, scale) {
        Ok(range) => range,
        Err(message) => {
            let expected = "two values of one kind: quantities with units, numbers, or percentages";
            to.refuse(problems, message, Some(expected.to_owned()));
            return None;
        }
    };
    let values = match (view.get("count"), is_drawn) {
        (None, true) => Values::Between(range),
        (Some(item), true) => {
            item.refuse(problems, "a latin hypercube draws from the range", Some("no `count`".to_owned()));
            return None;
        }
        (None, false) => {
            view.missing("count", problems);
            return None;
        }
        (Some(item), false) => {
            let count = item.count(STEPS, problems)?;
            Values::List((0..count).map(|n| range.at(n as f64 / (count - 1) as f64)).collect())
        }
    };
    Some(Axis { key, values })
}

/// A value as text for `--set`.
fn value(item: &Item<'_>, text: &str, problems: &mut Problems) -> Option<String> {
    match &item.node.value {
        // Text that would be read as something else keeps its quotes.
        Value::Text(words) if document::parse_value(words, 0, 0).is_none() => Some(words.clone()),
        Value::Date => {
            item.mismatch(problems, &Shape::Text);
            None
        }
        _ => written(item.node, text).map(str::to_owned),
    }
}

/// A value as written in the file.
fn written<'a>(node: &Node, text: &'a str) -> Option<&'a str> {
    text.get(node.span.start..node.span.end)
}

/// Values by their paths. A table sets each of its keys, so that a path may be written with or without quotes.
fn settings(item: &Item<'_>, text: &str, problems: &mut Problems) -> Option<Vec<Setting>> {
    fn walk(item: &Item<'_>, path: &str, text: &str, problems: &mut Problems, found: &mut Vec<Setting>) -> Option<()> {
        let Value::Table(table) = &item.node.value else {
            found.push(Setting { key: path.to_owned(), value: value(item, text, problems)? });
            return Some(());
        };
        for entry in &table.entries {
            let below = Item { node: &entry.node, path: join(&item.path, &entry.key) };
            walk(&below, &join(path, &entry.key), text, problems, found)?;
        }
        Some(())
    }
    if !matches!(item.node.value, Value::Table(_)) {
        item.refuse(problems, format!("`{}` is not a table", item.path), Some("keys and values".to_owned()));
        return None;
    }
    let mut found = Vec::new();
    walk(item, "", text, problems, &mut found)?;
    if found.len() > MAX_SETTINGS {
        let expected = format!("at most {MAX_SETTINGS} keys; a scenario file takes any number");
        item.refuse(problems, format!("`{}` sets {} keys", item.path, found.len()), Some(expected));
        return None;
    }
    Some(found)
}

fn stop(item: &Item<'_>, problems: &mut Problems) -> Option<Stop> {
    let view = item.table(STOP, problems)?;
    let given = view.require("tolerance", problems)?;
    let words = given.text(problems)?;
    let tolerance = Tolerance::parse(words);
    if tolerance.is_none() {
        let expected =
            "a time such as \"50 ms\", a rate such as \"100 kbit/s\", or a share such as \"2 %\", above zero";
        given.refuse(problems, format!("`{words}` is not a tolerance"), Some(expected.to_owned()));
    }
    let min = view.get("min").map_or(Some(DEFAULT_MIN), |item| item.count(MIN, problems));
    Some(Stop { tolerance: tolerance?, min: min? as u32 })
}
