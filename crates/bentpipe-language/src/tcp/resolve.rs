//! Resolves the settings of a connection from layers:
//!
//! 1. The profile.
//! 2. The variant's row of the engine's table, as changed by the profile.
//! 3. The scenario's own rows (`[variants.NAME]`).
//! 4. Explicit settings: `[tcp]`, then the flow's `tcp`.
//!
//! Layers 3 and 4 may set both ends or one (`sender`, `receiver`). Explicit settings survive a change of
//! variant.

use std::collections::BTreeMap;
use std::fmt;

use bentpipe_engine::tcp::variant::{PipeForm, Recovery, SlowStartExit, Startup};
use bentpipe_engine::tcp::{TcpConfig, Variant};

use super::profile::{Profile, profile};
use super::settings::{Cell, SETTINGS, Setting};

/// The rows of the engine's table and of a scenario, by name.
pub type Variants = BTreeMap<String, VariantRow>;

/// A row of the scenario: `[variants.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantRow {
    /// Its base: another row of the scenario or one of the engine's table. Its own name means the engine's row.
    pub base: String,
    /// Its description.
    pub description: String,
    /// Its changes.
    pub overrides: TcpOverrides,
}

/// Explicit settings.
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
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.both.is_empty() && self.sender.is_empty() && self.receiver.is_empty()
    }

    /// These settings overridden by `upper`.
    pub fn overlaid(&self, upper: &TcpOverrides) -> TcpOverrides {
        let mut result = self.clone();
        for (key, cell) in &upper.both {
            // A later setting for both ends replaces an earlier one for one end.
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

    /// Applies the settings of one end to a configuration; returns those without effect in it.
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

    /// A function that changes a pair of configurations, the sender's and the receiver's.
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

/// An unknown name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnknownName {
    /// No profile has this name.
    Profile(String),
    /// No variant has this name.
    Variant(String),
    /// The row is based on itself, through others.
    Cycle(String),
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnknownName::Profile(name) if name.trim().is_empty() => f.write_str("the name of a profile is empty"),
            UnknownName::Variant(name) if name.trim().is_empty() => f.write_str("the name of a variant is empty"),
            UnknownName::Profile(name) => write!(f, "there is no profile `{name}`"),
            UnknownName::Variant(name) => write!(f, "there is no variant `{name}`"),
            UnknownName::Cycle(name) => write!(f, "the variant `{name}` is based on itself"),
        }
    }
}

impl std::error::Error for UnknownName {}

/// Both ends, and the explicit settings without effect.
pub struct Resolved {
    /// The sender's configuration and the receiver's.
    pub ends: (TcpConfig, TcpConfig),
    /// Settings without effect in the configuration of their end.
    pub idle: Vec<(End, &'static str)>,
}

/// The engine's row below a variant, and the scenario's rows on the way to it, outermost first.
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

/// Applies all layers.
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

/// For each end of a variant with a fixed window: true if its window is set neither explicitly nor in a row of
/// the scenario.
pub fn lacks_window(variant: &str, variants: &Variants, explicit: &TcpOverrides) -> [bool; 2] {
    let rows = chain(variant, variants).map(|(_, rows)| rows).unwrap_or_default();
    [End::Sender, End::Receiver].map(|end| {
        let mut layers = rows.iter().map(|row| &row.overrides).chain([explicit]);
        !layers.any(|layer| layer.cell(end, "fixed_window").is_some())
    })
}

/// Contradictions in the settings of one end: the key to report, and the reason.
pub fn contradictions(config: &TcpConfig) -> Vec<(&'static str, String)> {
    use crate::quantity::format_duration as text;
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
    if matches!(rto.clock, bentpipe_engine::tcp::RttClock::Wheel(jiffy) if jiffy.as_nanos() == 0) {
        found.push(("rto.jiffy", "`rto.jiffy` cannot be 0 s".to_owned()));
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

/// Settings of a sender that get no samples without RACK, or without timestamps, and would have no effect: the key, and
/// what it needs. They are judged once the variant is certain, since another one may have RACK.
pub fn lacks_rack(config: &TcpConfig) -> Vec<(&'static str, String)> {
    let variant = &config.variant;
    if variant.recovery == Recovery::Pipe(PipeForm::Rack) || variant.startup != Startup::SlowStart {
        return Vec::new();
    }
    let mut found = Vec::new();
    let control = variant.congestion;
    if control.needs_rack() {
        let word = control.word();
        found.push(("congestion_control", format!("the congestion control `{word}` needs `recovery = \"rack\"`")));
    }
    let exit = match variant.slow_start_exit {
        SlowStartExit::HyStart => Some("`slow_start_exit = \"hystart\"` needs `recovery = \"rack\"`"),
        SlowStartExit::HyStartPlusPlus if !config.timestamps => {
            Some("`slow_start_exit = \"hystart++\"` needs `timestamps = true` or `recovery = \"rack\"`")
        }
        SlowStartExit::Search if !config.timestamps => {
            Some("`slow_start_exit = \"search\"` needs `timestamps = true` or `recovery = \"rack\"`")
        }
        _ => None,
    };
    found.extend(exit.map(|message| ("slow_start_exit", message.to_owned())));
    found
}
