//! Connection attempts: limits their number, in total and per source, and their duration.
//!
//! A server that does not answer costs a descriptor and memory until the attempt ends. A source above its quota loses
//! its own oldest attempt. If all sources together have too many, the source with the most loses its oldest. If none
//! has two, the oldest attempt of all is dropped. A server that answers does so within a round trip or two.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bentpipe_engine::mux::Host;
use bentpipe_engine::units::{Duration, Time};

/// How long a server may take to answer. A SYN retransmitted after 1, 3, 7 and 15 s (RFC 6298 §2 and §5.5) is sent five
/// times within this time.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// A source may have an eighth of all attempts, and at least this many.
const QUOTA: usize = 8;
const MIN_QUOTA: usize = 16;

/// The attempts, by the time at which they began.
#[derive(Debug)]
pub(super) struct HalfOpen<K> {
    max: usize,
    begun: BTreeMap<K, (Time, Host)>,
    by_age: BTreeSet<(Time, K)>,
    by_host: BTreeMap<Host, BTreeSet<(Time, K)>>,
    /// The number of each source's attempts.
    counts: BTreeSet<(usize, Host)>,
}

impl<K: Copy + Ord> HalfOpen<K> {
    /// Allows at most `max` attempts at a time.
    pub(super) fn new(max: usize) -> Self {
        HalfOpen {
            max: max.max(1),
            begun: BTreeMap::new(),
            by_age: BTreeSet::new(),
            by_host: BTreeMap::new(),
            counts: BTreeSet::new(),
        }
    }

    /// Records an attempt of a client. Returns the attempt that it evicts, if any.
    pub(super) fn begin(&mut self, now: Time, id: K, client: IpAddr) -> Option<K> {
        let host = Host::of(client);
        let own = self.by_host.get(&host);
        let oldest = if own.map_or(0, BTreeSet::len) >= (self.max / QUOTA).max(MIN_QUOTA).min(self.max) {
            own.and_then(BTreeSet::first)
        } else if self.begun.len() >= self.max {
            match self.counts.last() {
                Some((2.., most)) => self.by_host.get(most).and_then(BTreeSet::first),
                _ => self.by_age.first(),
            }
        } else {
            None
        };
        let evicted = oldest.map(|&(_, id)| id);
        if let Some(id) = evicted {
            self.end(id);
        }
        self.begun.insert(id, (now, host));
        self.by_age.insert((now, id));
        let own = self.by_host.entry(host).or_default();
        self.counts.remove(&(own.len(), host));
        own.insert((now, id));
        self.counts.insert((own.len(), host));
        evicted
    }

    /// Removes an attempt that succeeded or was given up.
    pub(super) fn end(&mut self, id: K) {
        let Some((since, host)) = self.begun.remove(&id) else { return };
        self.by_age.remove(&(since, id));
        if let Some(own) = self.by_host.get_mut(&host) {
            self.counts.remove(&(own.len(), host));
            own.remove(&(since, id));
            if own.is_empty() {
                self.by_host.remove(&host);
            } else {
                self.counts.insert((own.len(), host));
            }
        }
    }

    /// When the next attempt times out.
    pub(super) fn next(&self) -> Option<Time> {
        self.by_age.first().map(|&(since, _)| since + CONNECT_TIMEOUT)
    }

    /// An attempt that has timed out.
    pub(super) fn expired(&mut self, now: Time) -> Option<K> {
        let &(since, id) = self.by_age.first()?;
        if now.saturating_since(since) < CONNECT_TIMEOUT {
            return None;
        }
        self.end(id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn client(n: u32) -> IpAddr {
        IpAddr::V4((0x0a00_0000 + n).into())
    }

    #[test]
    fn a_source_loses_its_own_oldest() {
        let mut half_open = HalfOpen::new(160);
        assert_eq!(half_open.begin(at(0), 1000, client(9)), None);
        let evicted: Vec<_> = (0..30).filter_map(|n| half_open.begin(at(1), n, client(1))).collect();
        // An eighth of 160.
        assert_eq!(evicted, (0..10).collect::<Vec<_>>());
        half_open.end(29);
        assert_eq!(half_open.begin(at(2), 30, client(1)), None, "one was made");
        assert_eq!(half_open.begun.len(), 21);
    }

    #[test]
    fn of_many_sources_the_oldest_goes() {
        let mut half_open = HalfOpen::new(160);
        let evicted: Vec<_> = (0..200).filter_map(|n| half_open.begin(at(u64::from(n)), n, client(n))).collect();
        assert_eq!(evicted, (0..40).collect::<Vec<_>>());
        assert_eq!((half_open.begun.len(), half_open.by_age.len(), half_open.by_host.len()), (160, 160, 160));
    }

    /// A flood that claims to come from many hosts, with several attempts each, evicts no host's only attempt, however
    /// old it is.
    #[test]
    fn who_has_most_goes_first() {
        let mut half_open = HalfOpen::new(160);
        half_open.begin(at(0), 10_000, client(1000));
        let evicted: Vec<_> = (0..2000).filter_map(|n| half_open.begin(at(1), n, client(n % 70))).collect();
        assert_eq!(evicted.len(), 2001 - 160);
        assert!(!evicted.contains(&10_000));
        half_open.end(10_000);
        assert_eq!((half_open.begun.len(), half_open.by_host.len(), half_open.counts.len()), (159, 70, 70));
        let most = half_open.counts.last().map(|(count, _)| *count);
        assert_eq!(most, Some(3), "159 of 70");
    }

    #[test]
    fn what_takes_too_long_is_given_up() {
        let mut half_open = HalfOpen::new(160);
        half_open.begin(at(0), 1, client(1));
        half_open.begin(at(5), 2, client(1));
        assert_eq!(half_open.expired(at(29)), None);
        assert_eq!((half_open.expired(at(30)), half_open.expired(at(30))), (Some(1), None));
        assert_eq!(half_open.expired(at(35)), Some(2));
        assert!(half_open.begun.is_empty() && half_open.by_age.is_empty() && half_open.by_host.is_empty());
        assert!(half_open.counts.is_empty());
    }
}
