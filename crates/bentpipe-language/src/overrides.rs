//! `--set key=value`: changes values before they are read.
//!
//! A path names tables by key and list entries by number or by their `name`: `links.sat.delay`, `flows.0.bytes`.
//! The value is a TOML value, or else text: `300 ms` needs no quotes.

use super::document::{self, Entry, Node, Table, Value};
use super::error::{Mistake, Problems, Span};
use super::reader::entry_name;
use super::suggest::did_you_mean;

/// The source name of overrides in errors.
pub const SOURCE: &str = "--set";

/// Max steps of a path. No file format has as many; each is a table within another, and functions on tables recurse.
const MAX_STEPS: usize = 32;

/// What an override needs to know of a file format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// Groups of keys of which a table has at most one: setting one removes the others.
    pub alternatives: &'static [&'static [&'static str]],
    /// Tables that can be abbreviated as text, and the key to which the text belongs.
    pub texts: &'static [(&'static str, &'static str)],
    /// Lists whose unnamed entries have names by default, and the prefix to which the position from 1 is appended.
    pub prefixes: &'static [(&'static str, &'static str)],
}

/// Applies one override to the document.
pub fn apply(root: &mut Node, path: &str, value: &str, rules: &Rules, problems: &mut Problems) {
    let text = format!("{path}={value}");
    let source = problems.add_source(SOURCE, &text);
    let whole = Span::new(source, 0..path.len());
    if path.split('.').any(|step| step.trim().is_empty()) {
        let mistake = Mistake::new(path, "the override does not name a key").expected("a path such as links.sat.delay");
        return problems.add(whole, mistake);
    }
    let steps = path.split('.').count();
    if steps > MAX_STEPS {
        let mistake = Mistake::new("", format!("the path has {steps} steps")).expected(format!("at most {MAX_STEPS}"));
        return problems.add(Span::new(source, 0..0), mistake);
    }
    let offset = path.len() + 1;
    let new = document::parse_value(value, source, offset).unwrap_or_else(|| Node {
        span: Span::new(source, offset..text.len()),
        value: Value::Text(value.trim().to_owned()),
    });
    let mut walk = Walk { path, source, at: 0, rules };
    if let Some((span, mistake)) = walk.set(root, new) {
        problems.add(span, mistake);
    }
}

/// A list entry that replaces another keeps the other's name, unless it has its own.
fn with_name(mut new: Node, old: &Node) -> Node {
    if let (Value::Table(table), Value::Table(before)) = (&mut new.value, &old.value)
        && table.get("name").is_none()
        && let Some(name) = before.get("name")
    {
        table.entries.push(name.clone());
    }
    new
}

/// Suggests the entries that are parts of `name`, such as the directions of a link.
fn parts<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Option<String> {
    let is_part = |one: &&str| one.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
    let found: Vec<_> = all.filter(is_part).map(|one| format!("`{one}`")).collect();
    (!found.is_empty()).then(|| format!("did you mean {}?", found.join(" or ")))
}

/// A walk down the path of one override.
struct Walk<'a> {
    path: &'a str,
    source: usize,
    /// The current position in the path.
    at: usize,
    rules: &'a Rules,
}

impl Walk<'_> {
    fn mistake(&self, span: Span, message: String) -> Option<(Span, Mistake)> {
        Some((span, Mistake::new(self.path, message)))
    }

    /// Puts `new` at the rest of the path from `node`, or reports why it cannot.
    fn set(&mut self, node: &mut Node, new: Node) -> Option<(Span, Mistake)> {
        let rest = &self.path[self.at..];
        let step = rest.split('.').next().unwrap_or(rest);
        let span = Span::new(self.source, self.at..self.at + step.len());
        let walked = self.path[..self.at].trim_end_matches('.');
        let is_last = step.len() == rest.len();
        self.at += step.len() + 1;
        let step = step.trim();
        // "50 packets" of a queue is short for { limit = "50 packets" }.
        if matches!(node.value, Value::Text(_))
            && let Some((_, key)) = self.rules.texts.iter().find(|(table, _)| walked.ends_with(table))
        {
            let limit = Entry { key: (*key).to_owned(), key_span: node.span, node: node.clone() };
            node.value = Value::Table(Table { entries: vec![limit] });
        }
        match &mut node.value {
            Value::Table(table) => {
                for group in self.rules.alternatives.iter().filter(|group| group.contains(&step)) {
                    group.iter().filter(|key| **key != step).for_each(|key| table.remove(key));
                }
                if is_last {
                    table.remove(step);
                    table.entries.push(Entry { key: step.to_owned(), key_span: span, node: new });
                    return None;
                }
                if table.get(step).is_none() {
                    let empty = Node { span, value: Value::Table(Table::default()) };
                    table.entries.push(Entry { key: step.to_owned(), key_span: span, node: empty });
                }
                let entry = table.get_mut(step).expect("it exists or was just inserted");
                self.set(&mut entry.node, new)
            }
            Value::List(list) => {
                let prefix = self.rules.prefixes.iter().find(|(list, _)| *list == walked).map(|(_, prefix)| prefix);
                let default_name = |index: usize| prefix.map(|prefix| format!("{prefix}{}", index + 1));
                let named = |(index, node)| entry_name(node).map(str::to_owned).or_else(|| default_name(index));
                let names: Vec<_> = list.iter().enumerate().map(named).collect();
                let by_name = names.iter().position(|name| name.as_deref() == Some(step));
                let index = by_name.or_else(|| step.parse::<usize>().ok().filter(|index| *index < list.len()));
                let Some(index) = index else {
                    let (found, mut mistake) =
                        self.mistake(span, format!("`{walked}` has no entry `{step}`")).expect("always some");
                    mistake.expected = Some(match list.len() {
                        0 => "nothing: the list is empty".to_owned(),
                        n => format!("a name, or a number from 0 to {}", n - 1),
                    });
                    let all = || names.iter().flatten().map(String::as_str);
                    mistake.help = parts(step, all()).or_else(|| did_you_mean(step, all()));
                    return Some((found, mistake));
                };
                if is_last {
                    list[index] = with_name(new, &list[index]);
                    return None;
                }
                self.set(&mut list[index], new)
            }
            other => {
                let message = format!("`{walked}` is {}, there is no `{step}` in it", other.kind());
                self.mistake(span, message)
            }
        }
    }
}
