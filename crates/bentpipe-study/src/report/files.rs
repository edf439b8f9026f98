//! Files that are complete or absent.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::figure::Figure;
use super::paint::DrawError;
use crate::output::OutputFile;

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file, or the temporary one beside it, cannot be written. The message has the path.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The figure could not be drawn.
    #[error("{}: {source}", path.display())]
    Draw {
        /// The file it was for.
        path: PathBuf,
        /// The reason.
        source: DrawError,
    },
}

/// Writes `contents` to an [`OutputFile`].
///
/// # Errors
/// Returns [`WriteError::Io`], which names the path.
pub fn write_whole(path: &Path, contents: &[u8]) -> Result<(), WriteError> {
    let mut file = OutputFile::create(path).map_err(WriteError::Io)?;
    file.write_all(contents).and_then(|()| file.finish()).map_err(WriteError::Io)
}

/// Writes `contents` to `NAME` in `folder`, which is created if it does not exist.
///
/// # Errors
/// Returns [`WriteError::Io`], which names the path.
pub fn write_in(folder: &Path, name: &str, contents: &[u8]) -> Result<(), WriteError> {
    std::fs::create_dir_all(folder)
        .map_err(|error| std::io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?;
    write_whole(&folder.join(name), contents)
}

/// Writes `NAME.svg` and `NAME.csv` to `folder`, which is created if it does not exist.
///
/// # Errors
/// Fails if the figure cannot be drawn or a file cannot be written.
pub fn write_figure(folder: &Path, name: &str, figure: &Figure) -> Result<(), WriteError> {
    let path = || folder.join(format!("{name}.svg"));
    let svg = figure.to_svg().map_err(|source| WriteError::Draw { path: path(), source })?;
    write_in(folder, &format!("{name}.svg"), svg.as_bytes())?;
    write_in(folder, &format!("{name}.csv"), figure.to_csv().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::figure::tests::figure;

    #[test]
    fn nothing_but_the_whole_files_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let deep = folder.path().join("out/figures");
        write_figure(&deep, "T-F07", &figure()).expect("writable");
        write_figure(&deep, "T-F07", &figure()).expect("written over");
        let mut names: Vec<_> = std::fs::read_dir(&deep)
            .expect("it was made")
            .map(|e| e.expect("readable").file_name().into_string().expect("plain"))
            .collect();
        names.sort();
        assert_eq!(names, ["T-F07.csv", "T-F07.svg"]);
        assert_eq!(std::fs::read_to_string(deep.join("T-F07.csv")).expect("readable"), figure().to_csv());
    }

    #[test]
    fn the_path_is_named_where_writing_fails() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        write_whole(&file, b"x").expect("writable");
        let error = write_whole(&file.join("below"), b"y").expect_err("a file is no folder").to_string();
        assert!(error.contains("below"), "{error}");
    }
}
