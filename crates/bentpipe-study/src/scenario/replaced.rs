//! Settings of a link that its directions override, so that they only seem to have an effect.

use bentpipe_language::document::{Entry, Node, Value};
use bentpipe_language::error::{Mistake, Problems, Span};
use bentpipe_language::overrides;
use bentpipe_language::reader::View;

use super::grammar::DIRECTION;

/// The names of the directions.
const DIRECTIONS: [&str; 2] = ["forward", "backward"];

/// Reports the keys of a duplex link that the tables of its directions override. A key that both directions override
/// has no effect: that is a warning in a file, and a mistake in an override, which would be run for nothing. If only
/// one direction overrides a key that `--set` has set, a warning says which direction is changed.
pub(super) fn check(link: &View<'_>, own: [Option<&View<'_>>; 2], problems: &mut Problems) {
    for entry in &link.table.entries {
        let Some(field) = DIRECTION.iter().find(|field| field.answers_to(&entry.key)) else { continue };
        let (key, path) = (field.key, &link.path);
        let replacing = own.map(|own| own.is_some_and(|own| replaces(own, key)));
        let set = overridden(entry, problems);
        let mistake = |message: String| Mistake::new(&format!("{path}.{}", entry.key), message);
        match replacing {
            [true, true] => {
                let message = format!("`{path}.{key}` has no effect: `forward` and `backward` have their own");
                let expected = DIRECTIONS.map(|way| format!("`{path}.{way}.{key}`")).join(" or ");
                let mistake = mistake(message).expected(expected);
                match set {
                    Some(span) => problems.add(span, mistake),
                    None => problems.warn(entry.key_span, mistake.help(format!("remove `{key}` of the link"))),
                }
            }
            [true, false] | [false, true] => {
                let Some(span) = set else { continue };
                let [kept, changed] = if replacing[0] { DIRECTIONS } else { [DIRECTIONS[1], DIRECTIONS[0]] };
                let message = format!("`{path}.{key}` changes only `{changed}`: `{kept}` has its own");
                problems.warn(span, mistake(message).expected(format!("`{path}.{kept}.{key}` to change `{kept}`")));
            }
            [false, false] => {}
        }
    }
}

/// True if a direction with these settings ignores this key of the link.
fn replaces(own: &View<'_>, key: &str) -> bool {
    let rates = ["rate", "rate_trace"];
    own.get(key).is_some() || rates.contains(&key) && rates.iter().any(|key| own.get(key).is_some())
}

/// The place where an override has set a value, or a part of it.
fn overridden(entry: &Entry, problems: &Problems) -> Option<Span> {
    let is_set = |span: Span| &*problems.sources[span.source].name == overrides::SOURCE;
    if is_set(entry.key_span) {
        return Some(entry.key_span);
    }
    let below = |node: &Node| match &node.value {
        Value::Table(table) => table.entries.iter().find_map(|entry| overridden(entry, problems)),
        Value::List(list) => list.iter().find_map(|node| is_set(node.span).then_some(node.span)),
        _ => None,
    };
    below(&entry.node)
}
