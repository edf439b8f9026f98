//! The peer's address, and whether it is proven.
//!
//! The peer's address is the source of its newest datagram, which anybody with its keys can forge. So a new address gets at
//! most three times the bytes received from it until the peer has acknowledged a probe sent there (RFC 9000 §8.1 and §9.3).
//! Otherwise a compromised terminal could direct its downloads at others.
//!
//! This limit must not stop the probes: if both ends have moved, each waits for bytes from the other. So one probe per second
//! is sent regardless of the limit.
//!
//! A datagram may also have been copied, and sent from an address that is not the peer's (RFC 9000 §9.3.3). So the address that
//! was proven last is probed too: if the peer is still there, its answer is newer than the copy.

use std::net::SocketAddr;

use bentpipe_engine::units::{Duration, Time};

use super::draw;
use crate::bucket::Bucket;
use crate::tunnel::packet::DATA_OVERHEAD;
use crate::tunnel::session::REJECT_AFTER;

/// Bytes that may be sent to an unproven address for each byte from it (RFC 9000 §8.1).
const GAIN: u64 = 3;
/// Number of addresses kept of each kind: a site may have several uplinks, or a NAT several addresses.
const PATHS: usize = 4;
/// The time between two probes of a new address.
const INTERVAL: Duration = Duration::from_millis(500);
/// The time between two probes beyond the limit, for all addresses together. So a peer with valid keys can direct 29 bytes per
/// second at somebody else, in addition to three times its own.
const UNPAID: Duration = Duration::from_secs(1);
/// Probes of the address that was proven last, after the peer has appeared at another one.
const OLD_PROBES: u8 = 3;
/// How long an address counts as the peer's after it was proven: the lifetime of keys. A handshake proves it again before
/// that. Afterwards, somebody else may have the address (RFC 9000 §9.3: no new proof for an address that was seen recently).
const PROOF_LIFE: Duration = REJECT_AFTER;
/// Length of a probe of an address, and of its acknowledgement.
pub(super) const PROBE: usize = DATA_OVERHEAD + 4;
/// The ids of these probes have this bit; those of MTU probes do not.
const OWN: u32 = 1 << 31;
/// The id of probes of the last proven address and of a silent peer: any answer will do. They are answered like those of the
/// path's MTU, which count from 0.
pub(super) const SIGN_OF_LIFE: u32 = OWN - 1;
/// Number of acknowledgements that are examined at once, and the time for each further one. At this rate, an id of 31 bits cannot be
/// guessed.
const GUESSES: u32 = 16;
const GUESS_REFILL: Duration = Duration::from_secs(1);

/// A new address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Candidate {
    address: SocketAddr,
    /// Bytes of UDP payload received from there, and sent there.
    received: u64,
    sent: u64,
    /// The id in probes of this address.
    id: u32,
    probe_at: Time,
}

impl Candidate {
    fn allowance(&self) -> u64 {
        self.received.saturating_mul(GAIN).saturating_sub(self.sent)
    }
}

/// A proven address of the peer.
#[derive(Clone, Copy, Debug)]
struct Proof {
    address: SocketAddr,
    until: Time,
}

/// The peer's addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    at: Option<SocketAddr>,
    /// The last proven addresses, the latest first: a peer with several paths may alternate.
    proven: [Option<Proof>; PATHS],
    /// The last unproven addresses, the latest first, for the same reason.
    candidates: [Option<Candidate>; PATHS],
    guesses: Bucket,
    /// When the next probe beyond the limit may be sent.
    unpaid_at: Time,
    /// When the last proven address may be probed again, and how often.
    old_at: Time,
    old_left: u8,
    /// True if a new address was proven since the last check.
    has_moved: bool,
}

impl Reach {
    /// A peer at the configured address, or else at the last remembered one, which no longer counts as proven.
    pub(super) fn new(given: Option<SocketAddr>, last: Option<SocketAddr>, now: Time) -> Self {
        let at = given.or(last);
        let until = if given.is_some() { now + PROOF_LIFE } else { now };
        let proof = at.map(|address| Proof { address, until });
        let mut proven = [None; PATHS];
        proven[0] = proof;
        let guesses = Bucket::new(GUESSES, GUESS_REFILL, now);
        Reach {
            at,
            proven,
            candidates: [None; PATHS],
            guesses,
            unpaid_at: now,
            old_at: now,
            old_left: 0,
            has_moved: false,
        }
    }

    /// The address to which datagrams go.
    pub(super) fn at(&self) -> Option<SocketAddr> {
        self.at
    }

    /// The last proven address, however long ago it was proven.
    pub(super) fn proven(&self) -> Option<SocketAddr> {
        self.proven[0].map(|proof| proof.address)
    }

    fn candidate(&self, address: SocketAddr) -> Option<&Candidate> {
        self.candidates.iter().flatten().find(|candidate| candidate.address == address)
    }

    fn candidate_mut(&mut self, address: SocketAddr) -> Option<&mut Candidate> {
        self.candidates.iter_mut().flatten().find(|candidate| candidate.address == address)
    }

    fn unproven(&self) -> Option<&Candidate> {
        self.candidate(self.at?)
    }

    /// Number of bytes that may be sent now; unlimited if the address is proven.
    pub(super) fn allowance(&self) -> u64 {
        self.unproven().map_or(u64::MAX, Candidate::allowance)
    }

    /// Records that an authentic first message of a handshake came from there and is answered.
    pub(super) fn on_handshake(&mut self, from: SocketAddr, received: usize, sent: usize) {
        if let Some(candidate) = self.candidate_mut(from) {
            candidate.received += received as u64;
            candidate.sent += sent as u64;
        }
    }

    /// Records that a datagram was sent.
    pub(super) fn sent(&mut self, to: SocketAddr, bytes: usize) {
        if let Some(candidate) = self.candidate_mut(to) {
            candidate.sent += bytes as u64;
        }
    }

    /// Records an authentic datagram from `from`; `newest`: no datagram sent later has arrived before.
    pub(super) fn heard(&mut self, now: Time, from: SocketAddr, bytes: usize, newest: bool) {
        if newest {
            self.at = Some(from);
            let is_there =
                |proof: &Option<Proof>| proof.is_some_and(|proof| proof.address == from && now < proof.until);
            match self.proven.iter().position(is_there) {
                Some(place) => self.proven[..=place].rotate_right(1),
                None if self.candidate(from).is_none() => {
                    let id = draw() as u32 | OWN;
                    let new = Candidate { address: from, received: 0, sent: 0, id, probe_at: now };
                    self.candidates.rotate_right(1);
                    self.candidates[0] = Some(new);
                    self.old_left = OLD_PROBES;
                }
                None => {}
            }
        }
        if let Some(candidate) = self.candidate_mut(from) {
            candidate.received += bytes as u64;
        }
    }

    /// Records that the peer has received something that was sent to `address`.
    pub(super) fn prove(&mut self, now: Time, address: SocketAddr) {
        let is_there = |proof: &Option<Proof>| proof.is_some_and(|proof| proof.address == address);
        let place = self.proven.iter().position(is_there).unwrap_or(PATHS - 1);
        self.proven[..=place].rotate_right(1);
        self.proven[0] = Some(Proof { address, until: now + PROOF_LIFE });
        for candidate in &mut self.candidates {
            self.has_moved |= candidate.take_if(|candidate| candidate.address == address).is_some();
        }
    }

    /// True if a new address was proven since the last call.
    pub(super) fn take_moved(&mut self) -> bool {
        std::mem::take(&mut self.has_moved)
    }

    /// Takes an acknowledgement. Returns true if it belongs to an address probe.
    pub(super) fn on_ack(&mut self, now: Time, id: u32) -> bool {
        let is_ours = id & OWN != 0;
        if is_ours && self.candidates != [None; PATHS] && self.guesses.take(now) {
            let probed = self.candidates.iter().flatten().find(|candidate| candidate.id == id);
            if let Some(address) = probed.map(|candidate| candidate.address) {
                self.prove(now, address);
            }
        }
        is_ours
    }

    /// Forgets unproven addresses, because the peer is lost.
    pub(super) fn give_up(&mut self) {
        if self.unproven().is_some() {
            self.at = self.proven();
        }
        self.candidates = [None; PATHS];
    }

    /// When the peer's new address is to be probed.
    fn new_at(&self) -> Option<Time> {
        let candidate = self.unproven()?;
        let is_paid = candidate.allowance() >= PROBE as u64;
        Some(if is_paid { candidate.probe_at } else { candidate.probe_at.max(self.unpaid_at) })
    }

    /// The last proven address, and when it is to be probed.
    fn old(&self, now: Time) -> Option<(SocketAddr, Time)> {
        self.unproven()?;
        let old = self.proven[0].filter(|proof| self.old_left > 0 && now < proof.until)?;
        Some((old.address, self.old_at))
    }

    /// When a probe is to be sent.
    pub(super) fn probe_at(&self, now: Time) -> Option<Time> {
        Time::earliest(self.new_at(), self.old(now).map(|(_, at)| at))
    }

    /// The destination and the id of a probe to be sent now.
    pub(super) fn probe(&mut self, now: Time) -> Option<(SocketAddr, u32)> {
        if let Some((address, _)) = self.old(now).filter(|(_, at)| *at <= now) {
            self.old_at = now + INTERVAL;
            self.old_left -= 1;
            return Some((address, SIGN_OF_LIFE));
        }
        self.new_at().filter(|at| *at <= now)?;
        let address = self.at?;
        let candidate = self.candidate_mut(address)?;
        candidate.probe_at = now + INTERVAL;
        let (id, is_paid) = (candidate.id, candidate.allowance() >= PROBE as u64);
        if !is_paid {
            self.unpaid_at = now + UNPAID;
        }
        Some((address, id))
    }
}

#[cfg(test)]
mod tests;
