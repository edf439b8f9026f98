//! The candidates of a sweep at each point: a transport and a gateway.

use bentpipe_language::tcp::UnknownName;
use bentpipe_sim::recommend::{System, Unfit, equipped};
use bentpipe_study::scenario::{Lacking, Scenario};

/// The words for gateways in a sweep file.
pub(crate) const GATEWAYS: &[&str] = &["none", "uplink", "link", "split"];

/// The system of a word of [`GATEWAYS`].
pub(crate) fn system(word: &str) -> System {
    match word {
        "uplink" => System::Uplink,
        "link" => System::Link,
        "split" => System::Split,
        _ => System::Plain,
    }
}

/// A transport and a gateway. Without either it is the scenario as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its name in results.
    pub name: String,
    /// The TCP variant of all flows; `None` leaves the scenario's.
    pub variant: Option<String>,
    /// The gateway, one of the words of a sweep file; `None` leaves the path as it is.
    pub gateway: Option<&'static str>,
}

/// Why a candidate cannot be applied to a scenario.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Misfit {
    #[error(transparent)]
    Variant(UnknownName),
    #[error(transparent)]
    Samples(Lacking),
    #[error("{0}")]
    Gateway(Unfit),
}

impl Candidate {
    /// All pairs of a variant and a gateway, variants first. An empty list keeps the scenario's.
    pub(crate) fn all(variants: &[String], gateways: &[&'static str]) -> Vec<Candidate> {
        let variants: Vec<Option<&String>> =
            if variants.is_empty() { vec![None] } else { variants.iter().map(Some).collect() };
        let gateways: Vec<Option<&'static str>> =
            if gateways.is_empty() { vec![None] } else { gateways.iter().copied().map(Some).collect() };
        let pairs = gateways.iter().flat_map(|gateway| variants.iter().map(move |variant| (*variant, *gateway)));
        pairs.map(|(variant, gateway)| Candidate::new(variant.cloned(), gateway)).collect()
    }

    fn new(variant: Option<String>, gateway: Option<&'static str>) -> Self {
        let name = match (&variant, gateway) {
            (None, None) => "scenario".to_owned(),
            (Some(variant), None | Some("none")) => variant.clone(),
            (None, Some(gateway)) => gateway.to_owned(),
            (Some(variant), Some(gateway)) => format!("{variant}, {gateway}"),
        };
        Candidate { name, variant, gateway }
    }

    /// The scenario with this transport and this gateway.
    pub(crate) fn put_into(&self, scenario: &Scenario) -> Result<Scenario, Misfit> {
        let mut changed = match &self.variant {
            Some(variant) => scenario.with_variant(variant).map_err(Misfit::Variant)?,
            None => scenario.clone(),
        };
        changed.check_samples().map_err(Misfit::Samples)?;
        if let Some(gateway) = self.gateway.filter(|word| *word != "none") {
            changed = equipped(&changed, system(gateway)).map_err(Misfit::Gateway)?;
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_and_their_names() {
        let variants = ["sack".to_owned(), "cubic".to_owned()];
        let names = |all: Vec<Candidate>| all.into_iter().map(|one| one.name).collect::<Vec<_>>();
        assert_eq!(names(Candidate::all(&[], &[])), ["scenario"]);
        assert_eq!(names(Candidate::all(&variants, &[])), ["sack", "cubic"]);
        assert_eq!(names(Candidate::all(&[], &["none", "split"])), ["none", "split"]);
        // Without a gateway there is nothing that the path would have to fit.
        let links = "[[links]]\nname = \"l\"\nbetween = [\"A\", \"B\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
        let scenario = Scenario::parse(&format!("name = \"t\"\n{links}"), "t.toml", &[])
            .unwrap_or_else(|errors| panic!("{errors}"));
        let fits = |gateway| Candidate::all(&[], &[gateway])[0].put_into(&scenario).is_ok();
        assert!(fits("none") && !fits("uplink"));
        assert_eq!(names(Candidate::all(&variants, &["none", "link"])), ["sack", "cubic", "sack, link", "cubic, link"]);
    }
}
