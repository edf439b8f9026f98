//! An unfinished file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Buffered output under a temporary name; dropped before [`PartFile::finish`], it disappears.
#[derive(Debug)]
pub(super) struct PartFile {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl PartFile {
    /// Starts the file `path`. Folders are created as needed.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(|e| named(folder, e))?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".bentpipe-");
        // A temporary file is readable only by its owner by default; a result by everybody, less the
        // umask.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder.tempfile_in(folder).map_err(|e| named(path, e))?;
        Ok(PartFile { file: BufWriter::with_capacity(1 << 17, file), path: path.to_owned() })
    }

    /// Renames the file to its final name, replacing an existing one.
    pub(super) fn finish(self) -> io::Result<File> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.persist(&self.path).map_err(|e| named(&self.path, e.error))
    }
}

/// The same error with the path in its message.
fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

impl Write for PartFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
