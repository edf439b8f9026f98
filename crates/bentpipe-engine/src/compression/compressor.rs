//! The sending end.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::fields::{Header, Shape};
use super::{BEFORE_BASE, CONTEXTS, GENERATIONS, PLACE, REMEMBERED, form, kind, name};

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

/// The state of a flow. It is small without a base, so a flood of flows with few packets each takes little memory.
#[derive(Debug)]
struct Context {
    flow: u64,
    /// Packets without a base so far.
    seen: u32,
    /// The base that the other end has.
    confirmed: Option<Box<Base>>,
    /// A base whose arrival has not been reported yet.
    announced: Option<(BaseId, Box<Base>)>,
    /// Number of the next base. It continues when the context gets another flow.
    generation: u8,
    /// True if it was used since the clock hand last passed it.
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
    /// Bases of all contexts.
    bases: usize,
}

impl Compressor {
    /// Compresses a packet into `out`, which is cleared first: a form that the other end expands, or the packet
    /// itself. `flow` identifies the flow; two flows with the same number do no harm.
    ///
    /// The driver also carries the announcement, if there is one: reliably, in any order.
    pub fn compress(&mut self, flow: u64, packet: &[u8], out: &mut Vec<u8>) -> Option<Announcement> {
        out.clear();
        let announcement = self.try_compress(flow, packet, out);
        if out.is_empty() {
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
        // The other end overwrites the base in the same place. That must never be the one in use, however many
        // announcements were lost.
        let place = context.confirmed.as_ref().map(|base| base.generation % REMEMBERED);
        let is_taken = place == Some(context.generation % REMEMBERED);
        let generation = (context.generation + u8::from(is_taken)) % GENERATIONS;
        context.generation = (generation + 1) % GENERATIONS;
        self.serial += 1;
        let mut message = name(kind::BASE, 0, slot, generation).to_vec();
        message.extend_from_slice(&(self.serial as u32).to_be_bytes());
        message.extend_from_slice(header.bytes());
        let base = BaseId { slot, serial: self.serial };
        self.bases += 1;
        context.announced = Some((base, Box::new(Base { generation, header })));
        Announcement { base, message }
    }

    /// Handles the report whether an announcement arrived at the other end.
    pub fn verdict(&mut self, base: BaseId, has_arrived: bool) {
        let Some(context) = self.contexts.get_mut(usize::from(base.slot)) else { return };
        // The context may have another flow by now.
        let Some((_, announced)) = context.announced.take_if(|(id, _)| *id == base) else { return };
        let goes = !has_arrived || context.confirmed.is_some();
        self.bases -= usize::from(goes);
        if has_arrived {
            context.confirmed = Some(announced);
            context.seen = 0;
        }
    }

    /// Memory of all contexts, bytes.
    pub fn memory(&self) -> u64 {
        let context = size_of::<Context>() + PLACE;
        (self.contexts.len() * context + self.bases * (size_of::<Base>() + PLACE)) as u64
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
            while core::mem::take(&mut self.contexts[self.hand].is_used) {
                self.hand = (self.hand + 1) % CONTEXTS;
            }
            let slot = self.hand;
            self.hand = (slot + 1) % CONTEXTS;
            let old = &mut self.contexts[slot];
            self.by_flow.remove(&old.flow);
            self.bases -= usize::from(old.confirmed.is_some()) + usize::from(old.announced.is_some());
            *old = Context { generation: old.generation, ..fresh };
            slot
        };
        self.by_flow.insert(flow, slot as u16);
        slot as u16
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::ipv4;

    /// A UDP packet. One base serves for all that are `like` each other.
    fn packet(flow: u64, like: u8) -> Vec<u8> {
        let mut packet = vec![0; 60];
        let header = ipv4::Header::new([192, 0, 2, 1].into(), [192, 0, 2, like].into(), 17);
        ipv4::emit(&header, 40, &mut packet).expect("it fits");
        packet[20..22].copy_from_slice(&(flow as u16).to_be_bytes());
        packet[24..26].copy_from_slice(&40u16.to_be_bytes());
        packet
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        /// What is counted of bases is what is there, also where contexts get other flows.
        #[test]
        fn bases_are_counted(steps in prop::collection::vec((0u64..12, any::<bool>()), 1..200)) {
            let (mut compressor, mut out) = (Compressor::default(), Vec::new());
            let mut announced = Vec::new();
            for (n, &(flow, arrives)) in steps.iter().enumerate() {
                for _ in 0..BEFORE_BASE + 2 {
                    let announcement = compressor.compress(flow, &packet(flow, n as u8 / 16), &mut out);
                    announced.extend(announcement.map(|announcement| announcement.base));
                }
                if n % 3 == 0 {
                    announced.drain(..).for_each(|base| compressor.verdict(base, arrives));
                }
                if n % 50 == 49 {
                    (0..CONTEXTS as u64).for_each(|n| drop(compressor.compress(1000 + n, &packet(n, 1), &mut out)));
                }
                let bases = compressor.contexts.iter();
                let bases = bases.map(|c| usize::from(c.confirmed.is_some()) + usize::from(c.announced.is_some()));
                prop_assert_eq!(bases.sum::<usize>(), compressor.bases);
            }
        }
    }

    /// Figures of `docs/explanation/gateway.md`.
    #[test]
    fn full_tables_take_less_than_a_megabyte() {
        let (mut compressor, mut out) = (Compressor::default(), Vec::new());
        let mut memory = [0; 2];
        for round in 0..=BEFORE_BASE {
            (0..3000).for_each(|flow| drop(compressor.compress(flow % 2048, &packet(flow, 1), &mut out)));
            memory[usize::from(round > 0)] = compressor.memory();
        }
        assert!(memory[0] <= 200_000, "{memory:?}");
        assert!(memory[1] > memory[0] && 2 * (memory[1] - memory[0]) + memory[0] <= 1_000_000, "{memory:?}");
    }
}
