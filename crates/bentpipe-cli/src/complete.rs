//! What shells complete in arguments: names of shipped scenarios and of variants, and files of scenarios.

use std::ffi::OsStr;

use bentpipe_engine::tcp::variant::VARIANTS;
use bentpipe_study::scenario::Scenario;
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};

use crate::shipped::SHIPPED;

/// The word for hosts as the scenario has them.
pub const AS_WRITTEN: &str = "scenario";

/// Shipped scenarios, with what they describe, and files of scenarios.
pub(crate) fn scenarios(begun: &OsStr) -> Vec<CompletionCandidate> {
    let named = |name: &str| begun.to_str().is_some_and(|begun| name.starts_with(begun));
    let shipped = SHIPPED.iter().filter(|(name, _)| named(name)).map(|(name, text)| {
        let described = Scenario::parse(text, name, &[]).map(|scenario| scenario.description.into());
        CompletionCandidate::new(*name).help(described.ok())
    });
    let files = PathCompleter::any().filter(|path| path.extension().is_some_and(|ending| ending == "toml"));
    shipped.chain(files.complete(begun)).collect()
}

/// The engine's variants of TCP.
fn tcp() -> impl Iterator<Item = CompletionCandidate> {
    VARIANTS.iter().map(|(name, meaning, _)| CompletionCandidate::new(*name).help(Some((*meaning).into())))
}

/// The variants that every scenario has.
pub(crate) fn variants() -> Vec<CompletionCandidate> {
    let quic = Scenario::QUIC_VARIANTS.iter().map(|name| CompletionCandidate::new(*name).help(Some("QUIC".into())));
    tcp().chain(quic).collect()
}

/// Variants for `--hosts`.
pub(crate) fn hosts() -> Vec<CompletionCandidate> {
    let as_written = CompletionCandidate::new(AS_WRITTEN).help(Some("hosts as the scenario has them".into()));
    std::iter::once(as_written).chain(tcp()).collect()
}
