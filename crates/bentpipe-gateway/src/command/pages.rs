//! Manual pages and completions of `bentpipe-gateway`, from its arguments, for its package.

use std::io::ErrorKind;
use std::path::Path;

use bentpipe_io::manual;
use clap_complete::Shell;
use clap_mangen::Man;

use super::failure::{End, Failure, print};

/// The section of commands for administrators. `bentpipe-gateway.1` is the page of `bentpipe gateway`.
const SECTION: &str = "8";

/// Writes the pages of a command and of those below it into a folder: `bentpipe-gateway-run.8`.
///
/// # Errors
/// Fails if the folder cannot be made or written.
pub fn man(mut root: clap::Command, folder: &Path) -> Result<End, Failure> {
    root.build();
    std::fs::create_dir_all(folder).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::broken(format!("{}: it is no folder", folder.display())),
        _ => Failure::broken(format!("{}: {error}", folder.display())),
    })?;
    pages(&root, folder)?;
    Ok(End::Done)
}

/// Like [`clap_mangen::generate_to`], whose pages are all in section 1.
fn pages(command: &clap::Command, folder: &Path) -> Result<(), Failure> {
    let (man, mut page) = (Man::new(command.clone()).section(SECTION), Vec::new());
    man.render(&mut page).map_err(Failure::broken)?;
    let version = concat!("bentpipe ", env!("CARGO_PKG_VERSION"));
    let path = folder.join(man.get_filename());
    std::fs::write(&path, manual::readable(&String::from_utf8_lossy(&page), version)).map_err(|error| {
        // On a full disk, a part of the page.
        let _ = std::fs::remove_file(&path);
        Failure::broken(format!("{}: {error}", path.display()))
    })?;
    command.get_subcommands().try_for_each(|below| pages(below, folder))
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
