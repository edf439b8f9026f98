//! Recovery from a burst of losses without SACK: the sender of the `minei` paper, §5.3.
//!
//! The phase begins with the duplicate ACKs that mean loss and ends when all that was outstanding is acknowledged.
//! Every segment of the old window that arrives returns a duplicate ACK, so at the first partial ACK the sender knows
//! how many did not. It takes them for one run and sends as many at once; each later hole shows by a duplicate partial
//! ACK and costs another burst of the same length. The window neither slides nor is inflated meanwhile.
//!
//! The paper counts packets. Here sequence numbers are bytes, and what was sent in how many segments is kept in
//! `boundaries`; a burst covers the bytes of so many segments, in full segments where the first ones were short.
//! Readings and departures: `docs/specs/minei.md`.

use super::boundaries::Boundaries;
use super::*;

/// What the sender keeps besides.
#[derive(Clone, Debug)]
pub(super) struct Burst {
    cells: BurstEstimate,
    pub(super) boundaries: Boundaries,
    /// Bytes and segments outstanding when the phase began.
    flight: u64,
    outstanding: u64,
    /// Segments of the old window that have arrived since the loss.
    arrived: u64,
    /// Segments of a burst, fixed by the first partial ACK.
    length: Option<u64>,
    /// The first partial ACK, and how often it has come again.
    base: u64,
    repeats: u32,
    /// `snd_una` has had its burst.
    begun_here: bool,
    /// The burst sent last.
    last: (u64, u64),
    /// What of it is still to go out.
    pending: (u64, u64),
    /// Retransmissions less ACKs that they may have caused: on a path that keeps the order each causes one.
    unanswered: i64,
    /// Duplicate ACKs to come that are echoes of retransmissions.
    credit: u64,
}

impl Burst {
    pub(super) fn of(recovery: Recovery) -> Option<Box<Burst>> {
        let Recovery::BurstEstimate(cells) = recovery else { return None };
        Some(Box::new(Burst {
            cells,
            boundaries: Boundaries::default(),
            flight: 0,
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
        }))
    }

    /// A segment up to `end` goes out; `snd_max` as it was before.
    pub(super) fn sent(&mut self, snd_max: u64, end: u64, retransmission: bool) {
        self.unanswered += retransmission as i64;
        if end > snd_max {
            self.boundaries.sent(snd_max, end);
        }
    }

    /// An ACK of new data after a timeout; `full` where nothing of what was sent again is left.
    pub(super) fn answered(&mut self, full: bool) {
        self.unanswered -= 1;
        if full {
            self.keep_credit();
        }
    }

    /// The timer has run out: what was counted is void.
    pub(super) fn forget(&mut self) {
        (self.unanswered, self.credit, self.pending) = (0, 0, (0, 0));
    }

    fn keep_credit(&mut self) {
        let in_flight = self.unanswered.max(0) as u64;
        self.credit = if self.cells.guard == ReentryGuard::Credit { in_flight } else { 0 };
    }

    /// From here on so many segments, none that was not outstanding when the phase began.
    fn begin(&mut self, snd_una: u64, segments: u64, recover: u64) {
        self.last = (snd_una, self.boundaries.end_of(segments).min(recover));
        self.pending = self.last;
    }
}

impl Sender {
    /// Duplicate ACKs mean a loss.
    pub(super) fn begin_phase(&mut self, flight: u64) {
        self.phase = Phase::Recovery;
        let (snd_una, recover, dupacks) = (self.seq.snd_una, self.seq.snd_max, self.dupacks);
        let Some(run) = &mut self.run else { return };
        run.forget();
        (run.flight, run.outstanding) = (flight, run.boundaries.count());
        (run.arrived, run.length) = (dupacks as u64, None);
        run.begin(snd_una, 1, recover);
    }

    /// Whether a duplicate ACK outside a phase is the echo of a retransmission.
    pub(super) fn is_echo(&mut self) -> bool {
        let after_phase = self.recover == Some(self.seq.snd_una);
        let Some(run) = &mut self.run else { return false };
        match self.phase {
            // Everything is being sent again: what was there already comes back as duplicates (RFC 6582 §3.2 step 2).
            Phase::Loss => {
                run.unanswered -= 1;
                self.variant.timeout_repair == TimeoutRepair::GoBack
            }
            _ if after_phase && run.credit > 0 => {
                run.credit -= 1;
                true
            }
            _ => false,
        }
    }

    /// minei §5.3: "a dupACK is received for every packet the receiver receives" until the first partial ACK; "if a
    /// *duplicate* partial ACK arrives, the sender can deduce that there is another 'hole'".
    pub(super) fn on_duplicate_in_phase(&mut self, now: Time) {
        let (snd_una, recover) = (self.seq.snd_una, self.recover.unwrap_or(self.seq.snd_max));
        let Some(run) = &mut self.run else { return };
        let Some(length) = run.length else {
            run.arrived += 1;
            return;
        };
        run.unanswered -= 1;
        if run.begun_here {
            return;
        }
        if snd_una == run.base {
            run.repeats += 1;
            if run.repeats < run.cells.first_repeats {
                return;
            }
        }
        if run.cells.in_burst_skip && run.last.0 < snd_una && snd_una < run.last.1 {
            return;
        }
        run.begun_here = true;
        run.begin(snd_una, length, recover);
        self.restart_timer(now);
    }

    /// minei §5.3: "number_of_dropped_packets = number_of_outstanding_packets - number_of_duplicate_acks [...] Since the
    /// first dropped packet has already been recovered, the number of packets still needed to be retransmitted is
    /// N = number_of_dropped_packets - 1"
    pub(super) fn on_ack_in_phase<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        ack: u64,
        sample: Option<Duration>,
        full: bool,
    ) {
        if full {
            return self.end_phase(cx, ack, sample);
        }
        let recover = self.recover.unwrap_or(self.seq.snd_max);
        self.advance_to(ack);
        self.restart_timer(cx.now);
        let Some(run) = &mut self.run else { return };
        run.unanswered -= 1;
        run.begun_here = false;
        if run.length.is_none() {
            let dropped = run.outstanding.saturating_sub(run.arrived);
            let length = dropped.saturating_sub(1).max(1);
            (run.length, run.base, run.repeats) = (Some(length), ack, 0);
            run.begin(ack, length, recover);
        }
    }

    /// All that was outstanding is there. minei §5.3: "the only change that must be introduced to implement
    /// congestion-avoidance is to cut the window to half upon exiting the fast-retransmit phase"; a fixed window stays.
    fn end_phase<P: Probe>(&mut self, cx: &mut Context<'_, P>, ack: u64, sample: Option<Duration>) {
        if let Some(run) = &mut self.run {
            run.unanswered -= 1;
            run.keep_credit();
            run.pending = (0, 0);
            self.window.on_fast_retransmit(run.flight, self.seq.peer.now);
        }
        self.phase = Phase::Open;
        self.advance(cx, ack, sample);
        cx.emit(|| Event::RecoveryLeft);
    }

    /// The rest of the burst.
    pub(super) fn choose_from_run(&mut self) -> Option<Span> {
        let (next, end) = self.run.as_ref()?.pending;
        let next = next.max(self.seq.snd_una);
        if next >= end {
            return None;
        }
        let span = self.span(next, end);
        self.run.as_mut()?.pending.0 = next + span.len as u64 + span.syn as u64 + span.fin as u64;
        Some(span)
    }
}
