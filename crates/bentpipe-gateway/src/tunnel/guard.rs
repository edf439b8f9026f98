//! The checks before the handshake: a stranger's datagram costs no exponentiation and gets no answer.
//!
//! - **mac1** is keyed by the shared secret of the two static keys. Both ends can compute it before they have met;
//!   nobody else can, even with the public keys. WireGuard keys it by the receiver's public key alone.
//! - **mac2** and the **cookie** are WireGuard's (§5.4.7): a MAC of the sender's address and port under a secret that changes
//!   every two minutes, encrypted for the first message that it answers.
//! - [`Seen`] remembers authentic first messages, so that none is read twice.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};

use bentpipe_engine::units::{Duration, Time};
use blake2::digest::consts::U16;
use blake2::digest::{FixedOutput, KeyInit, Update};
use blake2::{Blake2s256, Blake2sMac, Digest};
use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::AeadInPlace;
use zeroize::Zeroizing;

use super::keys::{PrivateKey, PublicKey, wipe_stack};
use super::packet::{COOKIE, COOKIE_HEADER, COOKIE_REPLY, COOKIE_TEXT, Kind, MAC, MARK, NONCE, start};

/// The age at which a secret for cookies is replaced. The previous one is still accepted (WireGuard §5.4.7).
const SECRET_LIFE: Duration = Duration::from_secs(120);
/// Minimum number of first messages that are remembered: those of 20 days at one every two minutes. An attacker who has
/// recorded more and replays all of them is limited only by the cookies. It is as many as 16 384 buckets hold, so a
/// full record of twice as many takes 0.3 MB.
const MIN_SEEN: usize = 16_384 / 8 * 7;

fn mac(key: &[u8], text: &[u8]) -> [u8; MAC] {
    let mut mac = Blake2sMac::<U16>::new_from_slice(key).expect("BLAKE2s takes keys of up to 32 bytes");
    mac.update(text);
    mac.finalize_fixed().into()
}

fn equal(a: &[u8; MAC], b: &[u8; MAC]) -> bool {
    // Takes the same time wherever they differ.
    std::hint::black_box(a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b))) == 0
}

fn derive(label: &[u8], agreed: &[u8; 32], receiver: &PublicKey) -> Zeroizing<[u8; 32]> {
    let mut hash = Blake2s256::new();
    for part in [label, agreed, &receiver.0] {
        Digest::update(&mut hash, part);
    }
    Zeroizing::new(hash.finalize().into())
}

/// The keys of MACs and cookies between two ends.
pub(super) struct Guard {
    hears: Zeroizing<[u8; 32]>,
    speaks: Zeroizing<[u8; 32]>,
    /// The keys for cookies given and received.
    gives: Zeroizing<[u8; 32]>,
    gets: Zeroizing<[u8; 32]>,
    old_mac: [u8; 32],
}

impl Guard {
    /// The guard between two ends; `None` if the peer's key is a point of low order.
    pub(super) fn new(own: &PrivateKey, peer: &PublicKey) -> Option<Self> {
        let agreed = own.agree(&peer.0)?;
        let to_us = &own.public();
        let mut old = Blake2s256::new();
        Digest::update(&mut old, b"bentpipe tunnel mac");
        Digest::update(&mut old, to_us.0);
        let guard = Guard {
            hears: derive(b"bentpipe tunnel 4 mac", &agreed, to_us),
            speaks: derive(b"bentpipe tunnel 4 mac", &agreed, peer),
            gives: derive(b"bentpipe tunnel 4 cookie", &agreed, peer),
            gets: derive(b"bentpipe tunnel 4 cookie", &agreed, to_us),
            old_mac: old.finalize().into(),
        };
        wipe_stack();
        Some(guard)
    }

    fn mark(key: &[u8; 32]) -> [u8; MARK] {
        *mac(key, b"mark").first_chunk().expect("a mac is longer")
    }

    /// The mark in first messages to the peer.
    pub(super) fn mark_to_peer(&self) -> [u8; MARK] {
        Self::mark(&self.speaks)
    }

    /// The mark in first messages from the peer.
    pub(super) fn mark_of_peer(&self) -> [u8; MARK] {
        Self::mark(&self.hears)
    }

    /// True if the peer wrote the message whose mac1 ends at `end`.
    pub(super) fn fits(&self, datagram: &[u8], end: usize) -> bool {
        datagram[..end].split_last_chunk::<MAC>().is_some_and(|(text, mac1)| equal(&mac(&*self.hears, text), mac1))
    }

    /// True if a first message of version 3 is for this end.
    pub(super) fn fits_old(&self, datagram: &[u8]) -> bool {
        datagram.split_last_chunk::<MAC>().is_some_and(|(text, mac1)| equal(&mac(&self.old_mac, text), mac1))
    }

    /// Writes mac1 over the first `at` bytes behind them. Returns where it ends.
    pub(super) fn sign(&self, at: usize, out: &mut [u8]) -> usize {
        let mac1 = mac(&*self.speaks, &out[..at]);
        out[at..at + MAC].copy_from_slice(&mac1);
        at + MAC
    }

    /// The reply to the sender of a first message with this MAC, with `cookie` and the peer's last timestamp.
    pub(super) fn write_cookie(&self, receiver: u32, mac1: &[u8], cookie: &[u8; COOKIE], last: u64) -> Vec<u8> {
        let mut reply = vec![0; COOKIE_REPLY];
        let at = start(Kind::Cookie { receiver }, &mut reply);
        getrandom::fill(&mut reply[at..at + NONCE]).expect("the system has entropy");
        let nonce: [u8; NONCE] = *reply[at..].first_chunk().expect("just filled");
        let (text, tag) = reply[COOKIE_HEADER..].split_at_mut(COOKIE_TEXT);
        text[..COOKIE].copy_from_slice(cookie);
        text[COOKIE..].copy_from_slice(&last.to_le_bytes());
        let cipher = XChaCha20Poly1305::new((&*self.gives).into());
        let sealed = cipher.encrypt_in_place_detached(&nonce.into(), mac1, text).expect("it is short enough");
        tag.copy_from_slice(&sealed);
        reply
    }

    /// Cookie and timestamp from a reply to the first message with this MAC.
    pub(super) fn read_cookie(&self, datagram: &[u8], mac1: &[u8]) -> Option<([u8; COOKIE], u64)> {
        let nonce: [u8; NONCE] = *datagram.get(5..)?.first_chunk()?;
        let (sealed, tag) = datagram.get(COOKIE_HEADER..)?.split_last_chunk::<16>()?;
        let mut text: [u8; COOKIE_TEXT] = sealed.try_into().ok()?;
        let cipher = XChaCha20Poly1305::new((&*self.gets).into());
        cipher.decrypt_in_place_detached(&nonce.into(), mac1, &mut text, tag.into()).ok()?;
        Some((*text.first_chunk()?, u64::from_le_bytes(*text.last_chunk()?)))
    }
}

/// mac2 over the first `at` bytes of a first message, under a cookie.
pub(super) fn mac2(cookie: &[u8; COOKIE], message: &[u8]) -> [u8; MAC] {
    mac(cookie, message)
}

/// The cookies that this end gives.
pub(super) struct Cookies {
    secrets: [[u8; 32]; 2],
    since: Time,
}

impl Cookies {
    pub(super) fn new(now: Time) -> Self {
        let mut cookies = Cookies { secrets: [[0; 32]; 2], since: now };
        cookies.secrets.iter_mut().for_each(|secret| getrandom::fill(secret).expect("the system has entropy"));
        cookies
    }

    fn of(secret: &[u8; 32], from: SocketAddr) -> [u8; COOKIE] {
        let ip = match from.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let mut text = [0; 18];
        text[..16].copy_from_slice(&ip.octets());
        text[16..].copy_from_slice(&from.port().to_be_bytes());
        mac(secret, &text)
    }

    /// The cookie of an address.
    pub(super) fn give(&mut self, now: Time, from: SocketAddr) -> [u8; COOKIE] {
        let age = now.saturating_since(self.since);
        if age >= SECRET_LIFE {
            self.secrets.swap(0, 1);
            // After a rest, the last secret is too old to become the previous one.
            let replaced = if age < SECRET_LIFE.saturating_mul(2) { 1 } else { 2 };
            for secret in &mut self.secrets[..replaced] {
                getrandom::fill(secret).expect("the system has entropy");
            }
            // The previous secret must not live longer because its end was noticed late.
            self.since = if replaced == 1 { self.since + SECRET_LIFE } else { now };
        }
        Self::of(&self.secrets[0], from)
    }

    /// The valid cookies of an address.
    fn valid(&self, now: Time, from: SocketAddr) -> impl Iterator<Item = [u8; COOKIE]> {
        let age = now.saturating_since(self.since);
        let alive = [age < SECRET_LIFE.saturating_mul(2), age < SECRET_LIFE];
        self.secrets.iter().zip(alive).filter(|(_, alive)| *alive).map(move |(secret, _)| Self::of(secret, from))
    }

    /// True if this cookie was given to this address.
    pub(super) fn fits(&self, now: Time, from: SocketAddr, cookie: &[u8; COOKIE]) -> bool {
        self.valid(now, from).any(|valid| equal(&valid, cookie))
    }

    /// True if the MAC at the end of a first message is keyed by a cookie given to its address.
    pub(super) fn proves(&self, now: Time, from: SocketAddr, datagram: &[u8]) -> bool {
        let Some((message, mac)) = datagram.split_last_chunk::<MAC>() else { return false };
        *mac != [0; MAC] && self.valid(now, from).any(|cookie| equal(&mac2(&cookie, message), mac))
    }
}

/// Authentic first messages, recorded by a keyed hash of their ephemeral key. With probability 2^-49, a new message is
/// mistaken for an old one, and its sender tries again.
#[derive(Default)]
pub(super) struct Seen {
    state: RandomState,
    /// The latest messages and, once there are [`MIN_SEEN`] of them, as many before.
    last: HashSet<u64>,
    before: HashSet<u64>,
}

impl Seen {
    pub(super) fn has(&self, ephemeral: &[u8; 32]) -> bool {
        let hash = self.state.hash_one(ephemeral);
        self.last.contains(&hash) || self.before.contains(&hash)
    }

    pub(super) fn note(&mut self, ephemeral: &[u8; 32]) {
        let hash = self.state.hash_one(ephemeral);
        if !self.before.contains(&hash) {
            self.last.insert(hash);
        }
        if self.last.len() == MIN_SEEN {
            self.before = std::mem::take(&mut self.last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seen_is_bounded() {
        let mut seen = Seen::default();
        let key = |n: usize| -> [u8; 32] {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&n.to_le_bytes());
            key
        };
        for n in 0..3 * MIN_SEEN {
            assert!(!seen.has(&key(n)));
            seen.note(&key(n));
            seen.note(&key(n));
            // As many as a table of 16 384 buckets of nine bytes holds.
            assert!([&seen.last, &seen.before].iter().all(|set| set.len() <= MIN_SEEN && set.capacity() <= MIN_SEEN));
            assert!(seen.has(&key(n)) && seen.has(&key(n.saturating_sub(MIN_SEEN - 1))));
        }
        assert!(seen.has(&key(2 * MIN_SEEN)) && !seen.has(&key(2 * MIN_SEEN - 1)));
    }

    /// A cookie belongs to an address and port, for two to four minutes.
    #[test]
    fn cookies_are_bound_and_end() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let from = |port| SocketAddr::from(([192, 0, 2, 1], port));
        let mut cookies = Cookies::new(at(0));
        let cookie = cookies.give(at(0), from(1));
        assert!(cookies.fits(at(100), from(1), &cookie) && !cookies.fits(at(0), from(2), &cookie));
        cookies.give(at(120), from(1));
        assert!(cookies.fits(at(239), from(1), &cookie) && !cookies.fits(at(240), from(1), &cookie));
        cookies.give(at(240), from(1));
        assert!(!cookies.fits(at(240), from(1), &cookie));
        // After a rest, an old one is of no use and a new one is.
        let before = cookies.give(at(250), from(1));
        assert!(cookies.fits(at(479), from(1), &before) && !cookies.fits(at(480), from(1), &before));
        let after = cookies.give(at(1000), from(1));
        assert!(cookies.fits(at(1000), from(1), &after) && !cookies.fits(at(1000), from(1), &before));
        // A secret lives for two minutes also if that is noticed late: a cookie ends after four minutes at most.
        let late = cookies.give(at(1239), from(1));
        assert!(cookies.fits(at(1239), from(1), &after) && !cookies.fits(at(1240), from(1), &after));
        cookies.give(at(1240), from(1));
        assert!(cookies.fits(at(1359), from(1), &late) && !cookies.fits(at(1360), from(1), &late));
    }
}
