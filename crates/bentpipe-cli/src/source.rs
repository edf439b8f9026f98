//! Loads a scenario from a file, the binary or standard input, and applies changes.

use std::cell::RefCell;
use std::path::Path;

use bentpipe_language::suggest::did_you_mean;
use bentpipe_language::text;
use bentpipe_study::scenario::{FlowKind, FlowSpec, ReadFile, Scenario, ScenarioError, ScenarioErrors, Workload};

use crate::args::World;
pub use crate::complete::AS_WRITTEN;
use crate::failure::{Failure, warned};
use crate::output::Inputs;
use crate::shipped;

/// The scenario with its changes. A file takes precedence over a shipped scenario of the same name. `inputs` gets the scenario's file and
/// the traces that it names.
pub(crate) fn load(world: &World, inputs: &mut Inputs) -> Result<Scenario, Failure> {
    let scenario = load_links(world, inputs)?;
    if scenario.flows.is_empty() {
        let help = "add a [[flows]], or use `emulate` or `shell`, which need none".to_owned();
        return Err(Failure::usage(format!("`{}` has no flows", world.file), Some(help)));
    }
    Ok(scenario)
}

/// The same for commands that need no flows.
pub(crate) fn load_links(world: &World, inputs: &mut Inputs) -> Result<Scenario, Failure> {
    let scenario = read(&world.file, &world.sets, inputs)?;
    Ok(match world.seed {
        Some(seed) => scenario.with_seed(seed),
        None => scenario,
    })
}

/// The same, with another variant for all TCP connections.
pub(crate) fn load_with_variant(
    world: &World,
    variant: Option<&str>,
    inputs: &mut Inputs,
) -> Result<Scenario, Failure> {
    let scenario = load(world, inputs)?;
    match variant {
        Some(variant) => with_variant(&scenario, variant),
        None => checked(scenario),
    }
}

/// The scenario, if its variants are those that will run, and give all controls the samples that these need.
///
/// # Errors
/// Wrong usage if a control, or an end of slow start, would have no effect.
fn checked(scenario: Scenario) -> Result<Scenario, Failure> {
    match scenario.check_samples() {
        Ok(()) => Ok(scenario),
        Err(lacking) => Err(Failure::usage(lacking, None)),
    }
}

/// The scenario with another variant for all TCP connections.
///
/// # Errors
/// Wrong usage, with the names that there are, if there is no such variant, and if it is one of TCP and no connection is.
pub fn with_variant(scenario: &Scenario, variant: &str) -> Result<Scenario, Failure> {
    let changed = scenario.with_variant(variant).map_err(|unknown| {
        let names = [&scenario.variant_names(), Scenario::QUIC_VARIANTS].concat();
        let help = did_you_mean(variant, names.iter().copied());
        Failure::usage(unknown, Some(help.unwrap_or_else(|| format!("expected one of {}", names.join(", ")))))
    })?;
    if scenario.variant_names().contains(&variant) && !scenario.flows.is_empty() && !scenario.flows.iter().any(has_tcp)
    {
        let quic = scenario.flows.iter().any(|flow| matches!(flow.kind, FlowKind::Quic(_)));
        let help = quic.then(|| format!("expected one of {}", Scenario::QUIC_VARIANTS.join(", ")));
        return Err(Failure::usage(format!("no flow uses TCP, so `{variant}` would change nothing"), help));
    }
    checked(changed)
}

/// True if the flow has a TCP connection, on any of its legs.
fn has_tcp(flow: &FlowSpec) -> bool {
    matches!(&flow.kind, FlowKind::Tcp(tcp) if tcp.stp.is_none() || tcp.splits.iter().any(|leg| leg.stp.is_none()))
}

/// The scenario with hosts of the profile `linux` and this variant.
///
/// # Errors
/// Wrong usage, with the names that there are, if there is no such variant.
pub fn with_hosts(scenario: Scenario, variant: &str) -> Result<Scenario, Failure> {
    if variant == AS_WRITTEN {
        return Ok(scenario);
    }
    scenario.with_hosts("linux", variant).map_err(|unknown| {
        let names = scenario.variant_names();
        let help = did_you_mean(variant, names.iter().copied());
        Failure::usage(
            unknown,
            Some(help.unwrap_or_else(|| format!("expected `{AS_WRITTEN}` or one of {}", names.join(", ")))),
        )
    })
}

fn read(file: &str, sets: &[(String, String)], inputs: &mut Inputs) -> Result<Scenario, Failure> {
    let inputs = RefCell::new(inputs);
    let read = |path: &Path| {
        inputs.borrow_mut().add(path);
        text::read(path)
    };
    open_with(file, sets, &read).map(warned)
}

/// The scenario of this name with its warnings: a file, one of those shipped, or `-` for standard input.
///
/// # Errors
/// Wrong usage if no file and no shipped scenario has this name. Otherwise all mistakes in the scenario.
pub fn open(file: &str, sets: &[(String, String)]) -> Result<(Scenario, ScenarioErrors), Failure> {
    open_with(file, sets, &text::read)
}

fn open_with(file: &str, sets: &[(String, String)], read: ReadFile<'_>) -> Result<(Scenario, ScenarioErrors), Failure> {
    let path = Path::new(file);
    // A folder hides no shipped scenario: `run transat` also works beside the folder `transat`.
    let is_shipped = !path.exists() || path.is_dir() && shipped::text(file).is_some();
    let (text, name) = if file != "-" && !is_shipped {
        let unread = |error: std::io::Error| ScenarioError::without_place(file, error.to_string());
        (read(path).map_err(|error| Failure::Scenario(ScenarioErrors(vec![unread(error)])))?, file.to_owned())
    } else {
        text(file)?
    };
    Scenario::parse_with_files(&text, &name, sets, read).map_err(Failure::Scenario)
}

/// Name of the transfer for which a system is recommended: the first of TCP with a length.
pub fn transfer(scenario: &Scenario) -> Option<&str> {
    let is_transfer = |flow: &&FlowSpec| {
        matches!(flow.kind, FlowKind::Tcp(_)) && matches!(flow.kind.workload(), Some(Workload::Bulk(_)))
    };
    scenario.flows.iter().find(is_transfer).map(|flow| flow.name.as_str())
}

/// The text of a scenario from any source, and its name in errors.
///
/// # Errors
/// Wrong usage if no file and no shipped scenario has this name, or if the text cannot be read.
pub fn text(file: &str) -> Result<(String, String), Failure> {
    if file == "-" {
        let read = text::from(std::io::stdin().lock());
        let text = read.map_err(|error| Failure::usage(format!("standard input: {error}"), None))?;
        return Ok((text, "standard-input".to_owned()));
    }
    let unread = match text::read(Path::new(file)) {
        Ok(text) => return Ok((text, file.to_owned())),
        Err(error) => error,
    };
    // A file that cannot be read is not replaced by a shipped scenario.
    let is_file = Path::new(file).exists() && !Path::new(file).is_dir();
    let Some(text) = shipped::text(file).filter(|_| !is_file) else {
        // A folder on its way may be closed to this user.
        if unread.kind() != std::io::ErrorKind::NotFound {
            return Err(Failure::usage(format!("{file}: {unread}"), None));
        }
        let names = shipped::SHIPPED.iter().map(|(name, _)| *name);
        let help = did_you_mean(file, names).unwrap_or_else(|| "`bentpipe scenarios` lists those shipped".to_owned());
        return Err(Failure::usage(
            format!("there is no file `{file}` and no shipped scenario of that name"),
            Some(help),
        ));
    };
    Ok((text.to_owned(), format!("{file}.toml")))
}

/// The arguments that reproduce the scenario.
pub(crate) fn arguments(world: &World, variant: Option<&str>, seed: u64) -> Vec<String> {
    let mut arguments = vec![world.file.clone()];
    arguments.extend(world.sets.iter().flat_map(|(key, value)| ["--set".to_owned(), format!("{key}={value}")]));
    arguments.extend(variant.into_iter().flat_map(|variant| ["--variant".to_owned(), variant.to_owned()]));
    arguments.extend(["--seed".to_owned(), seed.to_string()]);
    arguments
}
