//! How the settings of a connection come about, layer on layer.
//!
//! 1. The profile.
//! 2. The variant's row of the engine's table, as the profile changes it.
//! 3. The scenario's own rows on top of it (`[variants.NAME]`).
//! 4. What is set explicitly: `[tcp]`, then the flow's `tcp`.
//!
//! Layers 3 and 4 may set both ends at once, or one (`sender`, `receiver`). Explicit settings survive a change of
//! variant.

use std::collections::BTreeMap;
use std::fmt;

use bentpipe_engine::tcp::{TcpConfig, Variant};

use super::profile::{Profile, profile};
use super::settings::{Cell, SETTINGS, Setting};

/// The rows of the engine's table and of a scenario, by name.
pub type Variants = BTreeMap<String, VariantRow>;

/// A row of a scenario's own: `[variants.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantRow {
    /// The row it is built on: another of the scenario's, or one of the engine's table. Its own name means the
    /// engine's.
    pub base: String,
    /// What it is, for people.
    pub description: String,
    /// What it changes.
    pub overrides: TcpOverrides,
}

/// Settings that are given, of all that there are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TcpOverrides {
    /// For both ends.
    pub both: BTreeMap<&'static str, Cell>,
    /// For the sender, the end at `from`.
    pub sender: BTreeMap<&'static str, Cell>,
    /// For the receiver, the end at `to`.
    pub receiver: BTreeMap<&'static str, Cell>,
}

/// One end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// The end at `from`.
    Sender,
    /// The end at `to`.
    Receiver,
}

impl TcpOverrides {
    /// Whether nothing is given.
    pub fn is_empty(&self) -> bool {
        self.both.is_empty() && self.sender.is_empty() && self.receiver.is_empty()
    }

    /// These settings with `upper` laid over them.
    pub fn overlaid(&self, upper: &TcpOverrides) -> TcpOverrides {
        let mut result = self.clone();
        for (key, cell) in &upper.both {
            // What is said later for both ends replaces what was said earlier for one.
            result.sender.remove(key);
            result.receiver.remove(key);
            result.both.insert(key, *cell);
        }
        result.sender.extend(&upper.sender);
        result.receiver.extend(&upper.receiver);
        result
    }

    fn cell(&self, end: End, key: &str) -> Option<Cell> {
        let own = match end {
            End::Sender => &self.sender,
            End::Receiver => &self.receiver,
        };
        own.get(key).or_else(|| self.both.get(key)).copied()
    }

    /// Puts the settings of one end into a configuration; answers those that mean nothing in it.
    fn apply(&self, end: End, config: &mut TcpConfig) -> Vec<&'static str> {
        let mut idle = Vec::new();
        for Setting { key, set, .. } in SETTINGS {
            if let Some(cell) = self.cell(end, key)
                && !set(config, cell)
            {
                idle.push(*key);
            }
        }
        idle
    }

    /// What turns one pair of configurations, sender's and receiver's, into another.
    pub fn between(from: &(TcpConfig, TcpConfig), to: &(TcpConfig, TcpConfig)) -> TcpOverrides {
        let mut difference = TcpOverrides::default();
        for Setting { key, get, .. } in SETTINGS {
            let changed = |from: &TcpConfig, to: &TcpConfig| get(to).filter(|cell| get(from) != Some(*cell));
            match (changed(&from.0, &to.0), changed(&from.1, &to.1)) {
                (Some(sender), Some(receiver)) if sender == receiver => {
                    difference.both.insert(key, sender);
                }
                (sender, receiver) => {
                    difference.sender.extend(sender.map(|cell| (*key, cell)));
                    difference.receiver.extend(receiver.map(|cell| (*key, cell)));
                }
            }
        }
        difference
    }
}

/// A name that stands for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnknownName {
    /// No profile has this name.
    Profile(String),
    /// No variant has this name.
    Variant(String),
    /// The row is built on itself, by way of others.
    Cycle(String),
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnknownName::Profile(name) => write!(f, "there is no profile `{name}`"),
            UnknownName::Variant(name) => write!(f, "there is no variant `{name}`"),
            UnknownName::Cycle(name) => write!(f, "the variant `{name}` is built on itself"),
        }
    }
}

impl std::error::Error for UnknownName {}

/// Both ends, and the settings that were given but mean nothing.
pub struct Resolved {
    /// The sender's configuration and the receiver's.
    pub ends: (TcpConfig, TcpConfig),
    /// Settings that mean nothing in the configuration of their end.
    pub idle: Vec<(End, &'static str)>,
}

/// The engine's row under a variant, and the scenario's rows on the way to it, outermost first.
fn chain<'v>(name: &str, variants: &'v Variants) -> Result<(Variant, Vec<&'v VariantRow>), UnknownName> {
    let mut rows = Vec::new();
    let mut at = name;
    while let Some(row) = variants.get(at) {
        rows.push(row);
        if rows.len() > variants.len() {
            return Err(UnknownName::Cycle(name.to_owned()));
        }
        if row.base == at {
            break;
        }
        at = &row.base;
    }
    let last = rows.last().map_or(name, |row| &row.base);
    let variant = Variant::named(last).ok_or_else(|| UnknownName::Variant(last.to_owned()))?;
    rows.reverse();
    Ok((variant, rows))
}

/// Lays all layers on each other.
pub fn resolve(
    profile: &Profile,
    variant: &str,
    variants: &Variants,
    explicit: &TcpOverrides,
) -> Result<Resolved, UnknownName> {
    let (row, rows) = chain(variant, variants)?;
    let start = profile.with_row(row);
    let mut idle = Vec::new();
    let mut end = |end: End| {
        let mut config = start;
        rows.iter().for_each(|row| {
            row.overrides.apply(end, &mut config);
        });
        idle.extend(explicit.apply(end, &mut config).into_iter().map(|key| (end, key)));
        let layers = rows.iter().map(|row| &row.overrides).chain([explicit]);
        let given = layers.into_iter().any(|layer| layer.cell(end, "initial_ssthresh").is_some());
        if profile.ssthresh_is_clamp && !given {
            config.initial_ssthresh = config.window_clamp;
        }
        config
    };
    let ends = (end(End::Sender), end(End::Receiver));
    Ok(Resolved { ends, idle })
}

/// The two ends of a connection: the sender at `from`, the receiver at `to`.
pub fn resolve_tcp(
    profile_name: &str,
    variant: &str,
    variants: &Variants,
    explicit: &TcpOverrides,
) -> Result<(TcpConfig, TcpConfig), UnknownName> {
    let profile = profile(profile_name).ok_or_else(|| UnknownName::Profile(profile_name.to_owned()))?;
    Ok(resolve(profile, variant, variants, explicit)?.ends)
}

/// Whether the window of a fixed one is given nowhere, of both ends: not explicitly, nor in a row of the scenario.
pub fn lacks_window(variant: &str, variants: &Variants, explicit: &TcpOverrides) -> [bool; 2] {
    let rows = chain(variant, variants).map(|(_, rows)| rows).unwrap_or_default();
    [End::Sender, End::Receiver].map(|end| {
        let mut layers = rows.iter().map(|row| &row.overrides).chain([explicit]);
        !layers.any(|layer| layer.cell(end, "fixed_window").is_some())
    })
}

/// What cannot work together in the settings of one end: the key to blame, and why.
pub fn contradictions(config: &TcpConfig) -> Vec<(&'static str, String)> {
    use crate::quantity::format_duration as text;
    use bentpipe_engine::tcp::variant::Recovery;
    let mut found = Vec::new();
    let rto = &config.rto;
    if rto.min > rto.max {
        found.push(("rto.min", format!("`rto.min` {} is more than `rto.max` {}", text(rto.min), text(rto.max))));
    }
    if rto.initial > rto.max {
        found.push((
            "rto.initial",
            format!("`rto.initial` {} is more than `rto.max` {}", text(rto.initial), text(rto.max)),
        ));
    }
    if matches!(rto.clock, bentpipe_engine::tcp::RttClock::Ticks { tick, .. } if tick.as_nanos() == 0) {
        found.push(("rto.tick", "`rto.tick` cannot be 0 s".to_owned()));
    }
    if matches!(config.variant.recovery, Recovery::Pipe(_)) && !config.variant.sack {
        found.push(("sack", "SACK-based recovery needs `sack = true`".to_owned()));
    }
    if config.timestamps && config.mss <= 12 {
        found.push(("mss", "timestamps take 12 B of each segment: nothing is left for data".to_owned()));
    }
    let buffer = if config.window_scaling { config.receive_buffer } else { config.receive_buffer.min(65_535) };
    if buffer < config.mss as u32 {
        let message = format!("a receive window of {buffer} B cannot hold a segment of {} B", config.mss);
        found.push(("receive_buffer", message));
    }
    found
}
