//! The kinds of documents. Each command reads one kind, and all of them are TOML files, so they are mixed up.

use super::document::Table;
use super::error::{Mistake, Problems};

/// A kind of document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A scenario.
    Scenario,
    /// A sweep over a scenario's values.
    Sweep,
    /// The settings of a gateway.
    Gateway,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Scenario, Kind::Sweep, Kind::Gateway];

    /// The key that a document of this kind needs and that the other kinds do not have.
    const fn mark(self) -> &'static str {
        match self {
            Kind::Scenario => "links",
            Kind::Sweep => "scenario",
            Kind::Gateway => "satellite",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Kind::Scenario => "a scenario",
            Kind::Sweep => "a sweep file",
            Kind::Gateway => "the settings of a gateway",
        }
    }

    /// What reads it.
    const fn reader(self) -> &'static str {
        match self {
            Kind::Scenario => "`bentpipe run` reads it; a sweep file names it with `scenario = \"FILE\"`",
            Kind::Sweep => "`bentpipe sweep` reads it",
            Kind::Gateway => "`bentpipe gateway run` reads it",
        }
    }

    /// True if a document is of another kind, which is then the one mistake to report.
    pub fn is_another(self, document: &Table, problems: &mut Problems) -> bool {
        if document.get(self.mark()).is_some() {
            return false;
        }
        let other = Kind::ALL.iter().find_map(|kind| Some((kind, document.get(kind.mark())?)));
        let Some((kind, entry)) = other else { return false };
        let message = format!("this is {}, not {}", kind.name(), self.name());
        problems.add(entry.key_span, Mistake::new(&entry.key, message).help(kind.reader().to_owned()));
        true
    }
}
