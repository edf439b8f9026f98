//! Output files. A regular file is written under a temporary name and then renamed: a reader never sees a partial file,
//! and an aborted run leaves none. Anything else (a device, a FIFO, standard output) is written directly.

use std::collections::BTreeSet;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Stdout, Write};
#[cfg(unix)]
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::NamedTempFile;

/// Maximum number of symbolic links that are followed, as in Linux.
const MAX_LINKS: usize = 40;

const BUFFER: usize = 1 << 17;

/// The beginning of the names of temporary files. The name of the file that is written follows, unless it is long: file
/// systems allow 255 bytes.
const TEMPORARY: &str = ".bentpipe-";
const MAX_SUFFIX: usize = 200;

/// The temporary files of this process, for [`abandon`]: a signal ends the process without running destructors.
static PARTS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Removes all temporary files, for a process that ends at once: `exit` runs no destructors. Files being written are
/// lost.
pub fn abandon() {
    let parts = std::mem::take(&mut *PARTS.lock().unwrap_or_else(PoisonError::into_inner));
    for part in parts {
        // It may just have been renamed.
        let _ = std::fs::remove_file(part);
    }
}

/// A file being written. If it is dropped before [`OutputFile::finish`], a regular file keeps its old contents.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    /// Will be renamed to the path.
    Part(BufWriter<Temporary>),
    Stream(BufWriter<File>),
    Stdout(BufWriter<Stdout>),
}

/// A temporary file whose errors do not contain its name, which the user did not give.
#[derive(Debug)]
struct Temporary(NamedTempFile);

impl Temporary {
    fn new(file: NamedTempFile) -> Self {
        PARTS.lock().unwrap_or_else(PoisonError::into_inner).insert(file.path().to_owned());
        Temporary(file)
    }

    /// Gives the file its name.
    fn persist(mut self, path: &Path) -> io::Result<()> {
        // It stays in the list until the rename, so that a signal in between leaves nothing behind.
        let placeholder = self.0.path().to_owned();
        std::fs::rename(&placeholder, path)?;
        self.0.disable_cleanup(true);
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        PARTS.lock().unwrap_or_else(PoisonError::into_inner).remove(self.0.path());
    }
}

impl Write for Temporary {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_file_mut().flush()
    }
}

/// The kind of output to which a path refers.
enum Target {
    /// An existing regular file, or a name for a new one; symbolic links are followed.
    Whole(PathBuf, Option<Metadata>),
    /// A device, a FIFO or an open file.
    Stream,
    Stdout,
}

/// True if this path is standard output: `-`, or one of its names in the file system.
pub fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// True for Windows' `NUL`, about which the file system knows nothing.
fn is_nowhere(path: &Path) -> bool {
    cfg!(windows) && path.as_os_str().eq_ignore_ascii_case("NUL")
}

/// True if this path is standard output, a device, a FIFO or an open file (`/dev/fd/63` of `>(gzip > file)`). Its name
/// then says nothing about the format that its reader wants.
pub fn is_stream(path: &Path) -> bool {
    matches!(target(path), Ok(Target::Stdout | Target::Stream))
}

fn target(path: &Path) -> io::Result<Target> {
    if is_stdout(path) {
        return Ok(Target::Stdout);
    }
    if is_nowhere(path) {
        return Ok(Target::Stream);
    }
    let path = follow(path)?;
    match std::fs::metadata(&path) {
        Ok(found) if found.is_dir() => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder")),
        Ok(found) if found.is_file() && !is_open_file(&path) => {
            // The rename would otherwise replace a file that may not be written.
            OpenOptions::new().write(true).open(&path)?;
            Ok(Target::Whole(path, Some(found)))
        }
        Ok(_) => Ok(Target::Stream),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = folder(&path);
            // The name may be mistyped: a folder created for it would be where nobody looks.
            if !folder.exists() {
                return Err(io::Error::new(error.kind(), format!("there is no folder {}", folder.display())));
            }
            Ok(Target::Whole(path, None))
        }
        Err(error) => Err(error),
    }
}

/// The path behind symbolic links, except those of open files: a pipe has no other name.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Some(link) = std::fs::read_link(&path).ok().filter(|_| !is_open_file(&path)) else { return Ok(path) };
        path = folder(&path).join(link);
    }
    Err(io::Error::other("too many symbolic links"))
}

/// True for `/dev/fd/N` and `/proc/PID/fd/N`.
fn is_open_file(path: &Path) -> bool {
    let folder = folder(path);
    folder == Path::new("/dev/fd") || (folder.starts_with("/proc") && folder.ends_with("fd"))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// True for the name of a temporary file that a killed process left while it wrote a file whose name satisfies `written`.
pub fn is_left_of(name: &str, written: impl Fn(&str) -> bool) -> bool {
    let behind = name.strip_prefix(TEMPORARY).and_then(|rest| rest.split_once('-'));
    behind.is_some_and(|(_, of)| written(of))
}

/// A temporary file in the folder of `path`. It has the mode of the file that it will replace and, if the system allows
/// that, its owner.
fn part(path: &Path, replaced: Option<&Metadata>) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY);
    let suffix = path.file_name().map(|name| format!("-{}", name.to_string_lossy()));
    builder.suffix(suffix.as_deref().filter(|suffix| suffix.len() <= MAX_SUFFIX).unwrap_or_default());
    // By default, only its owner may read a temporary file, but everybody may read a result, subject to the umask. And
    // an error would name the temporary file, which the user did not give.
    let file = builder.make_in(folder(path), |path| OpenOptions::new().write(true).create_new(true).open(path))?;
    if let Some(replaced) = replaced {
        #[cfg(unix)]
        {
            // Only root may give a file away.
            let _ = std::os::unix::fs::fchown(file.as_file(), Some(replaced.uid()), Some(replaced.gid()));
        }
        file.as_file().set_permissions(replaced.permissions())?;
    }
    Ok(file)
}

/// Checks before a run that a file can be written.
///
/// # Errors
/// Fails in the same cases as [`OutputFile::create`]. A device or FIFO is not opened.
pub fn check(path: &Path) -> io::Result<()> {
    if let Target::Whole(path, replaced) = target(path)? {
        part(&path, replaced.as_ref())?;
    }
    Ok(())
}

/// Returns when the names of the files in this folder are on the disk. Windows offers no such call.
///
/// # Errors
/// Fails if the system cannot confirm it.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    std::fs::metadata(folder)?;
    Ok(())
}

impl OutputFile {
    /// Starts writing to `path`; `-` is standard output. Opening a FIFO waits for its reader.
    ///
    /// # Errors
    /// Fails if the path is a folder, if its own folder does not exist, or if it cannot be written. The message
    /// contains the path.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::open(path).map_err(|error| named(path, error))
    }

    fn open(path: &Path) -> io::Result<Self> {
        let (path, sink) = match target(path)? {
            Target::Stdout => {
                (PathBuf::from("standard output"), Sink::Stdout(BufWriter::with_capacity(BUFFER, io::stdout())))
            }
            Target::Stream => {
                let file = OpenOptions::new().write(true).open(path)?;
                (path.to_owned(), Sink::Stream(BufWriter::with_capacity(BUFFER, file)))
            }
            Target::Whole(path, replaced) => {
                let file = part(&path, replaced.as_ref())?;
                (path, Sink::Part(BufWriter::with_capacity(BUFFER, Temporary::new(file))))
            }
        };
        Ok(OutputFile { path, sink })
    }

    /// Like [`OutputFile::create`], but a regular file has its name and its contents from the start, for readers that
    /// follow it while it grows.
    ///
    /// # Errors
    /// Fails in the same cases as [`OutputFile::create`].
    pub fn create_live(path: &Path) -> io::Result<Self> {
        let open = || match target(path)? {
            Target::Whole(path, _) => {
                let file = BufWriter::with_capacity(BUFFER, File::create(&path)?);
                Ok(OutputFile { path, sink: Sink::Stream(file) })
            }
            Target::Stream | Target::Stdout => Self::open(path),
        };
        open().map_err(|error| named(path, error))
    }

    /// Writes buffered data, and renames a regular file to its final name.
    ///
    /// # Errors
    /// Fails if the file cannot be written or renamed. The message contains the path.
    pub fn finish(self) -> io::Result<()> {
        let finished = match self.sink {
            Sink::Part(file) => match file.into_inner() {
                Ok(file) => file.persist(&self.path),
                Err(error) => Err(error.into_error()),
            },
            Sink::Stream(mut stream) => stream.flush(),
            Sink::Stdout(mut stdout) => stdout.flush(),
        };
        finished.map_err(|error| named(&self.path, error))
    }

    /// Like [`OutputFile::finish`], but returns only when the file and its name are on the disk. This works only for a
    /// regular file.
    ///
    /// # Errors
    /// Fails in the same cases as [`OutputFile::finish`], and if the system cannot confirm that the file is on the
    /// disk.
    pub fn finish_on_disk(mut self) -> io::Result<()> {
        let path = self.path.clone();
        if let Sink::Part(file) = &mut self.sink {
            let kept = file.flush().and_then(|()| file.get_ref().0.as_file().sync_all());
            kept.map_err(|error| named(&path, error))?;
            self.finish()?;
            return sync_folder(folder(&path)).map_err(|error| named(&path, error));
        }
        self.finish()
    }

    fn sink(&mut self) -> &mut dyn Write {
        match &mut self.sink {
            Sink::Part(file) => file,
            Sink::Stream(stream) => stream,
            Sink::Stdout(stdout) => stdout,
        }
    }
}

/// The same error with the path in its message.
fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sink().write(bytes).map_err(|error| named(&self.path, error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink().flush().map_err(|error| named(&self.path, error))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn write(path: &Path, text: &str) -> io::Result<()> {
        let mut file = OutputFile::create(path)?;
        file.write_all(text.as_bytes())?;
        file.finish()
    }

    fn read(path: &Path) -> String {
        std::fs::read_to_string(path).expect("readable")
    }

    #[test]
    fn a_file_is_whole_or_as_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.csv");
        write(&path, "first").expect("writable");
        let mut half = OutputFile::create(&path).expect("writable");
        half.write_all(b"second").expect("buffered");
        drop(half);
        assert_eq!(read(&path), "first");
        assert_eq!(std::fs::read_dir(path.parent().expect("a folder")).expect("readable").count(), 1);
    }

    #[test]
    fn a_live_file_is_read_while_it_grows() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.pcapng");
        let mut file = OutputFile::create_live(&path).expect("writable");
        file.write_all(b"one").and_then(|()| file.flush()).expect("writable");
        assert_eq!(read(&path), "one");
        file.write_all(b"two").expect("writable");
        file.finish().expect("writable");
        assert_eq!(read(&path), "onetwo");
        assert_eq!(std::fs::read_dir(path.parent().expect("a folder")).expect("readable").count(), 1);
    }

    #[test]
    fn mode_and_links_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        write(&real, "first").expect("writable");
        std::fs::set_permissions(&real, PermissionsExt::from_mode(0o640)).expect("ours");
        symlink("real", &link).expect("a link");
        write(&link, "second").expect("writable");
        assert!(std::fs::symlink_metadata(&link).expect("it is there").is_symlink());
        assert_eq!(read(&real), "second");
        assert_eq!(std::fs::metadata(&real).expect("it is there").mode() & 0o777, 0o640);
        // A link to a file that does not exist yet.
        let (dangling, new) = (folder.path().join("dangling"), folder.path().join("new"));
        symlink(&new, &dangling).expect("a link");
        write(&dangling, "third").expect("writable");
        assert_eq!(read(&new), "third");
        // A circle.
        symlink(folder.path().join("b"), folder.path().join("a")).expect("a link");
        symlink(folder.path().join("a"), folder.path().join("b")).expect("a link");
        assert!(write(&folder.path().join("a"), "x").expect_err("a circle").to_string().contains("symbolic links"));
    }

    #[test]
    fn devices_and_fifos_stay_what_they_are() {
        write(Path::new("/dev/null"), "lost").expect("writable");
        let null = std::fs::metadata("/dev/null").expect("it is there");
        assert!(!null.is_file());
        let folder = tempfile::tempdir().expect("a folder");
        let fifo = folder.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo is there");
        assert!(made.success());
        check(&fifo).expect("it is not opened, so it needs no reader yet");
        assert!([Path::new("-"), Path::new("/dev/null"), &fifo].into_iter().all(is_stream));
        assert!(!is_stream(folder.path()) && !is_stream(&folder.path().join("new.csv")));
        let reader = std::thread::spawn({
            let fifo = fifo.clone();
            move || {
                let mut text = String::new();
                File::open(fifo).and_then(|mut file| file.read_to_string(&mut text)).expect("readable");
                text
            }
        });
        write(&fifo, "through").expect("writable");
        assert_eq!(reader.join().expect("no panic"), "through");
        assert!(!std::fs::metadata(&fifo).expect("it is there").is_file());
    }

    #[test]
    fn a_folder_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = write(folder.path(), "x").expect_err("a folder").to_string();
        assert!(error.contains("it is a folder") && error.contains(&folder.path().display().to_string()), "{error}");
        assert!(check(folder.path()).is_err());
    }

    /// A mistyped name does not create a folder.
    #[test]
    fn a_missing_folder_is_named_and_not_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = folder.path().join("missing");
        let path = missing.join("out.csv");
        let said = [
            check(&path).expect_err("no folder"),
            write(&path, "x").expect_err("as well"),
            OutputFile::create_live(&path).expect_err("as well"),
        ];
        for error in said {
            assert!(error.to_string().ends_with(&format!("there is no folder {}", missing.display())), "{error}");
        }
        assert!(!missing.exists());
    }

    #[test]
    fn an_error_names_what_the_user_gave() {
        // No process may create files there, not even root's.
        let path = Path::new("/proc/out.csv");
        let said = [check(path).expect_err("no folder for files"), write(path, "x").expect_err("as well")];
        assert!(said.iter().all(|error| !error.to_string().contains(".bentpipe-")), "{said:?}");
        assert!(said[1].to_string().starts_with("/proc/out.csv: No such file or directory"), "{said:?}");
    }
}
