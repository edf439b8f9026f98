//! The tunnel: handshakes, sessions, and whether the peer is there.

mod handshake;

use std::net::SocketAddr;
use std::ops::Range;

use bentpipe_engine::Step;
use bentpipe_engine::units::{Duration, Time};
use snow::HandshakeState;

use super::cipher::{Cipher, machine_has_aes};
use super::keys::{PrivateKey, PublicKey};
use super::packet::{Kind, MacKey, UNKNOWN, classify, start};
use super::session::Session;

/// What both ends hash into their handshake.
const PROLOGUE: &[u8] = b"bentpipe tunnel 3";
/// Between two first messages of a handshake: a round trip over two satellites, and room.
const RETRY: Duration = Duration::from_secs(2);
/// Handshakes that are answered at once, and the time in which one more may be.
const BURST: u32 = 20;
const REFILL: Duration = Duration::from_millis(100);
/// Between two answers to data of sessions that are not there.
const UNKNOWN_PAUSE: Duration = Duration::from_millis(500);

/// One end.
#[derive(Clone, Debug)]
pub struct TunnelConfig {
    /// Who we are.
    pub private: PrivateKey,
    /// Who the peer is.
    pub peer: PublicKey,
    /// Where the peer is: this end builds the tunnel. `None`: the peer does, and we learn where it is.
    pub endpoint: Option<SocketAddr>,
    /// An end that has sent nothing for so long sends an empty datagram.
    pub keepalive: Duration,
    /// A peer that is not heard for so long is given up; above its keepalive and above any outage that is to be endured.
    pub dead_after: Duration,
}

/// What became of the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer is there.
    Up {
        /// What lies above begins anew, at both ends; else it goes on where it was.
        fresh: bool,
    },
    /// The peer is not heard any more. What lies above is void.
    Down,
}

/// What a datagram brought; the event comes before the payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// What became of the tunnel by it.
    pub event: Option<Event>,
    /// Where its payload lies in it.
    pub payload: Option<Range<usize>>,
}

/// A datagram to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Where to.
    pub to: SocketAddr,
    /// Its length in the buffer.
    pub len: usize,
}

/// What [`Tunnel::poll`] asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Todo {
    /// Send what lies in the buffer.
    Send(Sealed),
    /// Hear what became of the tunnel.
    Tell(Event),
}

/// What an end counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunnelStats {
    /// Datagrams sealed, and opened.
    pub sent: u64,
    /// Datagrams opened.
    pub received: u64,
    /// Datagrams that were not the tunnel's, or whose mac was wrong.
    pub garbage: u64,
    /// Datagrams with the form of the tunnel's that were not authentic, or came twice.
    pub refused: u64,
    /// Data of sessions that are not there.
    pub unknown: u64,
    /// Handshakes not answered because there were too many.
    pub throttled: u64,
    /// Handshakes done.
    pub handshakes: u64,
}

/// A handshake that we began.
struct Begun {
    state: HandshakeState,
    own: u32,
}

/// A handshake that we answered; the peer has not used its keys yet.
struct Answered {
    session: Session,
    theirs: u64,
    /// Number of our memory from then on, if it begins anew.
    anew: Option<u64>,
}

/// One end.
pub struct Tunnel {
    config: TunnelConfig,
    has_aes: bool,
    hears: MacKey,
    speaks: MacKey,
    endpoint: Option<SocketAddr>,
    current: Option<Session>,
    /// Still heard, since datagrams overtake each other.
    previous: Option<Session>,
    begun: Option<Begun>,
    answered: Option<Answered>,
    /// When the next first message may go.
    begin_at: Time,
    wants_keys: bool,
    /// Number of our memory of the link, and of the peer's.
    memory: u64,
    bound: Option<u64>,
    is_up: bool,
    /// The greatest clock of a first message.
    clock: u64,
    /// Handshakes that may be answered: to where the peer was heard last, and to anywhere else.
    tokens: [Bucket; 2],
    unknown_at: Time,
    /// Datagrams that wait to go: a response, an answer to unknown data.
    replies: Vec<(SocketAddr, Vec<u8>)>,
    heard_at: Time,
    sent_at: Time,
    stats: TunnelStats,
}

/// Handshakes that may be answered, and since when that is so.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: u32,
    since: Time,
}

impl Bucket {
    fn take(&mut self, now: Time) -> bool {
        let fresh = now.saturating_since(self.since).as_nanos() / REFILL.as_nanos();
        if fresh > 0 {
            self.tokens = self.tokens.saturating_add(fresh.min(BURST.into()) as u32).min(BURST);
            self.since = now;
        }
        let may = self.tokens > 0;
        self.tokens -= u32::from(may);
        may
    }
}

fn draw() -> u64 {
    loop {
        match getrandom::u64().expect("the system has entropy") {
            0 => {}
            number => return number,
        }
    }
}

impl Tunnel {
    /// An end that has heard nothing.
    pub fn new(config: TunnelConfig, now: Time) -> Self {
        Tunnel {
            hears: MacKey::of(config.private.public()),
            speaks: MacKey::of(config.peer),
            endpoint: config.endpoint,
            wants_keys: config.endpoint.is_some(),
            current: None,
            previous: None,
            begun: None,
            answered: None,
            begin_at: now,
            memory: draw(),
            bound: None,
            is_up: false,
            clock: 0,
            tokens: [Bucket { tokens: BURST, since: now }; 2],
            unknown_at: now,
            replies: Vec::new(),
            heard_at: now,
            sent_at: now,
            stats: TunnelStats::default(),
            has_aes: machine_has_aes(),
            config,
        }
    }

    /// Whether the peer is there.
    pub fn is_up(&self) -> bool {
        self.is_up
    }

    /// Whether this end builds the tunnel.
    pub fn is_initiator(&self) -> bool {
        self.config.endpoint.is_some()
    }

    /// Where the peer is, as far as it is known.
    pub fn endpoint(&self) -> Option<SocketAddr> {
        self.endpoint
    }

    /// When the peer was heard last.
    pub fn heard_at(&self) -> Time {
        self.heard_at
    }

    /// What the present keys are of.
    pub fn cipher(&self) -> Option<Cipher> {
        self.current.as_ref().map(Session::cipher)
    }

    /// What has been counted so far.
    pub fn stats(&self) -> TunnelStats {
        self.stats
    }

    fn new_number(&self) -> u32 {
        let taken = |number| {
            let sessions = [&self.current, &self.previous].into_iter().flatten();
            let begun = self.begun.as_ref().map(|begun| begun.own);
            let answered = self.answered.as_ref().map(|answered| answered.session.own);
            sessions.map(|session| session.own).chain(begun).chain(answered).any(|own| own == number)
        };
        std::iter::repeat_with(|| draw() as u32).find(|&number| !taken(number)).expect("four are taken at most")
    }

    /// Makes a datagram for the peer of `out`, in which a payload of so many bytes lies behind [`DATA_HEADER`], with room
    /// for [`DATA_OVERHEAD`] in all; `None` while there is no peer.
    ///
    /// [`DATA_HEADER`]: super::DATA_HEADER
    /// [`DATA_OVERHEAD`]: super::DATA_OVERHEAD
    pub fn seal(&mut self, now: Time, payload: usize, out: &mut [u8]) -> Option<Sealed> {
        let (to, session) = (self.endpoint?, self.current.as_mut()?);
        let len = session.seal(payload, out)?;
        self.sent_at = now;
        self.stats.sent += 1;
        Some(Sealed { to, len })
    }

    /// Takes a datagram, which is opened where it lies.
    pub fn receive(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) -> Heard {
        let Some(kind) = classify(datagram) else {
            self.stats.garbage += 1;
            return Heard::default();
        };
        if let Kind::Data { receiver, number } = kind {
            return self.on_data(now, from, receiver, number, datagram);
        }
        if !self.hears.fits(datagram) {
            self.stats.garbage += 1;
            return Heard::default();
        }
        let done = match kind {
            Kind::Init { sender } => self.on_init(now, from, sender, datagram).map(|()| Heard::default()),
            Kind::Response { sender, receiver } => self.on_response(now, from, sender, receiver, datagram),
            Kind::Unknown { receiver, number } => self.on_unknown(now, receiver, number).map(|()| Heard::default()),
            Kind::Data { .. } => unreachable!("taken above"),
        };
        done.unwrap_or_else(|| {
            self.stats.refused += 1;
            Heard::default()
        })
    }

    fn on_data(&mut self, now: Time, from: SocketAddr, receiver: u32, number: u32, datagram: &mut [u8]) -> Heard {
        if self.answered.as_ref().is_some_and(|answered| answered.session.own == receiver) {
            let opened = self.answered.as_mut().and_then(|answered| answered.session.open(number, datagram));
            let Some((payload, _)) = opened else {
                self.stats.refused += 1;
                return Heard::default();
            };
            // The peer has the keys: from here on they are those that count.
            let Answered { session, theirs, anew } = self.answered.take().expect("just used");
            let event = self.begin(now, session, theirs, anew);
            self.heard(now, Some(from));
            return Heard { event, payload: Some(payload).filter(|payload| !payload.is_empty()) };
        }
        let current = self.current.as_mut().filter(|session| session.own == receiver);
        let session = current.or(self.previous.as_mut().filter(|session| session.own == receiver));
        let Some(session) = session.filter(|session| !session.is_void(now)) else {
            self.stats.unknown += 1;
            if self.unknown_at <= now {
                self.unknown_at = now + UNKNOWN_PAUSE;
                let mut reply = vec![0; UNKNOWN];
                let at = start(Kind::Unknown { receiver, number }, &mut reply);
                self.speaks.sign(at, &mut reply);
                self.replies.push((from, reply));
            }
            return Heard::default();
        };
        let Some((payload, highest)) = session.open(number, datagram) else {
            self.stats.refused += 1;
            return Heard::default();
        };
        self.heard(now, highest.then_some(from));
        Heard { event: None, payload: Some(payload).filter(|payload| !payload.is_empty()) }
    }

    fn heard(&mut self, now: Time, from: Option<SocketAddr>) {
        self.stats.received += 1;
        self.heard_at = now;
        self.endpoint = from.or(self.endpoint);
    }

    /// New keys count from now on.
    fn begin(&mut self, now: Time, session: Session, theirs: u64, anew: Option<u64>) -> Option<Event> {
        self.stats.handshakes += 1;
        self.wants_keys = false;
        // What was sealed under old keys belongs to the old link.
        self.previous = self.current.replace(session).filter(|_| anew.is_none());
        self.memory = anew.unwrap_or(self.memory);
        self.bound = Some(theirs);
        self.heard_at = now;
        let was_up = std::mem::replace(&mut self.is_up, true);
        (!was_up || anew.is_some()).then_some(Event::Up { fresh: anew.is_some() })
    }

    /// What this end wants. `wall` is the time of day in nanoseconds: it need not be right, only later than when this
    /// end was started last. `out` must have 1500 bytes.
    pub fn poll(&mut self, now: Time, wall: u64, out: &mut [u8]) -> Step<Todo> {
        if let Some((to, reply)) = self.replies.pop() {
            out[..reply.len()].copy_from_slice(&reply);
            return Step::Do(Todo::Send(Sealed { to, len: reply.len() }));
        }
        let dead_at = self.heard_at + self.config.dead_after;
        if self.is_up && dead_at <= now {
            self.give_up();
            return Step::Do(Todo::Tell(Event::Down));
        }
        let keepalive_at = self.sent_at + self.config.keepalive;
        if self.is_up
            && keepalive_at <= now
            && let Some(sealed) = self.seal(now, 0, out)
        {
            return Step::Do(Todo::Send(sealed));
        }
        let rekey_at = self.current.as_ref().map(|session| session.since + super::session::REKEY_AFTER);
        self.wants_keys |= self.is_initiator() && self.current.as_ref().is_some_and(|session| session.is_old(now));
        if self.wants_keys
            && self.begin_at <= now
            && let Some(sealed) = self.write_init(now, wall, out)
        {
            return Step::Do(Todo::Send(sealed));
        }
        let begin = if self.wants_keys { Some(self.begin_at) } else { rekey_at.filter(|_| self.is_initiator()) };
        let alive = self.is_up.then(|| dead_at.min(keepalive_at));
        Step::Wait(Time::earliest(begin, alive))
    }

    fn give_up(&mut self) {
        self.is_up = false;
        (self.current, self.previous, self.begun, self.answered) = (None, None, None, None);
        self.memory = draw();
        self.bound = None;
        self.wants_keys = self.is_initiator();
    }

    #[cfg(test)]
    pub(super) fn without_aes(mut self) -> Self {
        self.has_aes = false;
        self
    }

    #[cfg(test)]
    pub(super) fn give_up_for_test(&mut self) {
        self.give_up();
    }
}

impl std::fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tunnel").field("endpoint", &self.endpoint).field("is_up", &self.is_up).finish_non_exhaustive()
    }
}
