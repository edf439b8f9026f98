//! Captures that are damaged: each gives an error with its place, or figures with a note.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use bentpipe_fit::{Fit, fit, fit_until};

use crate::captures::{capture, satellite};

/// The bytes of a small capture.
fn good() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("good.pcapng");
    capture(&satellite("", "100 kB"), 1, "server", &path);
    std::fs::read(&path).expect("readable")
}

fn of(bytes: &[u8]) -> Result<Fit, String> {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), bytes).expect("writable");
    fit(file.path()).map_err(|error| error.to_string().replace(&file.path().display().to_string(), "FILE"))
}

/// A pcap with one frame of this link type that claims `captured` bytes.
fn pcap(link_type: u8, captured: u32, frame: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, link_type, 0, 0, 0];
    bytes.extend([0; 8]);
    bytes.extend(captured.to_le_bytes());
    bytes.extend(captured.to_le_bytes());
    bytes.extend(frame);
    bytes
}

#[test]
fn a_file_that_ends_early_is_used_up_to_there() {
    let bytes = good();
    let Ok(Fit::Transfer(transfer)) = of(&bytes[..bytes.len() - 7]) else { panic!("figures") };
    assert!(
        transfer.notes.iter().any(|note| note.ends_with("on the file has no whole packet; what is before it was used")),
        "{:?}",
        transfer.notes
    );
}

#[test]
fn lengths_that_lie_are_named_with_their_place() {
    let bytes = good();
    // Each block ends with its length, 4 bytes after its start stands the same. The one before the last is changed.
    let length = |end: usize| u32::from_le_bytes(bytes[end - 4..end].try_into().expect("4 bytes")) as usize;
    let last = bytes.len() - length(bytes.len());
    let block = last - length(last);
    let mut lying = bytes.clone();
    lying[block + 4] = lying[block + 4].wrapping_sub(4);
    let Ok(Fit::Transfer(transfer)) = of(&lying) else { panic!("figures") };
    // Reading stops where the false length leads.
    let stopped = format!("from byte {block} on the file has no whole packet;");
    assert!(transfer.notes.iter().any(|note| note.starts_with(&stopped)), "{:?}", transfer.notes);
    // A packet of four gigabytes.
    let message = of(&pcap(101, u32::MAX - 3, &[0x45; 60])).expect_err("a lie");
    assert!(message.starts_with("FILE: byte 24: "), "{message}");
}

#[test]
fn what_cannot_be_used_says_what_was_expected() {
    assert_eq!(
        of(&pcap(127, 4, &[0; 4])).expect_err("radiotap").split(": expected").next(),
        Some("FILE: link type 127 is not supported")
    );
    assert_eq!(
        of(&pcap(1, 14, &[0; 14])).expect_err("no IP"),
        "FILE: expected TCP packets with data: of UDP, and so of QUIC, nothing is read"
    );
    assert_eq!(
        of(&pcap(101, 0, &[])).expect_err("nothing"),
        "FILE: every TCP packet is cut off within its headers: capture 128 bytes or more of each"
    );
    assert_eq!(
        of(b"hello\n").expect_err("text"),
        "FILE: expected a capture (pcap, pcapng), or two answers or more of `ping -D`"
    );
    assert!(of(&[0xff, 0x8b, 8, 0]).expect_err("bytes").starts_with("FILE:1: expected a capture"));
    assert!(fit(Path::new("/dev/null")).is_err());
}

#[test]
fn a_file_is_read_no_further_once_stopped() {
    static READS: AtomicU32 = AtomicU32::new(0);
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "\n".repeat(10_000_000)).expect("room");
    // Of some thousand reads this is the third.
    let stopped = fit_until(file.path(), || READS.fetch_add(1, Ordering::Relaxed) == 2);
    let error = stopped.expect_err("it was stopped").to_string();
    assert!(error.ends_with(": stopped"), "{error}");
    assert_eq!(READS.load(Ordering::Relaxed), 3);
}

/// A pcapng block of this type.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

/// A pcapng whose clock counts nanoseconds from this many seconds on, with a packet at each of these times.
fn pcapng(offset: i64, ticks: &[u64]) -> Vec<u8> {
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    let options = [&[9, 0, 1, 0, 9, 0, 0, 0, 14, 0, 8, 0][..], &offset.to_le_bytes(), &[0; 4]].concat();
    let interface = [&[101, 0, 0, 0, 0, 0, 4, 0][..], &options].concat();
    let mut bytes = [block(0x0a0d_0d0a, &section), block(1, &interface)].concat();
    // From 1.1.1.1 to 1.1.1.2: ACK, four bytes of data.
    let mut packet = vec![0x45, 0, 0, 44, 0, 1, 0, 0, 64, 6, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2];
    packet.extend([0, 80, 0, 80, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 16, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
    for time in ticks {
        let head = [0, (time >> 32) as u32, *time as u32, 44, 44].map(u32::to_le_bytes).concat();
        bytes.extend(block(6, &[&head[..], &packet].concat()));
    }
    bytes
}

/// Times that are further apart than 64 bits of nanoseconds count, and those of more than ten years: no transfer lasts so long.
#[test]
fn wild_clocks_are_refused() {
    const YEAR: u64 = 31_556_952 * 1_000_000_000;
    for (ticks, years) in [([0, 583 * YEAR], 583), ([11 * YEAR, 0], 11)] {
        let message = of(&pcapng(-9_200_000_000, &ticks)).expect_err("no transfer");
        assert!(message.starts_with(&format!("FILE: its packets are {years} years apart: expected")), "{message}");
    }
    // Each section has interfaces of its own, with clocks of their own.
    let sections = [pcapng(0, &[0]), pcapng(12 * 31_556_952, &[0])].concat();
    let message = of(&sections).expect_err("no transfer");
    assert!(message.starts_with("FILE: its packets are 12 years apart: expected"), "{message}");
    let message = of(&pcapng(-9_200_000_000, &[0, YEAR])).expect_err("one direction");
    assert!(message.contains("none of its acknowledgements was captured"), "{message}");
}
