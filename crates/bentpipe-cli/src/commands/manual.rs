//! `bentpipe completions` and `bentpipe man`: what shells and `man` read, from the arguments.

use std::path::Path;

use bentpipe_study::report::write_in;
use clap::CommandFactory;

use crate::args::{Arguments, Completions, Man};
use crate::complete;
use crate::failure::{End, Failure};
use crate::output;

pub(crate) fn completions(args: &Completions) -> Result<End, Failure> {
    output::print(&complete::script(args.shell).map_err(Failure::broken)?)?;
    Ok(End::Done)
}

pub(crate) fn man(args: &Man) -> Result<End, Failure> {
    let mut root = Arguments::command();
    root.build();
    pages(&root, "bentpipe", &args.folder)?;
    Ok(End::Done)
}

/// The page of a command and those of the commands below it: `bentpipe-model-rates.1`.
fn pages(command: &clap::Command, name: &str, folder: &Path) -> Result<(), Failure> {
    let mut page = Vec::new();
    // Built, it has the same name for display.
    clap_mangen::Man::new(command.clone()).render(&mut page).map_err(Failure::broken)?;
    write_in(folder, &format!("{name}.1"), &page).map_err(Failure::unwritten)?;
    let below = command.get_subcommands().filter(|below| below.get_name() != "help");
    below.into_iter().try_for_each(|below| pages(below, &format!("{name}-{}", below.get_name()), folder))
}
