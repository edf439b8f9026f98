//! The contents of an end's packets, recorded for an observer while they are encrypted and decrypted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bentpipe_engine::probe::{QuicKind, QuicPacket};

use super::frames;

/// The packets since they were last taken. An end and its keys share this.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(Arc<Mutex<Pages>>);

#[derive(Debug, Default)]
struct Pages {
    sent: Vec<QuicPacket>,
    received: Vec<QuicPacket>,
    /// For each stream, the end of the data sent so far.
    ends: BTreeMap<u64, u64>,
}

impl Notes {
    fn with<R>(&self, write: impl FnOnce(&mut Pages) -> R) -> R {
        write(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn sent(&self, kind: QuicKind, number: u64, len: usize, payload: &[u8]) {
        self.with(|pages| {
            let packet = packet(kind, number, len, payload, &mut pages.ends);
            pages.sent.push(packet);
        });
    }

    pub(super) fn received(&self, kind: QuicKind, number: u64, len: usize, payload: &[u8]) {
        let packet = packet(kind, number, len, payload, &mut BTreeMap::new());
        self.with(|pages| pages.received.push(QuicPacket { repeats: false, ..packet }));
    }

    pub(super) fn take_sent(&self) -> Vec<QuicPacket> {
        self.with(|pages| std::mem::take(&mut pages.sent))
    }

    pub(super) fn take_received(&self) -> Vec<QuicPacket> {
        self.with(|pages| std::mem::take(&mut pages.received))
    }
}

fn packet(kind: QuicKind, number: u64, len: usize, payload: &[u8], ends: &mut BTreeMap<u64, u64>) -> QuicPacket {
    let mut repeats = false;
    let said = frames::read(payload, |stream, offset, len| {
        let end = ends.entry(stream).or_default();
        repeats |= offset < *end;
        *end = (*end).max(offset + len);
    });
    QuicPacket {
        kind,
        number,
        len: len as u32,
        acknowledges: said.acknowledges,
        data: said.data as u32,
        at: said.first,
        repeats,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// STREAM frames with a length and an offset: stream, offset, and this many bytes.
    fn payload(frames: &[(u8, u8, u8)]) -> Vec<u8> {
        let frame = |&(stream, offset, len): &(u8, u8, u8)| {
            [0x0e, stream, offset, len].into_iter().chain(std::iter::repeat_n(0, len.into())).collect::<Vec<_>>()
        };
        frames.iter().flat_map(frame).collect()
    }

    /// A packet repeats data if any of its frames does, and whatever place the data had when it was first sent.
    #[test]
    fn data_of_any_frame_is_repeated() {
        let notes = Notes::default();
        let packets: [(&[_], _); 4] = [
            (&[(0, 0, 30), (4, 0, 20)], false),
            (&[(0, 30, 30), (4, 20, 20)], false),
            (&[(0, 60, 30), (4, 20, 20)], true),
            (&[(4, 0, 20)], true),
        ];
        for (number, (frames, _)) in (0..).zip(&packets) {
            notes.sent(QuicKind::OneRtt, number, 1200, &payload(frames));
        }
        let repeats: Vec<_> = notes.take_sent().iter().map(|packet| packet.repeats).collect();
        assert_eq!(repeats, packets.map(|(_, repeats)| repeats));
    }
}
