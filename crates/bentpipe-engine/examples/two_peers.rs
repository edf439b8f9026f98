//! A megabyte from one end of a TCP connection to the other, over two links of 300 ms, in virtual time.
//!
//! `cargo run -p bentpipe-engine --example two_peers`
//!
//! The driver is all there is here beside the machines: it moves segments between ends and links, and sets the clock to the
//! next instant at which something happens. A driver in real time does the same with a socket and a clock.

#![allow(clippy::disallowed_macros, reason = "an example prints what it finds")]

use std::error::Error;

use bentpipe_engine::link::{Link, LinkConfig, LossConfig, Outcome, Wire};
use bentpipe_engine::tcp::{Abort, Connection, Input, Output, Role, Segment, TcpConfig};
use bentpipe_engine::units::{Duration, Probability, Rate, Time};
use bentpipe_engine::{Context, Machine, Step};

const BYTES: u64 = 1_000_000;

/// A segment on a link, with 20 bytes of IPv4 header and 20 of TCP.
struct Packet(Segment);

impl Wire for Packet {
    fn wire_len(&self) -> u32 {
        40 + self.0.options_len() + u32::from(self.0.len)
    }
}

/// An end and the link that it sends on.
struct Peer {
    connection: Connection,
    link: Link<Packet>,
    /// When the connection wants to be polled again.
    timer: Option<Time>,
    /// Bytes to send once the connection is open, and bytes received so far.
    to_send: u64,
    received: u64,
    outcome: Option<Result<(), Abort>>,
}

impl Peer {
    fn new(role: Role, to_send: u64, link: &LinkConfig, name: &str) -> Self {
        let connection = Connection::new(TcpConfig::default(), role);
        Peer { connection, link: Link::new(link, 1, name), timer: None, to_send, received: 0, outcome: None }
    }

    /// Hands the connection one input, then does what it asks for until it waits.
    fn handle(&mut self, now: Time, input: Option<Input>) {
        let mut cx = Context::silent(now);
        if let Some(input) = input {
            self.connection.handle(&mut cx, input);
        }
        self.timer = loop {
            match self.connection.poll(&mut cx) {
                Step::Do(Output::Transmit(segment)) => {
                    // A full queue drops the packet: TCP finds out by itself.
                    let _ = self.link.offer(&mut cx, Packet(segment));
                }
                Step::Do(Output::Readable(total)) => {
                    let fresh = total - self.received;
                    self.received = total;
                    self.connection.handle(&mut cx, Input::Read(fresh));
                }
                Step::Do(Output::Connected) if self.to_send > 0 => {
                    self.connection.handle(&mut cx, Input::Write(self.to_send));
                    self.connection.handle(&mut cx, Input::Close);
                }
                // The other end has sent everything; this one has nothing to send.
                Step::Do(Output::PeerClosed) if self.to_send == 0 => _ = self.connection.handle(&mut cx, Input::Close),
                Step::Do(Output::Closed(outcome)) => self.outcome = Some(outcome),
                Step::Do(Output::Connected | Output::PeerClosed | Output::Acknowledged(_)) => {}
                Step::Wait(until) => break until,
            }
        };
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut link = LinkConfig::clean(Rate::from_bits_per_second(10_000_000), Duration::from_millis(300));
    link.good = LossConfig { packet: Probability::new(0.001).ok_or("a probability")?, ..LossConfig::NONE };
    let mut peers = [Peer::new(Role::Active, BYTES, &link, "there"), Peer::new(Role::Passive, 0, &link, "back")];
    let mut now = Time::ZERO;
    peers[1].handle(now, Some(Input::Open));
    peers[0].handle(now, Some(Input::Open));
    while peers.iter().any(|peer| peer.outcome.is_none()) {
        let arrivals = peers.iter().filter_map(|peer| peer.link.next_arrival());
        let timers = peers.iter().filter_map(|peer| peer.timer);
        now = arrivals.chain(timers).min().ok_or("nothing left to happen")?;
        for n in [0, 1] {
            while let Some(arrival) = peers[n].link.take(&mut Context::silent(now)) {
                if arrival.outcome == Outcome::Delivered {
                    peers[1 - n].handle(now, Some(Input::Segment(arrival.packet.0)));
                }
            }
        }
        for peer in &mut peers {
            if peer.timer.is_some_and(|at| at <= now) {
                peer.handle(now, None);
            }
        }
    }
    // The end that closed first has waited for a minute in TIME-WAIT.
    for peer in peers {
        peer.outcome.ok_or("it has ended")??;
        let stats = peer.connection.stats();
        println!(
            "{:7.3} s: {} bytes received, {} segments sent, {} of them again",
            now.as_secs_f64(),
            peer.received,
            stats.data_segments + stats.pure_acks,
            stats.retransmits
        );
    }
    Ok(())
}
