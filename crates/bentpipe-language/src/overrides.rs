//! `--set key=value`: changes values before they are read.
//!
//! A path names tables by key and list entries by number or by their `name`: `links.sat.delay`, `flows.0.bytes`. As in
//! TOML, a name with dots is quoted: `links."sat.2".delay`.
//! The value is a TOML value, or else text: `300 ms` needs no quotes.

use std::ops::Range;

use super::document::{self, Entry, Node, Table, Value};
use super::error::{Mistake, Problems, Span};
use super::reader::own_name;
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
    let Some(steps) = steps(path) else {
        let mistake = Mistake::new(path, "the override does not name a key").expected("a path such as links.sat.delay");
        return problems.add(whole, mistake);
    };
    if steps.len() > MAX_STEPS {
        let mistake =
            Mistake::new("", format!("the path has {} steps", steps.len())).expected(format!("at most {MAX_STEPS}"));
        return problems.add(Span::new(source, 0..0), mistake);
    }
    let offset = path.len() + 1;
    let new = document::parse_value(value, source, offset).unwrap_or_else(|| Node {
        span: Span::new(source, offset..text.len()),
        value: Value::Text(value.trim().to_owned()),
    });
    let walk = Walk { path, source, rules };
    if let Some((span, mistake)) = walk.set(root, &steps, new) {
        problems.add(span, mistake);
    }
}

/// A step of a path: its name, and its place in the path.
struct Step<'a> {
    name: &'a str,
    place: Range<usize>,
}

/// The steps of a path; `None` if one is empty, or if something follows a quoted one.
fn steps(path: &str) -> Option<Vec<Step<'_>>> {
    let mut steps = Vec::new();
    let mut rest = path;
    loop {
        rest = rest.trim_start();
        let start = path.len() - rest.len();
        let (name, len) = match rest.chars().next()? {
            quote @ ('"' | '\'') => rest[1..].split_once(quote).map(|(name, _)| (name, name.len() + 2))?,
            _ => rest.split('.').next().map(|step| (step.trim_end(), step.len()))?,
        };
        if name.is_empty() {
            return None;
        }
        steps.push(Step { name, place: start..start + len });
        rest = rest[len..].trim_start();
        if rest.is_empty() {
            return Some(steps);
        }
        rest = rest.strip_prefix('.')?;
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
    rules: &'a Rules,
}

impl Walk<'_> {
    fn mistake(&self, span: Span, message: String) -> Option<(Span, Mistake)> {
        Some((span, Mistake::new(self.path, message)))
    }

    /// Puts `new` at the rest of the path from `node`, or reports why it cannot.
    fn set(&self, node: &mut Node, steps: &[Step<'_>], new: Node) -> Option<(Span, Mistake)> {
        let (step, rest) = steps.split_first().expect("a path has a step");
        let span = Span::new(self.source, step.place.clone());
        let walked = self.path[..step.place.start].trim_end().trim_end_matches('.');
        let (step, is_last) = (step.name, rest.is_empty());
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
                self.set(&mut entry.node, rest, new)
            }
            Value::List(list) => {
                let prefix = self.rules.prefixes.iter().find(|(list, _)| *list == walked).map(|(_, prefix)| prefix);
                let default_name = |index: usize| prefix.map(|prefix| format!("{prefix}{}", index + 1));
                let named = |(index, node)| own_name(node).map(str::to_owned).or_else(|| default_name(index));
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
                self.set(&mut list[index], rest, new)
            }
            other => {
                let message = format!("`{walked}` is {}, there is no `{step}` in it", other.kind());
                self.mistake(span, message)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_with_dots_are_quoted() {
        let names =
            |path| steps(path).map(|steps| steps.into_iter().map(|step| step.name).collect::<Vec<_>>().join("|"));
        let places = |path| {
            steps(path).map(|steps| steps.into_iter().map(|step| &path[step.place]).collect::<Vec<_>>().join("|"))
        };
        assert_eq!(names("links.sat.delay").as_deref(), Some("links|sat|delay"));
        assert_eq!(names(" links . a b .delay ").as_deref(), Some("links|a b|delay"));
        assert_eq!(names("links.\"sat.2\".delay").as_deref(), Some("links|sat.2|delay"));
        assert_eq!(places("links. \"sat.2\" .delay").as_deref(), Some("links|\"sat.2\"|delay"));
        assert_eq!(names("links.'a\"b'").as_deref(), Some("links|a\"b"));
        assert_eq!(names("links.5\".delay").as_deref(), Some("links|5\"|delay"), "quotes elsewhere are part of a name");
        for bad in ["", " ", ".", "a.", ".a", "a..b", "a.\"\".b", "a.\"b", "a.\"b\"c", "a.\"b\"."] {
            assert_eq!(names(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_quoted_name_finds_its_entry() {
        let mut problems = Problems::of("scenario");
        let text = "[[links]]\nname = \"sat.2\"\ndelay = \"1 ms\"\n";
        let source = problems.add_source("t.toml", text);
        let mut root = document::parse(text, source, &mut problems);
        let mut set = |path: &str| apply(&mut root, path, "40 ms", &Rules::default(), &mut problems);
        set("links.\"sat.2\".delay");
        set("links.\"sat.3\".delay");
        let errors = problems.finish(Some(())).expect_err("there is no such link").to_string();
        assert!(
            errors.contains("`links` has no entry `sat.3`") && errors.contains("did you mean `sat.2`?"),
            "{errors}"
        );
        let Value::Table(table) = &root.value else { panic!("{root:?}") };
        let Some(Node { value: Value::List(links), .. }) = table.get("links").map(|entry| &entry.node) else {
            panic!("{root:?}")
        };
        assert!(format!("{:?}", links[0]).contains("40 ms"), "{links:?}");
    }
}
