//! Values that several tables share: names and lists.

use bentpipe_language::error::Problems;
use bentpipe_language::reader::Item;

use super::grammar::INTERFACES;

/// Maximum length of the name of an interface (IFNAMSIZ including its zero byte) or a congestion control
/// (TCP_CA_NAME_MAX).
pub(super) const MAX_NAME: usize = 15;

/// The expected form of entries of `prefixes` and `peer_prefixes`.
pub(super) const PREFIXES: &str = "addresses such as \"10.1.7.0/24\", \"10.1.8.9\" or \"fd01:7::/64\"";
/// The expected form of entries of `allow` and `deny`.
pub(super) const DESTINATIONS: &str =
    "destinations such as \"10.0.0.0/8\", \"192.0.2.7:443\", \"*:8000-8999\" or \"[2001:db8::/32]:443\"";

/// Checks that a name is valid for files and interfaces.
pub(super) fn plain_name<'a>(item: &Item<'a>, max: usize, problems: &mut Problems) -> Option<&'a str> {
    let name = item.name(problems)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.len() > max || !name.chars().all(is_plain) {
        let expected = format!("letters, digits, - and _, at most {max}");
        item.refuse(problems, format!("`{name}` cannot be a name here"), Some(expected));
        return None;
    }
    Some(name)
}

/// Checks the name of an interface that exists. That of a VLAN has a dot.
pub(super) fn interface<'a>(item: &Item<'a>, problems: &mut Problems) -> Option<&'a str> {
    let name = item.text(problems)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if matches!(name, "" | "." | "..") || name.len() > MAX_NAME || !name.chars().all(is_plain) {
        let expected = format!("letters, digits, -, _ and dots, at most {MAX_NAME}");
        item.refuse(problems, format!("`{name}` cannot be the name of an interface"), Some(expected));
        return None;
    }
    Some(name)
}

pub(super) fn parsed<T: std::str::FromStr>(item: &Item<'_>, expected: &str, problems: &mut Problems) -> Option<T> {
    let text = item.text(problems)?;
    let value = text.parse().ok();
    if value.is_none() {
        item.refuse(problems, format!("`{}` cannot be \"{text}\"", item.path), Some(expected.to_owned()));
    }
    value
}

/// A list of texts whose parser explains its errors.
pub(super) fn written<T: std::str::FromStr<Err = String>>(
    item: &Item<'_>,
    expected: &str,
    problems: &mut Problems,
) -> Option<Vec<T>> {
    let texts = item.list(&INTERFACES, problems)?;
    let read = texts.iter().map(|item| {
        let read = item.text(problems)?.parse();
        read.map_err(|error| item.refuse(problems, error, Some(expected.to_owned()))).ok()
    });
    all(read)
}

/// The values, if all of them could be read. Reads on after a mistake, so that all are reported.
pub(super) fn all<T>(values: impl Iterator<Item = Option<T>>) -> Option<Vec<T>> {
    values.collect::<Vec<_>>().into_iter().collect()
}
