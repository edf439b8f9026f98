//! The sending half: what an ACK means, and what to send next.
//!
//! `on_ack` is a one-way pipeline: scoreboard, new or duplicate ACK, round trip, recovery, window. `next` is pulled by
//! the connection until it has nothing more. All sequence numbers, SYN and FIN included, are one space from 0 on.

mod ack;
mod boundaries;
mod burst;
mod loss;
mod transmit;

use super::config::{Handshake, TcbSharing, TcpConfig, WindowUnit};
use super::connection::Abort;
use super::frto::{Frto, FrtoVerdict};
use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use super::segment::{FIRST_BYTE, Segment};
use super::variant::{BurstEstimate, Exit, PartialAckTimer, PipeForm, Recovery, ReentryGuard, TimeoutRepair, Variant};
use super::window::CongestionWindow;
use crate::machine::Context;
use crate::probe::{Event, Probe};
use crate::units::{Duration, Time};
use burst::Burst;

/// What sequence numbers go out in one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) seq: u64,
    /// Bytes of payload.
    pub(super) len: u16,
    pub(super) syn: bool,
    pub(super) fin: bool,
    pub(super) push: bool,
    pub(super) retransmission: bool,
}

/// Where the sender stands with its losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No loss known.
    Open,
    /// Fast recovery.
    Recovery,
    /// After a timeout, or Tahoe's restart, until `recover` is acknowledged.
    Loss,
}

/// What connections to one host can tell the next one (RFC 9040).
#[derive(Clone, Debug, Default)]
pub struct TcbCache {
    ssthresh: Option<u64>,
    rtt: Option<RttEstimator>,
}

/// Counters of one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SenderCounters {
    pub(super) segments: u64,
    pub(super) retransmits: u64,
    pub(super) timeouts: u64,
    pub(super) fast_retransmits: u64,
    pub(super) spurious_timeouts: u64,
    pub(super) acks: u64,
    pub(super) duplicate_acks: u64,
    pub(super) max_flight: u64,
    pub(super) max_cwnd: u64,
    pub(super) max_burst: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Sender {
    variant: Variant,
    ns2: bool,
    ns2_inflate_always: bool,
    /// ns-2 makes no fast retransmit of the very first segment.
    ns2_needs_first_ack: bool,
    /// ns-2's SACK sender hears no duplicates between a timeout and the next new ACK.
    ns2_deaf: bool,
    unit: WindowUnit,
    mss: u16,
    nagle: bool,
    max_retries: u32,

    snd_una: u64,
    /// Next to send; goes back to `snd_una` at a timeout.
    snd_nxt: u64,
    /// One past the highest ever sent.
    snd_max: u64,
    snd_wnd: u64,
    max_wnd: u64,
    /// `seq` and `ack` of the segment that last updated the window (RFC 9293 §3.10.7.4).
    snd_wl1: u64,
    snd_wl2: u64,
    /// One past the last byte that the user has written.
    data_end: u64,
    fin: bool,
    /// Data may go out: the handshake is done.
    open: bool,

    window: CongestionWindow,
    scoreboard: Scoreboard,
    rtt: RttEstimator,
    frto: Frto,
    phase: Phase,
    dupacks: u32,
    /// Highest sequence number sent when the last loss was found; `None` before the first.
    recover: Option<u64>,
    /// ns-2's pipe in segments, and whether the first partial ACK has been.
    ns2_pipe: i64,
    first_partial: bool,
    /// Bytes sent by limited transmit since `snd_una` moved.
    limited_sent: u64,
    /// RFC 6675's rescue retransmission has been made up to here.
    rescue: Option<u64>,
    /// The segment chosen last is the rescue.
    rescuing: bool,
    /// What the burst-loss sender keeps, where the row has it.
    run: Option<Box<Burst>>,

    /// To be retransmitted next, whatever the window says.
    retransmit_now: Option<u64>,
    limited_allowed: bool,
    /// New segments that F-RTO sends to see whether the timeout was spurious, whatever the congestion window says.
    frto_new: u8,
    /// Segments that may still go out in answer to the present event.
    burst: u32,
    burst_sent: u32,

    /// The segment being timed: its end, and when it was sent (Karn: never one that was sent twice).
    timed: Option<(u64, Time)>,
    rto_at: Option<Time>,
    retries: u32,
    persist_at: Option<Time>,
    persist_backoff: u32,
    probe_now: bool,
    pub(super) counters: SenderCounters,
}

impl Sender {
    pub(in crate::tcp) fn new(config: &TcpConfig) -> Self {
        let handshake_free = config.shortcuts.handshake == Handshake::None;
        let start = if handshake_free { FIRST_BYTE } else { 0 };
        let mut window = CongestionWindow::new(config);
        if config.shortcuts.handshake == Handshake::OneWay && config.shortcuts.ns2_recovery {
            window.set_segments(1);
        }
        Sender {
            variant: config.variant,
            ns2: config.shortcuts.ns2_recovery,
            ns2_inflate_always: config.shortcuts.ns2_inflate_always,
            ns2_needs_first_ack: config.shortcuts.ns2_recovery && handshake_free,
            ns2_deaf: false,
            unit: config.shortcuts.window_unit,
            mss: config.mss,
            nagle: config.nagle,
            max_retries: config.rto.max_retries,
            snd_una: start,
            snd_nxt: start,
            snd_max: start,
            snd_wnd: if handshake_free { u64::MAX >> 1 } else { 0 },
            max_wnd: 0,
            snd_wl1: 0,
            snd_wl2: 0,
            data_end: FIRST_BYTE,
            fin: false,
            open: handshake_free,
            window,
            scoreboard: Scoreboard::default(),
            rtt: RttEstimator::new(config.rto),
            frto: Frto::new(config.variant.frto),
            phase: Phase::Open,
            dupacks: 0,
            recover: None,
            ns2_pipe: 0,
            first_partial: false,
            limited_sent: 0,
            rescue: None,
            rescuing: false,
            run: Burst::of(config.variant.recovery),
            retransmit_now: None,
            limited_allowed: false,
            frto_new: 0,
            burst: u32::MAX,
            burst_sent: 0,
            timed: None,
            rto_at: None,
            retries: 0,
            persist_at: None,
            persist_backoff: 0,
            probe_now: false,
            counters: SenderCounters::default(),
        }
    }

    #[inline(always)]
    pub(in crate::tcp) fn snd_una(&self) -> u64 {
        self.snd_una
    }

    #[inline(always)]
    pub(in crate::tcp) fn snd_nxt(&self) -> u64 {
        self.snd_nxt
    }

    #[inline(always)]
    pub(in crate::tcp) fn snd_max(&self) -> u64 {
        self.snd_max
    }

    pub(in crate::tcp) fn cwnd(&self) -> u64 {
        self.window.cwnd()
    }

    pub(in crate::tcp) fn ssthresh(&self) -> u64 {
        self.window.ssthresh()
    }

    pub(in crate::tcp) fn srtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    /// Bytes written and acknowledged.
    pub(in crate::tcp) fn acknowledged(&self) -> u64 {
        self.snd_una.clamp(FIRST_BYTE, self.data_end) - FIRST_BYTE
    }

    pub(in crate::tcp) fn written(&self) -> u64 {
        self.data_end - FIRST_BYTE
    }

    pub(in crate::tcp) fn fin_acknowledged(&self) -> bool {
        self.fin && self.snd_una > self.data_end
    }

    /// SND.UNA - MAX.SND.WND (RFC 5961 §5.2).
    pub(in crate::tcp) fn oldest_acceptable_ack(&self) -> u64 {
        self.snd_una.saturating_sub(self.max_wnd)
    }

    /// The sequence number of a segment without data: SND.NXT, but what the peer expects while its window is shut, since
    /// a probe lies beyond that window, and no segment that starts there is acceptable (RFC 9293 §3.10.7.4).
    pub(in crate::tcp) fn seq_of_bare_ack(&self) -> u64 {
        if self.snd_wnd == 0 { self.snd_una.max(FIRST_BYTE) } else { self.snd_max }
    }

    /// Whether the user has closed: a FIN follows the data.
    pub(in crate::tcp) fn is_closed(&self) -> bool {
        self.fin
    }

    pub(in crate::tcp) fn mss(&self) -> u16 {
        self.mss
    }

    fn flight(&self) -> u64 {
        self.snd_max - self.snd_una
    }

    /// One past everything there is to send, a FIN included.
    fn end(&self) -> u64 {
        self.data_end + self.fin as u64
    }

    /// What the windows of both sides allow, as a right edge.
    #[inline(always)]
    fn right_edge(&self, allowed: u64) -> u64 {
        self.snd_una + allowed.min(self.snd_wnd)
    }

    pub(in crate::tcp) fn write(&mut self, bytes: u64) {
        self.data_end += bytes;
        self.new_event();
    }

    pub(in crate::tcp) fn close(&mut self) {
        self.fin = true;
        self.new_event();
    }

    /// The handshake is done: data may go out. `syn_lost` starts with one segment (RFC 5681 §3.1).
    /// Without SACK from the peer a row that repairs by it falls back to NewReno.
    pub(in crate::tcp) fn established(&mut self, mss: u16, initial_window: u32, sack: bool) {
        if !sack && matches!(self.variant.recovery, Recovery::Pipe(_)) {
            self.variant.recovery =
                Recovery::Inflate { exit: Exit::Recover, deflate: true, timer: PartialAckTimer::Impatient };
        }
        if mss != self.mss {
            self.mss = mss;
            self.window.set_mss(mss);
        }
        let syn_lost = self.counters.timeouts > 0;
        self.window.set_segments(if syn_lost { 1 } else { initial_window });
        if syn_lost && !self.ns2 {
            self.rtt.after_lost_syn();
        }
        self.open = true;
        self.phase = Phase::Open;
        self.recover = None;
        self.new_event();
    }

    /// The peer's SYN has told its MSS; data cannot go out yet.
    pub(in crate::tcp) fn set_peer_mss(&mut self, mss: u16) {
        self.mss = mss;
        self.window.set_mss(mss);
    }

    /// This end sends no SYN: the opening is one-way.
    pub(in crate::tcp) fn skip_syn(&mut self) {
        (self.snd_una, self.snd_nxt, self.snd_max) = (FIRST_BYTE, FIRST_BYTE, FIRST_BYTE);
    }

    /// The SYN goes out once more: it crossed the peer's.
    pub(in crate::tcp) fn resend_syn(&mut self) {
        self.snd_nxt = 0;
    }

    pub(in crate::tcp) fn inherit(&mut self, cache: &TcbCache, sharing: TcbSharing) {
        if sharing == TcbSharing::Off {
            return;
        }
        if let Some(ssthresh) = cache.ssthresh {
            self.window.set_ssthresh(ssthresh);
        }
        if let (TcbSharing::SsthreshAndRtt, Some(rtt)) = (sharing, &cache.rtt) {
            self.rtt.inherit(rtt);
        }
    }

    /// Leaves what the next connection to the same host may use (RFC 9040 §4). A threshold is known after a loss only.
    pub(in crate::tcp) fn bequeath(&self, cache: &mut TcbCache) {
        if self.window.ssthresh() != u64::MAX {
            cache.ssthresh = Some(self.window.ssthresh());
        }
        cache.rtt = Some(self.rtt.clone());
    }

    /// A new event: its burst begins.
    #[inline(always)]
    fn new_event(&mut self) {
        self.burst = self.variant.max_burst.unwrap_or(u32::MAX);
        self.burst_sent = 0;
    }

    /// Invariants that hold between events.
    pub(in crate::tcp) fn check(&self) {
        debug_assert!(self.window.is_sound());
        debug_assert!(self.snd_una <= self.snd_nxt && self.snd_nxt <= self.snd_max.max(self.snd_nxt));
        debug_assert!(self.snd_max <= self.end().max(FIRST_BYTE));
    }
}
