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

/// Maximum length of a document, bytes: thousands of times what people write.
const MAX_LEN: usize = 64 << 20;

/// Documents up to this length are parsed although they begin like something else: their other mistakes are of interest, too.
const SHORT: usize = 64 << 10;

/// What no document of TOML is, whose parts need not be looked at: too long, or, if it is long, without a key or a table at
/// the start.
fn is_no_document(text: &str) -> Option<(std::ops::Range<usize>, String)> {
    if text.len() > MAX_LEN {
        return Some((0..0, format!("the text is too long: {} MB", text.len() / 1_000_000)));
    }
    let begins = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let first = text.trim_start_matches('\u{feff}').split_inclusive('\n').find(begins)?;
    let key = first.trim_start().split_once('=').map(|(key, _)| key.trim_end());
    let is_key = |key: &str| {
        let bare = |c: char| c.is_ascii_alphanumeric() || "_-. \t".contains(c);
        // What is quoted may be anything.
        !key.is_empty() && key.chars().take_while(|c| !matches!(c, '"' | '\'')).all(bare)
    };
    let looks_right = first.trim_start().starts_with('[') || key.is_some_and(is_key);
    let start = first.as_ptr() as usize - text.as_ptr() as usize;
    let range = start..start + first.trim_end().len().min(60);
    (text.len() > SHORT && !looks_right).then(|| (range, "this is not TOML".to_owned()))
}

/// True if the text is a key, as of a gateway, and nothing else: one word of so many letters of base64. It may be secret, so no message
/// shows it.
fn is_key(text: &str) -> bool {
    let word = text.trim();
    (40..=100).contains(&word.len()) && word.chars().all(|c| c.is_ascii_alphanumeric() || "+/=-_".contains(c))
}

/// Parses the text of source number `source`; syntax errors go to `problems`.
pub fn parse(text: &str, source: usize, problems: &mut Problems) -> Node {
    let what = problems.document();
    if is_key(text) {
        let mistake = Mistake::new("", format!("this is a key, not a {what}"));
        problems.add(Span::new(source, 0..0), Mistake { is_whole: true, ..mistake });
        return Node { span: Span::new(source, 0..0), value: Value::Table(Table::default()) };
    }
    if let Some((range, message)) = is_no_document(text) {
        let expected = match range.is_empty() {
            true => format!("a {what} of at most {} MB", MAX_LEN / 1_000_000),
            false => "`key = value` or `[table]`".to_owned(),
        };
        let help = format!("is this file a {what}?");
        problems.add(Span::new(source, range), Mistake::new("", message).expected(expected).help(help));
        return Node { span: Span::new(source, 0..0), value: Value::Table(Table::default()) };
    }
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
    // The parser also takes `1_000ms` for a whole number.
    let is_number = match value.get_ref() {
        DeValue::Integer(number) => number.as_str().chars().all(|c| "_+-".contains(c) || c.is_digit(number.radix())),
        _ => true,
    };
    is_number.then(|| node(&value, source, offset))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        let mut problems = Problems::of("scenario");
        let source = problems.add_source("t.toml", text);
        parse(text, source, &mut problems);
        problems.finish(Some(())).map_or_else(|errors| errors.render(false), |()| "no error".to_owned())
    }

    #[test]
    fn what_is_something_else_is_refused_at_its_first_line() {
        for other in ["time_s,rate\n0,1\n", "<!doctype html>\n", "garbage line here\n", "\n# a comment\n1;2 = 3\n"] {
            let text = other.repeat(20_000);
            let text = said(&text);
            assert!(text.starts_with("error: this is not TOML\n"), "{text}");
            assert!(text.contains("expected `key = value` or `[table]`") && text.contains("help: is this"), "{text}");
            assert_eq!(text.matches("error:").count(), 1, "{text}");
        }
        assert_eq!(said(&"# a long comment\n".repeat(10_000)), "no error");
        assert_eq!(said(&format!("\u{feff}a.\"ü\" = 1\n{}", "# a long comment\n".repeat(10_000))), "no error");
        assert!(said(&" ".repeat(MAX_LEN + 1)).starts_with("error: the text is too long: 67 MB"));
        // A short text has all its mistakes reported.
        assert_eq!(said("name \"office\"\na = 1\nb c\n").matches("not TOML").count(), 0);
    }

    #[test]
    fn a_key_is_not_shown() {
        for key in ["wG6gBMHFNfwiVTBGsBZJdFBjhnw4bGZ0ABCDEFGHx078=", "wG6gBMHFNfwiVTBGsBZJdFBjhnw4bGZ0ABCDEFGHx07"] {
            assert_eq!(said(&format!("{key}\n")), "error: t.toml: this is a key, not a scenario");
        }
    }

    #[test]
    fn a_number_with_a_unit_is_text() {
        let value = |text: &str| parse_value(text, 0, 0).map(|node| node.value);
        for text in ["1_000ms", "1_000_ms", "1000ms", "1_000x", "0x1fg", "1_0kB"] {
            assert!(value(text).is_none(), "{text}");
        }
        for (text, number) in [("1_000", 1000), ("-7", -7), ("+5", 5), ("0x1F", 31), ("0b101", 5), ("0o17", 15)] {
            assert!(matches!(value(text), Some(Value::Integer(Some(found))) if found == number), "{text}");
        }
        let long = "9".repeat(60);
        assert!(matches!(value(&long), Some(Value::Integer(None))));
    }
}
