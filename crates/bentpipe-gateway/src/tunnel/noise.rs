//! The handshake of Noise (revision 34) by `snow`, with primitives that leave no copies of keys.
//!
//! `snow` does not wipe keys in memory. So its primitives are wrappers around `curve25519-dalek`, `blake2` and
//! `chacha20poly1305` that do not copy the private key and overwrite their state when dropped. The state of `snow`,
//! with the chaining key, is overwritten in place by that of an empty handshake.

use std::sync::atomic::{AtomicBool, Ordering};

use blake2::{Blake2s256, Digest};
use chacha20poly1305::aead::{AeadInPlace, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Tag};
use curve25519_dalek::MontgomeryPoint;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, Error, HandshakeState};
use zeroize::{Zeroize, Zeroizing};

use super::keys::{PresharedKey, PrivateKey, PublicKey, wipe_stack};

/// The handshake pattern. Ends without a preshared key use one of zeros, as in WireGuard.
pub(super) const PATTERN: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
/// A handshake without keys.
const EMPTY: &str = "Noise_NN_25519_ChaChaPoly_BLAKE2s";
const TAG: usize = 16;

/// The parties of a handshake, as one end sees them.
pub(super) struct Parties<'a> {
    pub(super) pattern: &'a str,
    pub(super) prologue: &'a [u8],
    pub(super) private: &'a PrivateKey,
    /// The peer's key at the initiator; `None` at the responder.
    pub(super) peer: Option<&'a PublicKey>,
    pub(super) preshared: Option<&'a PresharedKey>,
    /// The ephemeral key of a test vector.
    pub(super) ephemeral: Option<&'a [u8; 32]>,
}

/// One end's handshake.
pub(super) struct Handshake(Box<HandshakeState>);

impl Handshake {
    pub(super) fn new(parties: &Parties<'_>) -> Self {
        let Parties { pattern, prologue, private, peer, preshared, ephemeral } = parties;
        let resolver = Resolver { private: Some((*private).clone()), is_given: AtomicBool::new(false) };
        let mut builder = Builder::with_resolver(pattern.parse().expect("a pattern of Noise"), Box::new(resolver))
            // The resolver has the key, so this value is ignored.
            .local_private_key(&[])
            .and_then(|builder| builder.prologue(prologue))
            .expect("each is set once");
        if let Some(preshared) = preshared {
            builder = builder.psk(2, &preshared.0).expect("it is set once");
        }
        if let Some(ephemeral) = ephemeral {
            builder = builder.fixed_ephemeral_key_for_testing_only(&ephemeral[..]);
        }
        let state = match peer {
            Some(peer) => builder.remote_public_key(&peer.0).and_then(Builder::build_initiator),
            None => builder.build_responder(),
        };
        let handshake = Handshake(Box::new(state.expect("all that the pattern needs is there")));
        wipe_stack();
        handshake
    }

    /// Writes the next message with its payload. Returns its length.
    pub(super) fn write(&mut self, payload: &[u8], out: &mut [u8]) -> Option<usize> {
        let written = self.0.write_message(payload, out).ok();
        wipe_stack();
        written
    }

    /// Reads the next message. Returns the length of its payload. A refused message leaves the handshake unchanged.
    pub(super) fn read(&mut self, message: &[u8], payload: &mut [u8]) -> Option<usize> {
        let read = self.0.read_message(message, payload).ok();
        wipe_stack();
        read
    }

    /// The other end's key, once that end has sent it.
    pub(super) fn peer(&self) -> Option<PublicKey> {
        self.0.get_remote_static()?.try_into().ok().map(PublicKey)
    }

    /// The keys of the completed handshake: for sending, and for receiving.
    ///
    /// # Panics
    /// Panics if the handshake is not complete.
    pub(super) fn split(mut self) -> [Zeroizing<[u8; 32]>; 2] {
        assert!(self.0.is_handshake_finished(), "before, the keys are nobody's");
        let (from_initiator, from_responder) = self.0.dangerously_get_raw_split();
        let [first, second] = [from_initiator, from_responder].map(Zeroizing::new);
        #[cfg(test)]
        MADE.with_borrow_mut(|made| made.extend([&first, &second].map(|key| key.map(|byte| !byte))));
        #[cfg(test)]
        HASHES.with_borrow_mut(|made| {
            let hash: [u8; 32] = self.0.get_handshake_hash().try_into().expect("32 bytes");
            made.push(hash.map(|byte| !byte));
        });
        if self.0.is_initiator() { [first, second] } else { [second, first] }
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        let resolver = Resolver { private: None, is_given: AtomicBool::new(false) };
        let empty = Builder::with_resolver(EMPTY.parse().expect("a pattern of Noise"), Box::new(resolver));
        *self.0 = empty.build_initiator().expect("it needs nothing");
        // Keeps the compiler from removing the write.
        std::hint::black_box(&self.0);
        wipe_stack();
    }
}

// The final keys of this thread's handshakes, inverted so that a test that searches memory for them does not find this
// copy.
#[cfg(test)]
thread_local! {
    pub(super) static MADE: std::cell::RefCell<Vec<[u8; 32]>> = const { std::cell::RefCell::new(Vec::new()) };
    /// Their hashes, which `snow` keeps beside the chaining key and does not expose.
    pub(super) static HASHES: std::cell::RefCell<Vec<[u8; 32]>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Supplies the private key for the first X25519 that `snow` asks for, which is the static one.
struct Resolver {
    private: Option<PrivateKey>,
    is_given: AtomicBool,
}

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Entropy))
    }

    fn resolve_dh(&self, _: &DHChoice) -> Option<Box<dyn Dh>> {
        let is_ephemeral = self.is_given.swap(true, Ordering::Relaxed);
        match self.private.as_ref().filter(|_| !is_ephemeral) {
            Some(private) => Some(Box::new(Static(private.clone()))),
            None => Some(Box::<Ephemeral>::default()),
        }
    }

    fn resolve_hash(&self, _: &HashChoice) -> Option<Box<dyn Hash>> {
        Some(Box::<Blake>::default())
    }

    fn resolve_cipher(&self, _: &CipherChoice) -> Option<Box<dyn Cipher>> {
        Some(Box::<ChaCha>::default())
    }
}

struct Entropy;

impl Random for Entropy {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        getrandom::fill(dest).map_err(|_| Error::Rng)
    }
}

/// The private key, without a copy.
struct Static(PrivateKey);

impl Dh for Static {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, _: &[u8]) {}

    fn generate(&mut self, _: &mut dyn Random) -> Result<(), Error> {
        Err(Error::Dh)
    }

    fn pubkey(&self) -> &[u8] {
        self.0.public_bytes()
    }

    fn privkey(&self) -> &[u8] {
        &[]
    }

    fn dh(&self, pubkey: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let pubkey = pubkey.first_chunk().ok_or(Error::Dh)?;
        out[..32].copy_from_slice(&self.0.agree(pubkey).ok_or(Error::Dh)?[..]);
        Ok(())
    }
}

#[derive(Default)]
struct Ephemeral {
    secret: Zeroizing<[u8; 32]>,
    public: [u8; 32],
}

impl Ephemeral {
    fn derive(&mut self) {
        self.public = MontgomeryPoint::mul_base_clamped(*self.secret).to_bytes();
    }
}

impl Dh for Ephemeral {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, privkey: &[u8]) {
        self.secret.copy_from_slice(privkey);
        self.derive();
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), Error> {
        rng.try_fill_bytes(&mut self.secret[..])?;
        self.derive();
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &self.secret[..]
    }

    fn dh(&self, pubkey: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let pubkey = *pubkey.first_chunk().ok_or(Error::Dh)?;
        let agreed = Zeroizing::new(MontgomeryPoint(pubkey).mul_clamped(*self.secret).to_bytes());
        out[..32].copy_from_slice(&agreed[..]);
        if *agreed == [0; 32] { Err(Error::Dh) } else { Ok(()) }
    }
}

#[derive(Default)]
struct Blake(Blake2s256);

impl Drop for Blake {
    fn drop(&mut self) {
        self.reset();
        std::hint::black_box(&self.0);
    }
}

impl Hash for Blake {
    fn name(&self) -> &'static str {
        "BLAKE2s"
    }

    fn block_len(&self) -> usize {
        64
    }

    fn hash_len(&self) -> usize {
        32
    }

    fn reset(&mut self) {
        self.0 = Blake2s256::new();
    }

    fn input(&mut self, data: &[u8]) {
        Digest::update(&mut self.0, data);
    }

    fn result(&mut self, out: &mut [u8]) {
        out[..32].copy_from_slice(&self.0.finalize_reset());
        self.reset();
    }
}

#[derive(Default)]
struct ChaCha(Zeroizing<[u8; 32]>);

impl ChaCha {
    fn cipher(&self) -> ChaCha20Poly1305 {
        ChaCha20Poly1305::new((&*self.0).into())
    }
}

/// Noise §12.3: 32 bits of zeros and the number, little-endian.
fn nonce(number: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_le_bytes());
    nonce
}

impl Cipher for ChaCha {
    fn name(&self) -> &'static str {
        "ChaChaPoly"
    }

    fn set(&mut self, key: &[u8; 32]) {
        self.0.copy_from_slice(key);
    }

    fn encrypt(&self, number: u64, authtext: &[u8], plaintext: &[u8], out: &mut [u8]) -> usize {
        let (text, rest) = out.split_at_mut(plaintext.len());
        text.copy_from_slice(plaintext);
        let tag = self.cipher().encrypt_in_place_detached(&nonce(number).into(), authtext, text);
        rest[..TAG].copy_from_slice(&tag.expect("messages of Noise are short enough"));
        plaintext.len() + TAG
    }

    fn decrypt(&self, number: u64, authtext: &[u8], ciphertext: &[u8], out: &mut [u8]) -> Result<usize, Error> {
        let (text, tag) = ciphertext.split_last_chunk::<TAG>().ok_or(Error::Decrypt)?;
        let out = out.get_mut(..text.len()).ok_or(Error::Decrypt)?;
        out.copy_from_slice(text);
        let tag = Tag::from(*tag);
        let opened = self.cipher().decrypt_in_place_detached(&nonce(number).into(), authtext, out, &tag);
        opened.map_err(|_| {
            out.zeroize();
            Error::Decrypt
        })?;
        Ok(text.len())
    }
}

#[cfg(test)]
mod tests;
