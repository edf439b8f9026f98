//! Transfers in real time, for comparison with the simulator: a scenario's flows between endpoints of the engine. Their
//! packets travel as bytes over the scenario's links, by the clock.
//!
//! The endpoints are in this process, so only the clock, the wire format and the wake-ups differ from virtual time. An
//! endpoint acts when it is woken, not when it should have been.

use std::io;
use std::net::SocketAddr;
use std::sync::LazyLock;

use bentpipe_engine::probe::Who;
use bentpipe_engine::tcp::{Abort, Handshake, TcbSharing, TcpConfig, WindowUnit};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_engine::wire::ip::{self, Ports};
use bentpipe_engine::{Context, NoProbe, Step};
use bentpipe_io::{Endpoint, Lateness, Packet, Peer, Receipt, hurry};
use bentpipe_study::scenario::{FlowId, FlowKind, Met, NodeId, Scenario, Split, Workload};

use super::{EmulateError, Unsupported};
use crate::network::{Exit, Network};
use crate::plan::{Addressing, HostId, Plan};
use crate::wakeups::{Drawn, Machine, Wakeups};

/// The ports of the first flow's ends; those of the other flows follow.
const CLIENT_PORT: u16 = 40_000;
const SERVER_PORT: u16 = 5_000;

/// Maximum bytes in the send buffer; acknowledgements free space.
const MAX_HELD: u64 = 64 << 20;

/// A flow that transfers a number of bytes over TCP.
#[derive(Clone, Copy, Debug)]
pub struct Bulk<'s> {
    /// The flow.
    pub flow: FlowId,
    /// Its name.
    pub name: &'s str,
    /// The sending node.
    pub from: NodeId,
    /// The receiving node.
    pub to: NodeId,
    /// Its start time.
    pub start: Time,
    /// Its size in bytes.
    pub bytes: u64,
    sender: &'s TcpConfig,
    receiver: &'s TcpConfig,
}

impl Bulk<'_> {
    /// Maximum receive window in bytes.
    pub fn receive_buffer(&self) -> u32 {
        self.receiver.receive_buffer
    }

    /// The initial receive window in bytes, if the window grows to its maximum.
    pub fn first_window(&self) -> Option<u32> {
        self.receiver.first_window
    }

    /// The sender's memory in bytes for unacknowledged data, if limited.
    pub fn send_buffer(&self) -> Option<u64> {
        self.sender.send_buffer
    }

    /// The size with which the send buffer begins, if it is limited.
    pub fn first_send_buffer(&self) -> u64 {
        self.sender.first_send_buffer
    }

    /// Maximum segment size in bytes.
    pub fn mss(&self) -> u16 {
        self.sender.mss
    }

    /// True if segments have timestamps.
    pub fn timestamps(&self) -> bool {
        self.sender.timestamps && self.receiver.timestamps
    }
}

/// The flows of a scenario. Real ends must support all of them.
///
/// # Errors
/// Returns [`Unsupported`] for the first flow that real ends do not support.
pub fn bulks(scenario: &Scenario) -> Result<Vec<Bulk<'_>>, Unsupported> {
    FlowId::first(scenario.flows.len()).map(|flow| bulk(scenario, flow)).collect()
}

fn bulk(scenario: &Scenario, flow: FlowId) -> Result<Bulk<'_>, Unsupported> {
    let spec = &scenario[flow];
    let refuse = |below: &str, what: &str, expected| {
        Err(Unsupported { key: format!("flows.{}{below}", spec.name), what: what.to_owned(), expected })
    };
    let FlowKind::Tcp(tcp) = &spec.kind else {
        return refuse("", "real ends support only TCP", "a flow of type \"tcp\" with `bytes`");
    };
    let Workload::Bulk(bytes) = tcp.workload else {
        return refuse("", "the flow has no number of bytes", "`bytes`");
    };
    if spec.dscp != 0 && !scenario.layers.is_empty() {
        return refuse(".dscp", "real ends leave the DSCP at 0, and a layer uses it", "no `dscp`");
    }
    // The boxes of a gateway have sockets of their own.
    let (receiver, is_split) = match tcp.splits.as_slice() {
        [] => (&tcp.receiver, false),
        [Split { gateway: Some(Met::Uplink { client_opens: false, .. }), .. }] => {
            let what = "a gateway of shape `uplink` takes connections that its clients open, and here the sender opens";
            return refuse("", what, "a flow from a client, or another shape");
        }
        [Split { gateway: Some(_), receiver, .. }] => (receiver, false),
        _ => (&tcp.receiver, true),
    };
    if is_split || tcp.spoof.is_some() {
        return refuse(".split", "real ends support one TCP connection", "a flow without `split` and `spoof`");
    }
    for TcpConfig { shortcuts, tcb_sharing, .. } in [&tcp.sender, receiver] {
        let on_the_wire = shortcuts.handshake == Handshake::ThreeWay
            && shortcuts.window_unit == WindowUnit::Bytes
            && !shortcuts.ns2_lengths
            && !shortcuts.ns2_bare_first_segment
            && !shortcuts.ns2_delayed_syn_ack;
        if !on_the_wire {
            let what = "it uses simulator shortcuts that are impossible on the wire";
            return refuse(".tcp", what, "profile = \"rfc\", or no `shortcuts` of the handshake, window and lengths");
        }
        if *tcb_sharing != TcbSharing::Off {
            return refuse(".tcp", "real ends do not share state", "tcb_sharing = \"off\"");
        }
    }
    let start = Time::ZERO + spec.start;
    Ok(Bulk {
        flow,
        name: &spec.name,
        from: spec.from,
        to: spec.to,
        start,
        bytes: bytes.get(),
        sender: &tcp.sender,
        receiver,
    })
}

/// The result of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    /// When the last missing byte arrived.
    pub received_at: Option<Time>,
    /// Why it was aborted, if so.
    pub aborted: Option<Abort>,
    /// True if all received bytes equal the sent ones.
    pub intact: bool,
}

/// One end.
#[derive(Debug)]
struct End {
    here: HostId,
    there: HostId,
    endpoint: Endpoint,
    timer: Option<Time>,
}

/// A transfer in progress. The client's end is opened at its start time.
#[derive(Debug)]
struct Transfer<'s> {
    bulk: Bulk<'s>,
    client: Option<End>,
    server: End,
    written: u64,
    read: u64,
    closed: bool,
    result: Transferred,
}

/// Runs the flows between endpoints of the engine until all are done, the scenario's time limit is reached or `go_on`
/// returns false. Returns the results in the order of `bulks`, and the lateness of the wake-ups.
///
/// # Errors
/// Fails if the scenario is unsupported in real time, or if a system call fails.
pub fn run(
    scenario: &Scenario,
    bulks: &[Bulk<'_>],
    mut go_on: impl FnMut(Time) -> bool,
) -> Result<(Vec<Transferred>, Lateness), EmulateError> {
    hurry();
    drive(scenario, bulks, Machine::start, &mut go_on)
}

/// Runs the same loop with the same bytes in virtual time. Each wake-up is late by a draw from `late`, or never.
///
/// # Errors
/// Fails if the scenario is unsupported in real time.
pub fn redraw(
    scenario: &Scenario,
    bulks: &[Bulk<'_>],
    late: Option<&Lateness>,
    seed: u64,
    mut go_on: impl FnMut(Time) -> bool,
) -> Result<Vec<Transferred>, EmulateError> {
    drive(scenario, bulks, || Ok(Drawn::new(late, seed)), &mut go_on).map(|(transferred, _)| transferred)
}

fn drive<W: Wakeups>(
    scenario: &Scenario,
    bulks: &[Bulk<'_>],
    wakeups: impl FnOnce() -> io::Result<W>,
    go_on: &mut dyn FnMut(Time) -> bool,
) -> Result<(Vec<Transferred>, Lateness), EmulateError> {
    if let Some(name) = scenario.gateways.names().next() {
        let what = "the engine's ends are in one process, and gateways stand between hosts".to_owned();
        return Err(Unsupported { key: format!("gateways.{name}"), what, expected: "no [[gateways]]" }.into());
    }
    let plan = Plan::new(scenario, &[])?;
    let mut network = Network::new(scenario, &plan.hosts)?;
    let host = |node| {
        let index = plan.hosts.iter().position(|host| *host == node);
        HostId::from(index.expect("ends of flows are hosts"))
    };
    let system = || EmulateError::system("the clock");
    // Building takes a while, so time starts now.
    let mut wakeups = wakeups().map_err(system())?;
    let mut lateness = Lateness::default();
    let mut transfers: Vec<Transfer<'_>> = bulks
        .iter()
        .enumerate()
        .map(|(n, bulk)| Transfer::listening(n, *bulk, host(bulk.from), host(bulk.to), wakeups.now()))
        .collect();
    let limit = Time::ZERO + scenario.time_limit;
    let mut due = Some(Time::ZERO);
    loop {
        let now = wakeups.now();
        if let Some(due) = due.filter(|due| *due <= now) {
            lateness.record(due, now);
        }
        settle(&mut network, &mut transfers, now);
        if now >= limit || transfers.iter().all(Transfer::is_done) || !go_on(now) {
            return Ok((transfers.into_iter().map(|transfer| transfer.result).collect(), lateness));
        }
        let timers = transfers.iter().map(Transfer::timer).fold(None, Time::earliest);
        due = Time::earliest(network.next(), timers);
        if transfers.iter().any(Transfer::is_writing) {
            due = due.filter(|due| *due <= wakeups.now());
            continue;
        }
        let tick = (now + TICK).min(limit);
        wakeups.sleep(due.map_or(tick, |due| due.min(tick))).map_err(system())?;
    }
}

/// Maximum interval between calls of `go_on`.
const TICK: Duration = Duration::from_millis(100);

/// Runs everything that is due: packets from the links into endpoints, and their replies into the links.
fn settle(network: &mut Network, transfers: &mut [Transfer<'_>], now: Time) {
    loop {
        let mut arrived = Vec::new();
        network.advance(now, |_, exit| {
            if let Exit::Arrived(_, packet) = exit {
                arrived.push(packet.to_bytes());
            }
        });
        let mut sent = 0;
        for packet in &arrived {
            if let Some(transfer) = addressee(transfers, packet) {
                // Each packet is answered separately, as in virtual time, even if several were late together.
                sent += transfer.receive(packet, network, now);
            }
        }
        sent += transfers.iter_mut().enumerate().map(|(n, transfer)| transfer.turn(n, network, now)).sum::<usize>();
        if sent == 0 || network.next().is_none_or(|next| next > now) {
            return;
        }
    }
}

fn context(now: Time, probe: &mut NoProbe) -> Context<'_, NoProbe> {
    Context { now, who: Who(0), probe }
}

/// The transfer to which a packet belongs, by its destination port.
fn addressee<'t, 's>(transfers: &'t mut [Transfer<'s>], packet: &[u8]) -> Option<&'t mut Transfer<'s>> {
    let payload = ip::parse(packet).ok()?.payload;
    let port = Ports::peek(&packet[payload]).ok()?.destination;
    let n = port.checked_sub(CLIENT_PORT).or(port.checked_sub(SERVER_PORT))?;
    transfers.get_mut(usize::from(n))
}

impl<'s> Transfer<'s> {
    fn listening(n: usize, bulk: Bulk<'s>, from: HostId, to: HostId, now: Time) -> Self {
        let local = SocketAddr::from((Addressing::default().v4(to), SERVER_PORT + n as u16));
        let endpoint = Endpoint::open(&mut context(now, &mut NoProbe), *bulk.receiver, local, Peer::Accept, 1);
        let server = End { here: to, there: from, endpoint, timer: None };
        let result = Transferred { intact: true, ..Transferred::default() };
        Transfer { bulk, client: None, server, written: 0, read: 0, closed: false, result }
    }

    fn open(&mut self, n: usize, now: Time) {
        let addressing = Addressing::default();
        let (here, there) = (self.server.there, self.server.here);
        let local = SocketAddr::from((addressing.v4(here), CLIENT_PORT + n as u16));
        let peer = Peer::Connect(SocketAddr::from((addressing.v4(there), SERVER_PORT + n as u16)));
        let buffer = self.bulk.bytes.clamp(1, MAX_HELD) as usize;
        let cx = &mut Context { now, who: Who(0), probe: &mut NoProbe };
        let endpoint = Endpoint::open(cx, *self.bulk.sender, local, peer, buffer);
        self.client = Some(End { here, there, endpoint, timer: None });
    }

    fn is_done(&self) -> bool {
        self.result.received_at.is_some() || self.result.aborted.is_some()
    }

    fn timer(&self) -> Option<Time> {
        let client = self.client.as_ref().map_or(Some(self.bulk.start), |client| client.timer);
        Time::earliest(client, self.server.timer)
    }

    /// True if the sender has more to write and room for it, so that the next turn follows at once.
    fn is_writing(&self) -> bool {
        let writable = self.client.as_ref().is_some_and(|client| client.endpoint.writable() >= WRITE as u64);
        writable && self.written < self.bulk.bytes
    }

    /// Handles a packet for one of the ends and sends the replies. Returns their number.
    fn receive(&mut self, packet: &[u8], network: &mut Network, now: Time) -> usize {
        let cx = &mut Context { now, who: Who(0), probe: &mut NoProbe };
        // Damaged or misdirected packets do not occur, because both ends are in this process.
        if let Ok(Receipt::Taken(_)) = self.server.endpoint.receive(cx, packet) {
            let sent = self.server.transmit(network, now);
            self.take(now);
            return sent + self.server.transmit(network, now);
        }
        let Some(client) = &mut self.client else { return 0 };
        let _ = client.endpoint.receive(cx, packet);
        client.transmit(network, now)
    }

    /// Runs the applications, then the connections. Returns the number of packets sent.
    fn turn(&mut self, n: usize, network: &mut Network, now: Time) -> usize {
        if self.client.is_none() && self.bulk.start <= now {
            self.open(n, now);
        }
        let mut sent = 0;
        if let Some(client) = &mut self.client {
            write(client, &mut self.written, self.bulk.bytes, now);
            sent += client.transmit(network, now);
            if client.endpoint.is_connected() && self.written == self.bulk.bytes && !self.closed {
                client.endpoint.close(&mut context(now, &mut NoProbe));
                self.closed = true;
                sent += client.transmit(network, now);
            }
            if let Some(Err(abort)) = client.endpoint.outcome() {
                self.result.aborted = Some(abort);
            }
        }
        sent += self.server.transmit(network, now);
        self.take(now);
        sent + self.server.transmit(network, now)
    }

    /// Lets the receiver read all available data and check it.
    fn take(&mut self, now: Time) {
        let mut buffer = [0; WRITE];
        while let got @ 1.. = self.server.endpoint.read(&mut context(now, &mut NoProbe), &mut buffer) {
            self.result.intact &= buffer[..got] == *content(self.read, got);
            self.read += got as u64;
        }
        if self.read >= self.bulk.bytes && self.result.received_at.is_none() {
            self.result.received_at = Some(now);
        }
    }
}

/// Maximum bytes of an application's write or read.
const WRITE: usize = 1 << 16;

/// Maximum bytes written per turn: writing a long transfer at once would delay the opening.
fn write(client: &mut End, written: &mut u64, total: u64, now: Time) {
    let length = (total - *written).min(WRITE as u64) as usize;
    if length > 0 {
        // A connection that has ended accepts no more; its outcome is handled elsewhere.
        let taken = client.endpoint.write(&mut context(now, &mut NoProbe), content(*written, length));
        *written += taken.unwrap_or(0) as u64;
    }
}

/// The data sent from this byte on, at most [`WRITE`] bytes. It repeats with a prime period longer than any segment,
/// so misplaced data is detected.
fn content(at: u64, length: usize) -> &'static [u8] {
    const PERIOD: usize = 65_537;
    static CONTENT: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let byte = |n: usize| ((n % PERIOD) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0];
        (0..PERIOD + WRITE).map(byte).collect()
    });
    let begin = (at % PERIOD as u64) as usize;
    &CONTENT[begin..begin + length]
}

impl End {
    /// Moves the connection's packets into the links. Returns their number.
    fn transmit(&mut self, network: &mut Network, now: Time) -> usize {
        let mut packet = [0; 65_535];
        let mut sent = 0;
        loop {
            let cx = &mut Context { now, who: Who(0), probe: &mut NoProbe };
            match self.endpoint.poll(cx, &mut packet).expect("the buffer has room for every IP packet") {
                Step::Wait(until) => {
                    self.timer = until;
                    return sent;
                }
                Step::Do(length) => {
                    // Without a path, nothing arrives.
                    let _ = network.offer(now, self.here, self.there, Packet::new(&packet[..length]));
                    sent += 1;
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "transfers_tests.rs"]
mod tests;
