//! The results of a sweep on disk: a folder that loses no run to Ctrl-C, `kill -9` or a full disk.
//!
//! The folder has a journal, to which each run is written as it ends, and parts, each with the rows of a full journal as Parquet. Part n
//! is written from journal n under a temporary name, synced and renamed; then journal n + 1 begins and journal n is deleted.
//! A journal whose part exists is ignored, so wherever the work is interrupted, each run is in exactly one of them. The journal
//! is synced each second, so a crash of the machine may lose the runs of the last second; the end of the process loses
//! none.
//!
//! One process at a time writes: it holds a lock on the file `lock`, which the system releases when the process ends.

mod journal;
mod part;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bentpipe_study::output::{is_left_of, sync_folder};

use crate::key::{ENGINE, Key};
use crate::row::Row;
use journal::Journal;
pub(crate) use part::{cells, headings};

/// Rows of a journal before it becomes a part: some ten MB.
const FULL: usize = 1 << 16;
/// Time after which the journal is synced.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
const LOCK: &str = "lock";

/// Why results cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A system error.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// An output file could not be written; the message has its path.
    #[error("{0}")]
    Output(io::Error),
    /// Another process writes to the folder.
    #[error("{}: another sweep is running here{}", folder.display(), process.map_or(String::new(), |id| format!(" (process {id})")))]
    Busy {
        /// The folder.
        folder: PathBuf,
        /// Its id, if it is known.
        process: Option<u32>,
    },
    /// A part is damaged.
    #[error("{}: the file is damaged: delete it, and the same command repeats its runs", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
}

impl StoreError {
    fn at(path: &Path, source: io::Error) -> Self {
        StoreError::Io { path: path.to_owned(), source }
    }
}

/// The contents of a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Runs of this engine.
    pub runs: usize,
    /// Runs of other engines, which do not count.
    pub of_other_engines: usize,
    /// Parts.
    pub parts: usize,
    /// Runs in the journal.
    pub in_journal: usize,
    /// Bytes of a torn end of the journal; [`Store::open`] has cut them off.
    pub torn_bytes: u64,
}

/// The results of a sweep.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    rows: BTreeMap<Key, Row>,
    holdings: Holdings,
    /// The open journal and its number; `None` in a store that is only read.
    journal: Option<(u32, Journal)>,
    /// Held while it is open.
    lock: Option<File>,
    synced: Instant,
}

/// Numbers of the files `PREFIX-N.ENDING` in a folder.
fn numbers(folder: &Path, prefix: &str, ending: &str) -> Result<Vec<u32>, StoreError> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| StoreError::at(folder, error))? {
        let name = entry.map_err(|error| StoreError::at(folder, error))?.file_name();
        let name = name.to_string_lossy().into_owned();
        let number: Option<u32> =
            name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(ending)).and_then(|n| n.parse().ok());
        found.extend(number);
    }
    found.sort_unstable();
    Ok(found)
}

impl Store {
    /// Opens the folder for writing, and creates it if it is missing. Cuts off a torn end of the journal.
    ///
    /// # Errors
    /// Fails if the folder cannot be created, read or locked, if another process has it open, or if a part is damaged.
    pub fn open(folder: &Path) -> Result<Store, StoreError> {
        std::fs::create_dir_all(folder).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => StoreError::at(folder, io::Error::other("it is no folder")),
            _ => StoreError::at(folder, error),
        })?;
        let lock = lock(folder)?;
        // Removes partial files of a killed process, but no file that another command is writing here.
        let is_part = |name: &str| name.starts_with("part-") && name.ends_with(".parquet");
        for entry in std::fs::read_dir(folder).map_err(|error| StoreError::at(folder, error))?.flatten() {
            if is_left_of(&entry.file_name().to_string_lossy(), is_part) {
                std::fs::remove_file(entry.path()).map_err(|error| StoreError::at(&entry.path(), error))?;
            }
        }
        let mut store = Store::load(folder)?;
        store.lock = Some(lock);
        let parts = numbers(folder, "part-", ".parquet")?;
        let mut journals = numbers(folder, "journal-", ".log")?;
        for &number in journals.iter().filter(|number| parts.contains(number)) {
            let path = store.journal_path(number);
            std::fs::remove_file(&path).map_err(|error| StoreError::at(&path, error))?;
        }
        journals.retain(|number| !parts.contains(number));
        let last = parts.last().max(journals.last()).copied().unwrap_or(0);
        match journals.pop() {
            None => store.begin(last + 1)?,
            Some(number) => {
                let path = store.journal_path(number);
                let contents = journal::read(&path).map_err(|error| StoreError::at(&path, error))?;
                match &contents.engine {
                    Some(engine) if engine == ENGINE => {
                        store.journal = Some((number, Journal::open(path, &contents)?));
                    }
                    // The journal of another engine becomes a part.
                    Some(engine) => {
                        part::write(&store.part_path(number), engine, &contents.rows)?;
                        store.begin(number + 1)?;
                        std::fs::remove_file(&path).map_err(|error| StoreError::at(&path, error))?;
                        store.holdings.parts += 1;
                        store.holdings.in_journal -= contents.rows.len();
                    }
                    // The process ended while it created the journal.
                    None => {
                        std::fs::remove_file(&path).map_err(|error| StoreError::at(&path, error))?;
                        store.begin(number)?;
                    }
                }
            }
        }
        Ok(store)
    }

    /// Reads the folder, to which another process may be writing. A missing folder has no runs.
    ///
    /// # Errors
    /// Fails if the folder or a file in it cannot be read, or if a part is damaged.
    pub fn read(folder: &Path) -> Result<Store, StoreError> {
        match folder.metadata() {
            Ok(found) if !found.is_dir() => Err(StoreError::at(folder, io::Error::other("it is no folder"))),
            Ok(_) => Store::load(folder),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Store::empty(folder)),
            Err(error) => Err(StoreError::at(folder, error)),
        }
    }

    fn empty(folder: &Path) -> Store {
        Store {
            folder: folder.to_owned(),
            rows: BTreeMap::new(),
            holdings: Holdings::default(),
            journal: None,
            lock: None,
            synced: Instant::now(),
        }
    }

    fn load(folder: &Path) -> Result<Store, StoreError> {
        let mut store = Store::empty(folder);
        // Journals first: one that becomes a part meanwhile is then read once or twice, and rows are stored by key.
        let journals = numbers(folder, "journal-", ".log")?;
        for number in journals {
            let path = store.journal_path(number);
            let contents = match journal::read(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                read => read.map_err(|error| StoreError::at(&path, error))?,
            };
            if store.part_path(number).exists() {
                continue;
            }
            store.holdings.in_journal += contents.rows.len();
            store.holdings.torn_bytes += contents.torn;
            store.take(&contents.engine.unwrap_or_default(), contents.rows);
        }
        for number in numbers(folder, "part-", ".parquet")? {
            let (engine, rows) = part::read(&store.part_path(number))?;
            store.holdings.parts += 1;
            store.take(&engine, rows);
        }
        store.holdings.runs = store.rows.len();
        Ok(store)
    }

    fn take(&mut self, engine: &str, rows: Vec<Row>) {
        if engine == ENGINE {
            self.rows.extend(rows.into_iter().map(|row| (row.key, row)));
        } else {
            self.holdings.of_other_engines += rows.len();
        }
    }

    /// The row of a run.
    pub fn get(&self, key: &Key) -> Option<&Row> {
        self.rows.get(key)
    }

    /// The contents of the folder.
    pub fn holdings(&self) -> Holdings {
        self.holdings
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Stores a row. When this returns, the end of the process cannot lose it. An existing row is not written again.
    ///
    /// # Errors
    /// Fails if it cannot be written, for example if the disk is full. Earlier rows are kept, and another try may succeed.
    pub fn append(&mut self, row: Row) -> Result<(), StoreError> {
        if self.rows.contains_key(&row.key) {
            return Ok(());
        }
        let Some((_, journal)) = &mut self.journal else {
            let why = io::Error::other("the folder is not open for writing");
            return Err(StoreError::at(&self.folder, why));
        };
        journal.append(&row)?;
        self.rows.insert(row.key, row);
        self.holdings.runs += 1;
        self.holdings.in_journal += 1;
        if self.holdings.in_journal >= FULL { self.compact() } else { Ok(()) }
    }

    /// If a second has passed, the file to be synced: the caller calls `sync_data` without holding up others.
    pub(crate) fn sync_due(&mut self) -> Option<(Arc<File>, PathBuf)> {
        if self.synced.elapsed() < SYNC_INTERVAL {
            return None;
        }
        self.synced = Instant::now();
        self.journal.as_mut()?.1.unsynced()
    }

    /// Syncs all rows to the disk.
    ///
    /// # Errors
    /// Fails if the system cannot write the rows to the disk (`fsync`).
    pub fn sync(&mut self) -> Result<(), StoreError> {
        let Some((file, path)) = self.journal.as_mut().and_then(|(_, journal)| journal.unsynced()) else {
            return Ok(());
        };
        file.sync_data().map_err(|error| StoreError::at(&path, error))
    }

    /// Releases the lock, so that others can write to the folder. The rows can still be read; no more are stored.
    pub fn release(&mut self) {
        self.journal = None;
        if let Some(lock) = self.lock.take() {
            // Forked processes, such as the workers of an executor, inherit the open file, and closing it here alone would not
            // unlock it. If this fails, they hold the lock until they end.
            let _ = lock.unlock();
        }
    }

    /// Turns the journal into a part.
    ///
    /// # Errors
    /// Fails if the part cannot be written; the journal is then unchanged.
    pub fn compact(&mut self) -> Result<(), StoreError> {
        let Some((number, journal)) = &self.journal else { return Ok(()) };
        if journal.rows == 0 {
            return Ok(());
        }
        let (number, old) = (*number, journal.path().to_owned());
        let contents = journal::read(&old).map_err(|error| StoreError::at(&old, error))?;
        let part = self.part_path(number);
        part::write(&part, ENGINE, &contents.rows)?;
        if let Err(error) = self.begin(number + 1) {
            // Rows may be added to the old journal only while it has no part.
            if std::fs::remove_file(&part).is_err() {
                self.journal = None;
            }
            return Err(error);
        }
        std::fs::remove_file(&old).map_err(|error| StoreError::at(&old, error))?;
        self.holdings.parts += 1;
        self.holdings.in_journal = 0;
        Ok(())
    }

    fn begin(&mut self, number: u32) -> Result<(), StoreError> {
        self.journal = Some((number, Journal::create(self.journal_path(number), ENGINE)?));
        // The rename must be synced, too.
        sync_folder(&self.folder).map_err(|error| StoreError::at(&self.folder, error))
    }

    fn journal_path(&self, number: u32) -> PathBuf {
        self.folder.join(format!("journal-{number:06}.log"))
    }

    fn part_path(&self, number: u32) -> PathBuf {
        self.folder.join(format!("part-{number:06}.parquet"))
    }
}

/// Takes the folder's lock, and records its holder.
fn lock(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join(LOCK);
    let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = open().map_err(|error| StoreError::at(&path, error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            // Windows lets nobody else read it.
            let mut text = String::new();
            let process = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            return Err(StoreError::Busy { folder: folder.to_owned(), process });
        }
        Err(TryLockError::Error(error)) => return Err(StoreError::at(&path, error)),
    }
    // Used only for the message above; on a full disk the file stays empty.
    let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
    Ok(file)
}

#[cfg(test)]
mod tests;
