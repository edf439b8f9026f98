//! Recovery from a burst of losses without SACK: the sender of the `minei` paper, §5.3.
//!
//! The phase begins with the duplicate ACKs that indicate a loss and ends when all outstanding data is acknowledged.
//! Every arriving segment of the old window triggers a duplicate ACK, so at the first partial ACK the sender knows how
//! many were lost. It assumes that they are consecutive and sends that many at once. Each later hole shows by a
//! duplicate partial ACK and costs another burst of the same length. Meanwhile the window neither slides nor inflates.
//!
//! The paper counts packets. Here sequence numbers are bytes, and `boundaries` stores the segments. A burst covers the
//! bytes of its segments and is sent in full segments, even if the original ones were short. `docs/specs/minei.md`
//! lists interpretations and departures.

use super::boundaries::Boundaries;
use super::parts::Parts;
use crate::tcp::loss::LossReport;
use crate::tcp::sequence::SequenceSpace;
use crate::tcp::span::Span;
use crate::tcp::variant::{BurstEstimate, ReentryGuard};

/// The state of a recovery by burst estimate.
#[derive(Clone, Debug)]
pub(super) struct Burst {
    cells: BurstEstimate,
    pub(super) boundaries: Boundaries,
    /// The loss that started the phase, and the number of segments outstanding at that time.
    loss: Option<LossReport>,
    outstanding: u64,
    /// Segments of the old window that have arrived since the loss.
    arrived: u64,
    /// The length of a burst in segments, fixed by the first partial ACK.
    length: Option<u64>,
    /// The first partial ACK, and the number of its duplicates.
    base: u64,
    repeats: u32,
    /// True if the burst for `snd_una` has been sent.
    begun_here: bool,
    /// The last burst.
    last: (u64, u64),
    /// The unsent part of the last burst.
    pending: (u64, u64),
    /// Retransmissions minus the ACKs that they may have caused: on a path that preserves order, each causes one.
    unanswered: i64,
    /// Number of expected duplicate ACKs caused by retransmissions.
    credit: u64,
}

impl Burst {
    pub(super) fn new(cells: BurstEstimate) -> Self {
        Burst {
            cells,
            boundaries: Boundaries::default(),
            loss: None,
            outstanding: 0,
            arrived: 0,
            length: None,
            base: 0,
            repeats: 0,
            begun_here: false,
            last: (0, 0),
            pending: (0, 0),
            unanswered: 0,
            credit: 0,
        }
    }

    /// The guard against a false second phase.
    pub(super) fn guard(&self) -> ReentryGuard {
        self.cells.guard
    }

    /// Records that a segment up to `end` is sent; `snd_max` is the value before it.
    pub(super) fn sent(&mut self, snd_max: u64, end: u64, retransmission: bool) {
        self.unanswered += retransmission as i64;
        if end > snd_max {
            self.boundaries.sent(snd_max, end);
        }
    }

    /// Takes an ACK of new data after a timeout; `is_full`: it covers everything retransmitted.
    pub(super) fn on_ack_after_timeout(&mut self, is_full: bool) {
        self.unanswered -= 1;
        if is_full {
            self.keep_credit();
        }
    }

    /// Takes a duplicate ACK after a timeout.
    pub(super) fn on_echo_after_timeout(&mut self) {
        self.unanswered -= 1;
    }

    /// Uses up one of the expected duplicates. Returns true if there was one.
    pub(super) fn take_credit(&mut self) -> bool {
        let had = self.credit > 0;
        self.credit -= had as u64;
        had
    }

    /// Voids the counts, because the timer has expired.
    pub(super) fn forget(&mut self) {
        (self.unanswered, self.credit, self.pending) = (0, 0, (0, 0));
    }

    fn keep_credit(&mut self) {
        let in_flight = self.unanswered.max(0) as u64;
        self.credit = if self.cells.guard == ReentryGuard::Credit { in_flight } else { 0 };
    }

    /// Begins a burst of `segments` at `snd_una`, limited to the data outstanding at the start of the phase.
    fn begin(&mut self, snd_una: u64, segments: u64, recover: u64) {
        self.last = (snd_una, self.boundaries.end_of(segments).min(recover));
        self.pending = self.last;
    }

    /// Starts the phase, because duplicate ACKs indicate a loss. The window does not change until the phase is over.
    pub(super) fn enter(&mut self, seq: &SequenceSpace, loss: Option<&LossReport>, duplicates: u32) {
        self.forget();
        (self.loss, self.outstanding) = (loss.copied(), self.boundaries.count());
        (self.arrived, self.length) = (duplicates as u64, None);
        self.begin(seq.snd_una, 1, seq.snd_max);
    }

    /// minei §5.3: "a dupACK is received for every packet the receiver receives" until the first partial ACK; "if a
    /// *duplicate* partial ACK arrives, the sender can deduce that there is another 'hole'". Returns whether the
    /// retransmission timer starts anew.
    pub(super) fn on_duplicate(&mut self, snd_una: u64, recover: u64) -> bool {
        let Some(length) = self.length else {
            self.arrived += 1;
            return false;
        };
        self.unanswered -= 1;
        if self.begun_here {
            return false;
        }
        if snd_una == self.base {
            self.repeats += 1;
            if self.repeats < self.cells.first_repeats {
                return false;
            }
        }
        if self.cells.in_burst_skip && self.last.0 < snd_una && snd_una < self.last.1 {
            return false;
        }
        self.begun_here = true;
        self.begin(snd_una, length, recover);
        true
    }

    /// minei §5.3: "number_of_dropped_packets = number_of_outstanding_packets - number_of_duplicate_acks [...] Since the
    /// first dropped packet has already been recovered, the number of packets still needed to be retransmitted is
    /// N = number_of_dropped_packets - 1". Returns whether the retransmission timer starts anew.
    pub(super) fn on_partial_ack(&mut self, snd_una: u64, recover: u64) -> bool {
        self.unanswered -= 1;
        self.begun_here = false;
        if self.length.is_none() {
            let dropped = self.outstanding.saturating_sub(self.arrived);
            let length = dropped.saturating_sub(1).max(1);
            (self.length, self.base, self.repeats) = (Some(length), snd_una, 0);
            self.begin(snd_una, length, recover);
        }
        true
    }

    /// Ends the phase: everything that was outstanding has arrived. minei §5.3: "the only change that must be
    /// introduced to implement congestion-avoidance is to cut the window to half upon exiting the fast-retransmit
    /// phase". A fixed window stays as it is.
    pub(super) fn leave(&mut self, parts: Parts<'_>) {
        self.unanswered -= 1;
        self.keep_credit();
        self.pending = (0, 0);
        if let Some(loss) = self.loss.take() {
            parts.congestion.on_loss(&LossReport { peer_window: parts.seq.peer.now, ..loss });
        }
    }

    /// Chooses from the rest of the burst.
    pub(super) fn choose(&mut self, seq: &SequenceSpace, full: u16) -> Option<Span> {
        let (next, end) = self.pending;
        let next = next.max(seq.snd_una);
        if next >= end {
            return None;
        }
        let span = seq.span(next, end, full);
        self.pending.0 = span.end();
        Some(span)
    }
}
