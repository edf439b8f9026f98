//! The tunnel: handshakes, sessions, and whether the peer is up.

mod data;
mod draw;
mod ends;
mod handshake;
mod note;
mod reach;
mod timers;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Range;

use bentpipe_engine::units::{Duration, Time};

use super::carries::{Carries, Says};
use super::cipher::{Cipher, machine_has_aes};
use super::guard::{Cookies, Guard, Seen};
use super::keys::{PresharedKey, PrivateKey, PublicKey};
use super::noise::Handshake;
use super::packet::{COOKIE, Kind, MAC, MARK, What, classify};
use super::session::Session;
use crate::bucket::Bucket;
use draw::draw;
#[cfg(test)]
pub(crate) use draw::seed_draws;
pub use note::Note;
use note::Notes;
use reach::Reach;

/// The text that both ends hash into their handshake.
const PROLOGUE: &[u8] = b"bentpipe tunnel 4";
/// Time between two first messages of a handshake: a round trip over two satellites, with a margin.
const RETRY: Duration = Duration::from_secs(2);
/// Burst of first messages that are read without a cookie, and the time for each further one. The same limits apply
/// separately to first messages with a cookie.
const BURST: u32 = 20;
const REFILL: Duration = Duration::from_millis(100);
/// Burst of cookies, and the time for each further one: at most 7 kB/s.
const COOKIE_BURST: u32 = 100;
const COOKIE_REFILL: Duration = Duration::from_millis(10);
/// Maximum number of replies that wait to be sent.
pub(super) const MAX_REPLIES: usize = (2 * BURST + COOKIE_BURST) as usize;

/// The settings of one end.
#[derive(Clone, Debug)]
pub struct TunnelConfig {
    /// This end's private key.
    pub private: PrivateKey,
    /// The peer's public key.
    pub peer: PublicKey,
    /// An additional secret that both ends share.
    pub preshared: Option<PresharedKey>,
    /// What this end carries. A peer that carries something else is refused. `None`: this end does not say it, as earlier
    /// versions.
    pub carries: Option<Carries>,
    /// The peer's address. `None`: the peer begins, and its address is learned.
    pub endpoint: Option<SocketAddr>,
    /// The peer's last address, as saved by an earlier process.
    pub last_endpoint: Option<SocketAddr>,
    /// An end that has sent nothing for this long sends an empty datagram.
    pub keepalive: Duration,
    /// A peer that is silent for this long is given up. It must exceed the peer's keepalive and any outage to be
    /// endured.
    pub dead_after: Duration,
}

impl TunnelConfig {
    /// An end with the default times.
    pub fn new(private: PrivateKey, peer: PublicKey, endpoint: Option<SocketAddr>) -> Self {
        let [keepalive, dead_after] = [5, 15].map(Duration::from_secs);
        TunnelConfig {
            private,
            peer,
            preshared: None,
            carries: None,
            endpoint,
            last_endpoint: None,
            keepalive,
            dead_after,
        }
    }
}

/// A change of the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer is up, and the layers above begin anew at both ends. New keys of a link that continues cause no event.
    Up,
    /// The peer is lost, and the layers above have ended.
    Down,
}

/// The content of a received datagram. The event must be handled before the payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// The change of the tunnel that the datagram caused.
    pub event: Option<Event>,
    /// The kind of its payload.
    pub what: What,
    /// The place of its payload in the datagram.
    pub payload: Option<Range<usize>>,
}

/// A datagram to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Its destination.
    pub to: SocketAddr,
    /// Its length in the buffer.
    pub len: usize,
}

/// A request of [`Tunnel::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Todo {
    /// Send the datagram in the buffer.
    Send(Sealed),
    /// The tunnel has changed.
    Tell(Event),
    /// Tell the operator.
    Log(Note),
}

/// Counters of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunnelStats {
    /// Datagrams encrypted and sent.
    pub sent: u64,
    /// Datagrams received and decrypted.
    pub received: u64,
    /// Datagrams that were not the tunnel's, or had a wrong MAC.
    pub garbage: u64,
    /// Datagrams in the tunnel's format that were not authentic, or arrived twice.
    pub refused: u64,
    /// Data datagrams of unknown sessions.
    pub unknown: u64,
    /// First messages that arrived twice.
    pub replayed: u64,
    /// First messages dropped unread because there were too many.
    pub throttled: u64,
    /// Cookies given.
    pub cookies: u64,
    /// Completed handshakes.
    pub handshakes: u64,
}

/// A handshake begun by this end.
struct Begun {
    /// The address to which the first message went.
    to: SocketAddr,
    handshake: Handshake,
    own: u32,
    /// The MAC to which its cookie is bound, and its timestamp.
    mac1: [u8; MAC],
    stamp: u64,
}

/// A handshake answered by this end. The peer has not used its keys yet.
struct Answered {
    /// The address to which the answer went.
    to: SocketAddr,
    session: Session,
    theirs: u64,
    /// The next number of this end's memory, if it starts over.
    anew: Option<u64>,
}

/// A cookie from the peer, and when it arrived.
#[derive(Clone, Copy)]
struct Given {
    cookie: [u8; COOKIE],
    since: Time,
}

/// One end of a tunnel.
pub struct Tunnel {
    config: TunnelConfig,
    /// The lower half of all session numbers of this end, by which a socket finds the tunnel.
    slot: u16,
    has_aes: bool,
    guard: Guard,
    cookies: Cookies,
    /// First messages that were read, and first messages that asked for a cookie.
    seen: Seen,
    asked: Seen,
    reach: Reach,
    current: Option<Session>,
    /// Still accepted for receiving, since datagrams overtake each other.
    previous: Option<Session>,
    begun: Option<Begun>,
    answered: Option<Answered>,
    /// When the next first message may be sent, and how many have been sent.
    begin_at: Time,
    attempts: u64,
    /// Until when an end without a configured endpoint calls the peer at its last address.
    calls_until: Time,
    given: Option<Given>,
    /// The timestamp of this end's last first message.
    stamp: u64,
    /// The largest timestamp of the peer's first messages.
    last: Option<u64>,
    /// True if the peer has shown that a first message of its own was not a recording, so that earlier ones are
    /// recognised by their timestamps.
    is_last_live: bool,
    /// The number of this end's memory of the link, and of the peer's: `None` while the peer is down.
    memory: u64,
    bound: Option<u64>,
    is_up: bool,
    /// What the peer carries, if its last handshake was refused because this end carries something else.
    other: Option<Carries>,
    /// First messages that may still be read: without a cookie, and with one.
    tokens: [Bucket; 2],
    cookie_tokens: Bucket,
    /// Datagrams to send: responses and cookies.
    replies: VecDeque<(SocketAddr, Vec<u8>)>,
    notes: Notes,
    heard_at: Time,
    sent_at: Time,
    /// True if the peer waits for a datagram under the new keys.
    owes_word: bool,
    /// When a silent peer may be asked again for a sign of life.
    ask_at: Time,
    /// When the first unanswered payload was sent.
    asked_at: Option<Time>,
    stats: TunnelStats,
}

impl Tunnel {
    /// An end that has received nothing yet.
    ///
    /// # Panics
    /// Panics if the peer's public key is a point of low order, which [`PublicKey`] never parses.
    pub fn new(config: TunnelConfig, now: Time) -> Self {
        let bucket = || Bucket::new(BURST, REFILL, now);
        Tunnel {
            slot: 0,
            guard: Guard::new(&config.private, &config.peer).expect("a key that was parsed has a high order"),
            cookies: Cookies::new(now),
            seen: Seen::default(),
            asked: Seen::default(),
            reach: Reach::new(config.endpoint, config.last_endpoint, now),
            current: None,
            previous: None,
            begun: None,
            answered: None,
            begin_at: now,
            attempts: 0,
            calls_until: now + timers::CALL_FOR,
            given: None,
            stamp: 0,
            last: None,
            is_last_live: false,
            memory: draw(),
            bound: None,
            is_up: false,
            other: None,
            tokens: [bucket(), bucket()],
            cookie_tokens: Bucket::new(COOKIE_BURST, COOKIE_REFILL, now),
            replies: VecDeque::new(),
            notes: Notes::default(),
            heard_at: now,
            sent_at: now,
            owes_word: false,
            ask_at: now,
            asked_at: None,
            stats: TunnelStats::default(),
            has_aes: machine_has_aes(),
            config,
        }
    }

    /// Sets `slot` as the lower half of the session numbers, for a socket with several tunnels.
    pub(crate) fn in_slot(self, slot: u16) -> Self {
        Tunnel { slot, ..self }
    }

    /// True if the peer is up.
    pub fn is_up(&self) -> bool {
        self.is_up
    }

    /// What the peer carries, if that is not what this end carries.
    pub fn other_shape(&self) -> Option<Carries> {
        self.other
    }

    fn says(&self) -> Says {
        Says { has_aes: self.has_aes, carries: self.config.carries }
    }

    /// True at exactly one of the two ends, to break ties.
    pub fn leads(&self) -> bool {
        self.config.private.public() > self.config.peer
    }

    /// The peer's key.
    pub fn peer(&self) -> PublicKey {
        self.config.peer
    }

    /// The peer's address, if known.
    pub fn endpoint(&self) -> Option<SocketAddr> {
        self.reach.at()
    }

    /// The last proven address of the peer.
    pub(crate) fn proven_endpoint(&self) -> Option<SocketAddr> {
        self.reach.proven()
    }

    /// True if the peer's current address is proven.
    pub(crate) fn is_proven(&self) -> bool {
        self.endpoint().is_some() && self.allowance() == u64::MAX
    }

    /// True if a new address of the peer was proven since the last call.
    pub(crate) fn take_moved(&mut self) -> bool {
        self.reach.take_moved()
    }

    /// Number of UDP payload bytes that may be sent now; limited while the peer's address is not proven. Sealing more is not
    /// refused.
    pub(crate) fn allowance(&self) -> u64 {
        self.reach.allowance()
    }

    /// When the peer was last heard from.
    pub fn heard_at(&self) -> Time {
        self.heard_at
    }

    /// The cipher of the current keys.
    pub fn cipher(&self) -> Option<Cipher> {
        self.current.as_ref().map(Session::cipher)
    }

    /// The counters.
    pub fn stats(&self) -> TunnelStats {
        self.stats
    }

    /// True if this end has the keys of the session with this number.
    pub(crate) fn has_session(&self, own: u32) -> bool {
        let answered = self.answered.as_ref().map(|answered| &answered.session);
        let sessions = [self.current.as_ref(), self.previous.as_ref(), answered];
        sessions.into_iter().flatten().any(|session| session.own == own)
    }

    /// The mark in the peer's first messages, by which a socket finds the tunnel.
    pub fn mark(&self) -> [u8; MARK] {
        self.guard.mark_of_peer()
    }

    fn new_number(&self) -> u32 {
        let taken = |number| {
            let sessions = [&self.current, &self.previous].into_iter().flatten();
            let begun = self.begun.as_ref().map(|begun| begun.own);
            let answered = self.answered.as_ref().map(|answered| answered.session.own);
            sessions.map(|session| session.own).chain(begun).chain(answered).any(|own| own == number)
        };
        let number = || (draw() as u32) << 16 | u32::from(self.slot);
        std::iter::repeat_with(number).find(|&number| !taken(number)).expect("four are taken at most")
    }

    /// Takes a datagram and decrypts it in place.
    pub fn receive(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) -> Heard {
        let done = match classify(datagram) {
            Some(Kind::Data { what, receiver, number }) => {
                return self.on_data(now, from, (what, receiver, number), datagram);
            }
            Some(Kind::Response { sender, receiver }) => self.on_response(now, from, sender, receiver, datagram),
            Some(Kind::Init { sender, mark }) if mark == self.mark() => {
                self.on_init(now, from, sender, datagram).map(|event| Heard { event, ..Heard::default() })
            }
            Some(Kind::Cookie { receiver }) => self.on_cookie(now, receiver, datagram).map(|()| Heard::default()),
            Some(Kind::Init3) if self.guard.fits_old(datagram) => {
                self.notes.add(now, Note::OldVersion { from });
                None
            }
            _ => {
                self.stats.garbage += 1;
                Some(Heard::default())
            }
        };
        done.unwrap_or_else(|| {
            self.stats.refused += 1;
            Heard::default()
        })
    }

    #[cfg(test)]
    pub(super) fn without_aes(mut self) -> Self {
        self.has_aes = false;
        self
    }

    /// As if all that the peer has sent could be recordings.
    #[cfg(test)]
    pub(super) fn forget_that_the_peer_is_live(&mut self) {
        self.is_last_live = false;
    }

    #[cfg(test)]
    pub(super) fn give_up_for_test(&mut self, now: Time) {
        self.give_up(now);
    }
}

impl std::fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tunnel").field("endpoint", &self.reach.at()).field("is_up", &self.is_up).finish_non_exhaustive()
    }
}
