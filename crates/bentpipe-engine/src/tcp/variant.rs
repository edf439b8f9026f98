//! The table of variants: a name, a description, and settings.
//!
//! Each part of the sender is built from its settings. A scenario may override any of them.

mod table;

pub use self::table::VARIANTS;

use super::pacing::Pacing;
use crate::units::Duration;

/// How a connection finds its first operating point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Startup {
    /// Slow start from the initial window (RFC 5681 §3.1).
    SlowStart,
    /// A fixed window from the first segment on, in segments: no slow start, no congestion avoidance.
    FixedWindow(u32),
}

/// Lists the congestion controls, one row each: the type in `congestion/`, where its state is kept (`Inline` in the
/// connection, or `Boxed` if it would make every connection larger), its word in scenarios, and its description in the
/// reference. Calls `$make` with the list.
macro_rules! congestion_controls {
    ($make:ident) => {
        $make! {
            /// Slow start, congestion avoidance and halving (RFC 5681 §3.1). [`Growth`] sets how fast the window grows.
            Reno(Inline<reno::Reno>) = "reno": "RFC 5681",
            /// A cubic function of the time since the last loss (RFC 9438).
            Cubic(Boxed<cubic::Cubic>) = "cubic": "RFC 9438",
            /// CUBIC in the form of Ha, Rhee and Xu (2008), as in Linux.
            CubicLinux(Boxed<cubic_linux::CubicLinux>) = "cubic-linux": "CUBIC as Linux computes it",
            /// BBR v1: paces at the measured rate of delivery (draft-cardwell-iccrg-bbr-congestion-control-00).
            Bbr(Boxed<bbr::Bbr>) = "bbr":
                "BBR v1 (draft-cardwell-iccrg-bbr-congestion-control-00), needs `recovery = \"rack\"`",
            /// BBRv3: losses limit the rate and the data in flight (draft-ietf-ccwg-bbr-06).
            Bbr3(Boxed<bbr3::Bbr3>) = "bbr3": "BBRv3 (draft-ietf-ccwg-bbr-06), needs `recovery = \"rack\"`",
            /// Vegas: keeps one to three segments in the queue (Brakmo and Peterson 1995).
            Vegas(Boxed<vegas::Vegas>) = "vegas": "Brakmo and Peterson 1995",
            /// Westwood+: after a loss, the window is the measured rate times the minimum round trip (Grieco and
            /// Mascolo 2004).
            Westwood(Boxed<westwood::Westwood>) = "westwood":
                "Westwood+, Grieco and Mascolo 2004, needs `recovery = \"rack\"`",
            /// Prague: reduces the window in proportion to the share of marked packets, for L4S
            /// (draft-briscoe-iccrg-prague-congestion-control-04).
            Prague(Boxed<prague::Prague>) = "prague": "draft-briscoe-iccrg-prague-congestion-control-04",
            /// Hybla: grows as a connection with a round trip of 25 ms would (Caini and Firrincieli 2004).
            Hybla(Inline<hybla::Hybla>) = "hybla": "Caini and Firrincieli 2004",
        }
    };
}

pub(in crate::tcp) use congestion_controls;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident($kept:ident<$control:ty>) = $word:literal: $summary:literal,)+) => {
        /// The congestion control after startup ([`Startup::SlowStart`]).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum CongestionControl {
            $($(#[$doc])* $name),+
        }

        impl CongestionControl {
            /// The word for each control.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The list of words and their meanings, for the reference.
            pub const MEANINGS: &'static str = concat!("Congestion control.", $(" \"", $word, "\": ", $summary, "."),+);

            /// The word for this control.
            pub const fn word(self) -> &'static str {
                match self { $(CongestionControl::$name => $word),+ }
            }

            /// The control with this word.
            pub fn named(word: &str) -> Option<CongestionControl> {
                match word {
                    $($word => Some(CongestionControl::$name),)+
                    _ => None,
                }
            }
        }
    };
}

congestion_controls!(names);

/// How far the window opens per ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// One segment per ACK in slow start, SMSS * SMSS / cwnd in congestion avoidance, whatever the number of bytes
    /// acknowledged (RFC 5681 §3.1, equation 3). With delayed ACKs this is half as fast as byte counting.
    PerAck,
    /// Appropriate Byte Counting: the bytes acknowledged, in slow start at most this many segments per ACK (RFC 3465
    /// §2.1, RFC 5681 §3.1).
    Bytes(u32),
    /// All bytes that an ACK of new data delivers, also after a timeout, but never beyond the threshold. Bytes that
    /// SACK reported earlier do not count again. In slow start, a window counts as used if more than half of it was
    /// used in the last round trip. Linux counts this way.
    All,
}

/// What ends the first slow start, besides reaching the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStartExit {
    /// A loss.
    Loss,
    /// Growing round trips (HyStart++, RFC 9406), or a loss. Needs timestamps or RACK.
    HyStartPlusPlus,
    /// A train of ACKs that lasts half a round trip, growing round trips (HyStart, Ha and Rhee 2011), or a loss. Linux
    /// uses it with CUBIC. Needs RACK.
    HyStart,
    /// Deliveries that no longer double per round trip (SEARCH, draft-chung-ccwg-search), or a loss. Needs timestamps or RACK.
    Search,
}

/// The window after a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutWindow {
    /// One segment (RFC 5681 §3.1).
    One,
    /// The data still in flight plus one segment: RACK knows that segments sent within the last round trip are not lost
    /// (Linux). A timeout during a recovery keeps the threshold that the recovery set.
    InFlight,
}

/// What RACK concludes from signs of reordering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reordering {
    /// RFC 8985: a D-SACK widens the reordering window, which also applies at a timeout.
    #[default]
    Rfc8985,
    /// Linux: a D-SACK widens the reordering window only if reordering was seen, and not if it answers a tail loss
    /// probe. The window is zero at a timeout. A recovery that timestamps show to be needless counts as reordering.
    /// Data that arrives twice counts as delivered again. With [`Growth::All`], once a segment has arrived more than
    /// three segments late, ACKs that only carry SACK blocks also open the window.
    Linux,
}

/// When duplicate ACKs mean that a segment is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DupThresh {
    /// The number of duplicate ACKs (RFC 5681 §3.2: 3).
    pub count: u32,
    /// ns-2's `numdupacksFrac_`: at least the congestion window divided by this number.
    pub window_fraction: Option<u32>,
}

/// When fast recovery by inflation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// On the first ACK of new data (Reno, RFC 5681 §3.2).
    FirstNewAck,
    /// On the ACK of everything sent before the loss was detected (NewReno, RFC 6582 §3.2).
    Recover,
}

/// Which partial ACKs restart the retransmission timer (RFC 6582 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartialAckTimer {
    /// Only the first one: many losses in a window lead to a timeout.
    Impatient,
    /// Each one: one repair per round trip, however many losses there are.
    SlowButSteady,
}

/// The sender's estimate of the data in flight, for SACK recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipeForm {
    /// RFC 6675: also enters on `IsLost`; a segment is lost if (DupThresh - 1) * SMSS bytes above it are SACKed; uses
    /// rescue retransmission.
    Rfc6675,
    /// RACK: a segment is lost if a segment sent later arrived long enough ago (RFC 8985).
    Rack,
    /// RFC 3517, the conservative form of the `transat` paper: enters only on duplicate ACKs; the limit is DupThresh *
    /// SMSS.
    Rfc3517,
    #[cfg(feature = "ns2")]
    /// ns-2's `sack1` (Fall and Floyd 1996): a counter, minus one per ACK, plus one per transmission.
    Ns2,
}

/// How the burst estimate avoids mistaking duplicate ACKs of its own needless retransmissions for a new loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReentryGuard {
    /// Not at all, as in the paper's text: such duplicate ACKs may start a phase without a loss.
    Off,
    /// Duplicate ACKs with the acknowledgement number that ended the last phase do not count (RFC 6582 §3.2 step 2).
    Recover,
    /// Like `Recover`, but ignores only as many duplicate ACKs as retransmissions were in flight at the end of the
    /// phase.
    Credit,
}

/// The burst-loss sender of the `minei` paper (§5.3). It counts the duplicate ACKs until the first partial ACK and
/// assumes that the missing segments are consecutive. It then retransmits that many at once, from each hole that
/// appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstEstimate {
    /// Another hole is assumed after this many duplicates, 1 or 2, of the ACK that started the first burst. The first
    /// duplicate may come from a reordered segment.
    pub first_repeats: u32,
    /// A hole inside the last burst gets no burst of its own, because it is already being repaired.
    pub in_burst_skip: bool,
    /// The guard against a false second phase.
    pub guard: ReentryGuard,
}

/// What is retransmitted at a timeout. With SACK the scoreboard decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutRepair {
    /// Everything from the loss on, as far as the window allows: a whole fixed window at once, or one segment of a
    /// restarted window (RFC 5681 §3.1).
    GoBack,
    /// Only the oldest segment; duplicate ACKs reveal other losses.
    Oldest,
}

/// How losses are repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Tahoe: a window of one segment; everything from the loss on is retransmitted.
    Restart,
    /// Reno and NewReno: the window is inflated by the duplicate ACKs.
    Inflate {
        /// When it ends.
        exit: Exit,
        /// Deflate the window by what a partial ACK acknowledges (RFC 6582 §3.2 step 3B).
        deflate: bool,
        /// Which partial ACKs restart the timer.
        timer: PartialAckTimer,
    },
    /// SACK: sends as much as the pipe has room for, lost segments first.
    Pipe(PipeForm),
    /// Without SACK: retransmits the estimated number of missing segments at once.
    BurstEstimate(BurstEstimate),
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// How the first operating point is found.
    pub startup: Startup,
    /// Initial window in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// The congestion control.
    pub congestion: CongestionControl,
    /// Window growth per ACK.
    pub growth: Growth,
    /// What ends the first slow start.
    pub slow_start_exit: SlowStartExit,
    /// max_ssthresh of limited slow start, in segments: above it, a window grows by about half of it per round trip
    /// (RFC 3742).
    pub limited_slow_start: Option<u32>,
    /// How many duplicate ACKs mean a loss.
    pub dup_thresh: DupThresh,
    /// How losses are repaired.
    pub recovery: Recovery,
    /// SACK recovery: the window shrinks in proportion to the data delivered, over a round trip (RFC 9937), not at
    /// once.
    pub prr: bool,
    /// Negotiate SACK (RFC 2018).
    pub sack: bool,
    /// A new segment on each of the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Detect spurious timeouts (RFC 5682).
    pub frto: bool,
    /// RACK: restore the window after a fast recovery or a timeout that D-SACK, timestamps or F-RTO show to be needless
    /// (RFC 4015).
    pub undo: bool,
    /// RACK: send a probe if no ACK arrives for two round trips (RFC 8985 §7).
    pub tail_probe: bool,
    /// RACK: how much longer the tail loss probe and reordering timers wait than RFC 8985 says.
    pub rack_slack: Duration,
    /// RACK: what it concludes from reordering.
    pub rack_reordering: Reordering,
    /// RACK: how long a minimum round trip stays valid. `None`: for the whole connection.
    pub min_rtt_window: Option<Duration>,
    /// What is retransmitted after a timeout.
    pub timeout_repair: TimeoutRepair,
    /// The window after a timeout.
    pub timeout_window: TimeoutWindow,
    /// Tahoe and Reno: no second fast retransmit for data sent before the first (RFC 6582 §3.2 step 2, ns-2's
    /// `bugfix_`). Off: each loss in a window may cause one, as in 4.3BSD Reno and in ns-2's Reno before July 2003.
    pub once_per_window: bool,
    /// With `once_per_window` off: after a timeout, there is still no fast retransmit until the data sent before it is
    /// acknowledged, as in ns-2's Reno. Off: duplicate ACKs of needless retransmissions may cause one, as in 4.3BSD
    /// Reno, which had no guard.
    pub guard_after_timeout: bool,
    /// Maximum number of segments sent in response to one ACK.
    pub max_burst: Option<u32>,
    /// How segments are paced.
    pub pacing: Pacing,
    /// RACK: segments leave in packets, as on a host whose network card divides data into segments. The last segment of
    /// a packet of several has PSH, and a packet that the window would cut short waits for the next ACK (Linux).
    pub offload: bool,
}

impl Variant {
    /// The row with this name.
    pub fn named(name: &str) -> Option<Variant> {
        VARIANTS.iter().find(|(n, ..)| *n == name).map(|&(.., row)| row)
    }
}

/// When the receiver acknowledges every segment at the start (RFC 2760 §3.2.3, DAASS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Daass {
    /// Never.
    Off,
    /// For the first segments of data.
    FirstSegments(u32),
    /// Until the first gap in the sequence, which the receiver takes as the end of slow start.
    SlowStart,
}

/// When a receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPolicy {
    /// Maximum delay of an ACK (RFC 9293 §3.8.6.3: at most 0.5 s). Zero acknowledges every segment.
    pub delay: Duration,
    /// Every n-th in-order segment is acknowledged at once (RFC 5681 §4.2: 2).
    pub every: u32,
    /// ACKs of every segment at the start.
    pub daass: Daass,
    /// Delayed ACKs are sent by a clock with this period, which runs from the driver's epoch; `delay` is not used.
    /// 4.3BSD's fast timer (`tcp_fasttimo`, 200 ms).
    pub tick: Option<Duration>,
    /// The ACK that fills a gap leaves before the program has read the data behind the gap, so the offered window
    /// excludes the space of that data. Another ACK follows if the offered window is at most half of the buffer and
    /// reading doubles it (Linux). The ACK of a SYN-ACK leaves before the program writes.
    pub before_reading: bool,
    /// ACKs of data beyond a gap are compressed into fewer ones. Off: each is sent at once (RFC 5681 §4.2).
    pub compress: Option<Compress>,
    /// At the start, and after data that had already arrived, this many ACKs are sent at once (Linux's quick ACKs).
    /// ACKs that announce a larger window are not counted.
    pub quick: u32,
    /// A segment with PSH is acknowledged at once, unless this end has answered data with data (Linux, for a program
    /// that reads at once).
    pub pushed: bool,
    /// ACKs adapt to the traffic as in Linux:
    /// - The delay follows the time between segments, from `delay` to 200 ms or a round trip.
    /// - Bytes count, not segments: more than `every` less one full segments of bytes are acknowledged, once the
    ///   program has read if the window would otherwise shrink.
    /// - `quick` ACKs are limited to half of the segments that fit the window. There are none from an end that answers
    ///   data within the delay, and none while more than half of the buffer is occupied.
    /// - `pushed` also covers segments that are not full; their ACK waits until the program has read everything.
    pub adapt: bool,
    /// In-order segments that each arrive within this time of the one before are acknowledged together: when this time
    /// has passed since the first that asks for an ACK, or with the 44th. A host with generic receive offload joins
    /// them, up to 64 kB. Zero: each segment counts by itself.
    pub gro: Duration,
}

/// Linux's compressed SACKs: an ACK of data beyond a gap waits for more such data. The first three ACKs of a gap do not
/// wait, so losses are detected as early as without compression. A waiting ACK leaves before data arrives whose SACK
/// block would displace the ACK's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compress {
    /// Maximum wait (`tcp_comp_sack_delay_ns`), or a twentieth of the round trip if that is shorter.
    pub delay: Duration,
    /// Time that the timer adds to the wait (`tcp_comp_sack_slack_ns`).
    pub slack: Duration,
    /// Maximum number of ACKs that wait; the next one leaves at once (`tcp_comp_sack_nr`).
    pub max: u32,
}

impl Compress {
    /// Linux's defaults (the kernel's `Documentation/networking/ip-sysctl.rst`).
    pub const LINUX: Compress =
        Compress { delay: Duration::from_millis(1), slack: Duration::from_micros(100), max: 44 };
}

impl AckPolicy {
    /// Every segment at once.
    pub const IMMEDIATE: AckPolicy = AckPolicy {
        delay: Duration::ZERO,
        every: 1,
        daass: Daass::Off,
        tick: None,
        before_reading: false,
        compress: None,
        quick: 0,
        pushed: false,
        adapt: false,
        gro: Duration::ZERO,
    };
    /// As in Linux: `TCP_MAX_QUICKACKS` segments are acknowledged at once at the start and after a repetition. From
    /// then on, every second segment is, or after `TCP_DELACK_MIN`.
    pub const LINUX: AckPolicy = AckPolicy {
        delay: Duration::from_millis(40),
        before_reading: true,
        compress: Some(Compress::LINUX),
        quick: 16,
        pushed: true,
        adapt: true,
        ..AckPolicy::DELAYED
    };
    /// Every second segment, or after 200 ms.
    pub const DELAYED: AckPolicy = AckPolicy { delay: Duration::from_millis(200), every: 2, ..AckPolicy::IMMEDIATE };
}
