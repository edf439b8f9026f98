//! Wrappers around TLS's keys: they record packets before encryption, or leave packets unencrypted.
//!
//! The handshake is TLS's in every case. Unencrypted packets have the same lengths as encrypted ones: they keep the 16
//! bytes of the tag, and their keys have the limits of TLS's.

use std::any::Any;
use std::sync::Arc;

use bentpipe_engine::probe::QuicKind;
use bytes::BytesMut;
use quinn_proto::crypto::{
    self, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

use super::notes::Notes;

/// How TLS's keys are wrapped.
#[derive(Clone, Debug)]
pub(super) struct Cover {
    pub(super) encrypts: bool,
    /// The record of packets, if there is an observer.
    pub(super) notes: Option<Notes>,
}

impl Cover {
    /// True if TLS's keys are used unwrapped.
    pub(super) fn is_plain(&self) -> bool {
        self.encrypts && self.notes.is_none()
    }

    fn packet(&self, key: Box<dyn PacketKey>, kind: QuicKind) -> Box<dyn PacketKey> {
        let key = if self.encrypts { key } else { Box::new(Clear::like(&*key)) };
        match &self.notes {
            Some(notes) => Box::new(Noting { key, kind, notes: notes.clone() }),
            None => key,
        }
    }

    fn header(&self, key: Box<dyn HeaderKey>) -> Box<dyn HeaderKey> {
        if self.encrypts { key } else { Box::new(ClearHeader { sample: key.sample_size() }) }
    }

    fn packets(&self, keys: KeyPair<Box<dyn PacketKey>>, kind: QuicKind) -> KeyPair<Box<dyn PacketKey>> {
        KeyPair { local: self.packet(keys.local, kind), remote: self.packet(keys.remote, kind) }
    }

    fn keys(&self, keys: Keys, kind: QuicKind) -> Keys {
        let header = KeyPair { local: self.header(keys.header.local), remote: self.header(keys.header.remote) };
        Keys { header, packet: self.packets(keys.packet, kind) }
    }
}

/// The client's settings with wrapped keys.
pub(super) struct CoveredClient {
    pub(super) inner: Arc<dyn crypto::ClientConfig>,
    pub(super) cover: Cover,
}

impl crypto::ClientConfig for CoveredClient {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let session = self.inner.clone().start_session(version, server_name, params)?;
        Ok(Box::new(Covered { session, cover: self.cover.clone(), next: QuicKind::Handshake }))
    }
}

/// The server's settings with wrapped keys.
pub(super) struct CoveredServer {
    pub(super) inner: Arc<dyn crypto::ServerConfig>,
    pub(super) cover: Cover,
}

impl crypto::ServerConfig for CoveredServer {
    fn initial_keys(&self, version: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(self.cover.keys(self.inner.initial_keys(version, dst_cid)?, QuicKind::Initial))
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(self: Arc<Self>, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        let session = self.inner.clone().start_session(version, params);
        Box::new(Covered { session, cover: self.cover.clone(), next: QuicKind::Handshake })
    }
}

/// A session with wrapped keys.
struct Covered {
    session: Box<dyn Session>,
    cover: Cover,
    /// The kind of packet for which the next keys are used: the handshake's come first (RFC 9001 section 4.1.4).
    next: QuicKind,
}

impl Session for Covered {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        self.cover.keys(self.session.initial_keys(dst_cid, side), QuicKind::Initial)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.session.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.session.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let (header, packet) = self.session.early_crypto()?;
        Some((self.cover.header(header), self.cover.packet(packet, QuicKind::ZeroRtt)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.session.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.session.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.session.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let keys = self.session.write_handshake(buf)?;
        Some(self.cover.keys(keys, std::mem::replace(&mut self.next, QuicKind::OneRtt)))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.session.next_1rtt_keys()?;
        Some(self.cover.packets(keys, QuicKind::OneRtt))
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.session.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.session.export_keying_material(output, label, context)
    }
}

/// A key that records packets.
struct Noting {
    key: Box<dyn PacketKey>,
    kind: QuicKind,
    notes: Notes,
}

impl PacketKey for Noting {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        let payload = &buf[header_len..buf.len() - self.key.tag_len()];
        self.notes.sent(self.kind, packet, buf.len(), payload);
        self.key.encrypt(packet, buf, header_len);
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let len = header.len() + payload.len();
        self.key.decrypt(packet, header, payload)?;
        self.notes.received(self.kind, packet, len, payload);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.key.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.key.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.key.integrity_limit()
    }
}

/// A key that leaves packets as they are.
struct Clear {
    tag: usize,
    confidentiality: u64,
    integrity: u64,
}

impl Clear {
    fn like(key: &dyn PacketKey) -> Self {
        let (confidentiality, integrity) = (key.confidentiality_limit(), key.integrity_limit());
        Clear { tag: key.tag_len(), confidentiality, integrity }
    }
}

impl PacketKey for Clear {
    fn encrypt(&self, _: u64, _: &mut [u8], _: usize) {}

    fn decrypt(&self, _: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let len = payload.len().checked_sub(self.tag).ok_or(CryptoError)?;
        payload.truncate(len);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.tag
    }

    fn confidentiality_limit(&self) -> u64 {
        self.confidentiality
    }

    fn integrity_limit(&self) -> u64 {
        self.integrity
    }
}

/// A header key that leaves headers as they are.
struct ClearHeader {
    sample: usize,
}

impl HeaderKey for ClearHeader {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        self.sample
    }
}
