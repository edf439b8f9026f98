//! The interface between the loop and a shape.

use std::io;

use bentpipe_engine::units::Time;
use mio::event::Event as Ready;
use mio::{Registry, Token};

use super::hub::{Hub, Slot};
use super::peers::Reach;
use super::readings::Readings;
use crate::tunnel::Event;

/// The gateway as its shape sees it during one turn.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The current time.
    pub now: Time,
    /// The carriers to the other boxes.
    pub hub: &'a mut Hub,
    /// The registry of event sources.
    pub registry: &'a Registry,
}

/// A shape. An error ends the gateway.
pub trait Shape {
    /// Its name in the status and metrics.
    fn name(&self) -> &'static str;

    /// Adds its counters for a peer.
    fn read(&self, slot: Slot, readings: &mut Readings);

    /// Adds its counters that belong to no peer.
    fn read_common(&self, readings: &mut Readings) {
        let _ = readings;
    }

    /// Registers its listeners or device with epoll.
    ///
    /// # Errors
    /// Fails if a listener or device cannot be registered with epoll.
    fn start(&mut self, turn: &mut Turn<'_>) -> io::Result<()>;

    /// As [`Work::listen_again`](super::run::Work::listen_again).
    fn listen_again(&mut self) {}

    /// Called when a peer was added or its reach has changed.
    fn join(&mut self, slot: Slot, reach: Reach);

    /// Called when a peer and its carrier were removed.
    fn leave(&mut self, slot: Slot);

    /// Called when a source of events that the shape has registered is ready.
    ///
    /// # Errors
    /// Fails if a listener or device fails. An error of one connection ends only that connection.
    fn ready(&mut self, turn: &mut Turn<'_>, token: Token, ready: &Ready) -> io::Result<()>;

    /// Called when the link to a peer has come up or gone down.
    ///
    /// # Errors
    /// Fails if a listener or device cannot be opened or closed.
    fn on_event(&mut self, turn: &mut Turn<'_>, slot: Slot, event: Event) -> io::Result<()>;

    /// Called when the largest packet for a peer has changed.
    ///
    /// # Errors
    /// Fails if the device's MTU cannot be set, because it was removed.
    fn on_path_mtu(&mut self, turn: &mut Turn<'_>, slot: Slot) -> io::Result<()>;

    /// Called when a packet from a peer has arrived.
    ///
    /// # Errors
    /// Fails if a listener or device fails. An error of one connection ends only that connection.
    fn on_packet(&mut self, turn: &mut Turn<'_>, slot: Slot, packet: &[u8]) -> io::Result<()>;

    /// Called when all packets of this instant have been delivered.
    ///
    /// # Errors
    /// Fails if the device cannot be written, because it was removed.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Fills the carriers as far as they have room. `sent` is a carrier that has just sent something, if the others
    /// have already had their turn at this instant. Returns true if the shape has more to do now.
    ///
    /// # Errors
    /// Fails if the device cannot be read, because it was removed.
    fn fill(&mut self, turn: &mut Turn<'_>, sent: Option<Slot>) -> io::Result<bool>;

    /// Accepts no more work. Returns true once all work is done.
    ///
    /// # Errors
    /// Fails if a listener or device fails.
    fn drain(&mut self, turn: &mut Turn<'_>) -> io::Result<bool>;
}
