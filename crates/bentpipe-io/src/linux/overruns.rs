//! Counts packets that the kernel dropped because a device's queue was full.
//!
//! A TUN device queues what hosts send (`txqueuelen`) until it is read. If the queue is full, the kernel drops packets
//! and counts them (`tx_dropped`); the reader of the device does not see this.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Maximum length read from `/proc/net/dev`: room for some 8000 devices.
const MAX_BYTES: usize = 1 << 20;

/// The column of `tx_dropped` after the name, of sixteen: eight for receiving, then bytes, packets, errors and drops of
/// sending.
const TX_DROPPED: usize = 11;

/// Counts the drops of one device. It must be opened in the device's network namespace, and works from any namespace
/// afterwards.
#[derive(Debug)]
pub(crate) struct Overruns {
    devices: File,
    name: String,
}

impl Overruns {
    /// Opens the counters of the device `name` in the network namespace of the calling thread, and keeps that namespace
    /// open.
    ///
    /// # Errors
    /// Fails if the device's counters below `/proc/thread-self/net` cannot be opened.
    pub(crate) fn of(name: String) -> io::Result<Self> {
        // Opens this thread's file, because `/proc/net` belongs to the process's first thread.
        Ok(Overruns { devices: File::open("/proc/thread-self/net/dev")?, name })
    }

    /// Number of packets or trains that the kernel dropped since the device was created.
    ///
    /// # Errors
    /// Fails if the device no longer exists.
    pub(crate) fn count(&self) -> io::Result<u64> {
        let mut text = Vec::new();
        let mut block = [0; 4096];
        while text.len() < MAX_BYTES {
            match self.devices.read_at(&mut block, text.len() as u64)? {
                0 => break,
                length => text.extend_from_slice(&block[..length]),
            }
        }
        let gone = || io::Error::new(io::ErrorKind::NotFound, format!("no counters for the device {}", self.name));
        tx_dropped(&String::from_utf8_lossy(&text), &self.name).ok_or_else(gone)
    }
}

/// Send drops of the device `name` in `/proc/net/dev`.
fn tx_dropped(text: &str, name: &str) -> Option<u64> {
    let (_, counters) =
        text.lines().filter_map(|line| line.split_once(':')).find(|(device, _)| device.trim_start() == name)?;
    counters.split_ascii_whitespace().nth(TX_DROPPED)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_of_the_device() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
             face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
             lo:    3193      29    1    2    3     4          5         6     7       8    9   10   11    12      13        14\n\
             bentpipe0: 1 2 3 4 5 6 7 8 9 10 11 336355 13 14 15 16\n\
             entpipe0: 1 2 3 4\n";
        assert_eq!(tx_dropped(text, "lo"), Some(10));
        assert_eq!(tx_dropped(text, "bentpipe0"), Some(336_355));
        assert_eq!(tx_dropped(text, "entpipe0"), None);
        assert_eq!(tx_dropped(text, "pipe0"), None);
        assert_eq!(tx_dropped("", "lo"), None);
    }

    #[test]
    fn loopback_drops_nothing_and_others_are_not_there() {
        assert_eq!(Overruns::of("lo".to_owned()).and_then(|lo| lo.count()).expect("each namespace has it"), 0);
        let error = Overruns::of("nobody".to_owned()).and_then(|none| none.count()).expect_err("no such device");
        assert!(error.to_string().contains("device nobody"), "{error}");
    }
}
