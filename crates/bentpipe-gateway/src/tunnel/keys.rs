//! Static keys of X25519 and preshared keys, in WireGuard's text form: base64 of 32 bytes.
//!
//! A private key exists in memory only once: clones share it, and it is wiped when the last one is dropped.

use std::fmt;
use std::sync::Arc;

use base64::prelude::{BASE64_STANDARD, Engine};
use curve25519_dalek::MontgomeryPoint;
use zeroize::Zeroizing;

/// Why a text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// It is not base64 of 32 bytes.
    Form,
    /// All its bytes are zero.
    Zero,
    /// It is a public key of low order, whose shared secrets are publicly known (RFC 7748 §6.1).
    LowOrder,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeyError::Form => "not a key: base64 of 32 bytes, 44 characters",
            KeyError::Zero => "all bytes of this key are zero; `bentpipe gateway keygen` generates one",
            KeyError::LowOrder => "this public key is a point of low order: no private key belongs to it",
        })
    }
}

impl std::error::Error for KeyError {}

/// Decodes into `out`, leaving no other copy of a secret.
fn read(text: &str, out: &mut [u8; 32]) -> Result<(), KeyError> {
    // The decoder needs room for a byte of padding.
    let mut room = Zeroizing::new([0; 33]);
    let length = BASE64_STANDARD.decode_slice(text.trim(), &mut room[..]).map_err(|_| KeyError::Form)?;
    if length != 32 {
        return Err(KeyError::Form);
    }
    out.copy_from_slice(&room[..32]);
    if out.iter().all(|&byte| byte == 0) { Err(KeyError::Zero) } else { Ok(()) }
}

/// Overwrites the stack below the caller, where functions that have returned may have left copies of secrets.
#[inline(never)]
pub(super) fn wipe_stack() {
    // More stack than X25519, BLAKE2s and the ciphers use in an unoptimised build.
    let mut frame = [0u8; 32 << 10];
    std::hint::black_box(&mut frame);
}

/// The public key that identifies an end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey(pub(super) [u8; 32]);

impl std::str::FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let mut key = [0; 32];
        read(text, &mut key)?;
        // 8 is a multiple of the order of these points, and clamping makes every scalar a multiple of 8. A whole multiplication has 255
        // steps instead of 4, and a hub has thousands of keys.
        if MontgomeryPoint(key).mul_bits_be([true, false, false, false].into_iter()).to_bytes() == [0; 32] {
            return Err(KeyError::LowOrder);
        }
        Ok(PublicKey(key))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64_STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

/// The private key of an end, with its public key.
#[derive(Clone)]
pub struct PrivateKey {
    secret: Arc<Zeroizing<[u8; 32]>>,
    public: PublicKey,
}

impl PrivateKey {
    /// A new key from the system's entropy.
    ///
    /// # Panics
    /// Panics if the system has no entropy.
    pub fn generate() -> Self {
        Self::fill(|secret| {
            getrandom::fill(secret).expect("the system has entropy");
            Ok(())
        })
        .expect("just drawn")
    }

    /// A key whose only copy is written by `write`.
    pub(super) fn fill(write: impl FnOnce(&mut [u8; 32]) -> Result<(), KeyError>) -> Result<Self, KeyError> {
        let mut secret = Arc::new(Zeroizing::new([0; 32]));
        write(Arc::get_mut(&mut secret).expect("nobody else has it yet"))?;
        let public = PublicKey(MontgomeryPoint::mul_base_clamped(**secret).to_bytes());
        wipe_stack();
        Ok(PrivateKey { secret, public })
    }

    /// The public key that belongs to it.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    #[cfg(test)]
    pub(super) fn inverted_for_test(&self) -> [u8; 32] {
        self.secret.map(|byte| !byte)
    }

    pub(super) fn public_bytes(&self) -> &[u8; 32] {
        &self.public.0
    }

    /// The shared secret of this key and a public key; `None` if the latter is a point of low order.
    pub(super) fn agree(&self, with: &[u8; 32]) -> Option<Zeroizing<[u8; 32]>> {
        let agreed = Zeroizing::new(MontgomeryPoint(*with).mul_clamped(**self.secret).to_bytes());
        wipe_stack();
        (*agreed != [0; 32]).then_some(agreed)
    }

    /// The key as text. Keep it where only its owner can read it.
    pub fn reveal(&self) -> Zeroizing<String> {
        Zeroizing::new(BASE64_STANDARD.encode(**self.secret))
    }
}

impl std::str::FromStr for PrivateKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::fill(|secret| read(text, secret))
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey(of {})", self.public)
    }
}

/// An additional secret that both ends share.
#[derive(Clone)]
pub struct PresharedKey(pub(super) Arc<Zeroizing<[u8; 32]>>);

impl PresharedKey {
    /// True if both are the same key.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// The key used by ends that have none: all zero, as in WireGuard.
    pub(super) fn none() -> Self {
        PresharedKey(Arc::new(Zeroizing::new([0; 32])))
    }
}

impl std::str::FromStr for PresharedKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let mut key = Self::none();
        read(text, Arc::get_mut(&mut key.0).expect("nobody else has it yet"))?;
        wipe_stack();
        Ok(key)
    }
}

impl fmt::Debug for PresharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresharedKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_and_read() {
        let key = PrivateKey::generate();
        let again: PrivateKey = key.reveal().parse().expect("it is a key");
        assert_eq!(again.public(), key.public());
        assert_eq!(key.public().to_string().parse(), Ok(key.public()));
        assert!(!format!("{key:?}").contains(&*key.reveal()), "secrets are not shown");
        for bad in ["", "abc", &key.reveal()[..43], "AAAA"] {
            assert_eq!(bad.parse::<PublicKey>(), Err(KeyError::Form));
        }
    }

    /// The points of order 1, 2, 4 and 8 on curve and twist, with and without p added: all are refused.
    #[test]
    fn keys_that_nobody_drew_are_refused() {
        let zero = BASE64_STANDARD.encode([0; 32]);
        assert_eq!(zero.parse::<PrivateKey>().map(|_| ()), Err(KeyError::Zero));
        assert_eq!(zero.parse::<PublicKey>(), Err(KeyError::Zero));
        assert_eq!(zero.parse::<PresharedKey>().map(|_| ()), Err(KeyError::Zero));
        let mut one = [0; 32];
        one[0] = 1;
        // p - 1, p and p + 1, with p = 2^255 - 19.
        let near_p = [0xec, 0xed, 0xee].map(|low| {
            let mut point = [0xff; 32];
            (point[0], point[31]) = (low, 0x7f);
            point
        });
        let order_8 = "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157";
        let order_8: [u8; 32] =
            std::array::from_fn(|at| u8::from_str_radix(&order_8[2 * at..][..2], 16).expect("hexadecimal"));
        let mut points: Vec<_> = [one, order_8].into_iter().chain(near_p).collect();
        // X25519 ignores the highest bit.
        points.extend(points.clone().iter().map(|point| {
            let mut same = *point;
            same[31] ^= 0x80;
            same
        }));
        for point in points {
            let text = BASE64_STANDARD.encode(point);
            assert_eq!(text.parse::<PublicKey>(), Err(KeyError::LowOrder), "{point:?}");
            assert_eq!(PrivateKey::generate().agree(&point), None);
        }
    }
}
