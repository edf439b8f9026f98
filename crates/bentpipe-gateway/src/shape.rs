//! What a shape is for the loop.

use std::io;

use bentpipe_engine::units::Time;
use mio::event::Event as Ready;
use mio::{Registry, Token};

use super::carrier::Carrier;
use super::readings::Readings;
use crate::tunnel::Event;

/// The gateway in the hands of its shape, for one turn.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The present.
    pub now: Time,
    /// The way to the other box.
    pub carrier: &'a mut Carrier,
    /// Where what is to wake the loop is registered.
    pub registry: &'a Registry,
}

/// One of the shapes. Errors are those that the gateway cannot go on with.
pub trait Shape {
    /// Its name, in status and metrics.
    fn name(&self) -> &'static str;

    /// Says what it counted.
    fn read(&self, readings: &mut Readings);

    /// Registers what is there from the start.
    ///
    /// # Errors
    /// Fails if a listener or device cannot be registered with epoll.
    fn start(&mut self, turn: &mut Turn<'_>) -> io::Result<()>;

    /// Something that the shape has registered is ready.
    ///
    /// # Errors
    /// Fails if a listener or device fails; errors of one connection end only it.
    fn ready(&mut self, turn: &mut Turn<'_>, token: Token, ready: &Ready) -> io::Result<()>;

    /// The link came or went.
    ///
    /// # Errors
    /// Fails if a listener or device cannot be opened or closed.
    fn on_event(&mut self, turn: &mut Turn<'_>, event: Event) -> io::Result<()>;

    /// The path takes packets of other lengths than before.
    ///
    /// # Errors
    /// Fails if a device cannot be changed: it was removed.
    fn on_path_mtu(&mut self, turn: &mut Turn<'_>, max_packet: u16) -> io::Result<()> {
        let _ = (turn, max_packet);
        Ok(())
    }

    /// A packet has come from the other box.
    ///
    /// # Errors
    /// Fails if a listener or device fails; errors of one connection end only it.
    fn on_packet(&mut self, turn: &mut Turn<'_>, packet: &[u8]) -> io::Result<()>;

    /// No more packets come at this instant.
    ///
    /// # Errors
    /// Fails if the device cannot be written: it was removed.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Gives the carrier what it has room for; whether the shape could do more at once.
    ///
    /// # Errors
    /// Fails if the device cannot be read: it was removed.
    fn fill(&mut self, turn: &mut Turn<'_>) -> io::Result<bool>;

    /// Takes no more work; answers whether all that there was is done.
    ///
    /// # Errors
    /// Fails if a listener or device fails.
    fn drain(&mut self, turn: &mut Turn<'_>) -> io::Result<bool>;
}
