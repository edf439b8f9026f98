//! The sending end.

use std::collections::BTreeMap;

use super::fields::{Header, Shape};
use super::{BEFORE_BASE, CONTEXTS, GENERATIONS, REMEMBERED, form, kind, name};

/// An announced base. The driver reports to [`Compressor::verdict`] whether it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BaseId {
    slot: u16,
    serial: u64,
}

/// A message for the other end besides the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Its name here.
    pub base: BaseId,
    /// Its bytes.
    pub message: Vec<u8>,
}

#[derive(Debug)]
struct Base {
    generation: u8,
    header: Header,
}

/// Without a base it is small: a flood of flows with few packets each takes little.
#[derive(Debug)]
struct Context {
    flow: u64,
    /// Packets without a base so far.
    seen: u32,
    /// What the other end has.
    confirmed: Option<Box<Base>>,
    /// What it may have.
    announced: Option<(BaseId, Box<Base>)>,
    /// Number of the next base. It continues when the context gets another flow.
    generation: u8,
    /// True if it was used since the clock hand passed.
    is_used: bool,
}

/// The sending end: compresses headers.
#[derive(Debug, Default)]
pub struct Compressor {
    contexts: Vec<Context>,
    by_flow: BTreeMap<u64, u16>,
    /// The clock hand: where the search for the next context to replace starts.
    hand: usize,
    serial: u64,
}

impl Compressor {
    /// Compresses a packet into `out`, which is cleared first: a form that the other end expands, or the packet itself.
    /// `flow` identifies the flow; two flows with the same number do no harm.
    ///
    /// The driver also carries the announcement, if there is one: reliably, in any order.
    pub fn compress(&mut self, flow: u64, packet: &[u8], out: &mut Vec<u8>) -> Option<Announcement> {
        out.clear();
        let announcement = self.try_compress(flow, packet, out);
        if out.is_empty() || out.len() > packet.len() {
            out.clear();
            out.extend_from_slice(packet);
        }
        announcement
    }

    fn try_compress(&mut self, flow: u64, packet: &[u8], out: &mut Vec<u8>) -> Option<Announcement> {
        let shape = Shape::of_regular(packet)?;
        let header = Header::of(packet, shape);
        let slot = self.context(flow);
        let context = &mut self.contexts[usize::from(slot)];
        context.is_used = true;
        let base = context.confirmed.as_ref().filter(|base| base.header.is_like(&header));
        match base {
            Some(base) => {
                form::write(&header, &base.header, slot, base.generation, out);
                out.extend_from_slice(&packet[shape.end..]);
            }
            None => context.seen += 1,
        }
        let wants = base.map_or(context.seen > BEFORE_BASE, |base| form::is_far(&header, &base.header));
        // Packets that open or end a connection differ from its other packets.
        let is_usual = !shape.is_tcp || header.flags() & 0x07 == 0;
        (wants && is_usual && context.announced.is_none()).then(|| self.announce(slot, header))
    }

    fn announce(&mut self, slot: u16, header: Header) -> Announcement {
        let context = &mut self.contexts[usize::from(slot)];
        // The other end overwrites the base in the same place: never the one in use, however many others were lost.
        let place = context.confirmed.as_ref().map(|base| base.generation % REMEMBERED);
        let is_taken = place == Some(context.generation % REMEMBERED);
        let generation = (context.generation + u8::from(is_taken)) % GENERATIONS;
        context.generation = (generation + 1) % GENERATIONS;
        self.serial += 1;
        let mut message = name(kind::BASE, 0, slot, generation).to_vec();
        message.extend_from_slice(&(self.serial as u32).to_be_bytes());
        message.extend_from_slice(header.bytes());
        let base = BaseId { slot, serial: self.serial };
        context.announced = Some((base, Box::new(Base { generation, header })));
        Announcement { base, message }
    }

    /// Handles the report whether an announcement arrived at the other end.
    pub fn verdict(&mut self, base: BaseId, has_arrived: bool) {
        let Some(context) = self.contexts.get_mut(usize::from(base.slot)) else { return };
        // The context may have another flow by now.
        if let Some((_, announced)) = context.announced.take_if(|(id, _)| *id == base)
            && has_arrived
        {
            context.confirmed = Some(announced);
            context.seen = 0;
        }
    }

    fn context(&mut self, flow: u64) -> u16 {
        if let Some(&slot) = self.by_flow.get(&flow) {
            return slot;
        }
        let fresh = Context { flow, seen: 0, confirmed: None, announced: None, generation: 0, is_used: true };
        let slot = if self.contexts.len() < CONTEXTS {
            self.contexts.push(fresh);
            self.contexts.len() - 1
        } else {
            while std::mem::take(&mut self.contexts[self.hand].is_used) {
                self.hand = (self.hand + 1) % CONTEXTS;
            }
            let slot = self.hand;
            self.hand = (slot + 1) % CONTEXTS;
            let old = &mut self.contexts[slot];
            self.by_flow.remove(&old.flow);
            *old = Context { generation: old.generation, ..fresh };
            slot
        };
        self.by_flow.insert(flow, slot as u16);
        slot as u16
    }
}
