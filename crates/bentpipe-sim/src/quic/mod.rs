//! QUIC flows, using quinn.
//!
//! quinn-proto is also a state machine: datagrams and instants go in, datagrams and a timeout come out. [`QuicEnd`]
//! drives one end of a connection as `endpoint` drives TCP's, and its datagrams travel over the same links. The
//! handshake is TLS's, with real keys; pacing, loss detection, path MTU discovery and flow control are quinn's.
//!
//! Reading order: this file; `app` (the application); `peer` (quinn's side); `settings` (a flow's settings for quinn);
//! `credentials` and `cipher` (TLS); `control`, `gauge`, `steady` and `unpaced` (congestion control); `repair` (a code over the
//! data); `rare` (rare ACKs); `scone` (a network's advice); `notes` and `frames` (for observers).
//!
//! The kernel's part is not modelled: timers expire on time, whereas tokio's have a granularity of 1 ms, and a batch of
//! datagrams reaches the line at once, as with segmentation offload.

mod app;
mod cipher;
mod clock;
mod control;
mod credentials;
mod frames;
mod gauge;
mod ids;
mod notes;
mod peer;
mod rare;
mod repair;
mod scone;
mod settings;
mod steady;
mod unpaced;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use bentpipe_engine::network::EndId;
use bentpipe_engine::probe::{Event, QuicPacket};
use bentpipe_engine::tcp::{Abort, TcpStats};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::{Context, Probe, Step};
use bentpipe_study::scenario::{AckFrequency, ConnectionId, FlowSpec, QuicFlow, Scenario, Workload};
use bytes::{Bytes, BytesMut};
use quinn_proto::{ClientConfig, ConnectionError, VarInt};

use self::app::App;
use self::cipher::Cover;
use self::gauge::{Gauge, Reading};
use self::notes::Notes;
use self::peer::Peer;
use self::rare::Rare;
use self::scone::Scone;
use self::settings::{Hosts, Settings};
use crate::ended::Outcome;
use crate::ends;
use crate::pacer::Pacer;
use crate::packet::{Parcel, Store};
use crate::responses::Responses;

/// Minimum wait: quinn's pacer may ask to be called again at the same instant.
const MIN_WAIT: Duration = Duration::from_micros(1);

/// One end of a QUIC connection, and its application.
pub(crate) struct QuicEnd {
    peer: Peer,
    app: App,
    client: bool,
    connection: ConnectionId,
    start: Time,
    /// The client's configuration, until it connects.
    config: Option<ClientConfig>,
    /// True once the application has begun.
    begun: bool,
    /// Datagrams that wait for the next poll, with the packets in them if there is an observer.
    outbox: VecDeque<(BytesMut, QuicPacket)>,
    fresh: VecDeque<BytesMut>,
    notes: Option<Notes>,
    scone: Option<Scone>,
    /// Used at a receiver whose ACKs are rare from the start.
    rare: Option<Rare>,
    gauge: Arc<Gauge>,
    /// The reading that was last reported to the observer.
    told: Reading,
    connected_at: Option<Time>,
    aborted: Option<Abort>,
}

impl fmt::Debug for QuicEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicEnd")
            .field("connection", &self.connection)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

/// The two ends of a connection: the client at its `from`, the server at its `to`. `watched`: an observer wants the
/// packets' contents.
pub(crate) fn both(
    scenario: &Scenario,
    (connection, flow, quic): (ConnectionId, &FlowSpec, &QuicFlow),
    start: Time,
    seed: u64,
    watched: bool,
) -> [QuicEnd; 2] {
    let gauges: [Arc<Gauge>; 2] = Default::default();
    let notes = [(); 2].map(|()| watched.then(Notes::default));
    let covers = notes.clone().map(|notes| Cover { encrypts: quic.encryption, notes });
    let settings = Settings { scenario, flow, quic, seed };
    let Hosts { client, server } = settings.hosts(gauges.clone(), covers);
    let [client_scone, server_scone] = settings.scone();
    let [client_gauge, server_gauge] = gauges;
    let [client_notes, server_notes] = notes;
    let pacer = match quic.workload {
        Workload::Paced { rate, pattern, .. } => Some(Pacer::new(rate, pattern, start, seed, &flow.name)),
        _ => None,
    };
    let end = |peer, config, app, notes, gauge, scone| QuicEnd {
        peer,
        app,
        client: false,
        connection,
        start,
        config,
        begun: false,
        outbox: VecDeque::new(),
        fresh: VecDeque::new(),
        notes,
        scone,
        rare: None,
        gauge,
        told: Reading::default(),
        connected_at: None,
        aborted: None,
    };
    let (peer, config) = client;
    let client = end(peer, Some(config), App::new(quic, true, start, pacer), client_notes, client_gauge, client_scone);
    let server = end(server, None, App::new(quic, false, start, None), server_notes, server_gauge, server_scone);
    let asked = quic.ack_frequency.filter(|asked| asked.at_once && server.app.only_receives());
    let rare = asked.map(|asked| Rare::new(asked.every, asked.delay.unwrap_or(AckFrequency::USUAL_DELAY)));
    [QuicEnd { client: true, ..client }, QuicEnd { rare, ..server }]
}

impl QuicEnd {
    fn id(&self) -> EndId {
        if self.client { ends::opener(self.connection) } else { ends::listener(self.connection) }
    }

    /// When this end first acts by itself.
    pub(crate) fn first_action(&self) -> Time {
        if self.client { self.start } else { Time::NEVER }
    }

    /// True if this end has sent and received everything, or has given up.
    pub(crate) fn is_done(&self) -> bool {
        self.aborted.is_some() || self.app.is_done()
    }

    /// True if the run must wait for it, because it is finite and not done.
    pub(crate) fn counts(&self) -> bool {
        self.app.is_finite() && !self.is_done()
    }

    /// Its results so far.
    pub(crate) fn outcome(&self) -> Outcome {
        Outcome {
            connected_at: self.connected_at,
            acked_at: self.app.acked_at,
            received_at: self.app.received_at,
            aborted: self.aborted,
            received: self.app.read,
            stats: self.stats(),
        }
    }

    /// When data last arrived, if any has.
    pub(crate) fn read_at(&self) -> Option<Time> {
        self.app.read_at
    }

    /// The times of the responses to its requests, if it has made any.
    pub(crate) fn responses(&self) -> Option<&Responses> {
        let responses = &self.app.responses;
        (responses.is_waiting() || !responses.times().is_empty()).then_some(responses)
    }

    /// quinn's counters under the names of TCP's. quinn does not count timeouts.
    fn stats(&self) -> TcpStats {
        let Some(stats) = self.peer.stats() else { return TcpStats::default() };
        let reading = self.gauge.read();
        TcpStats {
            data_segments: stats.path.sent_packets,
            retransmits: stats.path.lost_packets,
            fast_retransmits: stats.path.congestion_events,
            acks_received: stats.frame_rx.acks,
            max_flight: reading.max_flight,
            max_cwnd: reading.max_window,
            ..TcpStats::default()
        }
    }

    /// Takes a datagram.
    pub(crate) fn take<P: Probe>(&mut self, cx: &mut Context<'_, P>, mut datagram: BytesMut) {
        if let Some(scone) = &mut self.scone {
            scone.received(cx.now, &mut datagram);
        }
        if let Some(rare) = &mut self.rare {
            rare.received(cx.now, &datagram);
        }
        self.peer.receive(clock::instant(cx.now), datagram, &mut self.fresh);
        if let Some(notes) = &self.notes {
            for packet in notes.take_received() {
                cx.emit(|| Event::QuicReceived(packet));
            }
        }
        self.hand_over(cx);
    }

    /// The next packet to send at `cx.now`, or when to poll again.
    pub(crate) fn poll<P: Probe>(&mut self, cx: &mut Context<'_, P>, packets: &mut Store) -> Step<Parcel> {
        if self.client && cx.now < self.start {
            return Step::Wait(Some(self.start));
        }
        let now = clock::instant(cx.now);
        if let Some(config) = self.config.take_if(|_| self.client) {
            self.peer.connect(now, config);
        }
        loop {
            if let Some((datagram, packet)) = self.outbox.pop_front() {
                return Step::Do(packets.put_quic(self.id(), packet, datagram));
            }
            let expired = self.peer.expire(now);
            self.follow(cx.now);
            let heard = self.hear(cx.now);
            if !self.waits(cx.now, expired) {
                self.peer.send(now, &mut self.fresh);
            }
            self.tell(cx);
            self.hand_over(cx);
            if !heard && self.outbox.is_empty() {
                return Step::Wait(self.next(cx.now));
            }
        }
    }

    /// True if the receiver delays its ACK. Once it has everything, it delays nothing.
    fn waits(&mut self, now: Time, expired: bool) -> bool {
        let Some(rare) = &mut self.rare else { return false };
        if expired {
            rare.hurry();
        }
        let waits = !self.app.is_done() && rare.waits(now);
        if !waits {
            rare.asked();
        }
        waits
    }

    /// The time at which it must be polled again.
    fn next(&mut self, now: Time) -> Option<Time> {
        let timer = self.peer.timeout().map_or(Time::NEVER, clock::time);
        let due = self.rare.as_ref().map_or(Time::NEVER, Rare::due);
        let expires = self.scone.as_ref().map_or(Time::NEVER, Scone::expires);
        let until = timer.min(self.app.next_action).min(expires).min(due);
        (until != Time::NEVER).then(|| until.max(now + MIN_WAIT))
    }

    /// Sets the window according to the network's advice.
    fn follow(&mut self, now: Time) {
        if let Some(scone) = &mut self.scone
            && let Some(connection) = self.peer.connection()
            && let Some(window) = scone.window(now, clock::duration(connection.rtt()))
        {
            connection.set_receive_window(VarInt::from_u64(window).unwrap_or(VarInt::MAX));
        }
    }

    /// Handles the connection's events and lets the application act. Returns true if there were any events.
    fn hear(&mut self, now: Time) -> bool {
        let mut heard = false;
        if !self.begun
            && let Some(connection) = self.peer.connection()
            && (connection.has_0rtt() || !connection.is_handshaking())
        {
            (self.begun, heard) = (true, true);
            self.app.begin(now, connection);
        }
        while let Some(event) = self.peer.event() {
            heard = true;
            match &event {
                quinn_proto::Event::Connected => self.connected_at = Some(now),
                // An endless flow ends when its source closes it.
                quinn_proto::Event::ConnectionLost { reason: ConnectionError::ApplicationClosed(_) }
                    if !self.app.is_finite() => {}
                quinn_proto::Event::ConnectionLost { reason } if !self.app.is_done() => {
                    self.aborted = why(reason);
                }
                _ => {}
            }
            if let Some(connection) = self.peer.connection() {
                self.app.hear(now, &event, connection);
            }
        }
        let Some(connection) = self.peer.connection() else { return heard };
        let over = self.begun && self.app.next_action <= now && {
            heard = true;
            self.app.act(now, connection)
        };
        if (over || self.app.closes()) && !connection.is_closed() {
            heard = true;
            connection.close(clock::instant(now), VarInt::from_u32(0), Bytes::new());
        }
        heard
    }

    /// Moves new datagrams to the outbox, with the contents of their packets.
    fn hand_over<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        let mut noted = self.notes.as_ref().map_or(Vec::new(), Notes::take_sent).into_iter().peekable();
        for datagram in self.fresh.drain(..) {
            let (mut told, mut main) = (0, QuicPacket::default());
            while let Some(packet) = noted.next_if(|packet| told + packet.len as usize <= datagram.len()) {
                told += packet.len as usize;
                // A datagram of several packets is represented by the one with the most data, or by the first.
                if told == packet.len as usize || packet.data > main.data {
                    main = packet;
                }
                cx.emit(|| Event::QuicSent(packet));
            }
            let datagram = match &mut self.scone {
                Some(scone) => scone.sent(cx.now, datagram),
                None => datagram,
            };
            self.outbox.push_back((datagram, main));
        }
    }

    /// Reports the window and the round trip to the observer, if they have changed.
    fn tell<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        if !P::WATCHES {
            return;
        }
        let reading = self.gauge.read();
        if reading.changes == self.told.changes {
            return;
        }
        self.told = reading;
        if reading.round_trip > 0 {
            let [sample, rto] = [reading.round_trip, reading.timeout].map(Duration::from_nanos);
            cx.emit(|| Event::Rtt { sample, rto });
        }
        let Reading { window: cwnd, ssthresh, flight, .. } = reading;
        cx.emit(|| Event::Window { cwnd, ssthresh, flight });
    }
}

/// The reason why a connection ended, under the names of TCP's reasons; `None` if this end closed it.
fn why(reason: &ConnectionError) -> Option<Abort> {
    match reason {
        ConnectionError::TimedOut => Some(Abort::RetriesExhausted),
        ConnectionError::Reset | ConnectionError::ConnectionClosed(_) | ConnectionError::ApplicationClosed(_) => {
            Some(Abort::Reset)
        }
        ConnectionError::VersionMismatch => Some(Abort::Refused),
        ConnectionError::TransportError(_) | ConnectionError::CidsExhausted => Some(Abort::Local),
        ConnectionError::LocallyClosed => None,
    }
}
