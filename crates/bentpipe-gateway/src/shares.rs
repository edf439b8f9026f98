//! The shares of hosts in a common resource, such as connections or memory, so that no host can use all of it.
//!
//! A host may use seven times what is free, so a host that is alone leaves an eighth (dynamic thresholds, Choudhury and
//! Hahne 1998). The multiplexer divides its streams by the same rule.

use std::collections::BTreeMap;

use bentpipe_engine::mux::Host;

/// A host may use this many times what is free.
const SHARE: u64 = 7;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Use {
    places: u64,
    bytes: u64,
}

/// The use of each host.
#[derive(Debug, Default)]
pub(crate) struct Shares(BTreeMap<Host, Use>);

impl Shares {
    fn of(&self, host: Host) -> Use {
        self.0.get(&host).copied().unwrap_or_default()
    }

    fn change(&mut self, host: Host, change: impl FnOnce(&mut Use)) {
        let all = self.0.entry(host).or_default();
        change(all);
        if *all == Use::default() {
            self.0.remove(&host);
        }
    }

    /// True if a host may take another place while this many are free.
    pub(crate) fn has_place(&self, host: Host, free: u64) -> bool {
        self.of(host).places < free.saturating_mul(SHARE)
    }

    /// A host takes a place.
    pub(crate) fn take(&mut self, host: Host) {
        self.change(host, |all| all.places += 1);
    }

    /// A host leaves a place.
    pub(crate) fn give_back(&mut self, host: Host) {
        self.change(host, |all| all.places -= 1);
    }

    /// The number of bytes that a host may add while `free` bytes are free.
    pub(crate) fn spare(&self, host: Host, free: u64) -> u64 {
        free.saturating_mul(SHARE).saturating_sub(self.of(host).bytes) / (SHARE + 1)
    }

    /// Changes a host's bytes from `before` to `now`.
    pub(crate) fn set_bytes(&mut self, host: Host, before: u64, now: u64) {
        self.change(host, |all| all.bytes = all.bytes + now - before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(n: u8) -> Host {
        Host::of([10, 0, 0, n].into())
    }

    /// Hosts that take as much as they may, one after the other: each leaves an eighth of what it found.
    #[test]
    fn each_leaves_an_eighth() {
        let mut shares = Shares::default();
        let (mut places, mut bytes) = (800, 800_000);
        for (n, (left, spare)) in [(100, 100_000), (12, 12_500), (1, 1563)].into_iter().enumerate() {
            let host = host(n as u8);
            while shares.has_place(host, places) {
                shares.take(host);
                places -= 1;
            }
            assert_eq!(places, left);
            let more = shares.spare(host, bytes);
            shares.set_bytes(host, 0, more);
            bytes -= more;
            assert_eq!((bytes, shares.spare(host, bytes)), (spare, 0));
        }
        assert!(!shares.has_place(host(0), places) && shares.has_place(host(9), places));
        assert!(!shares.has_place(host(9), 0));
    }

    #[test]
    fn who_has_nothing_is_forgotten() {
        let mut shares = Shares::default();
        shares.take(host(1));
        shares.set_bytes(host(1), 0, 5);
        shares.give_back(host(1));
        assert_eq!(shares.0.len(), 1);
        shares.set_bytes(host(1), 5, 0);
        assert!(shares.0.is_empty());
    }
}
