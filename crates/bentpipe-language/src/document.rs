//! TOML as a tree in which each key and value has its position in the text.

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::error::{Mistake, Problems, Span};

/// A value and its position.
#[derive(Clone, Debug)]
pub struct Node {
    /// The position.
    pub span: Span,
    /// The value.
    pub value: Value,
}

/// A value of TOML.
#[derive(Clone, Debug)]
pub enum Value {
    /// Text.
    Text(String),
    /// A whole number; `None` if it does not fit.
    Integer(Option<i128>),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// True or false.
    Flag(bool),
    /// TOML's dates and times, which the language does not use.
    Date,
    /// A list.
    List(Vec<Node>),
    /// A table.
    Table(Table),
}

impl Value {
    /// The kind of the value, in words.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "text",
            Value::Integer(_) | Value::Float(_) => "a bare number",
            Value::Flag(_) => "true or false",
            Value::Date => "a date",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

/// A table, in the order of its keys in the text.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Keys and values.
    pub entries: Vec<Entry>,
}

/// A key of a table and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key, without quotes.
    pub key: String,
    /// The position of the key.
    pub key_span: Span,
    /// The value.
    pub node: Node,
}

impl Table {
    /// The entry of a key.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Mutable access to the entry of a key.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.key == key)
    }

    /// Removes a key, if present.
    pub fn remove(&mut self, key: &str) {
        self.entries.retain(|entry| entry.key != key);
    }
}

/// Parses the text of source number `source`; syntax errors go to `problems`.
pub fn parse(text: &str, source: usize, problems: &mut Problems) -> Node {
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let range = error.span().unwrap_or(0..0);
        problems.add(Span::new(source, range), Mistake::new("", error.message()));
    }
    let mut node = Node { span: Span::new(source, root.span()), value: Value::Table(table(root.get_ref(), source, 0)) };
    node.span = Span::new(source, 0..0);
    node
}

/// Parses the right side of an override as a TOML value; `None` if it is not one.
pub fn parse_value(text: &str, source: usize, offset: usize) -> Option<Node> {
    let value = DeValue::parse(text).ok()?;
    Some(node(&value, source, offset))
}

fn shifted(span: std::ops::Range<usize>, source: usize, offset: usize) -> Span {
    Span::new(source, span.start + offset..span.end + offset)
}

fn node(value: &Spanned<DeValue<'_>>, source: usize, offset: usize) -> Node {
    let span = shifted(value.span(), source, offset);
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(integer) => {
            Value::Integer(i128::from_str_radix(&integer.as_str().replace('_', ""), integer.radix()).ok())
        }
        DeValue::Float(float) => Value::Float(float.as_str().replace('_', "").parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(array) => Value::List(list(array, source, offset)),
        DeValue::Table(inner) => Value::Table(table(inner, source, offset)),
    };
    Node { span, value }
}

fn list(array: &DeArray<'_>, source: usize, offset: usize) -> Vec<Node> {
    array.iter().map(|value| node(value, source, offset)).collect()
}

fn table(inner: &DeTable<'_>, source: usize, offset: usize) -> Table {
    let entries = inner
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_span: shifted(key.span(), source, offset),
            node: node(value, source, offset),
        })
        .collect();
    Table { entries }
}
