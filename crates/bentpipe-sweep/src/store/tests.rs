use super::*;
use crate::row::tests::row;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn keys(store: &Store) -> Vec<Key> {
    store.rows.keys().copied().collect()
}

fn filled(folder: &Path, rows: std::ops::Range<u64>) -> Store {
    let mut store = Store::open(folder).expect("it opens");
    rows.for_each(|n| store.append(row(n)).expect("it is kept"));
    store
}

fn expected(rows: std::ops::Range<u64>) -> BTreeMap<Key, Row> {
    rows.map(|n| (row(n).key, row(n))).collect()
}

fn the_journal(folder: &Path) -> PathBuf {
    let found = numbers(folder, "journal-", ".log").expect("readable");
    assert_eq!(found.len(), 1, "{found:?}");
    folder.join(format!("journal-{:06}.log", found[0]))
}

#[test]
fn rows_are_there_again() {
    let folder = folder();
    drop(filled(folder.path(), 0..10));
    let mut store = Store::open(folder.path()).expect("it opens");
    assert_eq!(store.rows, expected(0..10));
    store.compact().expect("a part");
    (10..15).for_each(|n| store.append(row(n)).expect("it is kept"));
    // The same run twice is stored once.
    store.append(row(3)).expect("nothing to do");
    let holdings = Holdings { runs: 15, parts: 1, in_journal: 5, ..Holdings::default() };
    assert_eq!(store.holdings(), holdings);
    drop(store);
    let store = Store::read(folder.path()).expect("readable");
    assert_eq!((&store.rows, store.holdings()), (&expected(0..15), holdings));
    assert_eq!(Store::read(&folder.path().join("absent")).expect("nothing").holdings(), Holdings::default());
}

/// A journal in the format of another version of bentpipe has runs that this one cannot read: it stays.
#[test]
fn a_journal_of_another_format_is_kept() {
    let folder = folder();
    drop(filled(folder.path(), 0..3));
    let newer = folder.path().join("journal-000007.log");
    let text = "bentpipe sweep journal 2\nruns";
    std::fs::write(&newer, text).expect("a file");
    for refused in [Store::open(folder.path()), Store::read(folder.path())] {
        let error = refused.expect_err("its runs would be lost").to_string();
        assert_eq!(error, format!("{}: it is not a journal of this version of bentpipe", newer.display()));
    }
    assert_eq!(std::fs::read_to_string(&newer).expect("it is still there"), text);
    // What a process or the machine left of a journal's start is no reason to stop.
    for begun in ["", "bentpipe sw", "bentpipe sweep journal 1", "bentpipe sweep journal 1\0\0", "\0\0"] {
        std::fs::write(&newer, begun).expect("a file");
        assert_eq!(Store::open(folder.path()).expect("it opens").rows, expected(0..3), "{begun:?}");
        std::fs::remove_file(&newer).expect("it was begun again");
    }
}

/// Only a missing folder has no runs. One that cannot be reached may have some.
#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_reached_is_an_error() {
    let folder = folder();
    std::fs::write(folder.path().join("file"), "").expect("a file");
    let below = folder.path().join("file").join("x.sweep");
    let error = Store::read(&below).expect_err("a file has no folders").to_string();
    assert!(error.starts_with(&format!("{}: ", below.display())), "{error}");
}

#[test]
fn a_torn_end_costs_only_what_was_torn() {
    let folder = folder();
    drop(filled(folder.path(), 0..5));
    let path = the_journal(folder.path());
    let whole = std::fs::read(&path).expect("readable");
    let start = {
        drop(filled(&folder.path().join("empty"), 0..0));
        std::fs::read(the_journal(&folder.path().join("empty"))).expect("readable").len()
    };
    let each: Vec<usize> = (0..5).map(|n| row(n).to_bytes().len() + 8).collect();
    // Every byte around the ends of records, and some between.
    let ends: Vec<usize> = (0..=5).map(|n| start + each[..n].iter().sum::<usize>()).collect();
    let is_near = |length: &usize| ends.iter().any(|end| end.abs_diff(*length) < 3) || length.is_multiple_of(97);
    for length in (0..=whole.len()).rev().filter(is_near) {
        std::fs::write(&path, &whole[..length]).expect("writable");
        let store = Store::open(folder.path()).expect("it opens");
        let left = (0..=5).rev().find(|&n| start + each[..n].iter().sum::<usize>() <= length).unwrap_or(0);
        assert_eq!(store.rows, expected(0..left as u64), "cut at {length} of {}", whole.len());
        drop(store);
        // It continues after the last complete row.
        let mut store = Store::open(folder.path()).expect("it opens");
        assert_eq!(store.holdings().torn_bytes, 0);
        store.append(row(99)).expect("it is kept");
        drop(store);
        assert_eq!(Store::read(folder.path()).expect("readable").rows.len(), left + 1);
    }
}

#[test]
fn damage_in_the_journal_costs_what_follows_it() {
    let folder = folder();
    drop(filled(folder.path(), 0..5));
    let path = the_journal(folder.path());
    let whole = std::fs::read(&path).expect("readable");
    for at in (0..whole.len()).step_by(53) {
        let mut changed = whole.clone();
        changed[at] ^= 0x04;
        // Each in a separate folder.
        let other = self::folder();
        std::fs::write(other.path().join("journal-000001.log"), &changed).expect("writable");
        let store = Store::open(other.path()).expect("it opens");
        let count = store.rows.len() as u64;
        assert!(count < 5 && store.rows == expected(0..count), "byte {at}: {count} rows");
    }
}

/// The files at each moment of a compaction at which the machine could crash.
#[test]
fn a_compaction_that_is_cut_off_loses_and_repeats_nothing() {
    let before = folder();
    drop(filled(before.path(), 0..5));
    let journal = the_journal(before.path());
    let after = folder();
    let mut store = filled(after.path(), 0..5);
    store.compact().expect("a part");
    drop(store);
    let files = |names: &[(&Path, &str)]| {
        let folder = folder();
        for (from, name) in names {
            std::fs::copy(from, folder.path().join(name)).expect("copied");
        }
        let store = Store::open(folder.path()).expect("it opens");
        assert_eq!(store.rows, expected(0..5), "{names:?}");
        let Holdings { runs, parts, in_journal, .. } = store.holdings();
        assert_eq!((runs, 5 * parts + in_journal), (5, 5), "{names:?}");
        drop(store);
        let mut names: Vec<String> = std::fs::read_dir(folder.path())
            .expect("readable")
            .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    let part = after.path().join("part-000001.parquet");
    let next = after.path().join("journal-000002.log");
    let old = ["journal-000001.log", "lock"];
    let new = ["journal-000002.log", "lock", "part-000001.parquet"];
    // A part that was being written, under a temporary name.
    assert_eq!(files(&[(&journal, "journal-000001.log"), (&journal, ".bentpipe-x1y2-part-000001.parquet")]), old);
    // A picture that another command is writing.
    let picture = ".bentpipe-x1y2-times.svg";
    assert_eq!(files(&[(&journal, "journal-000001.log"), (&journal, picture)]), [&[picture], &old[..]].concat());
    // Renamed, without a new journal yet.
    assert_eq!(files(&[(&journal, "journal-000001.log"), (&part, "part-000001.parquet")]), new);
    // A new journal, with the old one still present.
    let all: [(&Path, &str); 3] =
        [(&journal, "journal-000001.log"), (&part, "part-000001.parquet"), (&next, "journal-000002.log")];
    assert_eq!(files(&all), new);
    assert_eq!(files(&all[1..]), new);
}

#[test]
fn one_process_at_a_time() {
    let folder = folder();
    let store = filled(folder.path(), 0..1);
    let error = Store::open(folder.path()).expect_err("locked").to_string();
    assert!(error.contains("another sweep") && error.contains(&std::process::id().to_string()), "{error}");
    assert_eq!(keys(&Store::read(folder.path()).expect("to look is allowed")), keys(&store));
    let mut store = store;
    // As a forked worker has it.
    let inherited = store.lock.as_ref().expect("open").try_clone().expect("a descriptor");
    store.release();
    Store::open(folder.path()).expect("free again");
    drop(inherited);
    assert_eq!(store.get(&row(0).key), Some(&row(0)), "what it had can be read");
    assert!(store.append(row(1)).is_err());
}

#[test]
fn rows_of_another_engine_do_not_count_and_are_kept() {
    let folder = folder();
    let path = folder.path().join("journal-000001.log");
    let mut journal = Journal::create(path, "0.0.0+other").expect("writable");
    (0..4).for_each(|n| journal.append(&row(n)).expect("it is kept"));
    drop(journal);
    let mut store = Store::open(folder.path()).expect("it opens");
    let other = Holdings { of_other_engines: 4, ..Holdings::default() };
    // The journal has become a part.
    assert_eq!((store.rows.len(), store.holdings()), (0, Holdings { parts: 1, ..other }));
    store.append(row(0)).expect("it is kept");
    drop(store);
    let found = Store::read(folder.path()).expect("readable").holdings();
    assert_eq!(found, Holdings { runs: 1, parts: 1, in_journal: 1, ..other });
}

#[test]
fn a_compaction_without_room_for_the_next_journal_changes_nothing() {
    let folder = folder();
    let mut store = filled(folder.path(), 0..5);
    // The next journal's name is taken.
    std::fs::create_dir(folder.path().join("journal-000002.log")).expect("writable");
    assert!(store.compact().expect_err("taken").to_string().contains("journal-000002.log"));
    store.append(row(5)).expect("the journal goes on");
    drop(store);
    std::fs::remove_dir(folder.path().join("journal-000002.log")).expect("ours");
    assert_eq!(Store::open(folder.path()).expect("it opens").rows, expected(0..6));
}

#[test]
fn a_store_that_is_only_read_takes_nothing() {
    let folder = folder();
    drop(filled(folder.path(), 0..1));
    let mut store = Store::read(folder.path()).expect("readable");
    assert!(store.append(row(1)).expect_err("not open").to_string().contains("not open for writing"));
}

#[test]
fn a_full_journal_becomes_a_part() {
    let folder = folder();
    let mut store = Store::open(folder.path()).expect("it opens");
    store.compact().expect("nothing to do");
    assert_eq!(store.holdings(), Holdings::default(), "an empty journal is no part");
    // As if there were all but one of the rows.
    store.holdings.in_journal = FULL - 1;
    store.append(row(0)).expect("it is kept");
    assert_eq!(store.holdings(), Holdings { runs: 1, parts: 1, ..Holdings::default() });
    store.append(row(1)).expect("it is kept");
    assert_eq!(store.holdings(), Holdings { runs: 2, parts: 1, in_journal: 1, ..Holdings::default() });
}
