//! One host of a connection: quinn's endpoint and, once there is one, its connection.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use bytes::BytesMut;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionStats, DatagramEvent, Endpoint, Event, Transmit,
};

use super::credentials::SERVER_NAME;

/// Number of datagrams of equal length that are made at once: as many as quinn passes to the kernel
/// (`MAX_TRANSMIT_SEGMENTS`). On the line, each is separate.
const BATCH: usize = 10;

/// The address of the client, or of the server; its value does not matter.
fn address(client: bool) -> SocketAddr {
    let (last, port) = if client { (1, 49152) } else { (2, 443) };
    (Ipv4Addr::new(10, 0, 0, last), port).into()
}

/// An end of a connection, without its application.
pub(super) struct Peer {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    is_client: bool,
    buffer: Vec<u8>,
}

impl Peer {
    pub(super) fn new(endpoint: Endpoint, is_client: bool) -> Self {
        Peer { endpoint, connection: None, is_client, buffer: Vec::new() }
    }

    /// Opens the connection.
    pub(super) fn connect(&mut self, now: Instant, config: ClientConfig) {
        let opened = self.endpoint.connect(now, config, address(!self.is_client), SERVER_NAME);
        self.connection = Some(opened.expect("the settings are sound"));
    }

    /// The connection, once there is one.
    pub(super) fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection)
    }

    /// Its counters, once there is a connection.
    pub(super) fn stats(&self) -> Option<ConnectionStats> {
        self.connection.as_ref().map(|(_, connection)| connection.stats())
    }

    /// Takes a datagram. Direct answers of the endpoint are added to `outbox`.
    pub(super) fn receive(&mut self, now: Instant, datagram: BytesMut, outbox: &mut VecDeque<BytesMut>) {
        let from = address(!self.is_client);
        self.buffer.clear();
        match self.endpoint.handle(now, from, None, None, datagram, &mut self.buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, now, &mut self.buffer, None) {
                    Ok(accepted) => self.connection = Some(accepted),
                    Err(error) => {
                        if let Some(transmit) = error.response {
                            outbox.extend(cut(&self.buffer, &transmit));
                        }
                    }
                }
            }
            Some(DatagramEvent::Response(transmit)) => outbox.extend(cut(&self.buffer, &transmit)),
            None => {}
        }
        self.settle();
    }

    /// Lets due timers expire. Returns true if there were any.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        if let Some((_, connection)) = &mut self.connection
            && connection.poll_timeout().is_some_and(|due| due <= now)
        {
            connection.handle_timeout(now);
            self.settle();
            return true;
        }
        false
    }

    /// When the next timer is due.
    pub(super) fn timeout(&mut self) -> Option<Instant> {
        self.connection()?.poll_timeout()
    }

    /// Adds the next datagrams to `outbox`. Returns false if there is none.
    pub(super) fn send(&mut self, now: Instant, outbox: &mut VecDeque<BytesMut>) -> bool {
        let Some((_, connection)) = &mut self.connection else { return false };
        self.buffer.clear();
        let Some(transmit) = connection.poll_transmit(now, BATCH, &mut self.buffer) else { return false };
        outbox.extend(cut(&self.buffer, &transmit));
        self.settle();
        true
    }

    /// The next event for the application.
    pub(super) fn event(&mut self) -> Option<Event> {
        self.connection()?.poll()
    }

    /// Exchanges events between endpoint and connection.
    fn settle(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(answer);
            }
        }
    }
}

/// The datagrams of a batch.
fn cut<'a>(buffer: &'a [u8], transmit: &Transmit) -> impl Iterator<Item = BytesMut> + 'a {
    let size = transmit.segment_size.unwrap_or(transmit.size).max(1);
    buffer[..transmit.size].chunks(size).map(BytesMut::from)
}

/// Runs two hosts without delay until both are silent. This simulates an earlier connection, which leaves its tickets
/// with the client.
pub(super) fn meet(client: &mut Peer, server: &mut Peer, now: Instant) {
    let (mut there, mut back) = (VecDeque::new(), VecDeque::new());
    loop {
        while client.send(now, &mut there) {}
        while server.send(now, &mut back) {}
        if there.is_empty() && back.is_empty() {
            return;
        }
        for datagram in there.drain(..) {
            server.receive(now, datagram, &mut back);
        }
        for datagram in std::mem::take(&mut back) {
            client.receive(now, datagram, &mut there);
        }
        while client.event().is_some() {}
        while server.event().is_some() {}
    }
}
