//! The record of what a run creates on the machine. It is written before the items are created, so that the next run
//! can remove what a killed run left behind.
//!
//! Each run holds a lock on its own file in `/run/bentpipe-emulator`. The system releases the lock however the run
//! ends, even if a later process gets the same process id. An unlocked file belongs to a dead run.
//!
//! The instructions in the files are carried out with root's rights, so only root may write to their folder.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::fcntl::{Flock, FlockArg};

/// The folder of the files. A reboot empties it and removes what the files record. (`/run/bentpipe` belongs to the user
/// of gateways.)
const FOLDER: &str = "/run/bentpipe-emulator";

/// Has a file for each named namespace.
const NAMESPACES: &str = "/run/netns";
/// Has a folder for each namespace, whose files `ip netns exec` mounts over those in `/etc`.
const OF_NAMESPACES: &str = "/etc/netns";

/// The folder. For root in a user namespace it is another one, because what is created there disappears with the
/// namespace.
fn folder() -> PathBuf {
    let folder = Path::new(FOLDER);
    if nix::unistd::access("/run", nix::unistd::AccessFlags::W_OK).is_ok() {
        return folder.to_owned();
    }
    let user = std::fs::read_link("/proc/self/ns/user").unwrap_or_default();
    let user: String = user.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    std::env::temp_dir().join(format!("{OF_USERS}{user}"))
}

/// Begins the names of such folders; the number of the user namespace follows.
const OF_USERS: &str = "bentpipe-";

/// Removes what killed runs of other user namespaces left beside `own`, keys of gateways among it. All else that their
/// records name has ended with the namespaces. The kernel gives their numbers again, so `own` may be such a folder, too:
/// there only the folders that dead runs have recorded are removed.
fn remove_left(own: &Path) {
    let entries = own.parent().and_then(|parent| std::fs::read_dir(parent).ok());
    for path in entries.into_iter().flatten().flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let number = name.strip_prefix(OF_USERS).filter(|number| !number.is_empty());
        let is_number = number.is_some_and(|number| number.chars().all(|c| c.is_ascii_digit()));
        if !is_number || is_ours(&path).is_err() {
            continue;
        }
        if path == own {
            remove_files(own);
        } else if let Some(_locks) = left(&path) {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

/// Removes the folders that the records of dead runs name, of any network namespace.
fn remove_files(own: &Path) {
    for entry in std::fs::read_dir(own).into_iter().flatten().flatten() {
        let locked = File::open(entry.path()).ok().map(|file| Flock::lock(file, FlockArg::LockExclusiveNonblock));
        let Some(Ok(record)) = locked else { continue };
        for made in read(&record).unwrap_or_default() {
            if matches!(made, Made::Folder(_)) {
                made.undo(own, &[]);
            }
        }
    }
}

/// The locks of all files in a folder, if it has records and no live run. Without records, a run may be about to write one.
fn left(folder: &Path) -> Option<Vec<Flock<File>>> {
    let mut locks = Vec::new();
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        if entry.file_type().ok()?.is_file() {
            let file = File::open(entry.path()).ok()?;
            locks.push(Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()?);
        }
    }
    // One is the folder's own.
    (locks.len() > 1).then_some(locks)
}

/// One created item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// A named network namespace, and its file `hosts`.
    Namespace(String),
    /// An nftables table of the family `inet`.
    Table(String),
    /// A kernel setting under `/proc/sys`, and its previous value.
    Setting(String, String),
    /// A folder beside the records, and all that is in it.
    Folder(String),
}

impl Made {
    fn line(&self) -> String {
        match self {
            Made::Namespace(name) => format!("namespace {name}\n"),
            Made::Table(name) => format!("table {name}\n"),
            Made::Setting(path, before) => format!("setting {path} {before}\n"),
            Made::Folder(name) => format!("folder {name}\n"),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["namespace", name] => Some(Made::Namespace((*name).to_owned())),
            ["table", name] => Some(Made::Table((*name).to_owned())),
            ["setting", path, before] => Some(Made::Setting((*path).to_owned(), (*before).to_owned())),
            // A record cannot name anything outside its own folder.
            ["folder", name] if !name.contains('/') && *name != ".." => Some(Made::Folder((*name).to_owned())),
            _ => None,
        }
    }

    /// Removes the item. Returns false if it still exists, or if nobody knows: this run may lack rights that an earlier one had.
    fn undo(&self, folder: &Path, others: &[Made]) -> bool {
        let is_done =
            |result: io::Result<()>| result.is_ok() || result.is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
        match self {
            Made::Namespace(name) => {
                let _ = quiet("ip", &["netns", "del", name]);
                let folder = Path::new(OF_NAMESPACES).join(name);
                let _ = std::fs::remove_file(folder.join("hosts"));
                // Folders with files of others stay.
                let _ = std::fs::remove_dir(&folder).and_then(|()| std::fs::remove_dir(OF_NAMESPACES));
                !Path::new(NAMESPACES).join(name).exists()
            }
            Made::Table(name) => {
                quiet("nft", &["delete", "table", "inet", name]).is_ok_and(|output| output.status.success())
                    || quiet("nft", &["list", "tables", "inet"]).is_ok_and(|output| {
                        let tables = String::from_utf8_lossy(&output.stdout);
                        output.status.success() && !tables.lines().any(|line| line == format!("table inet {name}"))
                    })
            }
            Made::Setting(path, before) => {
                let needed = others.iter().any(|other| matches!(other, Made::Setting(same, _) if same == path));
                needed || is_done(std::fs::write(Path::new("/proc/sys").join(path), before))
            }
            Made::Folder(name) => is_done(std::fs::remove_dir_all(folder.join(name))),
        }
    }
}

fn quiet(program: &str, arguments: &[&str]) -> io::Result<Output> {
    // Ctrl-C at the terminal must not end what removes the rest.
    super::program(program).args(arguments).process_group(0).output()
}

/// What the runs of this process have made, by their records, with the records' folders: for [`Session::abandon`].
static OPEN: Mutex<BTreeMap<PathBuf, (PathBuf, Vec<Made>)>> = Mutex::new(BTreeMap::new());
/// True once this process ends at once.
static ENDS: AtomicBool = AtomicBool::new(false);

fn open() -> MutexGuard<'static, BTreeMap<PathBuf, (PathBuf, Vec<Made>)>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The record of this run.
#[derive(Debug)]
pub struct Session {
    folder: PathBuf,
    path: PathBuf,
    file: Flock<File>,
    number: u32,
    made: Vec<Made>,
}

impl Session {
    /// Starts a record, and removes what dead runs left in this network namespace, or as files of ended user namespaces.
    ///
    /// # Errors
    /// Fails with the path if the record cannot be written.
    pub fn begin() -> io::Result<Self> {
        let folder = folder();
        if folder != Path::new(FOLDER) {
            remove_left(&folder);
        }
        Self::begin_in(&folder)
    }

    fn begin_in(folder: &Path) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(at(folder))?;
        is_ours(folder)?;
        let _turn = turn(folder)?;
        sweep(folder)?;
        // Several runs of one process have separate records, and so do network namespaces, because tables and settings
        // belong to the namespace.
        let stem = format!("{}-{}", network(), std::process::id());
        let mut paths = (0..).map(|n: u32| (n, folder.join(format!("{stem}-{n}"))));
        let (number, path) = paths.find(|(_, path)| !path.exists()).expect("some number is free");
        let file = OpenOptions::new().create_new(true).read(true).write(true).open(&path).map_err(at(&path))?;
        let file = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| at(&path)(error.into()))?;
        Ok(Session { folder: folder.to_owned(), path, file, number, made: Vec::new() })
    }

    /// Distinguishes simultaneous runs of one process: 0 for the first.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Locks out other runs until the returned value is dropped.
    ///
    /// # Errors
    /// Fails if the lock's file cannot be opened or locked.
    pub fn turn() -> io::Result<Flock<File>> {
        turn(&folder())
    }

    /// Records an item before it is created.
    ///
    /// # Errors
    /// Fails with the path if the record cannot be written, for example if the disk is full.
    pub fn note(&mut self, made: Made) -> io::Result<()> {
        let mut open = open();
        if ENDS.load(Ordering::SeqCst) {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "this process is ending"));
        }
        self.file.write_all(made.line().as_bytes()).map_err(at(&self.path))?;
        self.made.push(made);
        open.insert(self.path.clone(), (self.folder.clone(), self.made.clone()));
        Ok(())
    }

    /// Removes what the runs of this process have made, for a process that ends at once: `exit` runs no destructors. From then on nothing
    /// more is made. The records stay, for the next run: something may just be in the making.
    pub fn abandon() {
        ENDS.store(true, Ordering::SeqCst);
        let open = open().clone();
        for (path, (folder, made)) in open {
            let _turn = turn(&folder);
            let others = living(&folder, Some(&path)).unwrap_or_default();
            made.iter().rev().for_each(|made| {
                made.undo(&folder, &others);
            });
        }
    }

    /// Creates a folder that only this user may enter. It is removed with all that is in it.
    ///
    /// # Errors
    /// Fails with the path if the folder cannot be created, for example because the disk is full.
    pub fn private_folder(&mut self) -> io::Result<PathBuf> {
        // Unlike a record, its name does not begin with the number of a network namespace.
        let record = self.path.file_name().unwrap_or_default().to_string_lossy();
        let folders = self.made.iter().filter(|made| matches!(made, Made::Folder(_))).count();
        let name = format!("of-{record}-{folders}");
        let path = self.folder.join(&name);
        self.note(Made::Folder(name))?;
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        Ok(path)
    }

    /// Sets the text of `/etc/hosts` for programs that `ip netns exec` starts in a namespace, which must be recorded.
    ///
    /// # Errors
    /// Fails with the path if `/etc/netns` cannot be written.
    pub fn hosts(&self, namespace: &str, text: &[u8]) -> io::Result<()> {
        // Another run may be removing the folder.
        let _turn = turn(&self.folder)?;
        let folder = Path::new(OF_NAMESPACES).join(namespace);
        let file = folder.join("hosts");
        // For programs of any user, whatever the umask is.
        let mode = |path: &Path, mode: u32| std::fs::set_permissions(path, Permissions::from_mode(mode));
        let written = std::fs::create_dir_all(&folder)
            .and_then(|()| mode(Path::new(OF_NAMESPACES), 0o755))
            .and_then(|()| mode(&folder, 0o755))
            .and_then(|()| std::fs::write(&file, text))
            .and_then(|()| mode(&file, 0o644));
        written.map_err(at(&folder))
    }

    /// Changes a kernel setting until no run needs the change any more. `path` is relative to `/proc/sys`.
    ///
    /// # Errors
    /// Fails if the setting or the record cannot be read or written.
    pub fn set(&mut self, path: &str, value: &str) -> io::Result<()> {
        let _turn = turn(&self.folder)?;
        let place = Path::new("/proc/sys").join(path);
        let now = std::fs::read_to_string(&place).map_err(at(&place))?.trim().to_owned();
        // A value set by another run is not the original value.
        let others = living(&self.folder, None)?;
        let before = others.into_iter().find_map(|made| match made {
            Made::Setting(same, before) if same == path => Some(before),
            _ => None,
        });
        if before.is_none() && now == value {
            return Ok(());
        }
        self.note(Made::Setting(path.to_owned(), before.unwrap_or(now)))?;
        std::fs::write(&place, value).map_err(at(&place))
    }

    /// Removes all items with `undo`, and then their record: if the run is killed in between, the next run removes the rest.
    fn end(&self, undo: impl Fn(&Made, &[Made])) {
        let others = living(&self.folder, Some(&self.path)).unwrap_or_default();
        for made in self.made.iter().rev() {
            undo(made, &others);
        }
        open().remove(&self.path);
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let turn = turn(&self.folder);
        self.end(|made, others| {
            made.undo(&self.folder, others);
        });
        let is_last = || std::fs::read_dir(&self.folder).is_ok_and(|entries| entries.count() == 1);
        if self.folder != Path::new(FOLDER) && is_last() {
            // A user namespace's folder ends with its last run. Only the lock is left in it.
            let _ = std::fs::remove_dir_all(&self.folder);
        }
        drop(turn);
    }
}

/// Names a file or folder in an error.
fn at(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Refuses a folder to which another user may write, because its records are carried out.
fn is_ours(folder: &Path) -> io::Result<()> {
    let (found, process) = (std::fs::symlink_metadata(folder).map_err(at(folder))?, std::fs::metadata("/proc/self")?);
    if found.is_dir() && found.uid() == process.uid() && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("another user can write to {}", folder.display())))
}

/// Lets only one run at a time change shared state.
fn turn(folder: &Path) -> io::Result<Flock<File>> {
    let path = folder.join("lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(at(&path))?;
    Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| at(&path)(error.into()))
}

/// The number of the current network namespace.
fn network() -> String {
    let link = std::fs::read_link("/proc/thread-self/ns/net").unwrap_or_default();
    link.to_string_lossy().chars().filter(char::is_ascii_digit).collect()
}

/// The records of this network namespace, each with its lock if the run is dead.
fn records(folder: &Path) -> io::Result<Vec<(PathBuf, Option<Flock<File>>)>> {
    let ours = format!("{}-", network());
    let mut records = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&ours)) {
            continue;
        }
        let Ok(file) = OpenOptions::new().read(true).write(true).open(&path) else { continue };
        records.push((path, Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()));
    }
    Ok(records)
}

fn read(mut file: &File) -> io::Result<Vec<Made>> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text.lines().filter_map(Made::parse).collect())
}

/// The items of live runs, except of the one with the record `except`.
fn living(folder: &Path, except: Option<&Path>) -> io::Result<Vec<Made>> {
    let mut all = Vec::new();
    for (path, lock) in records(folder)? {
        if lock.is_none() && except != Some(&*path) {
            all.extend(read(&File::open(path)?)?);
        }
    }
    Ok(all)
}

/// Removes what dead runs left. The records of what cannot be removed stay: a run with more rights may be able to.
fn sweep(folder: &Path) -> io::Result<()> {
    let living = living(folder, None)?;
    for (path, lock) in records(folder)? {
        let Some(lock) = lock else { continue };
        let made = read(&lock)?;
        let undone = made.iter().rev().filter(|made| made.undo(folder, &living)).count();
        if undone == made.len() {
            std::fs::remove_file(&path).map_err(at(&path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
