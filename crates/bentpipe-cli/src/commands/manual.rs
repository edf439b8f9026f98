//! `bentpipe completions` and `bentpipe man`: what shells and `man` read, from the arguments. The script for a shell asks the command
//! itself, which knows the shipped scenarios, the variants and the files that are there.

use std::ffi::OsString;
use std::path::Path;

use bentpipe_io::manual;
use bentpipe_study::report::write_in;
use clap::CommandFactory;
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};

use crate::args::{Arguments, Completions, Man};
use crate::failure::{End, Failure};
use crate::output;

/// The script sets this variable to ask for completions.
const VARIABLE: &str = "_BENTPIPE_COMPLETE";

const NAME: &str = "bentpipe";

/// Answers a shell that asks for completions, and returns the exit code; `None` if no shell asks.
pub(crate) fn answer(arguments: &[OsString]) -> Option<u8> {
    let folder = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(Arguments::command).var(VARIABLE).bin(NAME).completer(NAME);
    match asked.try_complete(arguments.to_vec(), folder.as_deref()) {
        Ok(answered) => answered.then_some(0),
        // The shell shows nothing of what is said here.
        Err(_) => Some(2),
    }
}

pub(crate) fn completions(args: &Completions) -> Result<End, Failure> {
    output::print(&script(args.shell).map_err(Failure::broken)?)?;
    Ok(End::Done)
}

/// The script for a shell.
///
/// # Errors
/// Fails if the shell is not supported.
fn script(shell: Shell) -> std::io::Result<String> {
    let shells = Shells::builtins();
    let unknown = || std::io::Error::other(format!("no completions for {shell}"));
    let writer = shells.completer(&shell.to_string()).ok_or_else(unknown)?;
    let mut text = Vec::new();
    writer.write_registration(VARIABLE, NAME, NAME, NAME, &mut text)?;
    let text = String::from_utf8(text).map_err(std::io::Error::other)?;
    Ok(match shell {
        // Completes names of files where the command has no candidates, such as after `shell geo -- curl`.
        Shell::Bash => text.replace("-o bashdefault", "-o bashdefault -o default"),
        // In a folder of `fpath` the file is the body of a function, whose first call has to complete.
        Shell::Zsh => {
            format!("{text}if [ \"$funcstack[1]\" = \"_{NAME}\" ]; then _clap_dynamic_completer_{NAME} \"$@\"; fi\n")
        }
        _ => text,
    })
}

/// Writes the page of each command into the folder: `bentpipe-model-rates.1`.
pub(crate) fn man(args: &Man) -> Result<End, Failure> {
    let folder = &args.folder;
    output::create_folder(folder)?;
    let mut root = Arguments::command().disable_help_subcommand(true);
    root.build();
    pages(&root, folder)?;
    Ok(End::Done)
}

fn pages(command: &clap::Command, folder: &Path) -> Result<(), Failure> {
    let (man, mut page) = (clap_mangen::Man::new(command.clone()), Vec::new());
    man.render(&mut page).map_err(Failure::broken)?;
    let version = concat!("bentpipe ", env!("CARGO_PKG_VERSION"));
    let text = manual::readable(&String::from_utf8_lossy(&page), version);
    write_in(folder, &man.get_filename(), text.as_bytes()).map_err(Failure::unwritten)?;
    command.get_subcommands().filter(|below| !below.is_hide_set()).try_for_each(|below| pages(below, folder))
}
