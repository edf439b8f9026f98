//! The sending half: what an ACK means, and what to send next.
//!
//! `on_ack` is a one-way pipeline: scoreboard, new or duplicate ACK, round trip, recovery, window. `next` is pulled by
//! the connection until it has nothing more. All sequence numbers, SYN and FIN included, are one space from 0 on.

mod ack;
mod boundaries;
mod burst;
mod half;
mod loss;
mod transmit;

use super::abort::Abort;
use super::config::{Handshake, TcbSharing, TcpConfig, WindowUnit};
use super::frto::{Frto, FrtoVerdict};
use super::scoreboard::Scoreboard;
use super::segment::{FIRST_BYTE, Segment};
use super::sending::sealed::Sequenced;
use super::sending::{Protocol, SenderCounters, SendingHalf};
use super::sequence::SequenceSpace;
use super::span::Span;
use super::variant::{BurstEstimate, Exit, PartialAckTimer, PipeForm, Recovery, ReentryGuard, TimeoutRepair, Variant};
use super::window::CongestionWindow;
use crate::machine::Context;
use crate::probe::{Event, Probe};
use crate::rtt::RttEstimator;
use crate::units::{Duration, Time};
use burst::Burst;

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

/// The sender of a TCP connection.
#[derive(Clone, Debug)]
pub struct Sender {
    variant: Variant,
    ns2: bool,
    ns2_inflate_always: bool,
    /// ns-2 makes no fast retransmit of the very first segment.
    ns2_needs_first_ack: bool,
    /// ns-2's SACK sender hears no duplicates between a timeout and the next new ACK.
    ns2_deaf: bool,
    unit: WindowUnit,
    mss: u16,
    /// Bytes of a full segment that options other than timestamps take now.
    reserved: u16,
    nagle: bool,
    restart_after_idle: bool,
    max_retries: u32,

    seq: SequenceSpace,
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

    /// When a segment went out last, probes of a closed window apart.
    last_sent: Time,
    /// The segment being timed: its end, and when it was sent (Karn: never one that was sent twice).
    timed: Option<(u64, Time)>,
    rto_at: Option<Time>,
    retries: u32,
    persist_at: Option<Time>,
    persist_backoff: u32,
    probe_now: bool,
    counters: SenderCounters,
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
            reserved: 0,
            nagle: config.nagle,
            restart_after_idle: config.restart_after_idle,
            max_retries: config.rto.max_retries,
            seq: SequenceSpace::new(start, if handshake_free { u64::MAX >> 1 } else { 0 }),
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
            last_sent: Time::ZERO,
            timed: None,
            rto_at: None,
            retries: 0,
            persist_at: None,
            persist_backoff: 0,
            probe_now: false,
            counters: SenderCounters::default(),
        }
    }

    /// Bytes of payload in a full segment with the options that it would carry now.
    #[inline(always)]
    fn full(&self) -> u16 {
        self.mss - self.reserved
    }

    pub(in crate::tcp) fn set_nagle(&mut self, on: bool) {
        self.nagle = on;
        self.new_event();
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
}
