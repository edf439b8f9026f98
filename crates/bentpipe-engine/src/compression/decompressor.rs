//! The receiving end.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::fields::{Header, Shape};
use super::{NAME, PLACE, REMEMBERED, form, is_base, kind, named};
use crate::wire::EmitError;

/// Why a message cannot be expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpandError {
    /// It is neither an IP packet nor a form, or its form does not make a packet.
    Malformed,
    /// Its base is unknown here.
    UnknownBase,
    /// The packet does not fit the buffer.
    Room(EmitError),
}

impl fmt::Display for ExpandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpandError::Malformed => f.write_str("not a compressed packet"),
            ExpandError::UnknownBase => f.write_str("compressed relative to unknown headers"),
            ExpandError::Room(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ExpandError {}

#[derive(Debug)]
struct Base {
    generation: u8,
    serial: u32,
    header: Header,
}

type Bases = [Option<Base>; REMEMBERED as usize];

/// Number of announcements that may overtake one: far more than a window and a queue hold.
const MAX_OVERTAKING: u32 = 1 << 20;

/// The receiving end: expands headers.
#[derive(Debug, Default)]
pub struct Decompressor {
    contexts: Vec<Option<Box<Bases>>>,
    /// Number of contexts in use.
    count: usize,
}

impl Decompressor {
    /// Stores a base as soon as it arrives; duplicates are harmless. Other messages are ignored.
    ///
    /// # Errors
    /// Returns [`ExpandError::Malformed`] if the base is invalid.
    pub fn learn(&mut self, message: &[u8]) -> Result<(), ExpandError> {
        let (name, rest) = message.split_first_chunk::<NAME>().ok_or(ExpandError::Malformed)?;
        let (serial, bytes) = rest.split_first_chunk::<4>().ok_or(ExpandError::Malformed)?;
        let (bits, slot, generation) = named(*name);
        let serial = u32::from_be_bytes(*serial);
        let shape = Shape::of(bytes).filter(|shape| shape.end == bytes.len());
        let Some(shape) = shape.filter(|_| is_base(message) && bits == 0) else { return Err(ExpandError::Malformed) };
        let slot = usize::from(slot);
        if self.contexts.len() <= slot {
            self.contexts.resize_with(slot + 1, || None);
        }
        self.count += usize::from(self.contexts[slot].is_none());
        let bases = self.contexts[slot].get_or_insert_default();
        let place = &mut bases[usize::from(generation % REMEMBERED)];
        // Of two bases for the same place the later one stays, because an earlier one may arrive after it. A base
        // that seems to be earlier by more than announcements can overtake is in fact later: the place was unused for
        // half the range of serial numbers.
        let is_later = |known: &Base| known.serial.wrapping_sub(serial) > MAX_OVERTAKING;
        if place.as_ref().is_none_or(is_later) {
            *place = Some(Base { generation, serial, header: Header::of(bytes, shape) });
        }
        Ok(())
    }

    /// Memory of all contexts, bytes.
    pub fn memory(&self) -> u64 {
        (self.contexts.len() * size_of::<Option<Box<Bases>>>() + self.count * (size_of::<Bases>() + PLACE)) as u64
    }

    /// Expands a message into `out`. Returns the length of the packet, or `None` for a base, which has none.
    ///
    /// # Errors
    /// Returns [`ExpandError`] if the message is malformed, refers to an unknown base, or does not fit `out`. The
    /// packet is then lost.
    pub fn expand(&self, message: &[u8], out: &mut [u8]) -> Result<Option<usize>, ExpandError> {
        let kind = message.first().ok_or(ExpandError::Malformed)? >> 4;
        let (header, payload) = match kind {
            4 | 6 => return write(&[], message, out).map(Some),
            kind::BASE => return Ok(None),
            kind::TCP | kind::UDP => self.read(kind, message)?,
            _ => return Err(ExpandError::Malformed),
        };
        write(header.bytes(), payload, out).map(Some)
    }

    fn read<'a>(&self, kind: u8, message: &'a [u8]) -> Result<(Header, &'a [u8]), ExpandError> {
        let name = message.first_chunk::<NAME>().ok_or(ExpandError::Malformed)?;
        let (bits, slot, generation) = named(*name);
        let bases = self.contexts.get(usize::from(slot)).and_then(Option::as_ref).ok_or(ExpandError::UnknownBase)?;
        let base = bases[usize::from(generation % REMEMBERED)].as_ref().filter(|base| base.generation == generation);
        let base = &base.ok_or(ExpandError::UnknownBase)?.header;
        if base.shape.is_tcp != (kind == kind::TCP) {
            return Err(ExpandError::Malformed);
        }
        form::read(bits, message, base).ok_or(ExpandError::Malformed)
    }
}

fn write(header: &[u8], payload: &[u8], out: &mut [u8]) -> Result<usize, ExpandError> {
    let (needed, have) = (header.len() + payload.len(), out.len());
    let out = out.get_mut(..needed).ok_or(ExpandError::Room(EmitError::NoRoom { needed, have }))?;
    out[..header.len()].copy_from_slice(header);
    out[header.len()..].copy_from_slice(payload);
    Ok(needed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compression::{CONTEXTS, name};
    use crate::wire::ipv4;

    /// Figures of `docs/explanation/gateway.md`: a peer can have a context for each number, and no second base for a place.
    #[test]
    fn memory_is_that_of_contexts() {
        let mut header = vec![0; 28];
        ipv4::emit(&ipv4::Header::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), 17), 8, &mut header)
            .expect("it fits");
        header[24..26].copy_from_slice(&8u16.to_be_bytes());
        let mut decompressor = Decompressor::default();
        let learn = |decompressor: &mut Decompressor, slot: usize, generation| {
            let name = name(kind::BASE, 0, slot as u16, generation);
            decompressor.learn(&[&name[..], &[0; 4], &header].concat()).expect("a base");
            decompressor.memory()
        };
        assert_eq!(decompressor.memory(), 0);
        let one = learn(&mut decompressor, 0, 0);
        assert_eq!((one, learn(&mut decompressor, 0, 1)), (learn(&mut decompressor, 0, 2), one));
        assert_eq!(learn(&mut decompressor, 1, 0), 2 * one);
        let all = (0..CONTEXTS).map(|slot| learn(&mut decompressor, slot, 3)).max().expect("some");
        assert!(all == CONTEXTS as u64 * one && all < 2_500_000, "{all}");
    }
}
