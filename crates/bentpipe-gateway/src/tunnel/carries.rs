//! What a link carries, and how the handshake says so.
//!
//! One byte of each handshake payload says what the end's CPU and its settings are: bit 0 for AES instructions, bits 1 and 2
//! for what it carries. Earlier versions write only bit 0, and take any value but 1 for a CPU without AES. So AES is used
//! only if both ends say what they carry, or neither does.

use std::fmt;

use super::cipher::Cipher;

/// The shape of the link to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carries {
    /// `split`: streams of a multiplexer.
    #[default]
    Streams,
    /// `link`: IP packets.
    Packets,
}

impl fmt::Display for Carries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Carries::Streams => "split",
            Carries::Packets => "link",
        })
    }
}

/// What an end says of itself in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Says {
    pub(super) has_aes: bool,
    /// `None` from an earlier version.
    pub(super) carries: Option<Carries>,
}

impl Says {
    pub(super) fn to_byte(self) -> u8 {
        let carries = match self.carries {
            None => 0,
            Some(Carries::Streams) => 1,
            Some(Carries::Packets) => 2,
        };
        u8::from(self.has_aes) | carries << 1
    }

    pub(super) fn of_byte(byte: u8) -> Self {
        let carries = match byte >> 1 & 3 {
            1 => Some(Carries::Streams),
            2 => Some(Carries::Packets),
            _ => None,
        };
        Says { has_aes: byte & 1 == 1, carries }
    }

    /// The cipher between two ends, as both of them determine it.
    pub(super) fn cipher(self, other: Says) -> Cipher {
        let is_understood = self.carries.is_some() == other.carries.is_some();
        Cipher::between([self.has_aes && is_understood, other.has_aes && is_understood])
    }

    /// What the other end carries, if it is not the same.
    pub(super) fn differs(self, other: Says) -> Option<Carries> {
        other.carries.filter(|other| self.carries.is_some_and(|own| own != *other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_says_both() {
        for carries in [None, Some(Carries::Streams), Some(Carries::Packets)] {
            for has_aes in [false, true] {
                let says = Says { has_aes, carries };
                assert_eq!(Says::of_byte(says.to_byte()), says);
            }
        }
        assert_eq!(Says { has_aes: true, carries: None }.to_byte(), 1, "as earlier versions write it");
        assert_eq!(Says::of_byte(0xff).carries, None, "for later versions");
    }
}
