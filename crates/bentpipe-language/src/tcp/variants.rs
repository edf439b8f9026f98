//! Tables of TCP settings: `[tcp]`, a flow's `tcp`, and the rows of `[variants.NAME]`.

use std::collections::BTreeMap;

use bentpipe_engine::tcp::TcpConfig;
use bentpipe_engine::tcp::variant::VARIANTS;
use bentpipe_engine::units::Bytes;

use super::keys::{TCP_HEAD, VARIANT};
use super::profile::{PROFILES, Profile, profile};
use super::resolve::{self, End, TcpOverrides, UnknownName, VariantRow, Variants};
use super::settings::{Cell, Kind, SETTINGS, Setting};
use crate::document::{Table, Value};
use crate::error::{Mistake, Problems, Span};
use crate::quantity;
use crate::reader::{Item, join, unknown_key};
use crate::shape::{Field, Shape};
use crate::suggest::did_you_mean;

/// Settings with their positions in the text.
#[derive(Clone, Debug, Default)]
pub struct Placed {
    /// The settings.
    pub overrides: TcpOverrides,
    places: BTreeMap<(Option<End>, &'static str), (Span, String)>,
}

/// `[tcp]` or a flow's `tcp`.
#[derive(Clone, Debug, Default)]
pub struct TcpTable {
    /// The profile, if given.
    pub profile: Option<&'static Profile>,
    /// Name and position of the variant.
    pub variant: Option<(String, Span, String)>,
    /// The settings beside profile and variant.
    pub settings: Placed,
}

impl TcpTable {
    /// No settings.
    pub fn of(overrides: TcpOverrides) -> TcpTable {
        TcpTable { settings: Placed { overrides, places: BTreeMap::new() }, ..TcpTable::default() }
    }

    /// True if this setting is given for the sender's end.
    pub fn gives(&self, key: &str) -> bool {
        let TcpOverrides { both, sender, .. } = &self.settings.overrides;
        both.contains_key(key) || sender.contains_key(key)
    }

    /// This table overridden by `upper`.
    pub fn overlaid(&self, upper: &TcpTable) -> TcpTable {
        let mut places = self.settings.places.clone();
        places.extend(upper.settings.places.clone());
        let overrides = self.settings.overrides.overlaid(&upper.settings.overrides);
        TcpTable {
            profile: upper.profile.or(self.profile),
            variant: upper.variant.clone().or_else(|| self.variant.clone()),
            settings: Placed { overrides, places },
        }
    }

    /// The profile, by default "rfc".
    pub fn profile(&self) -> &'static Profile {
        self.profile.unwrap_or(&PROFILES[0])
    }

    /// The variant, by default the profile's.
    pub fn variant(&self) -> &str {
        self.variant.as_ref().map_or(self.profile().default_variant, |(name, ..)| name)
    }

    /// Both ends; `place` is the position of errors that have none of their own.
    pub fn resolve(
        &self,
        variants: &Variants,
        place: (Span, &str),
        problems: &mut Problems,
    ) -> Option<(TcpConfig, TcpConfig)> {
        let resolved = match resolve::resolve(self.profile(), self.variant(), variants, &self.settings.overrides) {
            Ok(resolved) => resolved,
            Err(unknown) => {
                // A wrong row has been reported at its position.
                if let UnknownName::Variant(name) = &unknown
                    && name == self.variant()
                {
                    let (span, key) = self.variant.as_ref().map_or((place.0, place.1), |(_, span, key)| (*span, key));
                    problems.add(span, unknown_variant(&unknown, key, name, variants));
                }
                return None;
            }
        };
        for (end, key) in resolved.idle {
            let (span, path) = self.settings.place(end, key, place);
            let message = format!("`{key}` has no effect in the variant `{}`", self.variant());
            problems.add(span, Mistake::new(&path, message).expected(needed(key)));
        }
        for (end, config) in [(End::Sender, &resolved.ends.0), (End::Receiver, &resolved.ends.1)] {
            for (key, message) in resolve::contradictions(config) {
                let (span, path) = self.settings.place(end, key, place);
                problems.add(span, Mistake::new(&path, message));
            }
        }
        Some(resolved.ends)
    }
}

/// What a setting without effect would need.
fn needed(key: &str) -> &'static str {
    match key.split_once('.') {
        Some(("inflate", _)) => "recovery = \"inflate\"",
        Some(("burst", _)) => "recovery = \"burst-estimate\"",
        Some(("resume", _)) => "`resume.cwnd` beside it",
        Some(("rto", "jiffy")) => "`rto.tick = \"off\"` beside it",
        _ => "`rto.tick` beside it",
    }
}

fn unknown_variant(unknown: &UnknownName, key: &str, name: &str, variants: &Variants) -> Mistake {
    let own = variants.keys().map(String::as_str).filter(|own| *own != name);
    let names: Vec<_> = own.chain(VARIANTS.iter().map(|&(name, ..)| name)).collect();
    Mistake::new(key, unknown.to_string())
        .expected(format!("one of {}", names.join(", ")))
        .help(did_you_mean(name, names.iter().copied()))
}

impl Placed {
    /// Sets the receive buffer of one end to a value of [`read_buffer`], which is written at `place`.
    pub fn receive_buffer(&mut self, end: End, bytes: Bytes, place: (Span, String)) {
        // A buffer smaller than a segment is refused when all settings of an end are
        // checked.
        self.cells(Some(end)).insert(RECEIVE_BUFFER, Cell::Size(bytes.get()));
        self.places.insert((Some(end), RECEIVE_BUFFER), place);
    }

    /// The position of a setting, or `otherwise`.
    fn place(&self, end: End, key: &'static str, otherwise: (Span, &str)) -> (Span, String) {
        let own = self.places.get(&(Some(end), key)).or_else(|| self.places.get(&(None, key)));
        own.cloned().unwrap_or_else(|| (otherwise.0, join(otherwise.1, key)))
    }

    fn cells(&mut self, end: Option<End>) -> &mut BTreeMap<&'static str, Cell> {
        match end {
            None => &mut self.overrides.both,
            Some(End::Sender) => &mut self.overrides.sender,
            Some(End::Receiver) => &mut self.overrides.receiver,
        }
    }

    /// Reads the settings of a table, except the keys in `head`.
    fn read(&mut self, table: &Table, path: &str, head: &[Field], problems: &mut Problems) {
        self.read_group(table, path, "", None, head, problems);
        for (key, end) in [("sender", End::Sender), ("receiver", End::Receiver)] {
            let Some(entry) = table.get(key) else { continue };
            let item = Item { node: &entry.node, path: join(path, key) };
            match &entry.node.value {
                Value::Table(inner) => self.read_group(inner, &item.path, "", Some(end), &[], problems),
                _ => item.mismatch(problems, &Shape::TcpSettings { head: false, base: false }),
            }
        }
    }

    fn read_group(
        &mut self,
        table: &Table,
        path: &str,
        group: &str,
        end: Option<End>,
        head: &[Field],
        problems: &mut Problems,
    ) {
        let is_top = group.is_empty() && end.is_none();
        for entry in &table.entries {
            let ours = !(is_top && (head.iter().any(|field| field.key == entry.key) || is_end(&entry.key)));
            if !ours {
                continue;
            }
            let key = join(group, &entry.key);
            let item = Item { node: &entry.node, path: join(path, &entry.key) };
            if let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) {
                if let Some(cell) = cell(&item, setting, problems) {
                    self.cells(end).insert(setting.key, cell);
                    self.places.insert((end, setting.key), (entry.node.span, item.path));
                }
            } else if SETTINGS.iter().any(|setting| setting.key.starts_with(&format!("{key}."))) {
                match &entry.node.value {
                    Value::Table(inner) => self.read_group(inner, &item.path, &key, end, head, problems),
                    other => {
                        let expected = format!("a table of {}", keys_of(&key).join(", "));
                        item.refuse(problems, format!("`{}` cannot be {}", item.path, other.kind()), Some(expected));
                    }
                }
            } else {
                let mut known = keys_of(group);
                if is_top {
                    known.extend(head.iter().map(|field| field.key));
                    known.extend(["sender", "receiver"]);
                }
                unknown_key(entry, path, &known, None, problems);
            }
        }
    }
}

const RECEIVE_BUFFER: &str = "receive_buffer";

/// A receive buffer outside a table of TCP settings, within the bounds of the setting.
pub fn read_buffer(item: &Item<'_>, problems: &mut Problems) -> Option<Bytes> {
    let setting = SETTINGS.iter().find(|setting| setting.key == RECEIVE_BUFFER)?;
    match cell(item, setting, problems)? {
        Cell::Size(bytes) => Some(Bytes::new(bytes)),
        _ => None,
    }
}

fn is_end(key: &str) -> bool {
    matches!(key, "sender" | "receiver")
}

/// The keys directly below a group of settings.
fn keys_of(group: &str) -> Vec<&'static str> {
    let prefix = if group.is_empty() { String::new() } else { format!("{group}.") };
    let mut keys: Vec<&'static str> = Vec::new();
    for Setting { key, .. } in SETTINGS {
        let Some(rest) = key.strip_prefix(prefix.as_str()) else { continue };
        let first = rest.split('.').next().unwrap_or(rest);
        if !keys.contains(&first) {
            keys.push(first);
        }
    }
    keys
}

fn cell(item: &Item<'_>, setting: &Setting, problems: &mut Problems) -> Option<Cell> {
    if let Some(text) = item.as_text() {
        if let Some(word) = setting.words.iter().find(|word| **word == text) {
            return Some(Cell::Word(word));
        }
        let is_word = !text.starts_with(|c: char| c.is_ascii_digit());
        if is_word && !setting.words.is_empty() {
            let shape = Shape::Choice(setting.words);
            let expected = match setting.kind {
                Kind::Count(counted) => format!("{}, or {}", Shape::Count(counted).expected(), shape.expected()),
                Kind::Span => format!("{}, or {}", Shape::DURATION.expected(), shape.expected()),
                Kind::Rate => format!("{}, or {}", Shape::RATE.expected(), shape.expected()),
                _ => shape.expected(),
            };
            let mistake = Mistake::new(&item.path, format!("`{}` cannot be \"{text}\"", item.path))
                .expected(expected)
                .help(did_you_mean(text, setting.words.iter().copied()));
            problems.add(item.node.span, mistake);
            return None;
        }
    }
    match setting.kind {
        Kind::Words => item.choice(setting.words, problems).map(Cell::Word),
        Kind::Count(counted) => item.count(counted, problems).map(Cell::Count),
        Kind::Span => item.duration(problems).map(Cell::Span),
        Kind::Rate => item.rate(problems).map(Cell::Rate),
        Kind::Flag => item.flag(problems).map(Cell::Flag),
        Kind::Size { min, max } => {
            let size = item.size(problems)?.get();
            if !(min..=max).contains(&size) {
                let dimension = quantity::SIZE;
                let bounds = format!("from {} to {}", dimension.format(min), dimension.format(max));
                item.refuse(
                    problems,
                    format!("`{}` cannot be {}", item.path, dimension.format(size)),
                    Some(format!("an amount of data {bounds}")),
                );
                return None;
            }
            Some(Cell::Size(size))
        }
    }
}

/// `[tcp]` or a flow's `tcp`.
pub fn tcp_table(item: &Item<'_>, problems: &mut Problems) -> TcpTable {
    let mut read = TcpTable::default();
    let Value::Table(table) = &item.node.value else {
        item.mismatch(problems, &Shape::TcpSettings { head: true, base: false });
        return read;
    };
    read.settings.read(table, &item.path, TCP_HEAD, problems);
    let head = |key: &str| table.get(key).map(|entry| Item { node: &entry.node, path: join(&item.path, key) });
    if let Some(item) = head("profile")
        && let Some(name) = item.text(problems)
    {
        read.profile = profile(name);
        if read.profile.is_none() {
            let names: Vec<_> = PROFILES.iter().map(|profile| profile.name).collect();
            let mistake = Mistake::new(&item.path, UnknownName::Profile(name.to_owned()).to_string())
                .expected(format!("one of {}", names.join(", ")))
                .help(did_you_mean(name, names));
            problems.add(item.node.span, mistake);
        }
    }
    if let Some(item) = head("variant")
        && let Some(name) = item.text(problems)
    {
        read.variant = Some((name.to_owned(), item.node.span, item.path.clone()));
    }
    read
}

/// The settings of one connection whose variant is given elsewhere.
pub fn settings(item: &Item<'_>, problems: &mut Problems) -> TcpTable {
    let mut read = TcpTable::default();
    match &item.node.value {
        Value::Table(table) => read.settings.read(table, &item.path, &[], problems),
        _ => item.mismatch(problems, &Shape::TcpSettings { head: false, base: false }),
    }
    read
}

/// `[variants]`: the scenario's own rows.
pub fn variants(item: &Item<'_>, problems: &mut Problems) -> Variants {
    let mut variants = Variants::new();
    let mut bases = Vec::new();
    let Value::Table(table) = &item.node.value else {
        item.mismatch(problems, &Shape::Named(&Shape::TcpSettings { head: false, base: true }));
        return variants;
    };
    for entry in &table.entries {
        let row = Item { node: &entry.node, path: join(&item.path, &entry.key) };
        let Value::Table(cells) = &entry.node.value else {
            row.mismatch(problems, &Shape::TcpSettings { head: false, base: true });
            continue;
        };
        let mut settings = Placed::default();
        settings.read(cells, &row.path, VARIANT, problems);
        let head = |key: &str| cells.get(key).map(|entry| Item { node: &entry.node, path: join(&row.path, key) });
        let Some(base) = head("base") else {
            let mistake = Mistake::new(&join(&row.path, "base"), format!("`{}` needs `base`", row.path))
                .expected("base = \"newreno\", or another variant");
            problems.add(entry.key_span, mistake);
            continue;
        };
        let description = head("description").and_then(|item| item.text(problems)).unwrap_or("").to_owned();
        let Some(name) = base.text(problems) else { continue };
        bases.push((entry.key.clone(), base.node.span, base.path.clone()));
        let row = VariantRow { base: name.to_owned(), description, overrides: settings.overrides };
        variants.insert(entry.key.clone(), row);
    }
    for (name, span, path) in bases {
        if let Err(unknown) = resolve::resolve(&PROFILES[0], &name, &variants, &TcpOverrides::default()) {
            let base = variants[&name].base.clone();
            let mistake = match &unknown {
                // Reported at that row's position.
                UnknownName::Variant(_) if base != name && variants.contains_key(&base) => continue,
                UnknownName::Variant(_) => unknown_variant(&unknown, &path, &base, &variants),
                _ => Mistake::new(&path, unknown.to_string()).expected("a base that does not lead back here"),
            };
            problems.add(span, mistake);
        }
    }
    variants
}
