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
    let said = frames::read(payload);
    let repeats = said.first.is_some_and(|(stream, offset, len)| {
        let end = ends.entry(stream).or_default();
        let repeats = offset < *end;
        *end = (*end).max(offset + len);
        repeats
    });
    QuicPacket {
        kind,
        number,
        len: len as u32,
        acknowledges: said.acknowledges,
        data: said.data as u32,
        at: said.first.map(|(stream, offset, _)| (stream, offset)),
        repeats,
    }
}
