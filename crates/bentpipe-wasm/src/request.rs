//! What a page can ask.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use bentpipe_sim::recommend::{System, equipped};
use bentpipe_study::scenario::{FlowId, Scenario};
use serde::Deserialize;

use crate::knobs::{Knobs, Satellite};

/// A request.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Request {
    /// The version, the variants and the systems.
    About,
    /// A scenario with its changes, not run.
    Look(World),
    /// A run and its plots.
    Run(Box<Run>),
    /// A run, its summary, and the hash of all its packets.
    Fingerprint(Fingerprint),
}

/// A scenario and changes to it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct World {
    /// Its text.
    pub(crate) text: String,
    /// Its name in errors.
    pub(crate) name: String,
    /// Files that the text names, by path.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// The flow to show.
    #[serde(default)]
    pub(crate) flow: usize,
    /// Name of the link that `knobs` change: the satellite's, see [`Satellite::of`].
    #[serde(default)]
    pub(crate) link: Option<String>,
    /// Changes.
    #[serde(default)]
    pub(crate) knobs: Knobs,
}

/// One run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Run {
    /// The scenario.
    pub(crate) world: World,
    /// TCP variant of all flows, as `bentpipe run --variant`; the scenario's own without.
    #[serde(default)]
    pub(crate) variant: Option<String>,
    /// System on the path, as in `bentpipe recommend`.
    #[serde(default)]
    pub(crate) system: Option<Name>,
    /// Seconds that are drawn: from, to; the whole run without.
    #[serde(default)]
    pub(crate) window: Option<(f64, f64)>,
    /// Width and height of the plots in points.
    pub(crate) size: (u32, u32),
    /// Max number of events: [`Run::EVENTS`] without.
    #[serde(default)]
    pub(crate) max_events: Option<u64>,
}

/// A run without plots.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fingerprint {
    /// The scenario.
    pub(crate) world: World,
    /// Ends the run earlier, seconds.
    #[serde(default)]
    pub(crate) limit_s: Option<u64>,
}

/// A [`System`] by its name in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Name {
    /// [`System::Plain`].
    Plain,
    /// [`System::Bbr`].
    Bbr,
    /// [`System::Uplink`].
    Uplink,
    /// [`System::Link`].
    Link,
    /// [`System::Split`].
    Split,
}

impl Name {
    const fn system(self) -> System {
        match self {
            Name::Plain => System::Plain,
            Name::Bbr => System::Bbr,
            Name::Uplink => System::Uplink,
            Name::Link => System::Link,
            Name::Split => System::Split,
        }
    }
}

/// A scenario that was read.
#[derive(Debug)]
pub(crate) struct Read {
    /// It, with its changes.
    pub(crate) scenario: Scenario,
    /// The link that they change.
    pub(crate) satellite: Satellite,
    /// Warnings as the command prints them.
    pub(crate) warnings: String,
}

impl World {
    /// The scenario with its changes.
    ///
    /// # Errors
    /// Returns all mistakes in the scenario, as the command prints them, or the number of a flow that does not exist.
    pub(crate) fn scenario(&self) -> Result<Read, String> {
        let (before, warnings) = self.read(&self.text, &self.name)?;
        if self.flow >= before.flows.len() {
            return Err(format!("there is no flow {}", self.flow));
        }
        // Of the scenario before its changes: after one another link may have the longest delay.
        let flow = FlowId::from(self.flow);
        let satellite = Satellite::of(&before, flow, self.link.as_deref())?;
        if self.knobs.are_idle() {
            return Ok(Read { scenario: before, satellite, warnings });
        }
        let text = self.knobs.turned(&before, flow, satellite)?.to_toml();
        // Read again, so that what follows from the path (timers, windows) follows the new one.
        Ok(Read { scenario: self.read(&text, &self.name)?.0, satellite, warnings })
    }

    fn read(&self, text: &str, name: &str) -> Result<(Scenario, String), String> {
        let file = |path: &Path| {
            let text = path.to_str().and_then(|path| self.files.get(path)).cloned();
            text.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "a page has no files"))
        };
        let read = Scenario::parse_with_files(text, name, &[], &file);
        let (scenario, warnings) = read.map_err(|errors| errors.render(false))?;
        Ok((scenario, if warnings.0.is_empty() { String::new() } else { warnings.render(false) }))
    }
}

impl Run {
    /// Default of `max_events`: some seconds.
    pub(crate) const EVENTS: u64 = 1 << 25;
    /// Bounds of the sizes of plots.
    pub(crate) const SIZES: std::ops::RangeInclusive<u32> = 16..=4096;

    /// The scenario with its variant and system, and the satellite link.
    ///
    /// # Errors
    /// Returns the mistakes of the scenario, an unknown variant, or why the system does not fit the path.
    pub(crate) fn scenario(&self) -> Result<(Scenario, Satellite), String> {
        let Read { mut scenario, satellite, .. } = self.world.scenario()?;
        if let Some(variant) = &self.variant {
            scenario = scenario.with_variant(variant).map_err(|unknown| unknown.to_string())?;
        }
        scenario.check_samples().map_err(|lacking| lacking.to_string())?;
        match self.system {
            None | Some(Name::Plain) => {}
            Some(name) => scenario = equipped(&scenario, name.system()).map_err(|unfit| unfit.to_string())?,
        }
        // A system adds no links.
        Ok((scenario, satellite))
    }
}
