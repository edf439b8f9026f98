//! The journal: rows in the order in which runs ended, each written at once.
//!
//! A file is a line that names the format, then records: length (4 bytes, little-endian), CRC-32 of length and content, content.
//! The first record is the engine's name, each other one a row. A row is one `write`, so after `kill -9` it is complete, or its
//! beginning is the end of the file, which [`Journal::open`] cuts off. After a crash of the machine the file may lack rows that were
//! not yet on the disk; rows before the first damaged record count, and the rest is run again.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::StoreError;
use crate::row::Row;

/// The first line.
const FORMAT: &[u8] = b"bentpipe sweep journal 1\n";
/// The same for every format, before its number.
const NAME: &[u8] = b"bentpipe sweep journal ";
/// Length and checksum.
const HEAD: usize = 8;

/// The contents of a journal.
#[derive(Debug)]
pub(super) struct Contents {
    /// The engine of its rows; `None` if even that record is incomplete.
    pub(super) engine: Option<String>,
    /// The whole rows, in order.
    pub(super) rows: Vec<Row>,
    /// Bytes up to the end of the last whole record.
    pub(super) whole: u64,
    /// Bytes after that.
    pub(super) torn: u64,
}

/// A journal that is being written.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: Arc<File>,
    /// Bytes up to the end of the last whole record.
    whole: u64,
    /// Rows.
    pub(super) rows: usize,
    /// True if something was written since the last sync.
    dirty: bool,
    /// True if a partial record may be at the end and could not be cut off: rows after it would not be found.
    spoilt: bool,
}

/// True if the first line names another format. Anything else is a torn or damaged start, whose runs are done again.
fn is_other_format(bytes: &[u8]) -> bool {
    let Some(rest) = bytes.strip_prefix(NAME) else { return false };
    let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    end > 0 && rest[..end].iter().all(u8::is_ascii_digit)
}

/// Reads a journal without changing it. Fails for one of another format.
pub(super) fn read(path: &Path) -> io::Result<Contents> {
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    let mut contents = Contents { engine: None, rows: Vec::new(), whole: 0, torn: bytes.len() as u64 };
    let Some(mut rest) = bytes.strip_prefix(FORMAT) else {
        return match is_other_format(&bytes) {
            true => Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a journal of this version of bentpipe")),
            false => Ok(contents),
        };
    };
    while let Some((content, after)) = record(rest) {
        match &contents.engine {
            None => match std::str::from_utf8(content) {
                Ok(engine) => contents.engine = Some(engine.to_owned()),
                Err(_) => break,
            },
            Some(_) => match Row::from_bytes(content) {
                Ok(row) => contents.rows.push(row),
                Err(_) => break,
            },
        }
        rest = after;
    }
    contents.whole = (bytes.len() - rest.len()) as u64;
    contents.torn = rest.len() as u64;
    Ok(contents)
}

/// The content of the first record, and the rest; `None` if it is incomplete.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let (length, sum) = head.split_at(4);
    let count = u32::from_le_bytes(length.try_into().ok()?) as usize;
    let (content, after) = rest.split_at_checked(count)?;
    (checksum(length, content) == u32::from_le_bytes(sum.try_into().ok()?)).then_some((content, after))
}

fn checksum(length: &[u8], content: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(length);
    hasher.update(content);
    hasher.finalize()
}

fn framed(content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).expect("a row has less than 4 GB").to_le_bytes();
    [&length[..], &checksum(&length, content).to_le_bytes(), content].concat()
}

impl Journal {
    /// Starts an empty journal, which is on the disk when this returns.
    pub(super) fn create(path: PathBuf, engine: &str) -> Result<Journal, StoreError> {
        let start = [FORMAT, &framed(engine.as_bytes())].concat();
        let write = || {
            let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
            file.write_all(&start).and_then(|()| file.sync_all()).inspect_err(|_| drop(std::fs::remove_file(&path)))?;
            Ok(file)
        };
        let file = write().map_err(|error| StoreError::at(&path, error))?;
        Ok(Journal { path, file: Arc::new(file), whole: start.len() as u64, rows: 0, dirty: false, spoilt: false })
    }

    /// Continues a journal whose contents have been read. Cuts off a torn end.
    pub(super) fn open(path: PathBuf, contents: &Contents) -> Result<Journal, StoreError> {
        let open = || {
            let mut file = OpenOptions::new().write(true).open(&path)?;
            if contents.torn > 0 {
                file.set_len(contents.whole)?;
                file.sync_all()?;
            }
            file.seek(SeekFrom::Start(contents.whole))?;
            Ok(file)
        };
        let file = open().map_err(|error| StoreError::at(&path, error))?;
        Ok(Journal {
            path,
            file: Arc::new(file),
            whole: contents.whole,
            rows: contents.rows.len(),
            dirty: false,
            spoilt: false,
        })
    }

    /// Adds a row. If this fails, for example because the disk is full, the journal is unchanged.
    pub(super) fn append(&mut self, row: &Row) -> Result<(), StoreError> {
        if self.spoilt {
            return Err(StoreError::at(&self.path, io::Error::other("an earlier error could not be undone")));
        }
        let bytes = framed(&row.to_bytes());
        let mut file = &*self.file;
        if let Err(error) = file.write_all(&bytes) {
            let undone = file.set_len(self.whole).and_then(|()| file.seek(SeekFrom::Start(self.whole)));
            self.spoilt = undone.is_err();
            return Err(StoreError::at(&self.path, error));
        }
        self.whole += bytes.len() as u64;
        self.rows += 1;
        self.dirty = true;
        Ok(())
    }

    /// The file, if it has unsynced data; the caller syncs it without holding up others.
    pub(super) fn unsynced(&mut self) -> Option<(Arc<File>, PathBuf)> {
        std::mem::take(&mut self.dirty).then(|| (self.file.clone(), self.path.clone()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::row;

    /// After a crash of the machine, a file may have zeros in place of what was not yet on the disk.
    #[test]
    fn zeros_are_no_record() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal");
        std::fs::write(&path, [FORMAT, &[0; 64]].concat()).expect("a file");
        let contents = read(&path).expect("readable");
        assert_eq!((contents.engine, contents.whole, contents.torn), (None, FORMAT.len() as u64, 64));
    }

    #[test]
    fn what_was_appended_is_synced_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut journal = Journal::create(folder.path().join("journal"), "engine").expect("a file");
        assert!(journal.unsynced().is_none());
        journal.append(&row(1)).expect("it is kept");
        assert!(journal.unsynced().is_some() && journal.unsynced().is_none());
        // A partial row would be cut off here.
        assert_eq!(journal.whole, std::fs::metadata(journal.path()).expect("it is there").len());
    }

    /// Rows after a partial one would not be found.
    #[test]
    fn nothing_follows_what_could_not_be_undone() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut journal = Journal::create(folder.path().join("journal"), "engine").expect("a file");
        // It can neither be written nor shortened.
        journal.file = Arc::new(File::open(journal.path()).expect("it is there"));
        let mut said = || journal.append(&row(1)).expect_err("it is only read").to_string();
        assert!(!said().contains("could not be undone") && said().contains("could not be undone"));
    }
}
