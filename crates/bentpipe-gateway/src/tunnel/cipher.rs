//! The cipher for data: ChaCha20-Poly1305, or AES-256-GCM if both machines have AES instructions.
//!
//! With these instructions, AES-GCM takes a third of the time of ChaCha20-Poly1305; without them, it takes several
//! times as long. So both ends say in the authenticated handshake whether they have them. Data is sealed and opened in
//! place, by `ring`. The nonce is the datagram's number in Noise's format (revision 34, §12.3 and §12.4).

use ring::aead::{AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, Tag, UnboundKey};

use super::packet::TAG;

/// The cipher for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// RFC 8439.
    ChaCha20Poly1305,
    /// NIST SP 800-38D.
    Aes256Gcm,
}

impl Cipher {
    /// The cipher between two ends; `have_aes`: whether each has AES instructions.
    pub(super) fn between(have_aes: [bool; 2]) -> Self {
        if have_aes == [true; 2] { Cipher::Aes256Gcm } else { Cipher::ChaCha20Poly1305 }
    }

    /// Its name in TLS and IPsec.
    pub fn name(self) -> &'static str {
        match self {
            Cipher::ChaCha20Poly1305 => "chacha20-poly1305",
            Cipher::Aes256Gcm => "aes-256-gcm",
        }
    }

    fn algorithm(self) -> &'static Algorithm {
        match self {
            Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
            Cipher::Aes256Gcm => &AES_256_GCM,
        }
    }
}

/// True if this machine has instructions for AES-GCM.
pub(super) fn machine_has_aes() -> bool {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return is_x86_feature_detected!("aes") && is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes") && std::arch::is_aarch64_feature_detected!("pmull");
    #[allow(unreachable_code)]
    false
}

/// The key of one direction. It is wiped when dropped.
pub(super) struct Key {
    cipher: Cipher,
    /// Boxed so that it does not move: `ring` does not wipe keys, so it is overwritten with another key.
    key: Box<LessSafeKey>,
}

impl Drop for Key {
    fn drop(&mut self) {
        *self.key = Self::expand(self.cipher, &[0; 32]);
        // Keeps the compiler from removing the write.
        std::hint::black_box(&self.key);
    }
}

impl Key {
    pub(super) fn new(cipher: Cipher, secret: &[u8; 32]) -> Self {
        Key { cipher, key: Box::new(Self::expand(cipher, secret)) }
    }

    fn expand(cipher: Cipher, secret: &[u8; 32]) -> LessSafeKey {
        LessSafeKey::new(UnboundKey::new(cipher.algorithm(), secret).expect("both have keys of 32 bytes"))
    }

    pub(super) fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// The nonce of a number. No number may be used twice for sealing.
    fn nonce(&self, number: u64) -> Nonce {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&match self.cipher {
            Cipher::ChaCha20Poly1305 => number.to_le_bytes(),
            Cipher::Aes256Gcm => number.to_be_bytes(),
        });
        Nonce::assume_unique_for_key(nonce)
    }

    /// Encrypts `bytes`, leaving room for the tag at the end.
    pub(super) fn seal(&self, number: u64, additional: &[u8], bytes: &mut [u8]) -> Option<()> {
        let (text, room) = bytes.split_at_mut(bytes.len().checked_sub(TAG)?);
        let tag: Tag = self.key.seal_in_place_separate_tag(self.nonce(number), Aad::from(additional), text).ok()?;
        room.copy_from_slice(tag.as_ref());
        Some(())
    }

    /// Opens `bytes`, which end with a tag. The plaintext is then at their start. If they are not authentic, they hold
    /// no valid data.
    pub(super) fn open(&self, number: u64, additional: &[u8], bytes: &mut [u8]) -> Option<usize> {
        self.key.open_in_place(self.nonce(number), Aad::from(additional), bytes).ok().map(|text| text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seals like `snow`, which is tested against Noise's test vectors.
    #[test]
    fn as_noise_has_it() {
        use snow::params::CipherChoice;
        use snow::resolvers::{CryptoResolver, RingResolver};
        for (cipher, choice) in
            [(Cipher::ChaCha20Poly1305, CipherChoice::ChaChaPoly), (Cipher::Aes256Gcm, CipherChoice::AESGCM)]
        {
            let secret: [u8; 32] = std::array::from_fn(|n| n as u8 * 7);
            let mut theirs = RingResolver.resolve_cipher(&choice).expect("it has both");
            theirs.set(&secret);
            let ours = Key::new(cipher, &secret);
            for (number, text) in [(0, &b""[..]), (1, b"text"), (0x0102_0304_0506_0708, &[9; 1400])] {
                let mut expected = vec![0; text.len() + TAG];
                theirs.encrypt(number, &[], text, &mut expected);
                let mut sealed = [text, &[0; TAG]].concat();
                ours.seal(number, &[], &mut sealed).expect("there is room");
                assert_eq!(sealed, expected, "{cipher:?} {number}");
                assert_eq!(ours.open(number, &[], &mut sealed), Some(text.len()));
                assert_eq!(&sealed[..text.len()], text);
            }
        }
    }

    /// Test case 14 of GCM's submission to NIST (McGrew and Viega): a block of zeros under an all-zero key and nonce 0.
    #[test]
    fn a_vector_of_gcm() {
        let mut sealed = [0; 16 + TAG];
        Key::new(Cipher::Aes256Gcm, &[0; 32]).seal(0, &[], &mut sealed).expect("there is room");
        let (text, tag) =
            (0xcea7_403d_4d60_6b6e_074e_c5d3_baf3_9d18_u128, 0xd0d1_c8a7_9999_6bf0_265b_98b5_d48a_b919_u128);
        assert_eq!(sealed, [text.to_be_bytes(), tag.to_be_bytes()].concat()[..]);
    }

    #[test]
    fn what_is_too_short_or_changed_is_refused() {
        for cipher in [Cipher::ChaCha20Poly1305, Cipher::Aes256Gcm] {
            let key = Key::new(cipher, &[1; 32]);
            assert_eq!((key.seal(0, &[], &mut [0; TAG - 1]), key.open(0, &[], &mut [0; TAG - 1])), (None, None));
            let mut sealed = [5; 20 + TAG];
            key.seal(3, &[], &mut sealed).expect("there is room");
            assert_eq!(key.open(4, &[], &mut sealed.clone()), None, "another number");
            assert_eq!(key.open(3, &[1], &mut sealed.clone()), None, "other additional data");
            for bit in 0..sealed.len() * 8 {
                let mut changed = sealed;
                changed[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(key.open(3, &[], &mut changed), None);
            }
        }
    }
}
