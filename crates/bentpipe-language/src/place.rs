//! Finds the position of a key in a text, for errors found after reading.

use super::document::{self, Node, Value};
use super::error::{Mistake, Problems, ScenarioErrors, Span};
use super::overrides::{self, Rules};
use super::reader::entry_name;

/// An error at `key`, a path such as `layers.sat` or `flows.data.bytes`. If the text has only part of the path, the
/// error is at that part.
pub fn refusal(
    text: &str,
    file_name: &str,
    sets: &[(String, String)],
    rules: &Rules,
    key: &str,
    message: &str,
    expected: &str,
) -> ScenarioErrors {
    let mut problems = Problems::of("text");
    let source = problems.add_source(file_name, text);
    let mut root = document::parse(text, source, &mut problems);
    for (key, value) in sets {
        overrides::apply(&mut root, key, value, rules, &mut problems);
    }
    let span = key.split('.').try_fold((&root, root.span), |(node, _), step| step_into(node, step));
    let span = span.map_or_else(|span| span, |(_, span)| span);
    let mut report = problems.adopt();
    report.add(span, Mistake::new(key, message).expected(expected));
    report.finish::<()>(None).expect_err("there is no value")
}

/// The entry with that key or name, and its position; `Err` with the position so far if there is none.
fn step_into<'a>(node: &'a Node, step: &str) -> Result<(&'a Node, Span), Span> {
    match &node.value {
        Value::Table(table) => table.get(step).map(|entry| (&entry.node, entry.key_span)).ok_or(node.span),
        Value::List(list) => {
            let named = list.iter().find(|entry| entry_name(entry) == Some(step));
            named
                .map(|entry| (entry, name_span(entry)))
                .ok_or_else(|| list.first().map_or(node.span, |first| first.span))
        }
        _ => Err(node.span),
    }
}

/// A table in a list is identified by its name: its position is that of the value of `name`.
fn name_span(entry: &Node) -> Span {
    match &entry.value {
        Value::Table(table) => table.get("name").map_or(entry.span, |name| name.node.span),
        _ => entry.span,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_place_that_is_there() {
        let text = "name = \"t\"\n[[links]]\nname = \"sat\"\nrate = \"1 Mbit/s\"\n[[flows]]\nname = \"a\"\n";
        let place = |key| {
            let errors = refusal(text, "t.toml", &[], &Rules::default(), key, "no", "yes");
            let [error] = &errors.0[..] else { panic!("{errors}") };
            assert_eq!((error.key.as_str(), error.source.as_str()), (key, "t.toml"));
            (error.line, error.column)
        };
        assert_eq!(place("links.sat.rate"), (4, 1));
        assert_eq!(place("links.sat"), (3, 8));
        assert_eq!(place("flows.a"), (6, 8));
        // It has no variant of its own.
        assert_eq!(place("flows.a.tcp.variant").0, 5);
        let set = [("links.sat.rate".to_owned(), "2 Mbit/s".to_owned())];
        assert_eq!(
            refusal(text, "t.toml", &set, &Rules::default(), "links.sat.rate", "no", "yes").0[0].source,
            "--set"
        );
    }
}
