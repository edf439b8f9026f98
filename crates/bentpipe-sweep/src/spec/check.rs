//! Tries the values of a sweep file on its scenario, so that a mistake is found before the first run and reported at its place
//! in the sweep file.

use bentpipe_language::document::{Node, Value};
use bentpipe_language::error::{Mistake, Problems, ScenarioError, ScenarioErrors, Span};
use bentpipe_language::overrides;
use bentpipe_language::reader::{Item, View};
use bentpipe_language::suggest::did_you_mean;
use bentpipe_sim::record::Measure;
use bentpipe_study::scenario::Scenario;

use super::{Spec, Values};
use crate::candidate::Misfit;
use crate::stop::Tolerance;

/// Maximum values of an axis that are tried one by one. A wrong point beyond them is reported when it is planned.
const TRIED: usize = 100;

/// Tries each value of each axis with the first values of the others, and each candidate at the first point. Returns the
/// scenario of the first point.
///
/// # Errors
/// Returns the scenario's own mistakes. Mistakes in the sweep file go to `problems`.
pub(super) fn values(spec: &Spec, view: &View<'_>, problems: &mut Problems) -> Result<Scenario, ScenarioErrors> {
    let plain = Scenario::parse(&spec.scenario, &spec.scenario_name, &[])?;
    if plain.flows.is_empty()
        && let Some(item) = view.get("scenario")
    {
        item.refuse(problems, "the scenario has no flows", Some("a scenario with [[flows]]".to_owned()));
    }
    let first: Vec<String> = spec.axes.iter().map(|axis| axis.values.first()).collect();
    let axes = view.get("axes");
    let tables: Vec<&Node> = match axes.as_ref().map(|item| &item.node.value) {
        Some(Value::List(list)) => list.iter().collect(),
        _ => Vec::new(),
    };
    if let Err(errors) = Scenario::parse(&spec.scenario, &spec.scenario_name, &spec.sets(&[])[..spec.settings.len()]) {
        if let Some(item) = view.get("set") {
            errors.0.iter().for_each(|error| report(error, setting(&item, &error.key), problems));
        }
        return Ok(plain);
    }
    for (n, axis) in spec.axes.iter().enumerate() {
        let table = tables[n];
        if axis.key == "seed" {
            let mistake = Mistake::new("axes.key", "a sweep draws its seeds itself")
                .expected("`seed` and `repetitions` of the sweep");
            problems.add(entry(table, "key"), mistake);
            continue;
        }
        for (index, value) in axis.values.tried().into_iter().take(TRIED).enumerate() {
            let mut point = first.clone();
            point[n] = value;
            let Err(errors) = Scenario::parse(&spec.scenario, &spec.scenario_name, &spec.sets(&point)) else {
                continue;
            };
            let ours = |error: &&ScenarioError| error.source == overrides::SOURCE && error.key.starts_with(&axis.key);
            let Some(error) = errors.0.iter().find(ours).or(errors.0.first()) else { continue };
            // The text of an override is KEY=VALUE.
            let is_key = error.source == overrides::SOURCE && error.column <= axis.key.chars().count();
            report(error, if is_key { entry(table, "key") } else { value_span(table, index) }, problems);
            if is_key {
                break;
            }
        }
    }
    if problems.count() > 0 {
        return Ok(plain);
    }
    let scenario = Scenario::parse(&spec.scenario, &spec.scenario_name, &spec.sets(&first))?;
    candidates(spec, &scenario, view, problems);
    tolerance(spec, &scenario, view, problems);
    Ok(scenario)
}

/// Reports the mistake of an override at its place in the sweep file.
fn report(error: &ScenarioError, span: Span, problems: &mut Problems) {
    let message = match error.source == overrides::SOURCE {
        true => error.message.clone(),
        // A consequence of the value elsewhere in the scenario.
        false => format!("{} ({}, line {})", error.message, error.source, error.line),
    };
    let mut mistake = Mistake::new(&error.key, message).help(error.help.clone());
    mistake.expected.clone_from(&error.expected);
    problems.add(span, mistake);
}

fn candidates(spec: &Spec, scenario: &Scenario, view: &View<'_>, problems: &mut Problems) {
    for candidate in &spec.candidates {
        let Err(misfit) = candidate.put_into(scenario) else { continue };
        let (list, word, help) = match &misfit {
            Misfit::Variant(_) => {
                let names = scenario.variant_names();
                let word = candidate.variant.as_deref().unwrap_or_default();
                let near = did_you_mean(word, names.iter().copied());
                ("variants", word, Some(near.unwrap_or_else(|| format!("the variants are {}", names.join(", ")))))
            }
            Misfit::Samples(_) => ("variants", candidate.variant.as_deref().unwrap_or_default(), None),
            Misfit::Gateway(_) => ("gateways", candidate.gateway.unwrap_or_default(), None),
        };
        let Some(item) = view.get(list).or(view.get("scenario")) else { continue };
        let span = match &item.node.value {
            Value::List(entries) => {
                let is_it = |node: &&Node| matches!(&node.value, Value::Text(text) if text == word);
                entries.iter().find(is_it).map_or(item.node.span, |node| node.span)
            }
            _ => item.node.span,
        };
        problems.add(span, Mistake::new(list, misfit.to_string()).help(help));
    }
}

/// A tolerance in seconds is for times, one in bits per second for goodput.
fn tolerance(spec: &Spec, scenario: &Scenario, view: &View<'_>, problems: &mut Problems) {
    let Some(stop) = &spec.stop else { return };
    let expected = match (stop.tolerance, Measure::of(scenario)) {
        (Tolerance::Rate(_), Measure::SlowestTimeS) => {
            "a time or a share: what is compared is the time of the slowest transfer"
        }
        (Tolerance::Time(_), Measure::GoodputBitS) => "a rate or a share: no flow ends, so goodput is compared",
        _ => return,
    };
    if let Some(item) = view.get("stop") {
        let mistake = Mistake::new("stop.tolerance", "the tolerance is not in the unit of the compared quantity")
            .expected(expected);
        problems.add(entry(item.node, "tolerance"), mistake);
    }
}

/// The place of a key's value, or of the table without it.
fn entry(node: &Node, key: &str) -> Span {
    match &node.value {
        Value::Table(table) => table.get(key).map_or(node.span, |entry| entry.node.span),
        _ => node.span,
    }
}

/// Where an axis has its n-th tried value.
fn value_span(table: &Node, index: usize) -> Span {
    let Value::Table(entries) = &table.value else { return table.span };
    match entries.get("values").map(|entry| &entry.node) {
        Some(Node { value: Value::List(list), span }) => list.get(index).map_or(*span, |node| node.span),
        _ => entry(table, if index == 0 { "from" } else { "to" }),
    }
}

/// Where `[set]` has this key, written as one or as tables.
fn setting(item: &Item<'_>, key: &str) -> Span {
    fn find(node: &Node, key: &str) -> Option<Span> {
        let Value::Table(table) = &node.value else { return None };
        if let Some(entry) = table.get(key) {
            return Some(entry.node.span);
        }
        let splits = key.match_indices('.').map(|(at, _)| (&key[..at], &key[at + 1..]));
        splits.into_iter().find_map(|(step, rest)| {
            let entry = table.get(step)?;
            Some(find(&entry.node, rest).unwrap_or(entry.node.span))
        })
    }
    find(item.node, key).unwrap_or(item.node.span)
}

impl Values {
    /// The first value.
    fn first(&self) -> String {
        match self {
            Values::List(list) => list.first().cloned().unwrap_or_default(),
            Values::Between(range) => range.at(0.0),
        }
    }

    /// The values of a list, or the ends of a range.
    fn tried(&self) -> Vec<String> {
        match self {
            Values::List(list) => list.clone(),
            Values::Between(range) => vec![range.at(0.0), range.at(1.0)],
        }
    }
}
