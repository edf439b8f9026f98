//! Turns a [`Scenario`] into text. Reading the text gives an equal value.

use toml::{Table, Value};

use crate::scenario::boxes;
use crate::scenario::model::{Gateways, HostSpec, Scenario};

mod flows;
mod gateways;
mod layers;
mod links;
mod moves;
mod tcp;
mod values;

use flows::flow;
use layers::layer;
use links::link;
use tcp::overrides;
use values::{distribution, duration, integer, text};

pub(crate) fn scenario(scenario: &Scenario) -> String {
    let scenario = &boxes::uncrossed(scenario);
    let mut root = Table::new();
    root.insert("name".into(), text(&scenario.name));
    root.insert("description".into(), text(&scenario.description));
    if let Some(source) = &scenario.source {
        root.insert("source".into(), text(source));
    }
    root.insert("seed".into(), integer(scenario.seed));
    root.insert("time_limit".into(), duration(scenario.time_limit));
    if !scenario.variants.is_empty() {
        let rows = scenario.variants.iter().map(|(name, row)| {
            let mut written = Table::new();
            written.insert("base".into(), text(&row.base));
            written.insert("description".into(), text(&row.description));
            written.extend(overrides(&row.overrides));
            (name.clone(), Value::Table(written))
        });
        root.insert("variants".into(), Value::Table(rows.collect()));
    }
    let spoken_of = scenario.nodes.iter().zip(&scenario.hosts).filter_map(|(name, host)| {
        let HostSpec { processing, forwarding } = host;
        let said = [("processing", processing), ("forwarding", forwarding)];
        let said: Vec<_> =
            said.into_iter().filter_map(|(key, time)| Some((key, distribution(time.as_ref()?)))).collect();
        let said: Table = said.into_iter().map(|(key, time)| (key.to_owned(), time)).collect();
        (!said.is_empty()).then(|| (name.clone(), Value::Table(said)))
    });
    let spoken_of: Table = spoken_of.collect();
    if !spoken_of.is_empty() {
        root.insert("nodes".into(), Value::Table(spoken_of));
    }
    root.insert("links".into(), Value::Array(scenario.links.iter().map(|spec| link(spec, scenario)).collect()));
    if !scenario.layers.is_empty() {
        root.insert("layers".into(), Value::Array(scenario.layers.iter().map(|spec| layer(spec, scenario)).collect()));
    }
    if !scenario.gateways.is_empty() {
        let Gateways { pairs, uplinks } = &scenario.gateways;
        let pairs = pairs.iter().map(|spec| gateways::pair(spec, scenario));
        let uplinks = uplinks.iter().map(|spec| gateways::uplink(spec, scenario));
        root.insert("gateways".into(), Value::Array(pairs.chain(uplinks).collect()));
    }
    if !scenario.flows.is_empty() {
        root.insert("flows".into(), Value::Array(scenario.flows.iter().map(|spec| flow(spec, scenario)).collect()));
    }
    toml::to_string(&root).expect("text, numbers and tables can always be written")
}
