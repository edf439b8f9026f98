//! The paths to the last addresses of a peer, each with what is known of it: a peer with several uplinks may alternate.
//!
//! Probes of all paths have different ids, so an acknowledgement counts for the path that its probe took, wherever the peer is by now.

use std::collections::VecDeque;
use std::net::IpAddr;

use bentpipe_engine::units::Time;

use super::PathMtu;

/// Maximum paths that are remembered beside the current one.
const OTHERS: usize = 3;

#[derive(Debug)]
pub(crate) struct Paths {
    pub(crate) current: PathMtu,
    /// Where it leads.
    to: Option<IpAddr>,
    /// The others, the last one in use first.
    others: VecDeque<(IpAddr, PathMtu)>,
}

impl Paths {
    /// `max`: as of [`PathMtu::new`].
    pub(crate) fn new(max: u16, now: Time) -> Self {
        Paths { current: PathMtu::new(max, now), to: None, others: VecDeque::new() }
    }

    /// Datagrams go to this address from now on.
    pub(crate) fn lead_to(&mut self, now: Time, to: Option<IpAddr>) {
        if to == self.to {
            return;
        }
        let known = self.others.iter().position(|(other, _)| Some(*other) == to);
        let mut next = match known.and_then(|place| self.others.remove(place)) {
            Some((_, path)) => path,
            None => PathMtu::new(self.current.max, now),
        };
        next.follow(now, &mut self.current);
        if self.to.is_none() {
            next.since = None;
        }
        let last = std::mem::replace(&mut self.current, next);
        if let Some(address) = std::mem::replace(&mut self.to, to) {
            self.others.push_front((address, last));
            self.others.truncate(OTHERS);
        }
    }

    /// Records that the peer has received a probe, of whichever path.
    pub(crate) fn on_ack(&mut self, now: Time, id: u32) {
        let _ = self.current.on_ack(now, id) || self.others.iter_mut().any(|(_, path)| path.on_ack(now, id));
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        1 + self.others.len()
    }
}
