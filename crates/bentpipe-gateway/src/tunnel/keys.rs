//! Static keys of X25519, written as WireGuard writes them: base64 of 32 bytes.

use std::fmt;

use base64::prelude::{BASE64_STANDARD, Engine};

/// The handshake, and with it the kind of all keys.
pub(super) const PATTERN: &str = "Noise_IK_25519_ChaChaPoly_BLAKE2s";

/// Why text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyError;

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a key: base64 of 32 bytes, 44 characters")
    }
}

impl std::error::Error for KeyError {}

fn read(text: &str) -> Result<[u8; 32], KeyError> {
    BASE64_STANDARD.decode(text.trim()).ok().and_then(|bytes| bytes.try_into().ok()).ok_or(KeyError)
}

/// What an end is known by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey(pub(super) [u8; 32]);

impl std::str::FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        read(text).map(PublicKey)
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

/// What an end proves itself by, and the public key that belongs to it.
#[derive(Clone)]
pub struct PrivateKey {
    secret: [u8; 32],
    public: PublicKey,
}

impl PrivateKey {
    /// A new one from the system's entropy.
    ///
    /// # Panics
    /// If the system has no entropy to give.
    pub fn generate() -> Self {
        let params = PATTERN.parse().expect("a pattern that snow knows");
        let pair = snow::Builder::new(params).generate_keypair().expect("the system has entropy");
        let array = |bytes: &[u8]| bytes.try_into().expect("keys of X25519 have 32 bytes");
        PrivateKey { secret: array(&pair.private), public: PublicKey(array(&pair.public)) }
    }

    /// The public key that belongs to it.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    pub(super) fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// The key as text, to be kept where only its owner reads.
    pub fn reveal(&self) -> String {
        BASE64_STANDARD.encode(self.secret)
    }
}

impl std::str::FromStr for PrivateKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        use snow::resolvers::{CryptoResolver, DefaultResolver};
        let secret = read(text)?;
        let mut dh = DefaultResolver.resolve_dh(&snow::params::DHChoice::Curve25519).ok_or(KeyError)?;
        dh.set(&secret);
        let public = PublicKey(dh.pubkey().try_into().map_err(|_| KeyError)?);
        Ok(PrivateKey { secret, public })
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey(of {})", self.public)
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
        assert!(!format!("{key:?}").contains(&key.reveal()), "secrets are not shown");
        for bad in ["", "abc", &key.reveal()[..43], "AAAA"] {
            assert_eq!(bad.parse::<PublicKey>(), Err(KeyError));
        }
    }
}
