//! The files of a command: those that it reads, and checks of those that it writes.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io::ErrorKind;
#[cfg(unix)]
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bentpipe_study::output::{check, is_stdout, is_stream};

use super::{print, print_aside};
use crate::failure::Failure;

/// What a file has under all its names: device and inode.
#[cfg(unix)]
type Identity = (u64, u64);
/// What a file has under all its names but hard links, of which Windows tells nothing: its full path.
#[cfg(not(unix))]
type Identity = PathBuf;

/// The files that a command reads: no output replaces them, under whatever name.
#[derive(Debug, Default)]
pub(crate) struct Inputs(BTreeSet<Identity>);

impl Inputs {
    /// One file.
    pub(crate) fn of(path: &Path) -> Self {
        let mut inputs = Inputs::default();
        inputs.add(path);
        inputs
    }

    /// Adds a file. What is no regular file cannot be replaced.
    pub(crate) fn add(&mut self, path: &Path) {
        self.0.extend(identity(path));
    }

    /// Refuses an output that is one of these files.
    pub(crate) fn refuse(&self, path: &Path) -> Result<(), Failure> {
        if identity(path).is_none_or(|found| !self.0.contains(&found)) {
            return Ok(());
        }
        let message = format!("{} is read by this command, which would overwrite it", path.display());
        Err(Failure::usage(message, Some("give the output another name".to_owned())))
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let found = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
    of(path, &found)
}

#[cfg(unix)]
fn of(_: &Path, found: &Metadata) -> Option<Identity> {
    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn of(path: &Path, _: &Metadata) -> Option<Identity> {
    std::fs::canonicalize(path).ok()
}

/// Checks before a run that a file can be written.
pub(crate) fn check_writable(path: &Path) -> Result<(), Failure> {
    check(path).map_err(|error| Failure::broken(format!("{} could not be written: {error}", path.display())))
}

/// Creates a folder for outputs, unless it is there.
pub(crate) fn create_folder(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => not_a_folder(folder),
        _ => Failure::broken(format!("{}: {error}", folder.display())),
    })
}

/// The error for a file where a folder is expected.
pub(crate) fn not_a_folder(path: &Path) -> Failure {
    Failure::broken(format!("{}: it is no folder", path.display()))
}

/// Creates a folder for outputs, and checks that files can be written to it.
pub(crate) fn check_folder(folder: &Path) -> Result<(), Failure> {
    create_folder(folder)?;
    // Any name does: the error is about the folder.
    check(&folder.join("file"))
        .map_err(|error| Failure::broken(format!("files cannot be written to {}: {error}", folder.display())))
}

/// Where a report goes.
pub(crate) type Print = fn(&str) -> Result<(), Failure>;

/// The full path of a file, which need not be there, without links to it or to its folder.
fn full(path: &Path) -> PathBuf {
    let in_folder = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(std::fs::canonicalize(folder).ok()?.join(path.file_name()?))
    };
    std::fs::canonicalize(path).ok().or_else(in_folder).unwrap_or_else(|| path.to_owned())
}

/// Where the report of a command goes that reads `inputs` and also writes `files`: to standard error if one of them is standard output.
///
/// # Errors
/// Wrong usage if two files are standard output, if two are the same file, or if one is an input of the command.
pub(crate) fn beside(inputs: &Inputs, files: &[Option<&Path>]) -> Result<Print, Failure> {
    files.iter().flatten().try_for_each(|path| inputs.refuse(path))?;
    let mut named: Vec<_> =
        files.iter().flatten().filter(|path| !is_stream(path)).map(|path| (full(path), *path)).collect();
    named.sort_unstable();
    if let Some(&[(_, one), (_, other)]) = named.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let what = match one == other {
            true => format!("two outputs have the same name, {}", one.display()),
            false => format!("two outputs are the same file, {} and {}", one.display(), other.display()),
        };
        return Err(Failure::usage(what, None));
    }
    match files.iter().flatten().filter(|path| is_stdout(path)).count() {
        0 => Ok(print),
        1 => Ok(print_aside),
        _ => Err(Failure::usage("only one output can go to standard output", None)),
    }
}
