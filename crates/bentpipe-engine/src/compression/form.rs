//! Encoding of a header relative to a base.
//!
//! ```text
//! kind 4, identification 1, flags 1, window 1, more 1   context 11, base 5
//! TCP:  numbers 2 2 2 2   each number that differs   [identification(2)] [flags] [window(2)]
//! UDP:                                               [identification(2)]
//! more: [options 1, tos 1]   [tos]   [length, options]
//! checksum(2)   payload
//! ```

use alloc::vec::Vec;

use super::fields::Header;
use super::{NAME, kind, name};

const IDENTIFICATION: u8 = 8;
const FLAGS: u8 = 4;
const WINDOW: u8 = 2;
const MORE: u8 = 1;
/// Bits of the byte `more`.
const TOS: u8 = 1;
const OPTIONS: u8 = 2;

/// Encoding of a number: omitted, as a difference of 2 or 3 bytes from the base's, or in full.
mod code {
    pub(super) const SAME: u8 = 0;
    pub(super) const TWO: u8 = 1;
    pub(super) const THREE: u8 = 2;
    pub(super) const WHOLE: u8 = 3;
}

/// Writes `header` relative to `base`, for which [`Header::is_like`] holds.
pub(super) fn write(header: &Header, base: &Header, slot: u16, generation: u8, out: &mut Vec<u8>) {
    let is_tcp = header.shape.is_tcp;
    let has_rest = is_tcp && header.rest() != base.rest();
    let more = if has_rest { OPTIONS } else { 0 } | if header.tos() == base.tos() { 0 } else { TOS };
    let mut bits = 0;
    let mut mark = |differs: bool, bit| bits |= if differs { bit } else { 0 };
    mark(header.identification() != base.identification(), IDENTIFICATION);
    mark(is_tcp && header.flags() != base.flags(), FLAGS);
    mark(is_tcp && header.window() != base.window(), WINDOW);
    mark(more != 0, MORE);
    out.extend_from_slice(&name(if is_tcp { kind::TCP } else { kind::UDP }, bits, slot, generation));
    if is_tcp {
        let codes_at = out.len();
        out.push(0);
        for which in 0..header.numbers() {
            let code = number(header.number(which), base.number(which), out);
            out[codes_at] |= code << (6 - 2 * which);
        }
    }
    if bits & IDENTIFICATION != 0 {
        out.extend_from_slice(&header.identification().to_be_bytes());
    }
    if bits & FLAGS != 0 {
        out.push(header.flags());
    }
    if bits & WINDOW != 0 {
        out.extend_from_slice(&header.window().to_be_bytes());
    }
    if more != 0 {
        out.push(more);
    }
    if more & TOS != 0 {
        out.push(header.tos());
    }
    if more & OPTIONS != 0 {
        out.push(header.rest().len() as u8);
        out.extend_from_slice(header.rest());
    }
    out.extend_from_slice(&header.checksum().to_be_bytes());
}

fn number(value: u32, base: u32, out: &mut Vec<u8>) -> u8 {
    let above = value.wrapping_sub(base);
    let (code, bytes, from) = match above {
        0 => return code::SAME,
        1..0x1_0000 => (code::TWO, above, 2),
        0x1_0000..0x100_0000 => (code::THREE, above, 1),
        _ => (code::WHOLE, value, 0),
    };
    out.extend_from_slice(&bytes.to_be_bytes()[from..]);
    code
}

/// True if a number is so far above the base's that a new base will soon shorten it.
pub(super) fn is_far(header: &Header, base: &Header) -> bool {
    const FAR: [u32; 4] = [1 << 23, 1 << 23, 1 << 15, 1 << 15];
    header.shape.is_tcp
        && FAR.into_iter().take(header.numbers()).enumerate().any(|(which, far)| {
            // Numbers below the base are retransmissions.
            (far..1 << 31).contains(&header.number(which).wrapping_sub(base.number(which)))
        })
}

/// The unread bytes.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|taken| taken[0])
    }

    fn word(&mut self) -> Option<u16> {
        self.take(2).map(|taken| u16::from_be_bytes([taken[0], taken[1]]))
    }

    fn number(&mut self, code: u8, base: u32) -> Option<u32> {
        let count = match code {
            code::SAME => return Some(base),
            code::TWO => 2,
            code::THREE => 3,
            _ => 4,
        };
        let said = self.take(count)?.iter().fold(0, |number, &byte| number << 8 | u32::from(byte));
        Some(if code == code::WHOLE { said } else { base.wrapping_add(said) })
    }
}

/// Restores the header that a form encodes relative to `base`; returns it with the payload, or `None` if the form
/// is invalid.
pub(super) fn read<'a>(bits: u8, form: &'a [u8], base: &Header) -> Option<(Header, &'a [u8])> {
    let mut header = base.clone();
    let is_tcp = header.shape.is_tcp;
    let mut rest = Rest(&form[NAME..]);
    if is_tcp {
        let codes = rest.byte()?;
        for which in 0..header.numbers() {
            let number = rest.number(codes >> (6 - 2 * which) & 3, header.number(which))?;
            header.set_number(which, number);
        }
    }
    if bits & IDENTIFICATION != 0 {
        if header.shape.ip != 20 {
            return None;
        }
        header.set_identification(rest.word()?);
    }
    if bits & (FLAGS | WINDOW) != 0 && !is_tcp {
        return None;
    }
    if bits & FLAGS != 0 {
        header.set_flags(rest.byte()?);
    }
    if bits & WINDOW != 0 {
        header.set_window(rest.word()?);
    }
    let more = if bits & MORE == 0 { 0 } else { rest.byte()? };
    if more & TOS != 0 {
        header.set_tos(rest.byte()?);
    }
    if more & OPTIONS != 0 {
        let length = rest.byte()?;
        let options = rest.take(length.into())?;
        if !is_tcp || !header.set_rest(options) {
            return None;
        }
    }
    header.set_checksum(rest.word()?);
    header.complete(rest.0.len()).then_some((header, rest.0))
}
