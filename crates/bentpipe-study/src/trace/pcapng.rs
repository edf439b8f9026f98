//! Packets as pcapng (draft-ietf-opsawg-pcapng): one interface per tap, nanoseconds, raw IP.
//!
//! Simulated times count from the start of the run, so these packets are in the first hours of 1970. A live capture has the time of
//! day. A packet lost on a link is missing at the tap after the link.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use bentpipe_engine::units::Time;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};

use crate::output::OutputFile;

/// An option's length has 16 bits; longer comments continue in the next option.
const MAX_COMMENT: usize = 65_000;

/// if_tsresol: 10^-9 s.
const NANOSECONDS: u8 = 9;

/// An unfinished capture.
pub struct PcapWriter {
    writer: PcapNgWriter<OutputFile>,
    taps: u32,
    /// The start of the run, from 1970 on.
    start: Duration,
}

impl PcapWriter {
    /// Starts the capture `path` with the interfaces `taps`; `comment` goes into the file's header and says how to
    /// repeat the run.
    ///
    /// # Errors
    /// Fails with the path if the file cannot be created or written.
    pub fn create(path: &Path, taps: &[&str], comment: &str) -> io::Result<Self> {
        Self::over(OutputFile::create(path)?, taps, comment, Duration::ZERO)
    }

    /// As [`PcapWriter::create`], for readers that follow the file while it grows: it has its name from the start. `start` is the
    /// time of day, since 1970, of [`Time::ZERO`].
    ///
    /// # Errors
    /// As [`PcapWriter::create`].
    pub fn create_live(path: &Path, taps: &[&str], comment: &str, start: Duration) -> io::Result<Self> {
        let mut live = Self::over(OutputFile::create_live(path)?, taps, comment, start)?;
        live.flush()?;
        Ok(live)
    }

    fn over(file: OutputFile, taps: &[&str], comment: &str, start: Duration) -> io::Result<Self> {
        let mut options: Vec<_> = pieces(comment).map(|c| SectionHeaderOption::Comment(Cow::Owned(c.into()))).collect();
        options.push(SectionHeaderOption::UserApplication(concat!("bentpipe ", env!("CARGO_PKG_VERSION")).into()));
        // The same bytes on every machine.
        let section = SectionHeaderBlock { endianness: Endianness::Little, options, ..SectionHeaderBlock::default() };
        let mut writer = PcapNgWriter::with_section_header(file, section).map_err(to_io)?;
        for tap in taps {
            let interface = InterfaceDescriptionBlock {
                linktype: DataLink::RAW,
                snaplen: 0,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Borrowed(*tap)),
                    InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                ],
            };
            writer.write_pcapng_block(interface).map_err(to_io)?;
        }
        Ok(PcapWriter { writer, taps: taps.len() as u32, start })
    }

    /// Writes one IP packet seen at the `tap`-th interface. `bytes` may be truncated; `original_len` is its length
    /// on the line.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::InvalidInput`] for an unknown tap; otherwise fails if the file cannot be written.
    pub fn packet(&mut self, tap: u32, at: Time, bytes: &[u8], original_len: u32) -> io::Result<()> {
        if tap >= self.taps {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("tap {tap} of {}", self.taps)));
        }
        let block = EnhancedPacketBlock {
            interface_id: tap,
            timestamp: self.start + Duration::from_nanos(at.as_nanos()),
            original_len,
            data: Cow::Borrowed(bytes),
            options: Vec::new(),
        };
        self.writer.write_pcapng_block(block).map(drop).map_err(to_io)
    }

    /// Lets readers of a live capture see all packets so far.
    ///
    /// # Errors
    /// Fails with the path if the file cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.get_mut().flush()
    }

    /// Completes the capture, and renames it to its final name unless it is live.
    ///
    /// # Errors
    /// Fails with the path if the file cannot be written, for example if the disk is full.
    pub fn finish(self) -> io::Result<()> {
        self.writer.into_inner().finish().map(drop)
    }
}

impl std::fmt::Debug for PcapWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PcapWriter").field("taps", &self.taps).finish_non_exhaustive()
    }
}

/// The text in pieces that fit an option, split between characters.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = (0..=rest.len().min(MAX_COMMENT)).rev().find(|&end| rest.is_char_boundary(end));
        let (piece, after) = rest.split_at(end.expect("0 is a boundary"));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

fn to_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use pcap_file::pcapng::{Block, PcapNgReader};

    use super::*;

    #[test]
    fn names_nanoseconds_and_lengths_are_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.pcapng");
        // Three comments, the cut next to a character of two bytes.
        let comment = format!("x{}", "é".repeat(65_000));
        let mut writer = PcapWriter::create(&path, &["server", "uplink"], &comment).expect("writable");
        writer.packet(1, Time::from_nanos(5_000_000_001), &[0x45; 21], 1500).expect("writable");
        assert_eq!(writer.packet(2, Time::ZERO, &[], 0).expect_err("unknown").kind(), io::ErrorKind::InvalidInput);
        assert!(!path.exists(), "nothing has the name before the end");
        writer.finish().expect("writable");

        let mut reader = PcapNgReader::new(File::open(&path).expect("it is there")).expect("pcapng");
        let comments: Vec<_> = reader
            .section()
            .options
            .iter()
            .filter_map(|o| if let SectionHeaderOption::Comment(c) = o { Some(c.to_string()) } else { None })
            .collect();
        assert_eq!((comments.len(), comments.concat()), (3, comment));
        let mut packets = Vec::new();
        while let Some(block) = reader.next_block() {
            if let Block::EnhancedPacket(packet) = block.expect("a block") {
                packets.push(packet.into_owned());
            }
        }
        let names: Vec<_> = reader.interfaces().iter().map(|i| (i.linktype, i.options.clone())).collect();
        let options = |name: &'static str| {
            vec![InterfaceDescriptionOption::IfName(name.into()), InterfaceDescriptionOption::IfTsResol(9)]
        };
        assert_eq!(names, [(DataLink::RAW, options("server")), (DataLink::RAW, options("uplink"))]);
        let [packet] = &packets[..] else { panic!("{packets:?}") };
        assert_eq!((packet.interface_id, packet.original_len, packet.data.len()), (1, 1500, 21));
        assert_eq!(packet.timestamp.as_nanos(), 5_000_000_001);
    }

    #[test]
    fn a_live_capture_is_readable_at_any_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("live.pcapng");
        let start = Duration::from_secs(1_800_000_000);
        let mut writer = PcapWriter::create_live(&path, &["inside"], "", start).expect("writable");
        let times = || {
            let mut reader = PcapNgReader::new(File::open(&path).expect("it is there")).expect("pcapng");
            let mut times = Vec::new();
            while let Some(block) = reader.next_block() {
                if let Block::EnhancedPacket(packet) = block.expect("a block") {
                    times.push(packet.timestamp);
                }
            }
            times
        };
        assert_eq!(times(), []);
        writer.packet(0, Time::from_nanos(7), &[0x45; 20], 20).and_then(|()| writer.flush()).expect("writable");
        assert_eq!(times(), [start + Duration::from_nanos(7)]);
        drop(writer);
        assert_eq!(times().len(), 1, "what is broken off stays");
    }

    #[test]
    fn what_is_broken_off_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        drop(PcapWriter::create(&folder.path().join("run.pcapng"), &["a"], "").expect("writable"));
        assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 0);
    }
}
