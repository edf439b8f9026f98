//! Segments outside of any connection: reads one, and makes the reset that answers a SYN.

use std::net::IpAddr;

use bentpipe_engine::tcp::{Flags, Segment};
use bentpipe_engine::wire::ip::{self, Ports};
use bentpipe_engine::wire::tcp::{self as wire, Near, Translation};

/// The segment in an IP packet, numbered from its own SYN; `None` if it is damaged.
pub(super) fn segment_of(packet: &[u8]) -> Option<Segment> {
    let ip = ip::parse(packet).ok()?;
    let bytes = &packet[ip.payload];
    let ports = Ports::peek(bytes).ok()?;
    let translation = Translation::new(ip.addresses.reversed(), ports.reversed(), 0);
    translation.parse(bytes, Near::default()).ok().map(|(segment, _)| segment)
}

/// The source of a SYN that may open a connection; `None` for other packets.
pub(super) fn opener(packet: &[u8]) -> Option<IpAddr> {
    let ip = ip::parse(packet).ok().filter(|ip| ip.protocol == ip::TCP)?;
    let flags = Flags::from_bits_truncate(*packet[ip.payload].get(13)?);
    (flags.has(Flags::SYN) && !flags.has(Flags::ACK)).then(|| ip.addresses.source())
}

/// The answer to a SYN for which there is no connection.
pub(super) fn reset_for(syn: &[u8]) -> Option<Vec<u8>> {
    let ip = ip::parse(syn).ok()?;
    let bytes = &syn[ip.payload];
    let ports = Ports::peek(bytes).ok()?;
    let mut translation = Translation::new(ip.addresses.reversed(), ports.reversed(), 0);
    let (syn, _) = translation.parse(bytes, Near::default()).ok()?;
    translation.synchronize(bytes, &syn).ok()?;
    //= RFC 9293 §3.10.7.1: "If the ACK bit is off, sequence number zero is used", <SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK>
    let mut reset = Segment::new(Flags::RST | Flags::ACK);
    reset.ack = syn.end();
    let header = translation.addresses.header_len();
    let mut packet = vec![0; header + wire::HEADER];
    let length = translation.emit(&reset, &[], &mut packet[header..]).ok()?;
    ip::emit(&translation.addresses, ip::TCP, length, &mut packet).ok()?;
    Some(packet)
}
