//! Integers of variable length (RFC 9000 §16): the two highest bits of the first byte select 1, 2, 4 or 8 bytes.
//! Only the shortest form is accepted, so each number has a single form.

use super::{EmitError, WireError, bytes};

/// The max number: 62 bits.
pub(crate) const MAX: u64 = (1 << 62) - 1;

/// Encoded length of a number in bytes.
pub(crate) const fn len(value: u64) -> usize {
    match value {
        0..=63 => 1,
        64..=16_383 => 2,
        16_384..=1_073_741_823 => 4,
        _ => 8,
    }
}

/// Reads the number at `at`; returns it and the position of the next byte.
///
/// # Errors
/// Returns [`WireError::Truncated`], or [`WireError::HeaderLength`] for a form longer than necessary.
pub(crate) fn parse(from: &[u8], at: usize) -> Result<(u64, usize), WireError> {
    let [first] = bytes::<1>(from, at)?;
    let value = match first >> 6 {
        0 => u64::from(first),
        1 => u64::from(u16::from_be_bytes(bytes(from, at)?) & 0x3fff),
        2 => u64::from(u32::from_be_bytes(bytes(from, at)?) & 0x3fff_ffff),
        _ => u64::from_be_bytes(bytes(from, at)?) & MAX,
    };
    let said = 1 << (first >> 6);
    if len(value) == said { Ok((value, at + said)) } else { Err(WireError::HeaderLength(said)) }
}

/// Writes a number at `at`; returns the position of the next byte.
///
/// # Errors
/// Returns [`EmitError::NoRoom`], or [`EmitError::NotInProtocol`] above [`MAX`].
pub(crate) fn emit(value: u64, at: usize, out: &mut [u8]) -> Result<usize, EmitError> {
    let (end, have) = (at + len(value), out.len());
    let place = out.get_mut(at..end).ok_or(EmitError::NoRoom { needed: end, have })?;
    match place.len() {
        1 => place[0] = value as u8,
        2 => place.copy_from_slice(&(value as u16 | 1 << 14).to_be_bytes()),
        4 => place.copy_from_slice(&(value as u32 | 2 << 30).to_be_bytes()),
        _ if value > MAX => return Err(EmitError::NotInProtocol("a number above 2^62 - 1")),
        _ => place.copy_from_slice(&(value | 3 << 62).to_be_bytes()),
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    //= RFC 9000 §A.1: the sample encodings
    #[test]
    fn samples_of_the_rfc() {
        let samples: [(&[u8], u64); 4] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ];
        for (form, value) in samples {
            assert_eq!(parse(form, 0), Ok((value, form.len())));
            let mut out = [0; 8];
            assert_eq!(emit(value, 0, &mut out), Ok(form.len()));
            assert_eq!(&out[..form.len()], form);
        }
        // The RFC's longer form of 37 is refused here.
        assert_eq!(parse(&[0x40, 0x25], 0), Err(WireError::HeaderLength(2)));
    }

    proptest! {
        #[test]
        fn numbers_have_one_form(form in prop::collection::vec(any::<u8>(), 0..9), value in 0..=MAX) {
            let mut out = [0; 8];
            if let Ok((value, end)) = parse(&form, 0) {
                prop_assert_eq!(emit(value, 0, &mut out), Ok(end));
                prop_assert_eq!(&out[..end], &form[..end]);
            }
            let end = emit(value, 0, &mut out).expect("it fits");
            prop_assert_eq!(parse(&out[..end], 0), Ok((value, end)));
        }
    }
}
