//! Reads typed values from the tree, and reports mistakes with their positions.
//!
//! Every reader returns `None` after it has reported a mistake, so reading continues and several
//! mistakes are found in one go.

use bentpipe_engine::units::{Bytes, Duration, Probability, Rate};

use super::document::{Entry, Node, Table, Value};
use super::error::{Mistake, Problems, Span};
use super::quantity::{self, BadQuantity, Dimension};
use super::shape::{Counted, Field, Shape};
use super::suggest::did_you_mean;

/// A value and its path.
#[derive(Clone, Debug)]
pub struct Item<'a> {
    /// The value.
    pub node: &'a Node,
    /// Path of its key, as for `--set`.
    pub path: String,
}

/// A table whose keys are all known.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// The table.
    pub table: &'a Table,
    /// Path of its key, as for `--set`.
    pub path: String,
    /// The position of errors about missing keys.
    pub span: Span,
    fields: &'static [Field],
}

/// Joins a path and a key.
pub fn join(path: &str, key: impl std::fmt::Display) -> String {
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}

/// The name of a list's entry.
pub(crate) fn own_name(node: &Node) -> Option<&str> {
    let Value::Table(table) = &node.value else { return None };
    match &table.get("name")?.node.value {
        Value::Text(name) if !name.is_empty() => Some(name),
        _ => None,
    }
}

/// The name of a list's entry, if it can be part of a path without quotes.
pub fn entry_name(node: &Node) -> Option<&str> {
    own_name(node).filter(|name| !name.contains(['.', '=']))
}

/// Reports a key that a table does not have.
pub(crate) fn unknown_key(entry: &Entry, path: &str, keys: &[&str], help: Option<String>, problems: &mut Problems) {
    let what = if path.is_empty() { format!("a {}", problems.document()) } else { format!("`{path}`") };
    let mistake = Mistake::new(&join(path, &entry.key), format!("{what} has no key `{}`", entry.key))
        .expected(format!("one of {}", keys.join(", ")))
        .help(help.or_else(|| did_you_mean(&entry.key, keys.iter().copied())));
    problems.add(entry.key_span, mistake);
}

/// Suggests the tables below that have a key which this one does not have.
fn meant_below(key: &str, fields: &[Field]) -> Option<String> {
    let below = fields.iter().filter_map(|field| Some(format!("`{}.{}`", field.key, field.shape.key_below(key)?)));
    let found: Vec<_> = below.collect();
    (!found.is_empty()).then(|| format!("did you mean {}?", found.join(" or ")))
}

/// Warns about a key's old name. Both names of a key in one source are a mistake.
fn renamed_key(entry: &Entry, path: &str, key: &str, table: &Table, problems: &mut Problems) {
    let old = &entry.key;
    let mistake = Mistake::new(&join(path, old), format!("`{old}` is now called `{key}`"))
        .expected(format!("`{key}`"))
        .help(format!("rename it: the next version will not know `{old}`"));
    let is_twice = table.get(key).is_some_and(|other| other.key_span.source == entry.key_span.source);
    if is_twice {
        let message = format!("`{old}` is the old name of `{key}`, which is given too");
        problems.add(entry.key_span, Mistake { message, help: None, ..mistake });
    } else {
        problems.warn(entry.key_span, mistake);
    }
}

impl<'a> View<'a> {
    /// Opens a table; unknown keys are mistakes.
    pub fn open(table: &'a Table, path: String, span: Span, fields: &'static [Field], problems: &mut Problems) -> Self {
        for entry in &table.entries {
            match fields.iter().find(|field| field.answers_to(&entry.key)) {
                None => {
                    let keys: Vec<_> = fields.iter().map(|field| field.key).collect();
                    unknown_key(entry, &path, &keys, meant_below(&entry.key, fields), problems);
                }
                Some(field) if field.key != entry.key => renamed_key(entry, &path, field.key, table, problems),
                Some(_) => {}
            }
        }
        View { table, path, span, fields }
    }

    /// The value of a key, if present.
    pub fn get(&self, key: &str) -> Option<Item<'a>> {
        debug_assert!(
            self.fields.iter().any(|field| field.key == key),
            "`{key}` is not in the grammar of {}",
            self.path
        );
        let field = self.fields.iter().find(|field| field.key == key)?;
        // An override under one name replaces the file's value under the other: the last source counts.
        let entries = self.table.entries.iter().filter(|entry| field.answers_to(&entry.key));
        let entry = entries.max_by_key(|entry| entry.key_span.source)?;
        Some(Item { node: &entry.node, path: join(&self.path, &entry.key) })
    }

    /// The value of a required key.
    pub fn require(&self, key: &str, problems: &mut Problems) -> Option<Item<'a>> {
        let item = self.get(key);
        if item.is_none() {
            self.missing(key, problems);
        }
        item
    }

    /// Reports a missing key.
    pub fn missing(&self, key: &str, problems: &mut Problems) {
        let shape = self.fields.iter().find(|field| field.key == key).map(|field| field.shape);
        let what =
            if self.path.is_empty() { format!("the {}", problems.document()) } else { format!("`{}`", self.path) };
        let mut mistake = Mistake::new(&join(&self.path, key), format!("{what} needs `{key}`"));
        mistake.expected = shape.map(|shape| match shape {
            Shape::List(Shape::Table(_)) if self.path.is_empty() => format!("at least one [[{key}]]"),
            shape => format!("`{key}`: {}", shape.expected()),
        });
        problems.add(self.span, mistake);
    }
}

impl<'a> Item<'a> {
    /// Reports a mistake here.
    pub fn refuse(&self, problems: &mut Problems, message: impl Into<String>, expected: Option<String>) {
        let mut mistake = Mistake::new(&self.path, message);
        mistake.expected = expected;
        problems.add(self.node.span, mistake);
    }

    /// Warns about a word's old name.
    pub fn renamed_word(&self, old: &str, word: &str, problems: &mut Problems) {
        let mistake = Mistake::new(&self.path, format!("\"{old}\" is now called \"{word}\""))
            .expected(format!("\"{word}\""))
            .help(format!("rename it: the next version will not know \"{old}\""));
        problems.warn(self.node.span, mistake);
    }

    /// Reports that another kind of value was expected.
    pub fn mismatch(&self, problems: &mut Problems, shape: &Shape) {
        let message = match (&self.node.value, shape) {
            (Value::Integer(_) | Value::Float(_), Shape::Quantity(_)) => {
                format!("`{}` needs a unit", self.path)
            }
            (value, _) => format!("`{}` cannot be {}", self.path, value.kind()),
        };
        self.refuse(problems, message, Some(shape.expected()));
    }

    fn bad(&self, problems: &mut Problems, bad: BadQuantity, shape: &Shape) {
        let mistake = Mistake::new(&self.path, bad.message).expected(shape.expected()).help(bad.help);
        problems.add(self.node.span, mistake);
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Text.
    pub fn text(&self, problems: &mut Problems) -> Option<&'a str> {
        let text = self.as_text();
        if text.is_none() {
            self.mismatch(problems, &Shape::Text);
        }
        text
    }

    /// A name: non-empty text that can be a step of a path.
    pub fn name(&self, problems: &mut Problems) -> Option<&'a str> {
        let name = self.text(problems)?;
        if name.trim().is_empty() || name.trim() != name {
            self.refuse(problems, "a name cannot be empty or begin or end with a space", Some("a name".to_owned()));
            return None;
        }
        // Names are in pictures, and XML forbids these two as well as control characters.
        let is_forbidden = |c: char| c.is_control() || "\u{fffe}\u{ffff}".contains(c);
        if let Some(c) = name.chars().find(|&c| c == '.' || c == '=' || is_forbidden(c)) {
            let why = if is_forbidden(c) { "" } else { ": `--set` splits names there" };
            let message = format!("a name cannot contain {c:?}{why}");
            self.refuse(problems, message, Some("a name".to_owned()));
            return None;
        }
        Some(name)
    }

    /// True or false.
    pub fn flag(&self, problems: &mut Problems) -> Option<bool> {
        match self.node.value {
            Value::Flag(flag) => Some(flag),
            _ => {
                self.mismatch(problems, &Shape::Flag);
                None
            }
        }
    }

    /// One of the given words.
    pub fn choice(&self, words: &'static [&'static str], problems: &mut Problems) -> Option<&'static str> {
        let shape = Shape::Choice(words);
        let Some(text) = self.as_text() else {
            self.mismatch(problems, &shape);
            return None;
        };
        let word = words.iter().copied().find(|word| *word == text);
        if word.is_none() {
            let mistake = Mistake::new(&self.path, format!("`{}` cannot be \"{text}\"", self.path))
                .expected(shape.expected())
                .help(did_you_mean(text, words.iter().copied()));
            problems.add(self.node.span, mistake);
        }
        word
    }

    /// A quantity, in the engine's unit.
    pub fn quantity(&self, dimension: Dimension, problems: &mut Problems) -> Option<u64> {
        let shape = Shape::Quantity(dimension);
        let Some(text) = self.as_text() else {
            self.mismatch(problems, &shape);
            return None;
        };
        dimension.parse(text).map_err(|bad| self.bad(problems, bad, &shape)).ok()
    }

    /// A duration.
    pub fn duration(&self, problems: &mut Problems) -> Option<Duration> {
        self.quantity(quantity::DURATION, problems).map(Duration::from_nanos)
    }

    /// An amount of data.
    pub fn size(&self, problems: &mut Problems) -> Option<Bytes> {
        self.quantity(quantity::SIZE, problems).map(Bytes::new)
    }

    /// A rate above zero.
    pub fn rate(&self, problems: &mut Problems) -> Option<Rate> {
        let rate = Rate::from_bits_per_second(self.quantity(quantity::RATE, problems)?);
        if rate.is_none() {
            self.refuse(problems, format!("`{}` cannot be zero", self.path), Some(Shape::RATE.expected()));
        }
        rate
    }

    /// A probability.
    pub fn probability(&self, problems: &mut Problems) -> Option<Probability> {
        let shape = Shape::Probability;
        let value = match &self.node.value {
            Value::Text(text) => {
                quantity::parse_probability(text).map_err(|bad| self.bad(problems, bad, &shape)).ok()?
            }
            Value::Float(value) => *value,
            Value::Integer(Some(0)) => 0.0,
            Value::Integer(Some(1)) => {
                let mistake = Mistake::new(&self.path, "1 could mean 1 % or certainty")
                    .expected(shape.expected())
                    .help("write \"1 %\" or \"100 %\"".to_owned());
                problems.add(self.node.span, mistake);
                return None;
            }
            Value::Integer(_) => -1.0,
            _ => {
                self.mismatch(problems, &shape);
                return None;
            }
        };
        let probability = Probability::new(value);
        if probability.is_none() {
            self.refuse(problems, "a probability must be from 0 to 1, or 0 % to 100 %", Some(shape.expected()));
        }
        probability
    }

    /// A number above 0 and at most 1.
    pub fn weight(&self, problems: &mut Problems) -> Option<f64> {
        let value = match &self.node.value {
            Value::Float(value) => *value,
            Value::Integer(Some(1)) => 1.0,
            Value::Integer(_) => 0.0,
            Value::Text(text) => text.trim().parse().unwrap_or(0.0),
            _ => {
                self.mismatch(problems, &Shape::Weight);
                return None;
            }
        };
        if value > 0.0 && value <= 1.0 {
            return Some(value);
        }
        self.refuse(problems, format!("`{}` must be above 0 and at most 1", self.path), Some(Shape::Weight.expected()));
        None
    }

    /// A count: a whole number, or a number followed by the counted word as text.
    pub fn count(&self, counted: Counted, problems: &mut Problems) -> Option<u64> {
        let shape = Shape::Count(counted);
        let value = match &self.node.value {
            Value::Integer(value) => *value,
            Value::Text(text) => {
                let (number, unit) = quantity::split(text);
                let known = unit.is_empty() || unit == counted.what || format!("{unit}s") == counted.what;
                number.replace('_', "").parse().ok().filter(|_| known)
            }
            _ => {
                self.mismatch(problems, &shape);
                return None;
            }
        };
        let fits = value.and_then(|value| u64::try_from(value).ok());
        match fits {
            Some(value) if (counted.min..=counted.max).contains(&value) => Some(value),
            _ => {
                let message = match (&self.node.value, value) {
                    (Value::Text(text), None) => format!("`{}` cannot be \"{text}\"", self.path),
                    (_, Some(value)) if value < counted.min as i128 => {
                        format!("`{}` is {value}, it must be at least {}", self.path, counted.min)
                    }
                    _ => format!("`{}` must be at most {}", self.path, counted.max),
                };
                self.refuse(problems, message, Some(shape.expected()));
                None
            }
        }
    }

    /// The entries of a list.
    pub fn list(&self, shape: &Shape, problems: &mut Problems) -> Option<Vec<Item<'a>>> {
        match &self.node.value {
            Value::List(list) => {
                let item = |(index, node): (usize, &'a Node)| match entry_name(node) {
                    Some(name) => Item { node, path: join(&self.path, name) },
                    None => Item { node, path: join(&self.path, index) },
                };
                Some(list.iter().enumerate().map(item).collect())
            }
            _ => {
                self.mismatch(problems, shape);
                None
            }
        }
    }

    /// The two entries of a pair.
    pub fn pair(&self, inner: &'static Shape, problems: &mut Problems) -> Option<[Item<'a>; 2]> {
        let shape = Shape::Pair(inner);
        let list = self.list(&shape, problems)?;
        let found = list.len();
        let pair = list.try_into().ok();
        if pair.is_none() {
            self.refuse(
                problems,
                format!("`{}` must have two entries, it has {found}", self.path),
                Some(shape.expected()),
            );
        }
        pair
    }

    /// The table.
    pub fn table(&self, fields: &'static [Field], problems: &mut Problems) -> Option<View<'a>> {
        match &self.node.value {
            Value::Table(table) => Some(View::open(table, self.path.clone(), self.node.span, fields, problems)),
            _ => {
                self.mismatch(problems, &Shape::Table(fields));
                None
            }
        }
    }
}
