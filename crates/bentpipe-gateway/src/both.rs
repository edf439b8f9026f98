//! `split` and `link` on one hub: each peer uses one of the two.

use std::collections::BTreeSet;
use std::io;

use mio::Token;
use mio::event::Event as Ready;

use super::hub::Slot;
use super::link::LinkShape;
use super::peers::{Carries, Reach};
use super::readings::Readings;
use super::run::DEVICE;
use super::shape::{Shape, Turn};
use super::split::SplitShape;
use crate::tunnel::Event;

/// Both shapes together.
#[derive(Debug)]
pub struct BothShapes {
    split: SplitShape,
    link: LinkShape,
    /// The peers of `link`.
    of_link: BTreeSet<Slot>,
}

impl BothShapes {
    /// Both shapes, without peers.
    pub fn new(split: SplitShape, link: LinkShape) -> Self {
        BothShapes { split, link, of_link: BTreeSet::new() }
    }

    /// The shape that serves the peers of `split`.
    pub(crate) fn split_mut(&mut self) -> &mut SplitShape {
        &mut self.split
    }

    fn of(&mut self, slot: Slot) -> &mut dyn Shape {
        if self.of_link.contains(&slot) { &mut self.link } else { &mut self.split }
    }
}

impl Shape for BothShapes {
    fn name(&self) -> &'static str {
        "split+link"
    }

    fn read(&self, slot: Slot, readings: &mut Readings) {
        match self.of_link.contains(&slot) {
            true => self.link.read(slot, readings),
            false => self.split.read(slot, readings),
        }
    }

    fn read_common(&self, readings: &mut Readings) {
        self.split.read_common(readings);
        self.link.read_common(readings);
    }

    fn start(&mut self, turn: &mut Turn<'_>) -> io::Result<()> {
        self.split.start(turn)?;
        self.link.start(turn)
    }

    fn listen_again(&mut self) {
        self.split.listen_again();
    }

    fn join(&mut self, slot: Slot, reach: Reach) {
        match reach.carries {
            Carries::Packets => self.of_link.insert(slot),
            Carries::Streams => self.of_link.remove(&slot),
        };
        self.of(slot).join(slot, reach);
    }

    fn leave(&mut self, slot: Slot) {
        self.of(slot).leave(slot);
        self.of_link.remove(&slot);
    }

    fn ready(&mut self, turn: &mut Turn<'_>, token: Token, ready: &Ready) -> io::Result<()> {
        match token == DEVICE {
            true => self.link.ready(turn, token, ready),
            false => self.split.ready(turn, token, ready),
        }
    }

    fn on_event(&mut self, turn: &mut Turn<'_>, slot: Slot, event: Event) -> io::Result<()> {
        self.of(slot).on_event(turn, slot, event)
    }

    fn on_path_mtu(&mut self, turn: &mut Turn<'_>, slot: Slot) -> io::Result<()> {
        self.of(slot).on_path_mtu(turn, slot)
    }

    fn on_packet(&mut self, turn: &mut Turn<'_>, slot: Slot, packet: &[u8]) -> io::Result<()> {
        self.of(slot).on_packet(turn, slot, packet)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.link.flush()
    }

    fn fill(&mut self, turn: &mut Turn<'_>, sent: Option<Slot>) -> io::Result<bool> {
        let more = self.split.fill(turn, sent)?;
        Ok(self.link.fill(turn, sent)? | more)
    }

    fn drain(&mut self, turn: &mut Turn<'_>) -> io::Result<bool> {
        self.split.drain(turn)
    }
}
