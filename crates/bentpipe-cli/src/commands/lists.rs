//! `bentpipe scenarios`, `variants` and `schema`.

use bentpipe_engine::tcp::variant::{Startup, VARIANTS};
use bentpipe_study::scenario::{Scenario, schema as scenario_schema};
use serde::Serialize;

use super::explain::recovery;
use super::linux::gateway_schema;
use crate::args::{Language, List, Schema, Variants, World};
use crate::failure::{End, Failure};
use crate::output::{self, Inputs};
use crate::shipped::SHIPPED;
use crate::source;

/// A name and what it stands for.
#[derive(Serialize)]
struct Named {
    name: String,
    description: String,
    /// The variant that one of a scenario is built on.
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<String>,
}

pub(crate) fn scenarios(args: &List) -> Result<End, Failure> {
    let mut all = Vec::new();
    for (name, text) in SHIPPED {
        let scenario = Scenario::parse(text, name, &[]).map_err(Failure::Scenario)?;
        all.push(Named { name: (*name).to_owned(), description: scenario.description, base: None });
    }
    if args.json {
        output::print_json(&all)?;
        return Ok(End::Done);
    }
    let rows = all.into_iter().map(|one| vec![one.name, one.description]);
    let table = output::wrapped(&["scenario", "description"], rows);
    let use_it = "Run one with `bentpipe run NAME`. Copy one with `bentpipe explain --resolved NAME > FILE`.\n";
    output::print(&format!("{table}\n\n{}", output::prose(use_it)))?;
    Ok(End::Done)
}

/// Columns of a terminal in which the settings of variants fit beside their descriptions.
const WIDE: u16 = 160;

pub(crate) fn variants(args: &Variants) -> Result<End, Failure> {
    if args.json {
        return variants_json(args);
    }
    let is_narrow = output::width().is_some_and(|width| width < WIDE);
    let rows = VARIANTS.iter().map(|(name, meaning, row)| {
        if is_narrow {
            return vec![(*name).to_owned(), (*meaning).to_owned()];
        }
        let on = |flag: bool| if flag { "yes" } else { "–" }.to_owned();
        vec![
            (*name).to_owned(),
            match row.startup {
                Startup::SlowStart => row.initial_window.to_string(),
                Startup::FixedWindow(_) => "the path's".to_owned(),
            },
            row.congestion.describe(row.growth),
            recovery(row.recovery),
            on(row.sack),
            on(row.limited_transmit),
            on(row.frto),
            (*meaning).to_owned(),
        ]
    });
    let header: &[&str] = match is_narrow {
        true => &["variant", "description"],
        false => &["variant", "window", "growth", "recovery", "SACK", "limited transmit", "F-RTO", "description"],
    };
    let mut text = output::wrapped(header, rows);
    if let Some(file) = &args.file {
        let scenario =
            source::load_links(&World { file: file.clone(), sets: Vec::new(), seed: None }, &mut Inputs::default())?;
        let own =
            scenario.variants.iter().map(|(name, row)| vec![name.clone(), row.base.clone(), row.description.clone()]);
        let header = ["variant", "built on", "description"];
        text = format!("{text}\n\nVariants of {}:\n\n{}", scenario.name, output::table(&header, header.len(), own));
    }
    let quic = Scenario::QUIC_VARIANTS.join(", ");
    let notes = format!(
        "The same transfers by QUIC: {quic}.\n\n`bentpipe explain FILE --variant NAME` shows every setting.{}\n",
        if is_narrow {
            ""
        } else {
            " The window \"the path's\" is the path's capacity in segments, unless `fixed_window` is set."
        }
    );
    output::print(&format!("{text}\n\n{}", output::prose(&notes)))?;
    Ok(End::Done)
}

fn variants_json(args: &Variants) -> Result<End, Failure> {
    let named = |name: &str, description: &str, base: Option<&String>| Named {
        name: name.to_owned(),
        description: description.to_owned(),
        base: base.cloned(),
    };
    let mut all: Vec<_> = VARIANTS.iter().map(|(name, meaning, _)| named(name, meaning, None)).collect();
    if let Some(file) = &args.file {
        let scenario =
            source::load_links(&World { file: file.clone(), sets: Vec::new(), seed: None }, &mut Inputs::default())?;
        all.extend(scenario.variants.iter().map(|(name, row)| named(name, &row.description, Some(&row.base))));
    }
    output::print_json(&all)?;
    Ok(End::Done)
}

pub(crate) fn schema(args: &Schema) -> Result<End, Failure> {
    output::print_json(&match args.language {
        Language::Scenario => scenario_schema(),
        Language::Gateway => gateway_schema()?,
        Language::Sweep => bentpipe_sweep::schema(),
    })?;
    Ok(End::Done)
}
