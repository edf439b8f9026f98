//! Tables of TCP settings.

use bentpipe_language::quantity::{SIZE, format_rate};
use bentpipe_language::tcp::{Cell, TcpOverrides, setting};
use toml::{Table, Value};

use super::values::{duration, integer, text};
use crate::scenario::model::{FlowSpec, Scenario};
use crate::scenario::windows::{TcpEnds, all_explicit};

pub(super) fn settings(own: &TcpEnds<'_>, flow: &FlowSpec, leg: usize, scenario: &Scenario) -> Value {
    // A value made by hand may have unknown names; its settings are then written as they are.
    let explicit = all_explicit(scenario, flow, leg, own).unwrap_or_else(|_| own.explicit.clone());
    let mut settings = Table::new();
    settings.insert("profile".into(), text(own.profile));
    settings.insert("variant".into(), text(own.variant));
    settings.extend(overrides(&explicit));
    Value::Table(settings)
}

pub(super) fn overrides(overrides: &TcpOverrides) -> Table {
    let mut written = cells(&overrides.both);
    for (end, given) in [("sender", &overrides.sender), ("receiver", &overrides.receiver)] {
        if !given.is_empty() {
            written.insert(end.into(), Value::Table(cells(given)));
        }
    }
    written
}

fn cells(given: &std::collections::BTreeMap<&'static str, Cell>) -> Table {
    let mut written = Table::new();
    for (key, cell) in given {
        let counted = setting(key).map(|setting| setting.kind);
        let value = match cell {
            Cell::Count(count) => match counted {
                Some(bentpipe_language::tcp::Kind::Count(counted)) if !counted.what.is_empty() => {
                    let what = if *count == 1 { counted.what.trim_end_matches('s') } else { counted.what };
                    text(format!("{count} {what}"))
                }
                _ => integer(*count),
            },
            Cell::Span(span) => duration(*span),
            Cell::Rate(rate) => text(format_rate(*rate)),
            Cell::Size(bytes) => text(SIZE.format(*bytes)),
            Cell::Flag(flag) => Value::Boolean(*flag),
            Cell::Word(word) => text(*word),
        };
        match key.split_once('.') {
            None => {
                written.insert((*key).to_owned(), value);
            }
            Some((group, key)) => {
                let group = written.entry(group).or_insert_with(|| Value::Table(Table::new()));
                if let Value::Table(group) = group {
                    group.insert(key.to_owned(), value);
                }
            }
        }
    }
    written
}
