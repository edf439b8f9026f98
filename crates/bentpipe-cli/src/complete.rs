//! Completions for shells. The script of `bentpipe completions` asks the command itself, which knows the shipped scenarios, the variants
//! and the files that are there.

use std::ffi::{OsStr, OsString};

use bentpipe_engine::tcp::variant::VARIANTS;
use bentpipe_study::scenario::Scenario;
use clap::CommandFactory;
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};

use crate::args::Arguments;
use crate::shipped::SHIPPED;
use crate::source::AS_WRITTEN;

/// With this variable the script asks.
const VARIABLE: &str = "_BENTPIPE_COMPLETE";

const NAME: &str = "bentpipe";

/// Answers a shell that asks for completions. `None` if none does. Otherwise the exit code.
pub(crate) fn answer(arguments: &[OsString]) -> Option<u8> {
    let folder = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(Arguments::command).var(VARIABLE).bin(NAME).completer(NAME);
    match asked.try_complete(arguments.to_vec(), folder.as_deref()) {
        Ok(answered) => answered.then_some(0),
        // The shell shows nothing of what is said here.
        Err(_) => Some(2),
    }
}

/// The script for a shell.
///
/// # Errors
/// Fails if the shell is not supported.
pub(crate) fn script(shell: Shell) -> std::io::Result<String> {
    let shells = Shells::builtins();
    let unknown = || std::io::Error::other(format!("no completions for {shell}"));
    let writer = shells.completer(&shell.to_string()).ok_or_else(unknown)?;
    let mut text = Vec::new();
    writer.write_registration(VARIABLE, NAME, NAME, NAME, &mut text)?;
    let text = String::from_utf8(text).map_err(std::io::Error::other)?;
    Ok(match shell {
        // Where we know nothing, such as after `shell geo -- curl`, names of files.
        Shell::Bash => text.replace("-o bashdefault", "-o bashdefault -o default"),
        // In a folder of `fpath` the file is the body of a function, whose first call has to complete.
        Shell::Zsh => {
            format!("{text}if [ \"$funcstack[1]\" = \"_{NAME}\" ]; then _clap_dynamic_completer_{NAME} \"$@\"; fi\n")
        }
        _ => text,
    })
}

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

/// The variants that every scenario has.
pub(crate) fn variants() -> Vec<CompletionCandidate> {
    let tcp = VARIANTS.iter().map(|(name, meaning, _)| CompletionCandidate::new(*name).help(Some((*meaning).into())));
    let quic = Scenario::QUIC_VARIANTS.iter().map(|name| CompletionCandidate::new(*name).help(Some("QUIC".into())));
    tcp.chain(quic).collect()
}

/// Variants for `--hosts`.
pub(crate) fn hosts() -> Vec<CompletionCandidate> {
    let as_written = CompletionCandidate::new(AS_WRITTEN).help(Some("hosts as the scenario has them".into()));
    let tcp = VARIANTS.iter().map(|(name, meaning, _)| CompletionCandidate::new(*name).help(Some((*meaning).into())));
    std::iter::once(as_written).chain(tcp).collect()
}
