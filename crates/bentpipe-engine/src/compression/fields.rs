//! Which bytes of a header change between packets of a flow, and which can be computed from others.

use crate::wire::checksum::Checksum;
use crate::wire::ip::{TCP, UDP};

/// Length of the longest header: IPv6, and TCP with all options.
pub(super) const MAX: usize = 40 + 60;

/// Positions of the parts of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Bytes of IP: 20 or 40.
    pub(super) ip: usize,
    pub(super) is_tcp: bool,
    /// Where the payload begins.
    pub(super) end: usize,
}

/// A header without payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    bytes: [u8; MAX],
    pub(super) shape: Shape,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// `01 01 08 0a`: two NOPs, then timestamps (RFC 7323 Appendix A); nearly all hosts begin their options with this.
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];
const TIMESTAMPS_LEN: usize = 12;

impl Shape {
    /// The shape of a packet's headers; lengths and checksums are not checked.
    pub(super) fn of(packet: &[u8]) -> Option<Shape> {
        let (ip, protocol) = match *packet.first()? {
            0x45 => (20, *packet.get(9)?),
            first if first >> 4 == 6 => (40, *packet.get(6)?),
            _ => return None,
        };
        let (is_tcp, transport) = match protocol {
            TCP => (true, usize::from(*packet.get(ip + 12)? >> 4) * 4),
            UDP => (false, 8),
            _ => return None,
        };
        let min = if is_tcp { 20 } else { 8 };
        let end = ip + transport;
        (transport >= min && end <= packet.len()).then_some(Shape { ip, is_tcp, end })
    }

    /// The shape of a packet whose headers can be restored from a compressed form: whole, unfragmented, with correct
    /// lengths and IPv4 checksum.
    pub(super) fn of_regular(packet: &[u8]) -> Option<Shape> {
        let shape = Shape::of(packet)?;
        let ip_says = if shape.ip == 20 {
            let is_whole = u16_at(packet, 6) & 0x3fff == 0 && Checksum::new().bytes(&packet[..20]).finish() == 0;
            // All ones and 0 are the same sum; we never write all ones.
            if !is_whole || u16_at(packet, 10) == 0xffff {
                return None;
            }
            usize::from(u16_at(packet, 2))
        } else {
            40 + usize::from(u16_at(packet, 4))
        };
        let is_whole = ip_says == packet.len()
            && (shape.is_tcp || usize::from(u16_at(packet, shape.ip + 4)) == packet.len() - shape.ip);
        is_whole.then_some(shape)
    }
}

impl Header {
    /// The header of a packet.
    pub(super) fn of(packet: &[u8], shape: Shape) -> Header {
        let mut bytes = [0; MAX];
        bytes[..shape.end].copy_from_slice(&packet[..shape.end]);
        Header { bytes, shape }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.shape.end]
    }

    /// True if `other` differs only in fields that a compressed form can encode.
    pub(super) fn is_like(&self, other: &Header) -> bool {
        let (mine, theirs) = (self.shape, other.shape);
        (mine.ip, mine.is_tcp) == (theirs.ip, theirs.is_tcp)
            && self.has_timestamps() == other.has_timestamps()
            && self.constant() == other.constant()
    }

    /// The header up to TCP's options, without changing or computed fields.
    fn constant(&self) -> [u8; 60] {
        let Shape { ip, is_tcp, .. } = self.shape;
        let fixed = ip + if is_tcp { 20 } else { 8 };
        let mut bytes = [0; 60];
        bytes[..fixed].copy_from_slice(&self.bytes[..fixed]);
        let mut clear = |from: usize, to: usize| bytes[from..to].fill(0);
        if ip == 20 {
            // Type of service; length and identification; checksum.
            clear(1, 6);
            clear(10, 12);
        } else {
            clear(4, 6);
        }
        if is_tcp {
            // Numbers; flags, window, checksum.
            clear(ip + 4, ip + 12);
            clear(ip + 13, ip + 18);
            bytes[ip + 12] &= 0x0f;
        } else {
            clear(ip + 4, ip + 8);
        }
        if ip == 40 {
            bytes[0] &= 0xf0;
            bytes[1] &= 0x0f;
        }
        bytes
    }

    /// Type of service (RFC 2474, RFC 3168), in IPv6 traffic class.
    pub(super) fn tos(&self) -> u8 {
        if self.shape.ip == 20 { self.bytes[1] } else { self.bytes[0] << 4 | self.bytes[1] >> 4 }
    }

    pub(super) fn set_tos(&mut self, tos: u8) {
        if self.shape.ip == 20 {
            self.bytes[1] = tos;
        } else {
            self.bytes[0] = self.bytes[0] & 0xf0 | tos >> 4;
            self.bytes[1] = self.bytes[1] & 0x0f | tos << 4;
        }
    }

    /// Identification; IPv6 has none.
    pub(super) fn identification(&self) -> u16 {
        if self.shape.ip == 20 { u16_at(&self.bytes, 4) } else { 0 }
    }

    pub(super) fn set_identification(&mut self, value: u16) {
        put(&mut self.bytes, 4, value);
    }

    /// Position of the checksum of TCP or UDP.
    fn checksum_at(&self) -> usize {
        self.shape.ip + if self.shape.is_tcp { 16 } else { 6 }
    }

    pub(super) fn checksum(&self) -> u16 {
        u16_at(&self.bytes, self.checksum_at())
    }

    pub(super) fn set_checksum(&mut self, value: u16) {
        let at = self.checksum_at();
        put(&mut self.bytes, at, value);
    }

    pub(super) fn flags(&self) -> u8 {
        self.bytes[self.shape.ip + 13]
    }

    pub(super) fn set_flags(&mut self, flags: u8) {
        self.bytes[self.shape.ip + 13] = flags;
    }

    pub(super) fn window(&self) -> u16 {
        u16_at(&self.bytes, self.shape.ip + 14)
    }

    pub(super) fn set_window(&mut self, value: u16) {
        put(&mut self.bytes, self.shape.ip + 14, value);
    }

    pub(super) fn has_timestamps(&self) -> bool {
        let options = self.shape.ip + 20;
        self.shape.is_tcp
            && self.shape.end >= options + TIMESTAMPS_LEN
            && self.bytes[options..options + TIMESTAMPS.len()] == TIMESTAMPS
    }

    /// Positions of sequence number, acknowledgement, and both timestamps, if any.
    fn number_at(&self, which: usize) -> usize {
        self.shape.ip + [4, 8, 24, 28][which]
    }

    /// Their count.
    pub(super) fn numbers(&self) -> usize {
        if self.has_timestamps() { 4 } else { 2 }
    }

    pub(super) fn number(&self, which: usize) -> u32 {
        let at = self.number_at(which);
        u32::from_be_bytes(*self.bytes[at..].first_chunk().expect("inside the header"))
    }

    pub(super) fn set_number(&mut self, which: usize, value: u32) {
        let at = self.number_at(which);
        self.bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }

    fn rest_at(&self) -> usize {
        self.shape.ip + 20 + if self.has_timestamps() { TIMESTAMPS_LEN } else { 0 }
    }

    /// TCP's options without leading timestamps.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.rest_at()..self.shape.end]
    }

    /// Sets them; false if they are not valid options.
    pub(super) fn set_rest(&mut self, rest: &[u8]) -> bool {
        let at = self.rest_at();
        let (ip, end) = (self.shape.ip, at + rest.len());
        let transport = end - ip;
        if transport > 60 || !transport.is_multiple_of(4) {
            return false;
        }
        self.bytes[at..end].copy_from_slice(rest);
        self.bytes[ip + 12] = (transport << 2) as u8 | self.bytes[ip + 12] & 0x0f;
        self.shape.end = end;
        true
    }

    /// Writes the fields that depend on the packet length; false if it is too long for IP.
    pub(super) fn complete(&mut self, payload: usize) -> bool {
        let Shape { ip, is_tcp, end } = self.shape;
        let Ok(total) = u16::try_from(end + payload) else { return false };
        if ip == 20 {
            put(&mut self.bytes, 2, total);
            put(&mut self.bytes, 10, 0);
            let sum = Checksum::new().bytes(&self.bytes[..20]).finish();
            put(&mut self.bytes, 10, sum);
        } else {
            put(&mut self.bytes, 4, total - 40);
        }
        if !is_tcp {
            put(&mut self.bytes, ip + 4, total - ip as u16);
        }
        true
    }
}
