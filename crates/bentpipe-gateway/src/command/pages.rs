//! Manual pages and completions of `bentpipe-gateway`, from its arguments, for its package.

use std::path::Path;

use clap_complete::Shell;
use clap_mangen::Man;

use super::failure::{End, Failure, print};

/// The section of commands for administrators. `bentpipe-gateway.1` is the page of `bentpipe gateway`.
const SECTION: &str = "8";

/// Writes the page of a command and those of the commands below it into a folder: `bentpipe-gateway-run.8`.
///
/// # Errors
/// Fails if the folder cannot be made or written.
pub fn man(mut root: clap::Command, folder: &Path) -> Result<End, Failure> {
    let made = std::fs::create_dir_all(folder);
    made.map_err(|error| Failure::broken(format!("{}: {error}", folder.display())))?;
    root.build();
    let name = root.get_name().to_owned();
    pages(&root, &name, folder)?;
    Ok(End::Done)
}

fn pages(command: &clap::Command, name: &str, folder: &Path) -> Result<(), Failure> {
    let mut page = Vec::new();
    Man::new(command.clone()).section(SECTION).render(&mut page).map_err(Failure::broken)?;
    let path = folder.join(format!("{name}.{SECTION}"));
    std::fs::write(&path, page).map_err(|error| Failure::broken(format!("{}: {error}", path.display())))?;
    command.get_subcommands().try_for_each(|below| pages(below, &format!("{name}-{}", below.get_name()), folder))
}

/// Prints the script with which a shell completes the arguments.
///
/// # Errors
/// Fails if standard output cannot be written.
pub fn completions(mut root: clap::Command, shell: Shell) -> Result<End, Failure> {
    let (name, mut script) = (root.get_name().to_owned(), Vec::new());
    clap_complete::generate(shell, &mut root, name, &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(End::Done)
}
