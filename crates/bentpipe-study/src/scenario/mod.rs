//! The scenario language: converts text to values.
//!
//! A scenario is a TOML file in which every quantity has a unit. Reading order: [`Scenario`] (the result); `grammar`
//! (the keys); `links`, `layers`, `flows` and their siblings (read the tables); `resolve` (combines them); `timers` and
//! `windows` (derive settings from the path); `write` (turns a [`Scenario`] back into text). [`bentpipe_language`] is
//! the part shared with gateway settings.

mod beside;
mod boxes;
pub(crate) mod bursts;
mod cells;
mod chance;
mod channels;
mod directions;
mod flows;
mod gateways;
mod grammar;
mod hosts;
mod layers;
mod links;
pub(crate) mod model;
mod moves;
mod queues;
mod quic;
mod reference;
mod replaced;
mod resolve;
mod samples;
mod schema;
mod series;
mod splits;
mod spoof;
mod stp;
mod tdma;
mod timers;
mod traces;
mod windows;
mod workloads;
mod world;
mod write;

use std::path::Path;

use bentpipe_language::{place, text};

pub use bentpipe_language::error::{ScenarioError, ScenarioErrors};
pub use bentpipe_language::gateway::uplink::sender as uplink_sender;
pub use bentpipe_language::quantity::{BadQuantity, size};
pub use bentpipe_language::single;
pub use bentpipe_language::tcp::{Cell, TcpOverrides, UnknownName, VariantRow, Variants, profile, resolve_tcp};
pub use beside::ReadFile;
pub use bursts::mean_secs;
pub use model::{
    AckFrequency, BufferSharing, Carries, ChannelSpec, ConnectionId, FlowId, FlowKind, FlowSpec, Gateways, HostSpec,
    LayerSpec, LinkSpec, Met, Mpeg, NodeId, PairSpec, QuicControl, QuicFlow, Scenario, SenderOf, Split, Spoof, Spread,
    StpFlow, TcpFlow, Through, UdpFlow, UdpPattern, UplinkSpec, Workload,
};
pub use reference::reference;
pub use samples::Lacking;
pub use schema::schema;
use windows::TcpEnds;

impl Scenario {
    /// Reads a scenario file; `overrides` are `--set`'s keys and values, in order.
    ///
    /// # Errors
    /// Returns all mistakes in the file, the overrides and the traces they name.
    pub fn load(path: impl AsRef<Path>, overrides: &[(String, String)]) -> Result<Scenario, ScenarioErrors> {
        Ok(Scenario::load_with_warnings(path, overrides)?.0)
    }

    /// Like [`Scenario::load`], and also returns warnings: renamed keys, and settings that are allowed but have no effect or harm.
    ///
    /// # Errors
    /// Returns all mistakes in the file, the overrides and the traces they name.
    pub fn load_with_warnings(
        path: impl AsRef<Path>,
        overrides: &[(String, String)],
    ) -> Result<(Scenario, ScenarioErrors), ScenarioErrors> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match text::read(path) {
            Ok(text) => Scenario::parse_with_warnings(&text, &name, overrides),
            Err(error) => Err(ScenarioErrors(vec![ScenarioError::without_place(&name, error.to_string())])),
        }
    }

    /// Reads a scenario; `file_name` is used in errors, and paths in the text are relative to it.
    ///
    /// # Errors
    /// Returns all mistakes in the text, the overrides and the traces they name.
    pub fn parse(text: &str, file_name: &str, overrides: &[(String, String)]) -> Result<Scenario, ScenarioErrors> {
        Ok(Scenario::parse_with_warnings(text, file_name, overrides)?.0)
    }

    /// Like [`Scenario::parse`], and also returns warnings: renamed keys, and settings that are allowed but have no effect or harm.
    ///
    /// # Errors
    /// Returns all mistakes in the text, the overrides and the traces they name.
    pub fn parse_with_warnings(
        text: &str,
        file_name: &str,
        overrides: &[(String, String)],
    ) -> Result<(Scenario, ScenarioErrors), ScenarioErrors> {
        Scenario::parse_with_files(text, file_name, overrides, &text::read)
    }

    /// Like [`Scenario::parse_with_warnings`], but `read` returns the text of the traces to which the scenario refers:
    /// a browser has no files.
    ///
    /// # Errors
    /// Returns all mistakes in the text, the overrides and the traces they name.
    pub fn parse_with_files(
        text: &str,
        file_name: &str,
        overrides: &[(String, String)],
        read: ReadFile<'_>,
    ) -> Result<(Scenario, ScenarioErrors), ScenarioErrors> {
        resolve::scenario(text, file_name, overrides, read)
    }

    /// An error for a valid scenario that a caller cannot use. It refers to `key`, a path as for `--set`, in the text
    /// that [`Scenario::parse`] has read.
    pub fn refusal(
        text: &str,
        file_name: &str,
        overrides: &[(String, String)],
        key: &str,
        message: &str,
        expected: &str,
    ) -> ScenarioErrors {
        place::refusal(text, file_name, overrides, &grammar::OVERRIDES, key, message, expected)
    }

    /// The keys of a link's settings that a direction may also have for itself.
    pub fn link_settings() -> impl Iterator<Item = &'static str> {
        grammar::DIRECTION.iter().map(|field| field.key)
    }

    /// The resolved scenario as text: links and flows in full, a TCP as its profile, its variant and its explicit
    /// settings. Reading the text gives an equal value.
    pub fn to_toml(&self) -> String {
        write::scenario(self)
    }

    /// The same scenario with connections from host to host, as in its text, though they end at the boxes of
    /// `[[gateways]]`.
    pub fn with_whole_connections(&self) -> Scenario {
        boxes::uncrossed(self)
    }

    /// The same scenario with another variant for every TCP connection and leg; explicit settings are kept. With one of
    /// the names in [`Scenario::QUIC_VARIANTS`], every connection becomes a QUIC connection from end to end, with this
    /// congestion control.
    ///
    /// # Errors
    /// Fails if no variant of the scenario or of the engine's table has this name.
    pub fn with_variant(&self, name: &str) -> Result<Scenario, UnknownName> {
        match Scenario::QUIC_VARIANTS.iter().position(|known| *known == name && !self.variants.contains_key(name)) {
            Some(control) => Ok(quic::everywhere(self, QuicControl::ALL[control])),
            None => self.with_rows(None, name),
        }
    }

    /// The names of QUIC's congestion controls for [`Scenario::with_variant`], in the order of [`QuicControl::ALL`].
    pub const QUIC_VARIANTS: &'static [&'static str] =
        &["quic-cubic", "quic-reno", "quic-bbr", "quic-linux-cubic", "quic-cubic-rfc9438", "quic-steady"];

    /// The same scenario with another profile and variant for every TCP connection and leg; explicit settings are kept.
    ///
    /// # Errors
    /// Fails if there is no such profile or variant.
    pub fn with_hosts(&self, profile: &str, variant: &str) -> Result<Scenario, UnknownName> {
        self.with_rows(Some(profile), variant)
    }

    fn with_rows(&self, new_profile: Option<&str>, name: &str) -> Result<Scenario, UnknownName> {
        let whole = boxes::uncrossed(self);
        let mut changed = whole.clone();
        windows::change_tcp(&mut changed.flows, |before, tcp| {
            let change = |leg: usize, profile: &mut String, variant: &mut String, explicit: &mut TcpOverrides, ends| {
                let known = TcpEnds { profile, variant, explicit, ends };
                *explicit = windows::all_explicit(&whole, before, leg, &known)?;
                name.clone_into(variant);
                if let Some(new) = new_profile {
                    new.clone_into(profile);
                }
                windows::resolve(&whole, before, leg, profile, name, explicit)
            };
            let ends = (tcp.sender, tcp.receiver);
            // An STP leg has no variant.
            if tcp.stp.is_none() {
                (tcp.sender, tcp.receiver) =
                    change(0, &mut tcp.profile_name, &mut tcp.variant_name, &mut tcp.explicit, ends)?;
            }
            for (n, leg) in tcp.splits.iter_mut().enumerate().filter(|(_, leg)| leg.stp.is_none()) {
                let ends = (leg.sender, leg.receiver);
                (leg.sender, leg.receiver) =
                    change(n + 1, &mut leg.profile_name, &mut leg.variant_name, &mut leg.explicit, ends)?;
            }
            Ok(())
        })?;
        boxes::cross(&mut changed);
        Ok(changed)
    }

    /// True if the fixed window of a variant follows from the path because nothing sets it. `variant` and `explicit`
    /// are those of a flow or a leg.
    pub fn window_follows_path(&self, variant: &str, explicit: &TcpOverrides) -> bool {
        windows::follow_path(self, variant, explicit).into_iter().any(|follows| follows)
    }
}
