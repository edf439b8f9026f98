//! The links of the board, each a shipped scenario with other values.

use bentpipe_study::scenario::{Scenario, ScenarioErrors};

/// A link with its fields on the board: each of its losses with each of its sizes.
#[derive(Debug)]
pub struct Place {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub what: &'static str,
    /// The shipped scenario.
    scenario: &'static str,
    sets: &'static [(&'static str, &'static str)],
    /// Random losses of the satellite link; [`OWN_LOSS`] leaves the scenario's.
    pub losses: &'static [&'static str],
    /// Sizes of the transfer.
    pub sizes: &'static [&'static str],
}

/// The word for the losses of the scenario itself.
pub const OWN_LOSS: &str = "own";

/// The transfer in all of the scenarios.
const FLOW: &str = "download";
/// The satellite link in all of them.
const LINK: &str = "sat";
/// The name of its direction in which data goes.
pub(super) const SATELLITE_FORWARD: &str = "sat/forward";

/// draft-kuhn-quic-4-sat: 0 and 1 % of losses.
const LOSSES: &[&str] = &["0 %", "1 %"];
/// The same: 2, 10 and 100 MB.
const SIZES: &[&str] = &["2 MB", "10 MB", "100 MB"];

/// The links, in the board's order.
pub const PLACES: &[Place] = &[
    Place {
        name: "250/3",
        what: "draft-kuhn-quic-4-sat: 250 Mbit/s down, 3 Mbit/s up, 650 ms",
        scenario: "geo-board",
        sets: &[],
        losses: LOSSES,
        sizes: SIZES,
    },
    Place {
        name: "50/10",
        what: "the same: 50 Mbit/s down, 10 Mbit/s up",
        scenario: "geo-board",
        sets: &[("links.sat.forward.rate", "50 Mbit/s"), ("links.sat.backward.rate", "10 Mbit/s")],
        losses: LOSSES,
        sizes: SIZES,
    },
    Place {
        name: "10/2",
        what: "the same: 10 Mbit/s down, 2 Mbit/s up",
        scenario: "geo-board",
        sets: &[("links.sat.forward.rate", "10 Mbit/s"), ("links.sat.backward.rate", "2 Mbit/s")],
        losses: LOSSES,
        sizes: SIZES,
    },
    Place {
        name: "2/10",
        what: "the same: 2 Mbit/s down, 10 Mbit/s up, as for an upload",
        scenario: "geo-board",
        sets: &[("links.sat.forward.rate", "2 Mbit/s"), ("links.sat.backward.rate", "10 Mbit/s")],
        losses: LOSSES,
        sizes: SIZES,
    },
    Place {
        name: "20/2",
        what: "the satellite links of the QUIC interop runner: 20 Mbit/s down, 2 Mbit/s up, 600 ms, 10 MiB",
        scenario: "geo-board",
        sets: &[
            ("links.sat.forward.rate", "20 Mbit/s"),
            ("links.sat.backward.rate", "2 Mbit/s"),
            // With the other links this makes a round trip of 600 ms.
            ("links.sat.delay", "279 ms"),
        ],
        losses: LOSSES,
        sizes: &["10 MiB"],
    },
    Place {
        name: "starlink",
        what: "the shipped `starlink`: recorded delays and rates",
        scenario: "starlink",
        sets: &[("time_limit", "3600 s")],
        losses: &[OWN_LOSS],
        sizes: SIZES,
    },
    Place {
        name: "meo",
        what: "the shipped `meo`: 100 Mbit/s, 152 ms, no losses",
        scenario: "meo",
        sets: &[("time_limit", "3600 s")],
        losses: &[OWN_LOSS],
        sizes: SIZES,
    },
    Place {
        name: "geo-fades",
        what: "the shipped `geo-ka-rain`: 50/5 Mbit/s, 600 ms, a fade of seconds every minute",
        scenario: "geo-ka-rain",
        sets: &[],
        losses: &[OWN_LOSS],
        sizes: SIZES,
    },
];

/// The text of a shipped scenario by its name.
pub type Shipped<'a> = &'a (dyn Fn(&str) -> Option<&'static str> + Sync);

impl Place {
    /// The scenario of one of its fields, with additional values.
    ///
    /// # Errors
    /// Fails if `shipped` does not have it, or if it does not accept the values.
    pub(crate) fn scenario(
        &self,
        loss: &str,
        size: &str,
        more: &[(String, String)],
        shipped: Shipped<'_>,
    ) -> Result<Scenario, ScenarioErrors> {
        let file = format!("{}.toml", self.scenario);
        let text = shipped(self.scenario).unwrap_or_default();
        let mut sets: Vec<(String, String)> =
            self.sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        sets.push((format!("flows.{FLOW}.bytes"), size.to_owned()));
        // Linux's 4 MB would limit all transports alike.
        sets.push(("tcp.send_buffer".to_owned(), "off".to_owned()));
        if loss != OWN_LOSS {
            sets.push((format!("links.{LINK}.loss"), loss.to_owned()));
        }
        sets.extend_from_slice(more);
        Scenario::parse(text, &file, &sets)
    }
}
