//! Two ends in virtual time, with an attacker between them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bentpipe_engine::Step;
use bentpipe_engine::units::{Duration, Time};

use crate::tunnel::packet::INIT;
use crate::tunnel::{DATA_HEADER, Event, Note, PrivateKey, Sealed, Todo, Tunnel, TunnelConfig, What};

pub(super) const UP: Event = Event::Up;
pub(super) const HOUR: i64 = 3600;
pub(super) const DECADE: i64 = 10 * 365 * 24 * HOUR;

pub(super) fn address(n: u8) -> SocketAddr {
    ([192, 0, 2, n], 4500).into()
}

pub(super) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub(super) fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// The first end has the other's address, unless a test says otherwise. They are at addresses 1 and 2.
pub(super) struct World {
    pub(super) keys: [PrivateKey; 2],
    pub(super) ends: [Tunnel; 2],
    pub(super) at: [SocketAddr; 2],
    pub(super) names: [Option<SocketAddr>; 2],
    pub(super) now: Time,
    /// How far each end's time of day is off, in seconds.
    pub(super) off: [i64; 2],
    /// One way.
    pub(super) delay: Duration,
    flight: BTreeMap<(Time, u64), (usize, SocketAddr, Vec<u8>)>,
    /// Datagrams and their senders.
    pub(super) sent: Vec<(usize, Vec<u8>)>,
    pub(super) events: [Vec<Event>; 2],
    pub(super) notes: [Vec<Note>; 2],
    pub(super) payloads: [Vec<Vec<u8>>; 2],
    /// Datagrams of these ends are lost.
    pub(super) cut: [bool; 2],
    /// Bytes sent to and received from each address.
    pub(super) bytes_to: BTreeMap<SocketAddr, u64>,
    pub(super) bytes_from: BTreeMap<SocketAddr, u64>,
}

impl World {
    pub(super) fn new() -> Self {
        Self::naming([Some(address(2)), None])
    }

    pub(super) fn naming(names: [Option<SocketAddr>; 2]) -> Self {
        // The order of the public keys breaks ties: the second end's is the greater one.
        let mut keys = [PrivateKey::generate(), PrivateKey::generate()];
        keys.sort_by_key(PrivateKey::public);
        let now = Time::ZERO + seconds(1000);
        let ends = [0, 1].map(|n| Tunnel::new(config(&keys, n, names[n]), now));
        World {
            keys,
            ends,
            at: [address(1), address(2)],
            names,
            now,
            off: [0, 0],
            delay: Duration::ZERO,
            flight: BTreeMap::new(),
            sent: Vec::new(),
            events: Default::default(),
            notes: Default::default(),
            payloads: Default::default(),
            cut: [false; 2],
            bytes_to: BTreeMap::new(),
            bytes_from: BTreeMap::new(),
        }
    }

    /// Restarts an end without memory.
    pub(super) fn restart(&mut self, end: usize) {
        self.ends[end] = Tunnel::new(config(&self.keys, end, self.names[end]), self.now);
    }

    pub(super) fn config(&self, end: usize) -> TunnelConfig {
        config(&self.keys, end, self.names[end])
    }

    /// Its time of day: the virtual clock begins in 2001.
    pub(super) fn wall(&self, end: usize) -> u64 {
        let right = 1_000_000_000 + (self.now.as_nanos() / 1_000_000_000) as i64;
        (right + self.off[end]).max(0) as u64 * 1_000_000_000
    }

    pub(super) fn bring(&mut self, to: usize, from: SocketAddr, datagram: &[u8]) {
        let mut datagram = datagram.to_vec();
        let heard = self.ends[to].receive(self.now, from, &mut datagram);
        *self.bytes_from.entry(from).or_default() += datagram.len() as u64;
        self.events[to].extend(heard.event);
        let payload = heard.payload.map(|at| datagram[at].to_vec());
        // As a carrier does.
        if let Some(probe) = payload.as_ref().filter(|_| heard.what == What::Probe) {
            self.tell(to, What::Ack, probe);
            return;
        }
        self.payloads[to].extend(payload);
    }

    fn send(&mut self, end: usize, to: SocketAddr, datagram: &[u8]) {
        self.sent.push((end, datagram.to_vec()));
        *self.bytes_to.entry(to).or_default() += datagram.len() as u64;
        if !self.cut[end] && to == self.at[1 - end] {
            let key = (self.now + self.delay, self.sent.len() as u64);
            self.flight.insert(key, (1 - end, self.at[end], datagram.to_vec()));
        }
    }

    fn arrive(&mut self) -> bool {
        let Some(entry) = self.flight.first_entry().filter(|entry| entry.key().0 <= self.now) else { return false };
        let (to, from, datagram) = entry.remove();
        self.bring(to, from, &datagram);
        true
    }

    /// Runs both until they wait. Returns when the first of them is to be polled.
    pub(super) fn settle(&mut self) -> Option<Time> {
        loop {
            let mut busy = self.arrive();
            let mut wake = self.flight.keys().next().map(|key| key.0);
            for end in [0, 1] {
                let mut out = [0; 1500];
                match self.ends[end].poll(self.now, self.wall(end), &mut out) {
                    Step::Wait(until) => wake = Time::earliest(wake, until),
                    Step::Do(todo) => {
                        busy = true;
                        match todo {
                            Todo::Tell(event) => self.events[end].push(event),
                            Todo::Log(note) => self.notes[end].push(note),
                            Todo::Send(Sealed { to, len }) => self.send(end, to, &out[..len]),
                        }
                    }
                }
            }
            if !busy {
                return wake;
            }
        }
    }

    pub(super) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(wake) = self.settle().filter(|&wake| wake <= end) {
            assert!(wake > self.now, "time goes on");
            self.now = wake;
        }
        self.now = end;
        self.settle();
    }

    pub(super) fn say(&mut self, end: usize, text: &[u8]) -> bool {
        let said = self.tell(end, What::Frame, text);
        while self.arrive() {}
        said
    }

    pub(super) fn tell(&mut self, end: usize, what: What, text: &[u8]) -> bool {
        let mut out = [0; 1500];
        out[DATA_HEADER..][..text.len()].copy_from_slice(text);
        let Some(Sealed { to, len }) = self.ends[end].seal(self.now, what, text.len(), &mut out) else {
            return false;
        };
        self.send(end, to, &out[..len]);
        true
    }

    /// An end sends this, and the network keeps it back.
    pub(super) fn keep_back(&mut self, end: usize, text: &[u8]) -> Vec<u8> {
        self.cut[end] = true;
        assert!(self.say(end, text));
        self.cut[end] = false;
        self.sent.last().expect("just sent").1.clone()
    }

    /// Number of first messages that an end has sent.
    pub(super) fn begun(&self, end: usize) -> usize {
        self.sent.iter().filter(|(from, datagram)| *from == end && datagram.len() == INIT).count()
    }

    /// A first message of an end, made by another process with the same key.
    pub(super) fn first(&self, end: usize, wall: u64) -> Vec<u8> {
        first(TunnelConfig { endpoint: Some(self.at[1 - end]), ..self.config(end) }, self.now, wall)
    }

    /// The datagrams that an end sends at this instant.
    pub(super) fn answers(&mut self, end: usize) -> Vec<Vec<u8>> {
        let (mut out, mut all) = ([0; 1500], Vec::new());
        while let Step::Do(todo) = self.ends[end].poll(self.now, self.wall(end), &mut out) {
            if let Todo::Send(sealed) = todo {
                all.push(out[..sealed.len].to_vec());
            }
        }
        all
    }

    /// Brings the first message that an end sends now to the other one. Returns the answer, which is on its way.
    pub(super) fn called(&mut self, end: usize) -> Vec<u8> {
        let first = self.answers(end).remove(0);
        self.bring(1 - end, self.at[end], &first);
        self.answers(1 - end).remove(0)
    }
}

pub(super) fn config(keys: &[PrivateKey; 2], end: usize, endpoint: Option<SocketAddr>) -> TunnelConfig {
    TunnelConfig::new(keys[end].clone(), keys[1 - end].public(), endpoint)
}

/// The first message of an end with these settings.
pub(super) fn first(config: TunnelConfig, now: Time, wall: u64) -> Vec<u8> {
    let mut out = [0; 1500];
    match Tunnel::new(config, now).poll(now, wall, &mut out) {
        Step::Do(Todo::Send(sealed)) => out[..sealed.len].to_vec(),
        other => panic!("it begins: {other:?}"),
    }
}
