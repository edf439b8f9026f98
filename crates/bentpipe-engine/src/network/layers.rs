//! The ends of link layers: their numbers, the links that they send on, and the paths of their frames.
//!
//! The driver decides what an end does with a packet, because only in real time do frames carry bytes.

use alloc::vec::Vec;

use super::{EndId, Hop, LinkId, Routes};

/// The ends of a network's link layers: two for each layer, numbered after all other ends.
#[derive(Clone, Debug)]
pub struct LayerEnds {
    first: usize,
    /// For each end: the link that it sends on, and the first hop of its frames.
    ends: Vec<(LinkId, Hop)>,
}

impl LayerEnds {
    /// No layers yet; the first end has the number `first`.
    pub fn new(first: usize) -> Self {
        LayerEnds { first, ends: Vec::new() }
    }

    /// Adds a layer over two links in opposite directions, and lays the paths of its frames. `bare`: the two links as
    /// hops without the layer.
    pub fn add(&mut self, routes: &mut Routes, over: [LinkId; 2], bare: [Hop; 2]) {
        for side in 0..2 {
            let far = EndId::from(self.first + self.ends.len() / 2 * 2 + (1 - side));
            self.ends.push((over[side], routes.lead(far, &[bare[side]])));
        }
    }

    /// The end of a layer that sends on its first (`side` 0) or second link (`side` 1).
    pub fn end(&self, layer: usize, side: usize) -> EndId {
        EndId::from(self.first + 2 * layer + side)
    }

    /// The end's index among the ends of layers; `None` for any other end. Packets to ends of layers are frames.
    #[inline(always)]
    pub fn index(&self, end: EndId) -> Option<usize> {
        end.index().checked_sub(self.first)
    }

    /// The other end of the same layer.
    pub fn far(&self, end: EndId) -> EndId {
        EndId::from(self.first + ((end.index() - self.first) ^ 1))
    }

    /// The link that an end sends on.
    pub fn sends_on(&self, end: EndId) -> LinkId {
        self.ends[end.index() - self.first].0
    }

    /// The link that an end receives from.
    pub fn hears(&self, end: EndId) -> LinkId {
        self.sends_on(self.far(end))
    }

    /// Where the frames of an end enter the network.
    pub fn frames(&self, end: EndId) -> Hop {
        self.ends[end.index() - self.first].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_each_end_go_to_the_other() {
        let (links, others) = ([0, 1, 2, 3].map(LinkId), 5);
        let mut routes = Routes::new(links.len(), 0, others + 4);
        let mut layers = LayerEnds::new(others);
        for over in [[links[2], links[0]], [links[1], links[3]]] {
            layers.add(&mut routes, over, over.map(Hop::Link));
        }
        assert_eq!((layers.index(EndId(4)), layers.index(EndId(5)), layers.index(EndId(8))), (None, Some(0), Some(3)));
        for (layer, over) in [(0, [links[2], links[0]]), (1, [links[1], links[3]])] {
            for side in 0..2 {
                let end = layers.end(layer, side);
                assert_eq!(layers.far(end), layers.end(layer, 1 - side));
                assert_eq!((layers.sends_on(end), layers.hears(end)), (over[side], over[1 - side]));
                assert_eq!(layers.frames(end), Hop::Link(over[side]));
                assert_eq!(routes.behind(routes.row_of(layers.far(end)), over[side].index()), Hop::Arrived);
            }
        }
    }
}
