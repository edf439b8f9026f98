//! TCP's sender: joins loss detection, recovery, congestion control and the timers.
//!
//! An ACK passes through the parts in one direction: `loss` detects losses, `recovery` decides what to repair, and
//! `congestion` sets the window. The connection then pulls segments out of [`Half::next`](super::sending::Half::next)
//! until there are no more. `ack.rs` handles ACKs, `loss.rs` losses and timeouts, and `transmit.rs` the choice of
//! segments, with the most frequent cases in `ordinary.rs`. `by_time.rs` adds RFC 8985, `marks.rs` RFC 3168, and `offload.rs`
//! packets of several segments.

mod ack;
mod by_rate;
mod by_time;
mod finished;
mod half;
mod loss;
mod marks;
mod offload;
mod ordinary;
mod transmit;

pub(in crate::tcp) use self::finished::Finished;

use alloc::boxed::Box;

use super::config::{Handshake, Resume, TcbSharing, TcpConfig};
use super::congestion::{Congestion, Unused};
use super::departures::{Departs, Departures};
use super::ecn::EcnResponse;
use super::loss::frto::Frto;
use super::loss::tlp::TailProbe;
use super::loss::undo::Undo;
use super::loss::{Detector, Outstanding};
use super::offload::Offload;
use super::pacing::Pacer;
use super::persist::Persist;
use super::recovery::{LossRecovery, Parts, Phase};
use super::segment::FIRST_BYTE;
use super::send_buffer::SendBuffer;
use super::sending::SenderCounters;
use super::sequence::SequenceSpace;
use super::sharing::{Metrics, TcbCache};
use super::timer::RetransmissionTimer;
use super::variant::{Growth, TimeoutWindow};
use crate::rtt::RtoTiming;
use crate::units::{Duration, Time};

/// Linux's `tcp_max_reordering`.
const MAX_REORDERING: u64 = 300;

/// The sender of a TCP connection. What each segment and ACK touches is in the lines of the cache before the rest.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender {
    seq: SequenceSpace,
    /// When the last segment was sent, except probes of a closed window.
    last_sent: Time,
    mss: u16,
    /// Bytes of a full segment that options other than timestamps use at present.
    reserved: u16,
    nagle: bool,
    restart_after_idle: bool,
    idle_decay: bool,
    /// The window grows by what an ACK delivers, in order or not.
    counts_delivered: bool,
    /// Nothing is sent again in answer to the current event: the recovery is needless, as it seems.
    defers_repair: bool,
    /// True if data may be sent: the handshake is done.
    is_open: bool,
    timeout_window: TimeoutWindow,
    /// How many losses of the SYN leave the initial window unchanged.
    syn_losses: u8,
    /// The round trip in microseconds that earlier connections to the host have measured (Linux); 0 if not known.
    expected_rtt: u32,
    /// If the host leaves the division into segments to its network card.
    offload: Option<Box<Offload>>,
    /// Initial window in segments.
    initial_window: u32,
    max_burst: u32,
    /// Segments that may still be sent in response to the current event, and the number already sent.
    burst: u32,
    burst_sent: u32,
    persist: Persist,
    counters: SenderCounters,
    timer: RetransmissionTimer,
    congestion: Congestion,
    loss: Detector,
    recovery: LossRecovery,
    tail: TailProbe,
    undo: Undo,
    ecn: EcnResponse,
    departures: Departures,
    /// The handshake is done, and none of the parts that few senders have takes part in an ordinary ACK: see
    /// [`Self::take_simple_ack`].
    is_simple: bool,
    frto: Frto,
    pacer: Pacer,
    /// Tracks whether the window is used, if an unused window decays. Few connections need it.
    unused: Option<Box<Unused>>,
    /// Limits what the program may write, if there is a limit.
    send_buffer: Option<Box<SendBuffer>>,
}

impl Sender {
    pub(in crate::tcp) fn new(config: &TcpConfig) -> Self {
        let variant = &config.variant;
        let handshake_free = config.shortcuts.handshake == Handshake::None;
        let (start, peer) = if handshake_free { (FIRST_BYTE, u64::MAX >> 1) } else { (0, 0) };
        let departures = Departures::of(config);
        let mut congestion = Congestion::new(config, departures.grows_unused());
        if let Some(segments) = departures.window_before_handshake() {
            congestion.restart(segments);
        }
        let paces_singly = congestion.properties().paces && variant.pacing.quantum == Duration::ZERO;
        let mut loss = Detector::new(variant.recovery, variant.dup_thresh);
        if let Some(rack) = loss.scoreboard.rack() {
            rack.wait_longer(variant.rack_slack);
            rack.reorder_by(variant.rack_reordering);
            rack.set_full(config.mss);
            if let Some(window) = variant.min_rtt_window {
                rack.forget_round_trips_after(window);
            }
            if config.rto.timing == RtoTiming::Segments || variant.timeout_window == TimeoutWindow::InFlight {
                rack.note_deliveries();
            }
            if congestion.properties().measures_rate {
                rack.measure_rate();
            }
        }
        Sender {
            seq: SequenceSpace::new(start, peer),
            mss: config.mss,
            reserved: 0,
            nagle: config.nagle,
            restart_after_idle: config.restart_after_idle,
            idle_decay: config.idle_decay,
            unused: (config.idle_decay && config.restart_after_idle && !congestion.properties().measures_rate)
                .then(Box::default),
            send_buffer: config.send_buffer.map(|max| Box::new(SendBuffer::new(config.first_send_buffer, max))),
            counts_delivered: variant.growth == Growth::All,
            defers_repair: false,
            is_open: handshake_free,
            pacer: Pacer::new(&variant.pacing, congestion.properties().sets_rate),
            congestion,
            timer: RetransmissionTimer::new(config.rto),
            persist: Persist::new(),
            offload: (variant.offload && !paces_singly).then(|| Box::new(Offload::new())),
            loss,
            recovery: LossRecovery::new(variant, config.shortcuts.ssthresh_base),
            frto: Frto::new(variant.frto),
            tail: TailProbe::new(variant.tail_probe, variant.rack_slack),
            undo: Undo::new(variant.undo),
            ecn: EcnResponse::default(),
            departures,
            is_simple: false,
            initial_window: variant.initial_window,
            syn_losses: config.syn_losses,
            expected_rtt: 0,
            timeout_window: variant.timeout_window,
            max_burst: variant.max_burst.unwrap_or(u32::MAX),
            burst: u32::MAX,
            burst_sent: 0,
            last_sent: Time::ZERO,
            counters: SenderCounters::default(),
        }
    }

    /// The recovery, and the parts of the sender that it works on.
    #[inline(always)]
    fn parts(&mut self) -> (&mut LossRecovery, Parts<'_>) {
        let parts = Parts {
            seq: &mut self.seq,
            congestion: &mut self.congestion,
            scoreboard: &mut self.loss.scoreboard,
            timer: &mut self.timer,
            departures: &self.departures,
            burst: &mut self.burst,
        };
        (&mut self.recovery, parts)
    }

    /// Payload bytes of a full segment with the current options.
    #[inline(always)]
    fn full(&self) -> u16 {
        self.mss - self.reserved
    }

    /// Starts the burst of an event.
    #[inline(always)]
    fn new_event(&mut self) {
        self.burst = self.max_burst;
        self.burst_sent = 0;
        self.defers_repair = false;
        if let Some(offload) = &mut self.offload {
            offload.on_event();
        }
        if let Some(buffer) = &mut self.send_buffer {
            buffer.on_event();
        }
    }

    /// True if a new event would change nothing: nothing has left or waited since the last one.
    fn is_at_start(&self) -> bool {
        self.burst == self.max_burst
            && self.burst_sent == 0
            && !self.defers_repair
            && self.offload.as_ref().is_none_or(|offload| offload.is_at_start())
            && self.send_buffer.as_ref().is_none_or(|buffer| buffer.is_at_start())
    }

    /// Makes RACK list all segments one by one.
    #[cfg(test)]
    pub(in crate::tcp) fn list_segments(&mut self) {
        if let Some(rack) = self.loss.scoreboard.rack() {
            rack.list_all();
        }
    }

    pub(in crate::tcp) fn phase(&self) -> Phase {
        self.recovery.phase()
    }

    pub(in crate::tcp) fn outstanding(&self) -> Outstanding {
        self.loss.scoreboard.outstanding(self.tail.resent())
    }

    pub(in crate::tcp) fn set_nagle(&mut self, on: bool) {
        self.nagle = on;
        self.new_event();
    }

    /// Handles a signal of the local stack that the path has changed.
    pub(in crate::tcp) fn on_path_changed(&mut self) {
        self.new_event();
        self.congestion.on_path_changed(self.seq.snd_max);
    }

    pub(in crate::tcp) fn inherit(&mut self, cache: &mut TcbCache, config: &TcpConfig, now: Time) {
        cache.inherit(config, now, &mut self.congestion, &mut self.timer.rtt);
        if config.tcb_sharing == TcbSharing::Linux {
            let Metrics { rtt, reordering } = *cache.metrics();
            let micros = rtt.map_or(0, |rtt| rtt.as_nanos() / 1000);
            self.expected_rtt = u32::try_from(micros).unwrap_or(u32::MAX);
            if let Some(rack) = self.loss.scoreboard.rack() {
                rack.expect_reordering(reordering);
            }
        }
    }

    pub(in crate::tcp) fn bequeath(&self, cache: &mut TcbCache, sharing: TcbSharing, now: Time) {
        if sharing == TcbSharing::Linux {
            return self.leave_metrics(cache.metrics());
        }
        // A window that was not filled says nothing of the path.
        let cwnd = self.congestion.window.cwnd().min(self.counters.max_flight);
        let path = self.loss.scoreboard.min_rtt().map(|min_rtt| Resume { cwnd, min_rtt });
        cache.keep(now, &self.congestion, &self.timer.rtt, path);
    }

    /// Linux's `tcp_update_metrics`: the amount of reordering counts where a loss has ended the first slow start, and the window is below
    /// the threshold or being repaired.
    fn leave_metrics(&self, metrics: &mut Metrics) {
        let window = &self.congestion.window;
        let has_lost = window.ssthresh() != u64::MAX;
        let counts = has_lost && (window.cwnd() < window.ssthresh() || self.phase() != Phase::Open);
        let late = if counts { self.loss.scoreboard.reordered().div_ceil(window.mss().max(1)) } else { 0 };
        let rtt = self.timer.rtt.srtt().filter(|_| !self.timer.rtt.is_backed_off());
        metrics.keep(rtt, late.min(MAX_REORDERING));
    }
}

#[cfg(test)]
mod tests;
