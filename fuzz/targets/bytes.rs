//! The input of a target as a source of choices.

#![allow(dead_code, reason = "not all targets read all kinds")]

/// The input, byte by byte; zeros when it is used up.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl Bytes<'_> {
    pub(crate) fn next(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    pub(crate) fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.next(), self.next()])
    }

    pub(crate) fn number(&mut self) -> u64 {
        let (size, low) = (self.next(), u64::from(self.word()));
        // Small ones most often, near the ends' own; large ones too.
        if size < 0xf0 { low & 0xff } else { low << (size & 0x0f) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
