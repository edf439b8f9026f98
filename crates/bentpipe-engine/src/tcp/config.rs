//! The settings of one end of a connection.

use super::variant::{AckPolicy, Variant};
use crate::rtt::RtoConfig;
use crate::units::Duration;

/// In what windows are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowUnit {
    /// Bytes, as RFC 5681 has it.
    Bytes,
    /// Whole segments: a window of 2.9 segments lets 2 out (ns-2, and most simulation papers).
    Segments,
}

/// How a connection is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// The three segments of RFC 9293 §3.5.
    ThreeWay,
    /// A SYN and its ACK, the other direction takes no part: ns-2's one-way agents.
    OneWay,
    /// None; both ends are established when they are opened.
    None,
}

/// From what the window is halved at a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SsthreshBase {
    /// What is outstanding (RFC 5681 equation 4).
    FlightSize,
    /// The sender's window, inflation included, as in ns-2.
    Window,
    /// The sender's window, rounded down to a whole segment: ns-2 before 2006.
    #[cfg(feature = "ns2")]
    WholeWindow,
    /// 4.3BSD: the window in force, which is the lesser of the sender's (inflation included) and the peer's. The half is
    /// rounded down to whole segments, and a repeated timeout of one segment halves again (Stevens, TCP/IP Illustrated,
    /// volume 2, §25.11 and §29.4).
    InForce,
}

/// Departures from the RFCs that the papers' simulators had. All off by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortcuts {
    /// Unit of the windows.
    pub window_unit: WindowUnit,
    /// Opening of the connection.
    pub handshake: Handshake,
    /// Base of the halving.
    pub ssthresh_base: SsthreshBase,
    /// 4.3BSD Reno: congestion avoidance adds an eighth of a segment per ACK besides SMSS*SMSS/cwnd, so that large windows
    /// grow many segments per round trip. A known fault (RFC 2525 §2.6) that its descendants had for years.
    pub bsd_additive_constant: bool,
    /// ns-2: what the sender does at the edges of recovery, where it departs from RFC 5681, 6582 and 6675 (see
    /// `docs/specs/ns2.md`): the window grows by the ACK that ends a recovery, at most two new segments per ACK within
    /// NewReno's, no more than the first loss before the first ACK, no fresh scoreboard after a timeout.
    #[cfg(feature = "ns2")]
    pub ns2_recovery: bool,
    /// ns-2 before July 2003 (`exitFastRetrans_ 0`): the third duplicate ACK inflates the window also where no fast
    /// retransmit is allowed.
    #[cfg(feature = "ns2")]
    pub ns2_inflate_always: bool,
    /// Segment lengths as ns-2 counts them: a SACK block costs 8 bytes with no padding, the options of a SYN nothing.
    #[cfg(feature = "ns2")]
    pub ns2_lengths: bool,
    /// ns-2 before 2010 (`SYN_immediate_ack_ 0`): a one-way SYN is acknowledged as late as a segment of data.
    #[cfg(feature = "ns2")]
    pub ns2_delayed_syn_ack: bool,
    /// ns-2 counts the very first segment of a transfer without SYN at its payload length alone.
    #[cfg(feature = "ns2")]
    pub ns2_bare_first_segment: bool,
}

impl Shortcuts {
    /// None: wire-true TCP.
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

    /// What ns-2 2.35 does.
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

/// What a connection takes over from earlier ones to the same host (RFC 9040).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcbSharing {
    /// Nothing.
    Off,
    /// The slow start threshold.
    Ssthresh,
    /// The slow start threshold and the round-trip estimate.
    SsthreshAndRtt,
}

/// The settings of one end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpConfig {
    /// Most bytes of payload in a segment that we send and that we ask for.
    pub mss: u16,
    /// The MSS taken for that of a peer whose SYN does not say one: 536 over IPv4, 1220 over IPv6 (RFC 9293 §3.7.1).
    pub assumed_mss: u16,
    /// The row of the table.
    pub variant: Variant,
    /// When we acknowledge.
    pub ack: AckPolicy,
    /// Retransmission timer.
    pub rto: RtoConfig,
    /// Receive buffer in bytes; with `window_scaling` off at most 65535 are offered.
    pub receive_buffer: u32,
    /// Offer window scaling (RFC 7323 §2).
    pub window_scaling: bool,
    /// Offer timestamps (RFC 7323 §3).
    pub timestamps: bool,
    /// Most SACK blocks in a segment that we send: RFC 2018 gives room for 4, with timestamps 3.
    pub sack_blocks: u8,
    /// Report duplicates (RFC 2883).
    pub dsack: bool,
    /// Clamp of the sender's window in segments, whatever the peer offers.
    pub window_clamp: Option<u32>,
    /// First slow start threshold in segments; `None`: as high as it goes (RFC 5681 §3.1).
    pub initial_ssthresh: Option<u32>,
    /// Hold small segments while data is outstanding (RFC 9293 §3.7.4).
    pub nagle: bool,
    /// Begin again with the initial window after a pause longer than the retransmission timeout (RFC 5681 §4.1).
    pub restart_after_idle: bool,
    /// Wait in TIME-WAIT: twice the maximum segment lifetime.
    pub time_wait: Duration,
    /// Sharing with earlier connections.
    pub tcb_sharing: TcbSharing,
    /// Departures.
    pub shortcuts: Shortcuts,
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
            window_scaling: true,
            timestamps: false,
            sack_blocks: 4,
            dsack: true,
            window_clamp: None,
            initial_ssthresh: None,
            nagle: false,
            restart_after_idle: true,
            time_wait: Duration::from_secs(60),
            tcb_sharing: TcbSharing::Off,
            shortcuts: Shortcuts::NONE,
        }
    }
}
