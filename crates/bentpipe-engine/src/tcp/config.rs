//! The settings of one end of a connection.

use super::ecn::{EcnOption, EcnUse};
use super::variant::{AckPolicy, Variant};
use crate::rtt::RtoConfig;
use crate::units::Duration;

/// The unit in which windows are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowUnit {
    /// Bytes, as in RFC 5681.
    Bytes,
    /// Whole segments: a window of 2.9 segments allows 2 (ns-2, and most simulation papers).
    Segments,
}

/// How a connection opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// The three segments of RFC 9293 §3.5.
    ThreeWay,
    /// A SYN and its ACK, without the other direction: ns-2's one-way agents.
    OneWay,
    /// No handshake: each end is established as soon as it is opened.
    None,
}

/// The quantity that is halved on a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SsthreshBase {
    /// The bytes outstanding (RFC 5681, equation 4).
    FlightSize,
    /// The sender's window with inflation, as in ns-2.
    Window,
    /// The sender's window, rounded down to a whole segment: ns-2 before 2006.
    #[cfg(feature = "ns2")]
    WholeWindow,
    /// 4.3BSD: the minimum of the sender's window (with inflation) and the peer's. Half of it is rounded down to whole
    /// segments. A repeated timeout of the same segment halves it again (Stevens, TCP/IP Illustrated, volume 2, §25.11
    /// and §29.4).
    InForce,
}

/// Ways in which the papers' simulators depart from the RFCs. All are off by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortcuts {
    /// Unit of the windows.
    pub window_unit: WindowUnit,
    /// Opening of the connection.
    pub handshake: Handshake,
    /// The quantity that is halved on a loss.
    pub ssthresh_base: SsthreshBase,
    /// 4.3BSD Reno: congestion avoidance adds an eighth of a segment per ACK on top of SMSS*SMSS/cwnd, so large windows
    /// grow by many segments per round trip. This is a known fault (RFC 2525 §2.6) that 4.3BSD's descendants kept for
    /// years.
    pub bsd_additive_constant: bool,
    /// ns-2's behaviour at the edges of recovery, where it departs from RFC 5681, 6582 and 6675 (`docs/specs/ns2.md`).
    /// The ACK that ends a recovery opens the window. NewReno sends at most two segments per ACK during recovery. The
    /// first segment gets no fast retransmit. An ACK of new data outside recovery clears the scoreboard.
    #[cfg(feature = "ns2")]
    pub ns2_recovery: bool,
    /// ns-2 before July 2003 (`exitFastRetrans_ 0`): the third duplicate ACK inflates the window even if no fast
    /// retransmit is allowed.
    #[cfg(feature = "ns2")]
    pub ns2_inflate_always: bool,
    /// Segment lengths as in ns-2: a SACK block costs 8 bytes without padding, and the options of a SYN cost nothing.
    #[cfg(feature = "ns2")]
    pub ns2_lengths: bool,
    /// ns-2 before 2010 (`SYN_immediate_ack_ 0`): the ACK of a one-way SYN is delayed like an ACK of data.
    #[cfg(feature = "ns2")]
    pub ns2_delayed_syn_ack: bool,
    /// ns-2: without a SYN, only the payload of the first segment occupies the line.
    #[cfg(feature = "ns2")]
    pub ns2_bare_first_segment: bool,
}

impl Shortcuts {
    /// No departures.
    pub const NONE: Shortcuts = Shortcuts {
        window_unit: WindowUnit::Bytes,
        handshake: Handshake::ThreeWay,
        ssthresh_base: SsthreshBase::FlightSize,
        bsd_additive_constant: false,
        #[cfg(feature = "ns2")]
        ns2_recovery: false,
        #[cfg(feature = "ns2")]
        ns2_inflate_always: false,
        #[cfg(feature = "ns2")]
        ns2_lengths: false,
        #[cfg(feature = "ns2")]
        ns2_delayed_syn_ack: false,
        #[cfg(feature = "ns2")]
        ns2_bare_first_segment: false,
    };

    /// The departures of ns-2 2.35.
    #[cfg(feature = "ns2")]
    pub const NS2: Shortcuts = Shortcuts {
        window_unit: WindowUnit::Segments,
        handshake: Handshake::OneWay,
        ssthresh_base: SsthreshBase::Window,
        bsd_additive_constant: false,
        ns2_recovery: true,
        ns2_inflate_always: false,
        ns2_lengths: true,
        ns2_delayed_syn_ack: false,
        ns2_bare_first_segment: true,
    };
}

/// The state that a connection inherits from earlier ones to the same host (RFC 9040).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcbSharing {
    /// Nothing.
    Off,
    /// The slow start threshold.
    Ssthresh,
    /// The slow start threshold and the round-trip estimate.
    SsthreshAndRtt,
    /// The window and the minimum round trip, for careful resume (RFC 9959). [`TcpConfig::resume`] overrides them.
    /// Needs RACK.
    Resume,
    /// What Linux remembers of a destination (tcp_metrics.c): the round trip, for the first timeout, and the amount of reordering.
    Linux,
}

/// What an earlier connection measured about the path (RFC 9959).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The congestion window that it used, bytes.
    pub cwnd: u64,
    /// The minimum round trip.
    pub min_rtt: Duration,
}

/// The MSS assumed over IPv6 for a peer whose SYN has no MSS option (RFC 9293 §3.7.1).
pub const ASSUMED_MSS_IPV6: u16 = 1220;

/// The minimum MSS of a peer: every host accepts datagrams of 68 bytes (RFC 791 §3.2), including 40 bytes of headers.
const MIN_MSS: u16 = 28;

/// The settings of one end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpConfig {
    /// Max payload of a segment in bytes, in both directions.
    pub mss: u16,
    /// The MSS assumed for a peer whose SYN has no MSS option: 536 over IPv4, [`ASSUMED_MSS_IPV6`] over IPv6.
    pub assumed_mss: u16,
    /// The row of the table of variants.
    pub variant: Variant,
    /// When the receiver acknowledges.
    pub ack: AckPolicy,
    /// Retransmission timer.
    pub rto: RtoConfig,
    /// Receive buffer in bytes. Without `window_scaling`, the advertised window is at most 65535.
    pub receive_buffer: u32,
    /// The first window offered, in bytes. It grows to `receive_buffer` as data arrives (`receiver/tuning.rs`). `None`:
    /// the whole buffer is offered from the start.
    pub first_window: Option<u32>,
    /// With `first_window`: the offered window starts at 64 kB and grows by twice the data that arrives, up to the free
    /// room. An ACK that announces a larger window is not delayed (Linux). Off: all of the free room is offered.
    pub window_follows: bool,
    /// Data beyond a gap takes room from the window, so the window's right edge stays in place while a gap is open
    /// (Linux). Off: only data that the program could read takes room, since the window already has room for everything
    /// that it allows to be sent.
    pub gaps_take_room: bool,
    /// Offer window scaling (RFC 7323 §2).
    pub window_scaling: bool,
    /// Offer timestamps (RFC 7323 §3).
    pub timestamps: bool,
    /// A segment that repeats data, and ends with the data acknowledged last, has its timestamp echoed (Linux, `tcp_sequence`). Off: it is
    /// rejected before that (RFC 7323 §5.3 R2), so its ACK seems to answer the first transmission.
    pub echo_repetitions: bool,
    /// Maximum number of SACK blocks in a segment: RFC 2018 leaves room for 4, or 3 beside timestamps.
    pub sack_blocks: u8,
    /// Report duplicates (RFC 2883).
    pub dsack: bool,
    /// Upper bound of the sender's window in segments, whatever the peer offers.
    pub window_clamp: Option<u32>,
    /// Initial slow start threshold in segments; `None` for no bound (RFC 5681 §3.1).
    pub initial_ssthresh: Option<u32>,
    /// Explicit congestion notification (RFC 3168, RFC 9768).
    pub ecn: EcnUse,
    /// How many times a SYN that asks for ECN is retransmitted. Later retransmissions do not ask for it (RFC 3168
    /// §6.1.1.1).
    pub ecn_retries: u32,
    /// When accurate ECN sends its option (RFC 9768 §3.2.3).
    pub ecn_option: EcnOption,
    /// With accurate ECN, bare ACKs, retransmissions and probes are ECT, like data (Linux).
    pub ecn_control: bool,
    /// Reduce the window less on a mark than on a loss (RFC 8511).
    pub abe: bool,
    /// Maximum memory in bytes for data that is written and not yet acknowledged, counted as Linux does (tcp_wmem): each
    /// packet costs 832 bytes besides its data. It grows with the window while the program waits, which may write again
    /// once a third is free. `None`: no limit.
    pub send_buffer: Option<u64>,
    /// The size with which the send buffer begins (Linux's tcp_wmem, second value). It has room for two windows of ten segments at
    /// least.
    pub first_send_buffer: u64,
    /// Hold small segments while data is outstanding (RFC 9293 §3.7.4).
    pub nagle: bool,
    /// How many losses of the SYN or SYN-ACK leave the initial window unchanged. One more reduces it to one segment
    /// (RFC 5681 §3.1: 0; Linux: 1).
    pub syn_losses: u8,
    /// Return to the initial window after an idle time longer than the retransmission timeout (RFC 5681 §4.1).
    pub restart_after_idle: bool,
    /// With `restart_after_idle`: halve the window once per timeout that the idle time has lasted, and keep three
    /// quarters of the old window as `ssthresh` (RFC 2861 §3, Linux). Off: return to the initial window at once.
    pub idle_decay: bool,
    /// Time spent in TIME-WAIT: twice the maximum segment lifetime.
    pub time_wait: Duration,
    /// State taken over from earlier connections.
    pub tcb_sharing: TcbSharing,
    /// What is already known about the path, for careful resume (RFC 9959).
    pub resume: Option<Resume>,
    /// With [`TcbSharing::Resume`]: how long the measurement of an earlier connection may be used (RFC 9959 §4.3.1).
    pub resume_lifetime: Duration,
    /// Upper bound of the window to which careful resume jumps, bytes (max_jump of RFC 9959 §3.3). `None`: only half of
    /// the saved window bounds it.
    pub max_jump: Option<u64>,
    /// Departures from the RFCs.
    pub shortcuts: Shortcuts,
}

impl TcpConfig {
    /// True if the connection can talk to real hosts, because none of its settings is specific to a simulator.
    pub fn is_wire_true(&self) -> bool {
        #[cfg(feature = "ns2")]
        if self.variant.recovery == super::variant::Recovery::Pipe(super::variant::PipeForm::Ns2) {
            return false;
        }
        self.shortcuts == Shortcuts::NONE
    }

    /// The longest segment, without options, to a peer whose SYN has this MSS option.
    pub(crate) fn mss_to(&self, peer: Option<u16>) -> u16 {
        self.mss.min(peer.unwrap_or(self.assumed_mss).max(MIN_MSS))
    }
}

impl Default for TcpConfig {
    /// RFC 6675 SACK with all options, MSS 1460, and a window that fills 500 Mbit/s of GEO.
    fn default() -> Self {
        TcpConfig {
            mss: 1460,
            assumed_mss: 536,
            variant: Variant::named("sack").expect("a row of the table"),
            ack: AckPolicy::DELAYED,
            rto: RtoConfig::RFC6298,
            receive_buffer: 32 << 20,
            first_window: None,
            window_follows: false,
            gaps_take_room: false,
            window_scaling: true,
            timestamps: false,
            echo_repetitions: false,
            sack_blocks: 4,
            dsack: true,
            window_clamp: None,
            initial_ssthresh: None,
            ecn: EcnUse::Off,
            ecn_retries: 1,
            ecn_option: EcnOption::Changes,
            ecn_control: false,
            abe: false,
            send_buffer: None,
            first_send_buffer: 16_384,
            nagle: false,
            syn_losses: 0,
            restart_after_idle: true,
            idle_decay: false,
            time_wait: Duration::from_secs(60),
            tcb_sharing: TcbSharing::Off,
            resume: None,
            resume_lifetime: Duration::from_secs(600),
            max_jump: None,
            shortcuts: Shortcuts::NONE,
        }
    }
}
