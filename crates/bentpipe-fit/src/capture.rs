//! Reads the packets of a capture (pcap or pcapng) one after another, in constant memory.
//!
//! Blocks are read by `pcap-parser`. A file that ends within a packet, for example because the capture was killed, is
//! read up to there.

use std::io::Read;

use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};

use crate::error::Problem;

/// Maximum length of a block, and the memory of the reader: Linux captures at most 256 KiB of a packet.
const BUFFER: usize = 1 << 20;

/// Maximum number of interfaces kept per file.
const MAX_INTERFACES: usize = 4096;

/// A captured packet, including its link-layer header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// Capture time in nanoseconds since 1970.
    pub(crate) at: i64,
    /// Interface of the capture, from 0.
    pub(crate) interface: u32,
    /// Link type (<https://www.tcpdump.org/linktypes.html>).
    pub(crate) link_type: i32,
    /// The captured bytes.
    pub(crate) bytes: &'a [u8],
    /// Its length on the line.
    pub(crate) length: u32,
}

/// How a capture file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// After a packet.
    Whole,
    /// Within the block at this position.
    Cut(u64),
}

#[derive(Clone, Copy)]
struct Interface {
    link_type: i32,
    /// Ticks per second of its packets' times.
    ticks: u64,
    /// Seconds to add to these times.
    offset: i64,
}

impl Interface {
    fn new(link_type: i32, resolution: u8, offset: i64) -> Option<Self> {
        let power = u32::from(resolution & 0x7f);
        let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
        base.checked_pow(power).map(|ticks| Interface { link_type, ticks, offset })
    }

    /// A time in nanoseconds; `None` if it does not fit 64 bits.
    fn nanos(&self, ticks: u64) -> Option<i64> {
        let nanos =
            i128::from(ticks) * 1_000_000_000 / i128::from(self.ticks) + i128::from(self.offset) * 1_000_000_000;
        i64::try_from(nanos).ok()
    }
}

/// State that is kept between the blocks of a file.
#[derive(Default)]
struct Section {
    interfaces: Vec<Interface>,
}

impl Section {
    /// Takes a block and passes its packet to `each`.
    fn block(&mut self, block: &PcapBlockOwned<'_>, each: &mut impl FnMut(Frame<'_>)) -> Result<(), String> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let resolution = if header.is_nanosecond_precision() { 9 } else { 6 };
                // The upper half tells the length of a frame check sequence (draft-ietf-opsawg-pcap §4).
                let link_type = header.network.0 & 0xffff;
                self.interfaces = Interface::new(link_type, resolution, 0).into_iter().collect();
            }
            PcapBlockOwned::Legacy(packet) => {
                let scale = self.interfaces.first().map_or(1_000_000, |interface| interface.ticks);
                let ticks = u64::from(packet.ts_sec) * scale + u64::from(packet.ts_usec);
                self.packet(0, ticks, packet.data, packet.caplen, packet.origlen, each)?;
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => self.interfaces.clear(),
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                if self.interfaces.len() == MAX_INTERFACES {
                    return Err(format!("more than {MAX_INTERFACES} interfaces"));
                }
                let new = Interface::new(interface.linktype.0, interface.if_tsresol, interface.if_tsoffset);
                let wrong = || {
                    let code = interface.if_tsresol;
                    format!("resolution of time {code:#04x}: expected 10^-19 s, 2^-63 s or a coarser one")
                };
                self.interfaces.push(new.ok_or_else(wrong)?);
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                self.packet(packet.if_id, ticks, packet.data, packet.caplen, packet.origlen, each)?;
            }
            PcapBlockOwned::NG(Block::SimplePacket(_)) => {
                return Err("packet without a time (a simple packet block): expected enhanced packet blocks".to_owned());
            }
            PcapBlockOwned::NG(_) => {}
        }
        Ok(())
    }

    fn packet(
        &self,
        interface: u32,
        ticks: u64,
        data: &[u8],
        captured: u32,
        length: u32,
        each: &mut impl FnMut(Frame<'_>),
    ) -> Result<(), String> {
        let known = self.interfaces.get(interface as usize);
        let known = known.ok_or_else(|| {
            format!("packet of interface {interface}: expected a number below {}", self.interfaces.len())
        })?;
        let at = known.nanos(ticks).ok_or_else(|| format!("time {ticks}: expected one before the year 2262"))?;
        let bytes = data.get(..captured as usize).unwrap_or(data);
        each(Frame { at, interface, link_type: known.link_type, bytes, length });
        Ok(())
    }
}

/// Reads all packets in order and passes each to `each`.
pub(crate) fn frames(source: impl Read + Send, mut each: impl FnMut(Frame<'_>)) -> Result<Ending, Problem> {
    let mut reader = match create_reader(BUFFER, source) {
        Ok(reader) => reader,
        Err(error) => return Err(Problem::at(0, header_problem(&error))),
    };
    let mut section = Section::default();
    let mut ended = false;
    loop {
        let at = reader.consumed() as u64;
        let taken = match reader.next() {
            Ok((length, block)) => {
                section.block(&block, &mut each).map_err(|message| Problem::at(at, message))?;
                length
            }
            Err(PcapError::Eof) => return Ok(Ending::Whole),
            Err(PcapError::UnexpectedEof) => return Ok(Ending::Cut(at)),
            Err(PcapError::Incomplete(_)) if ended => return Ok(Ending::Cut(at)),
            Err(PcapError::Incomplete(_)) => 0,
            Err(PcapError::BufferTooSmall) => {
                return Err(Problem::at(at, format!("block too long: expected at most {BUFFER} bytes")));
            }
            Err(PcapError::ReadError) => return Err(Problem::at(at, "the file cannot be read".to_owned())),
            Err(_) => {
                return Err(Problem::at(
                    at,
                    "expected a packet, but the lengths of this block are impossible".to_owned(),
                ));
            }
        };
        if taken == 0 {
            ended = reader.reader_exhausted();
            reader.refill().map_err(|_| Problem::at(at, "the file cannot be read".to_owned()))?;
        } else {
            reader.consume(taken);
        }
    }
}

fn header_problem(error: &PcapError<&[u8]>) -> String {
    match error {
        PcapError::Eof | PcapError::Incomplete(_) | PcapError::UnexpectedEof => {
            "the file ends within its header".to_owned()
        }
        PcapError::ReadError => "the file cannot be read".to_owned(),
        _ => "expected the header of a pcap or pcapng file".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// if_tsresol: powers of ten, or of two if the highest bit is set (draft-ietf-opsawg-pcapng).
    #[test]
    fn clocks_count_in_tens_and_twos() {
        let nanos =
            |resolution, offset, ticks| Interface::new(1, resolution, offset).and_then(|clock| clock.nanos(ticks));
        assert_eq!(nanos(6, 0, 1_500_000), Some(1_500_000_000));
        assert_eq!(nanos(0x80 | 10, 0, 1536), Some(1_500_000_000));
        assert_eq!(nanos(9, -2, 5), Some(-1_999_999_995));
        assert_eq!((nanos(20, 0, 1), nanos(0, 0, u64::MAX)), (None, None));
    }
}
