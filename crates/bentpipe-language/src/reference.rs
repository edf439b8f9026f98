//! The language as tables for people, from the same tables by which the reader refuses unknown keys.

use crate::quantity::{
    CELLS, DECIBELS, DURATION, Dimension, PACKETS, RATE, SEGMENTS, SIZE, format_duration, format_rate,
};
use crate::shape::{Counted, Field, Shape};
use crate::tcp::{Cell, Kind, PROFILES, SETTINGS, Setting, TCP_HEAD, VARIANT};

/// A table of the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its heading, such as `[[links]]`.
    pub title: String,
    /// Its keys, in the order of the grammar.
    pub keys: Vec<Key>,
    /// A table whose keys this one also accepts, and the exceptions.
    pub also: Option<(String, Vec<String>)>,
}

/// A key of a table. Texts mark code with backticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The key, such as `delay` or `rto.min`.
    pub key: String,
    /// The values that it accepts.
    pub value: String,
    /// Its meaning and default.
    pub meaning: String,
    /// The title of the table that describes its value.
    pub table: Option<String>,
}

/// The title of [`tcp_settings`].
pub const TCP_SETTINGS: &str = "TCP settings";

/// Tables shared by several keys, by title.
pub type Shared = [(&'static str, &'static [Field])];

/// The table of TCP settings.
pub fn tcp_settings() -> Table {
    let mut keys: Vec<_> = TCP_HEAD.iter().map(key).collect();
    keys.extend(SETTINGS.iter().map(|setting| Key {
        key: setting.key.to_owned(),
        value: settings_value(setting),
        meaning: setting.doc.to_owned(),
        table: None,
    }));
    for (end, node) in [("sender", "from"), ("receiver", "to")] {
        keys.push(Key {
            key: end.to_owned(),
            value: "table".to_owned(),
            meaning: format!(
                "Settings of the end at `{node}` only: any key of this table except `profile`, `variant`, `sender`, `receiver`."
            ),
            table: None,
        });
    }
    Table { title: TCP_SETTINGS.to_owned(), keys, also: None }
}

/// The tables of a file with these keys: the first one under `title`, then the `shared` ones.
pub fn tables(title: &str, fields: &'static [Field], shared: &Shared) -> Vec<Table> {
    let mut all = Vec::new();
    walk(title, "", fields, shared, &mut all);
    for (title, fields) in shared {
        walk(title, "", fields, shared, &mut all);
    }
    all
}

/// Each TCP setting with its default in each profile, in the order of [`profiles`]; `None` if it has no effect there.
pub fn tcp_defaults() -> Vec<(&'static str, Vec<Option<String>>)> {
    let defaults =
        |setting: &Setting| PROFILES.iter().map(|profile| (setting.get)(&profile.config()).map(shown)).collect();
    SETTINGS.iter().map(|setting| (setting.key, defaults(setting))).collect()
}

/// The profiles: name, default variant, description.
pub fn profiles() -> Vec<[&'static str; 3]> {
    PROFILES.iter().map(|profile| [profile.name, profile.default_variant, profile.description]).collect()
}

/// The kinds of quantities: name, example, units.
pub fn quantities() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    let units = |dimension: &Dimension| dimension.units.iter().map(|(unit, _)| *unit).collect();
    [DURATION, RATE, SIZE, PACKETS, SEGMENTS, CELLS, DECIBELS].iter().map(|d| (noun(d), d.example, units(d))).collect()
}

/// Adds the table of `fields`, followed by the tables below it.
fn walk(title: &str, path: &str, fields: &'static [Field], shared: &Shared, all: &mut Vec<Table>) {
    let at = all.len();
    let keys = fields.iter().map(key).collect();
    all.push(Table { title: title.to_owned(), keys, also: None });
    if also(all, at) {
        return;
    }
    for (index, field) in fields.iter().enumerate() {
        let mut table = None;
        for (below, many) in below(&field.shape) {
            let path = if path.is_empty() { field.key.to_owned() } else { format!("{path}.{}", field.key) };
            table = Some(match below {
                Below::Tcp { base: false } => TCP_SETTINGS.to_owned(),
                Below::Tcp { base: true } => {
                    let title = heading(&path, many);
                    let keys = VARIANT.iter().map(key).collect();
                    let except = TCP_HEAD.iter().map(|field| field.key.to_owned()).collect();
                    all.push(Table { title: title.clone(), keys, also: Some((TCP_SETTINGS.to_owned(), except)) });
                    title
                }
                Below::Fields(fields) => match shared.iter().find(|(_, shared)| same(shared, fields)) {
                    Some((title, _)) => (*title).to_owned(),
                    None => {
                        let title = heading(&path, many);
                        walk(&title, &path, fields, shared, all);
                        title
                    }
                },
            });
        }
        all[at].keys[index].table = table;
    }
}

/// Replaces the keys of the table at `at` by a reference to an earlier table that has them all, if any.
fn also(all: &mut [Table], at: usize) -> bool {
    let (before, this) = all.split_at_mut(at);
    let this = &mut this[0];
    let has = |table: &Table, key: &Key| table.keys.iter().any(|k| k.key == key.key && k.meaning == key.meaning);
    const WORTH_IT: usize = 4;
    if this.keys.len() < WORTH_IT {
        return false;
    }
    if let Some(like) = before.iter().find(|table| this.keys.iter().all(|key| has(table, key))) {
        let except = like.keys.iter().filter(|key| !has(this, key)).map(|key| key.key.clone()).collect();
        this.also = Some((like.title.clone(), except));
        this.keys.clear();
        return true;
    }
    false
}

enum Below {
    Fields(&'static [Field]),
    Tcp { base: bool },
}

/// How often a table may occur.
#[derive(Clone, Copy)]
enum Many {
    One,
    List,
    Named,
}

fn heading(path: &str, many: Many) -> String {
    match many {
        Many::One => format!("[{path}]"),
        Many::List => format!("[[{path}]]"),
        Many::Named => format!("[{path}.NAME]"),
    }
}

/// The tables allowed as a value.
fn below(shape: &Shape) -> Vec<(Below, Many)> {
    match shape {
        Shape::Table(fields) => vec![(Below::Fields(fields), Many::One)],
        Shape::TcpSettings { base, .. } => vec![(Below::Tcp { base: *base }, Many::One)],
        Shape::List(inner) => below(inner).into_iter().map(|(table, _)| (table, Many::List)).collect(),
        Shape::Named(inner) => below(inner).into_iter().map(|(table, _)| (table, Many::Named)).collect(),
        Shape::Any(shapes) => shapes.iter().flat_map(below).collect(),
        _ => Vec::new(),
    }
}

fn same(one: &[Field], other: &[Field]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| a.key == b.key && a.doc == b.doc)
}

fn key(field: &Field) -> Key {
    Key { key: field.key.to_owned(), value: value(&field.shape), meaning: field.doc.to_owned(), table: None }
}

/// The values that a key accepts.
fn value(shape: &Shape) -> String {
    match shape {
        Shape::Text => "string".to_owned(),
        Shape::Flag => "`true` or `false`".to_owned(),
        Shape::Count(counted) => count(counted),
        Shape::Quantity(dimension) => noun(dimension).to_owned(),
        Shape::Probability => "probability".to_owned(),
        Shape::Weight => "number above 0, at most 1".to_owned(),
        Shape::Choice(words) => words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", "),
        Shape::Table(_) | Shape::TcpSettings { .. } => "table".to_owned(),
        Shape::List(Shape::Table(_)) => "list of tables".to_owned(),
        Shape::List(Shape::Pair(inner)) => format!("list of pairs of {}", value(inner)),
        Shape::List(Shape::Text) => "list of strings".to_owned(),
        Shape::List(Shape::Count(counted)) => format!("list of {}", count(counted).replacen("number", "numbers", 1)),
        Shape::List(inner) => format!("list of {}", value(inner)),
        Shape::Pair(Shape::Text) => "pair of strings".to_owned(),
        Shape::Pair(inner) => format!("pair of {}", value(inner)),
        Shape::Named(_) => "tables by name".to_owned(),
        Shape::Any(shapes) => shapes.iter().map(value).collect::<Vec<_>>().join("; or "),
    }
}

fn noun(dimension: &Dimension) -> &'static str {
    if dimension.noun == "data" { "size" } else { dimension.noun }
}

fn count(counted: &Counted) -> String {
    let Counted { what, min, max } = *counted;
    // The width of an integer is not a meaningful bound.
    let bounds = if max >= u32::MAX as u64 - 1 { format!("{min} or more") } else { format!("{min} to {max}") };
    if what.is_empty() { format!("whole number: {bounds}") } else { format!("{what}: {bounds}") }
}

fn settings_value(setting: &Setting) -> String {
    let own = match &setting.kind {
        Kind::Words => None,
        Kind::Flag => Some(value(&Shape::Flag)),
        Kind::Count(counted) => Some(count(counted)),
        Kind::Span => Some(noun(&DURATION).to_owned()),
        Kind::Rate => Some(noun(&RATE).to_owned()),
        Kind::Size { .. } => Some(noun(&SIZE).to_owned()),
    };
    let words = (!setting.words.is_empty()).then(|| {
        let words: Vec<_> = setting.words.iter().map(|word| format!("`\"{word}\"`")).collect();
        words.join(", ")
    });
    own.into_iter().chain(words).collect::<Vec<_>>().join("; or ")
}

fn shown(cell: Cell) -> String {
    match cell {
        Cell::Count(count) => count.to_string(),
        Cell::Span(span) => format_duration(span),
        Cell::Rate(rate) => format_rate(rate),
        Cell::Size(bytes) => SIZE.format(bytes),
        Cell::Flag(flag) => flag.to_string(),
        Cell::Word(word) => word.to_owned(),
    }
}
