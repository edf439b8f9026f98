//! The shortest round trip of late: that of a path whose queues are empty.

use crate::units::{Duration, Time};

/// It is that of the last one or two such spans: of half a minute at most (BBR has ten seconds; Cardwell et al. 2016).
const MEMORY: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, Debug)]
pub(super) struct Shortest {
    /// Of this span and of the one before.
    spans: [Option<Duration>; 2],
    since: Time,
}

impl Shortest {
    pub(super) fn new() -> Self {
        Shortest { spans: [None; 2], since: Time::ZERO }
    }

    pub(super) fn note(&mut self, now: Time, rtt: Duration) {
        if now.saturating_since(self.since) >= MEMORY {
            self.since = now;
            self.spans = [None, self.spans[0]];
        }
        self.spans[0] = Some(self.spans[0].map_or(rtt, |known| known.min(rtt)));
    }

    /// None before the first.
    pub(super) fn get(&self) -> Option<Duration> {
        self.spans.into_iter().flatten().min()
    }
}
