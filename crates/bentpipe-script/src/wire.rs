//! Packets as scripts see them: 32-bit numbers, raw windows, every option.

use std::fmt;

use bentpipe_engine::wire::ip::{self, Addresses, Ports};
use bentpipe_engine::wire::tcp::MarkedOrder;

pub use crate::lang::ast::flag;
use crate::lang::ast::{TcpOption, counter_names};

const HEADER: usize = 20;

/// A TCP segment with its IP header's fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Source and destination address.
    pub addresses: Addresses,
    /// Source and destination port.
    pub ports: Ports,
    /// Type of service or traffic class.
    pub tos: u8,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// Control bits, nine of them.
    pub flags: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// The window, unscaled.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// The options in order.
    pub options: Vec<TcpOption>,
    /// The payload.
    pub payload: Vec<u8>,
    /// Length of the whole packet in bytes.
    pub size: usize,
}

impl Seen {
    /// True if all these control bits are set.
    pub fn has(&self, flags: u16) -> bool {
        self.flags & flags == flags
    }

    /// SEG.LEN: payload, SYN and FIN.
    pub fn sequence_len(&self) -> u32 {
        self.payload.len() as u32 + u32::from(self.has(flag::SYN)) + u32::from(self.has(flag::FIN))
    }

    /// Writes it as an IP packet. `None` if the options or the length do not fit.
    pub fn emit(&self) -> Option<Vec<u8>> {
        let mut options = Vec::new();
        for option in &self.options {
            write_option(option, &mut options);
        }
        while options.len() % 4 != 0 {
            options.push(0);
        }
        if options.len() > 40 {
            return None;
        }
        let at = self.addresses.header_len();
        let header = HEADER + options.len();
        let length = header + self.payload.len();
        let mut packet = vec![0; at + length];
        let out = &mut packet[at..];
        out[0..2].copy_from_slice(&self.ports.source.to_be_bytes());
        out[2..4].copy_from_slice(&self.ports.destination.to_be_bytes());
        out[4..8].copy_from_slice(&self.seq.to_be_bytes());
        out[8..12].copy_from_slice(&self.ack.to_be_bytes());
        out[12] = (header as u8 / 4) << 4 | (self.flags >> 8) as u8 & 1;
        out[13] = self.flags as u8;
        out[14..16].copy_from_slice(&self.window.to_be_bytes());
        out[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        out[HEADER..header].copy_from_slice(&options);
        out[header..].copy_from_slice(&self.payload);
        let sum = self.addresses.pseudo_header(ip::TCP, length).bytes(out).finish();
        out[16..18].copy_from_slice(&sum.to_be_bytes());
        ip::emit(&self.addresses, ip::TCP, length, &mut packet).ok()?;
        set_service(&mut packet, self.tos, self.ttl);
        Some(packet)
    }

    /// Reads an IP packet; `None` if it is not a complete TCP segment.
    pub fn parse(packet: &[u8]) -> Option<Seen> {
        let parsed = ip::parse(packet).ok().filter(|parsed| parsed.protocol == ip::TCP)?;
        let bytes = &packet[parsed.payload];
        let fixed: &[u8; HEADER] = bytes.first_chunk()?;
        let header = usize::from(fixed[12] >> 4) * 4;
        let word = |at: usize| u32::from_be_bytes(fixed[at..at + 4].try_into().expect("four bytes"));
        let half = |at: usize| u16::from_be_bytes(fixed[at..at + 2].try_into().expect("two bytes"));
        let options = read_options(bytes.get(HEADER..header)?)?;
        let (tos, ttl) = match packet[0] >> 4 {
            4 => (packet[1], packet[8]),
            _ => (packet[0] << 4 | packet[1] >> 4, packet[7]),
        };
        Some(Seen {
            addresses: parsed.addresses,
            ports: Ports::peek(bytes).ok()?,
            tos,
            ttl,
            flags: u16::from(fixed[12] & 1) << 8 | u16::from(fixed[13]),
            seq: word(4),
            ack: word(8),
            window: half(14),
            urgent: half(18),
            options,
            payload: bytes[header..].to_vec(),
            size: packet.len(),
        })
    }
}

/// Sets type of service and time to live in a packet's IP header.
pub(crate) fn set_service(packet: &mut [u8], tos: u8, ttl: u8) {
    if packet[0] >> 4 == 4 {
        (packet[1], packet[8]) = (tos, ttl);
        packet[10..12].fill(0);
        let mut sum: u32 = packet[..20].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    } else {
        packet[0] = 0x60 | tos >> 4;
        packet[1] = packet[1] & 0x0f | tos << 4;
        packet[7] = ttl;
    }
}

fn write_option(option: &TcpOption, out: &mut Vec<u8>) {
    match option {
        TcpOption::Eol => out.push(0),
        TcpOption::Nop => out.push(1),
        TcpOption::Mss(mss) => {
            out.extend([2, 4]);
            out.extend(mss.to_be_bytes());
        }
        TcpOption::WindowScale(shift) => out.extend([3, 3, *shift]),
        TcpOption::SackPermitted => out.extend([4, 2]),
        TcpOption::Sack(blocks) => {
            out.extend([5, (2 + 8 * blocks.len()) as u8]);
            for (start, end) in blocks {
                out.extend(start.to_be_bytes());
                out.extend(end.to_be_bytes());
            }
        }
        TcpOption::Timestamps(value, echo) => {
            out.extend([8, 10]);
            out.extend(value.to_be_bytes());
            out.extend(echo.to_be_bytes());
        }
        TcpOption::Marked(order, counters) => {
            out.extend([order.kind(), (2 + 3 * counters.len()) as u8]);
            counters.iter().for_each(|counter| out.extend(&counter.to_be_bytes()[1..]));
        }
        TcpOption::Other(kind, body) => {
            out.extend([*kind, (2 + body.len()) as u8]);
            out.extend(body);
        }
    }
}

fn read_options(mut bytes: &[u8]) -> Option<Vec<TcpOption>> {
    let mut options = Vec::new();
    while let Some((&kind, rest)) = bytes.split_first() {
        if kind < 2 {
            options.push(if kind == 1 { TcpOption::Nop } else { TcpOption::Eol });
            bytes = rest;
            continue;
        }
        let length = usize::from(*rest.first()?);
        let body = bytes.get(2..length)?;
        bytes = &bytes[length..];
        let word =
            |at: usize| body.get(at..at + 4).map(|four| u32::from_be_bytes(four.try_into().expect("four bytes")));
        options.push(match (kind, body.len()) {
            (2, 2) => TcpOption::Mss(u16::from_be_bytes([body[0], body[1]])),
            (3, 1) => TcpOption::WindowScale(body[0]),
            (4, 0) => TcpOption::SackPermitted,
            (5, len) if len % 8 == 0 => {
                TcpOption::Sack((0..len / 8).filter_map(|n| Some((word(8 * n)?, word(8 * n + 4)?))).collect())
            }
            (8, 8) => TcpOption::Timestamps(word(0)?, word(4)?),
            (172 | 174, len) if len % 3 == 0 => {
                let counters = body.as_chunks::<3>().0.iter().map(|&[a, b, c]| u32::from_be_bytes([0, a, b, c]));
                TcpOption::Marked(MarkedOrder::of(kind)?, counters.collect())
            }
            _ => TcpOption::Other(kind, body.to_vec()),
        });
    }
    Some(options)
}

/// Flags in a script's syntax.
pub(crate) fn show_flags(flags: u16) -> String {
    use flag::{ACK, AE, CWR, ECE, FIN, PSH, RST, SYN, URG};
    let names =
        [(SYN, 'S'), (FIN, 'F'), (RST, 'R'), (PSH, 'P'), (URG, 'U'), (ECE, 'E'), (CWR, 'W'), (AE, 'A'), (ACK, '.')];
    let shown: String = names.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| name).collect();
    if shown.is_empty() { "-".into() } else { shown }
}

impl fmt::Display for TcpOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TcpOption::Nop => f.write_str("nop"),
            TcpOption::Eol => f.write_str("eol"),
            TcpOption::Mss(mss) => write!(f, "mss {mss}"),
            TcpOption::WindowScale(shift) => write!(f, "wscale {shift}"),
            TcpOption::SackPermitted => f.write_str("sackOK"),
            TcpOption::Sack(blocks) => {
                f.write_str("sack")?;
                blocks.iter().try_for_each(|(start, end)| write!(f, " {start}:{end}"))
            }
            TcpOption::Timestamps(value, echo) => write!(f, "TS val {value} ecr {echo}"),
            TcpOption::Marked(order, counters) => {
                f.write_str("ECN")?;
                counter_names(*order)
                    .iter()
                    .zip(counters)
                    .try_for_each(|(name, counter)| write!(f, " {name} {counter}"))
            }
            TcpOption::Other(kind, body) => write!(f, "option {kind} of {} bytes", body.len() + 2),
        }
    }
}
