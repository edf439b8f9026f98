//! Reads the frames of a packet for observers: the largest acknowledged packet, and stream data (RFC 9000 §19).

/// The contents of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// The largest packet number acknowledged.
    pub(super) acknowledges: Option<u64>,
    /// Bytes of stream data.
    pub(super) data: u64,
    /// Stream and offset of the first stream data.
    pub(super) first: Option<(u64, u64)>,
}

/// Reads the frames of a packet. Calls `heard` with the stream, offset and length of each piece of stream data. Stops at an unknown frame.
pub(super) fn read(payload: &[u8], mut heard: impl FnMut(u64, u64, u64)) -> Said {
    let mut said = Said::default();
    let mut rest = Rest(payload);
    while rest.frame(&mut said, &mut heard).is_some() {}
    said
}

/// The bytes not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    /// Reads a frame; `None` at the end, or if it is unknown or cut off.
    fn frame(&mut self, said: &mut Said, heard: &mut impl FnMut(u64, u64, u64)) -> Option<()> {
        let kind = self.number()?;
        match kind {
            // PADDING, PING, HANDSHAKE_DONE, IMMEDIATE_ACK.
            0x00 | 0x01 | 0x1e | 0x1f => {}
            // ACK.
            0x02 | 0x03 => {
                let largest = self.number()?;
                said.acknowledges = Some(said.acknowledges.map_or(largest, |known| known.max(largest)));
                let [_delay, ranges] = self.numbers()?;
                self.skip_numbers(1 + 2 * ranges)?;
                if kind == 0x03 {
                    self.skip_numbers(3)?;
                }
            }
            // CRYPTO.
            0x06 => {
                let [_offset, len] = self.numbers()?;
                self.skip(len)?;
            }
            // NEW_TOKEN.
            0x07 => {
                let len = self.number()?;
                self.skip(len)?;
            }
            // STREAM: the lowest bits say whether it ends the stream, and whether it has a length and an offset.
            0x08..=0x0f => {
                let stream = self.number()?;
                let offset = if kind & 0x04 != 0 { self.number()? } else { 0 };
                let len = if kind & 0x02 != 0 { self.number()? } else { self.0.len() as u64 };
                self.skip(len)?;
                said.data += len;
                said.first = said.first.or(Some((stream, offset)));
                heard(stream, offset, len);
            }
            // MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID.
            0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 => self.skip_numbers(1)?,
            // STOP_SENDING, MAX_STREAM_DATA, STREAM_DATA_BLOCKED.
            0x05 | 0x11 | 0x15 => self.skip_numbers(2)?,
            // RESET_STREAM.
            0x04 => self.skip_numbers(3)?,
            // NEW_CONNECTION_ID: two numbers, the ID after its length in one byte, and a token.
            0x18 => {
                self.skip_numbers(2)?;
                let len = *self.0.first()?;
                self.skip(1 + u64::from(len) + 16)?;
            }
            // PATH_CHALLENGE, PATH_RESPONSE.
            0x1a | 0x1b => self.skip(8)?,
            // CONNECTION_CLOSE: the transport's includes a frame type, the application's does not.
            0x1c | 0x1d => {
                self.skip_numbers(if kind == 0x1c { 2 } else { 1 })?;
                let len = self.number()?;
                self.skip(len)?;
            }
            // ACK_FREQUENCY (draft-ietf-quic-ack-frequency).
            0xaf => self.skip_numbers(4)?,
            _ => return None,
        }
        Some(())
    }

    /// A variable-length integer: the two highest bits of its first byte give its length (RFC 9000 §16).
    fn number(&mut self) -> Option<u64> {
        let first = *self.0.first()?;
        let len = 1 << (first >> 6);
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        let low = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        Some(bytes[1..].iter().fold(u64::from(first & 0x3f), low))
    }

    fn numbers<const N: usize>(&mut self) -> Option<[u64; N]> {
        let mut all = [0; N];
        for number in &mut all {
            *number = self.number()?;
        }
        Some(all)
    }

    fn skip_numbers(&mut self, count: u64) -> Option<()> {
        (0..count).try_for_each(|_| self.number().map(drop))
    }

    fn skip(&mut self, len: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(len).ok()?..)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 9000 §A.1.
    #[test]
    fn numbers_by_the_rfc() {
        let examples: [(&[u8], u64); 5] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in examples {
            assert_eq!(Rest(bytes).number(), Some(value));
            assert_eq!(Rest(&bytes[..bytes.len() - 1]).number(), None, "cut off");
        }
    }

    #[test]
    fn frames_in_a_row() {
        // ACK of 20 with an additional range, MAX_DATA, padding, STREAM 4 at 1000 with 3 bytes, STREAM 0 from its start
        // to the end.
        let packet = [
            &[0x02, 20, 0, 1, 3, 2, 2][..],
            &[0x10, 0x44, 0x00, 0x00, 0x00],
            &[0x0e, 4, 0x43, 0xe8, 3, 1, 2, 3],
            &[0x08, 0, 9, 9, 9, 9],
        ]
        .concat();
        let mut pieces = Vec::new();
        let said = read(&packet, |stream, offset, len| pieces.push((stream, offset, len)));
        assert_eq!(said, Said { acknowledges: Some(20), data: 7, first: Some((4, 1000)) });
        assert_eq!(pieces, [(4, 1000, 3), (0, 0, 4)]);
        // Reading stops at a frame that is truncated or unknown.
        let none = |_, _, _| panic!("no stream data");
        assert_eq!(read(&packet[..15], none), Said { acknowledges: Some(20), data: 0, first: None });
        assert_eq!(read(&[0x3f, 0x0e, 4, 0, 1, 1], none), Said::default());
    }
}
