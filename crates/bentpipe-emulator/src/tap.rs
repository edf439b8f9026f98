//! A live capture of the packets that hosts send and receive.

use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use bentpipe_engine::units::Time;
use bentpipe_io::{Clock, Packet};
use bentpipe_study::trace::PcapWriter;

use crate::plan::HostId;

/// A capture with one interface per captured host and with the time of day, readable while it grows. A packet is
/// recorded when a captured host sends it and when one receives it, so a packet between two captured hosts is recorded
/// twice.
#[derive(Debug)]
pub struct Tap {
    writer: PcapWriter,
    /// The interface of each host that is captured.
    interfaces: Vec<Option<u32>>,
    /// True if packets have been written since the last flush.
    is_dirty: bool,
    error: Option<io::Error>,
}

impl Tap {
    /// Starts capturing these hosts, each with its name, to the file `path`. `clock` is the emulator's.
    ///
    /// # Errors
    /// Fails with the path if the file cannot be created or written.
    pub fn create(path: &Path, hosts: &[(HostId, &str)], comment: &str, clock: Clock) -> io::Result<Self> {
        let names: Vec<&str> = hosts.iter().map(|(_, name)| *name).collect();
        // A clock set to before 1970 gives times in 1970.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start = now.saturating_sub(std::time::Duration::from_nanos(clock.now().as_nanos()));
        let writer = PcapWriter::create_live(path, &names, comment, start)?;
        let count = hosts.iter().map(|(host, _)| host.index() + 1).max().unwrap_or(0);
        let interface = |host| hosts.iter().position(|(captured, _)| *captured == host).map(|n| n as u32);
        Ok(Tap { writer, interfaces: HostId::first(count).map(interface).collect(), is_dirty: false, error: None })
    }

    /// Writes a packet. A full disk or a closed pipe ends the capture, not the emulation; [`Tap::finish`] reports it.
    pub(crate) fn write(&mut self, host: HostId, at: Time, packet: &Packet) {
        if let (None, Some(Some(interface))) = (&self.error, self.interfaces.get(host.index())) {
            let packet = packet.to_bytes();
            self.error = self.writer.packet(*interface, at, &packet, packet.len() as u32).err();
            self.is_dirty = true;
        }
    }

    /// Makes all packets so far visible to readers.
    pub(crate) fn flush(&mut self) {
        if std::mem::take(&mut self.is_dirty) && self.error.is_none() {
            self.error = self.writer.flush().err();
        }
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// Fails if any packet could not be written, for example because the disk was full.
    pub fn finish(self) -> io::Result<()> {
        match self.error {
            Some(error) => Err(error),
            None => self.writer.finish(),
        }
    }
}
