//! The rows of the table.

use super::{
    BurstEstimate, CongestionControl, DupThresh, Exit, Growth, Pacing, PartialAckTimer, PipeForm, Recovery,
    ReentryGuard, Reordering, SlowStartExit, Startup, TimeoutRepair, TimeoutWindow, Variant,
};
use crate::units::Duration;

const BASE: Variant = Variant {
    startup: Startup::SlowStart,
    initial_window: 10,
    congestion: CongestionControl::Reno,
    growth: Growth::Bytes(2),
    slow_start_exit: SlowStartExit::Loss,
    limited_slow_start: None,
    dup_thresh: DupThresh { count: 3, window_fraction: None },
    recovery: Recovery::Restart,
    prr: false,
    sack: false,
    limited_transmit: false,
    frto: false,
    undo: false,
    tail_probe: false,
    rack_slack: Duration::ZERO,
    rack_reordering: Reordering::Rfc8985,
    min_rtt_window: None,
    timeout_repair: TimeoutRepair::GoBack,
    timeout_window: TimeoutWindow::One,
    once_per_window: true,
    guard_after_timeout: true,
    max_burst: None,
    pacing: Pacing::PLAIN,
    offload: false,
};

/// Reno's window with today's repair of losses.
const RACK: Variant =
    Variant { recovery: Recovery::Pipe(PipeForm::Rack), prr: true, sack: true, tail_probe: true, ..BASE };

/// What all of Linux's controls have in common (6.18).
const LINUX: Variant = Variant {
    growth: Growth::All,
    recovery: Recovery::Pipe(PipeForm::Rack),
    prr: true,
    sack: true,
    frto: true,
    undo: true,
    tail_probe: true,
    // `TCP_TIMEOUT_MIN_US`.
    rack_slack: Duration::from_millis(2),
    rack_reordering: Reordering::Linux,
    // `tcp_min_rtt_wlen`.
    min_rtt_window: Some(Duration::from_secs(300)),
    timeout_window: TimeoutWindow::InFlight,
    offload: true,
    ..BASE
};

const RENO: Recovery = Recovery::Inflate { exit: Exit::FirstNewAck, deflate: false, timer: PartialAckTimer::Impatient };

/// The reading of the `minei` paper that keeps its own bounds (see `docs/specs/minei.md`).
const ESTIMATE: Recovery =
    Recovery::BurstEstimate(BurstEstimate { first_repeats: 2, in_burst_skip: false, guard: ReentryGuard::Credit });

/// Segments of 512 B that fill 400 kbit/s over 290 ms (`minei` §4). The scenario language replaces this by the capacity
/// of a flow's path, unless a window is set.
const SATELLITE_WINDOW: Startup = Startup::FixedWindow(32);

/// Name, description and settings of each variant.
pub const VARIANTS: &[(&str, &str, Variant)] = &[
    ("tahoe", "slow start after every loss (Jacobson 1988)", BASE),
    ("reno", "fast recovery, left at the first new ACK (RFC 5681)", Variant { recovery: RENO, ..BASE }),
    (
        "newreno",
        "fast recovery until everything is repaired, impatient timer (RFC 6582)",
        Variant {
            recovery: Recovery::Inflate { exit: Exit::Recover, deflate: true, timer: PartialAckTimer::Impatient },
            limited_transmit: true,
            ..BASE
        },
    ),
    (
        "newreno-sbs",
        "NewReno, slow but steady: each partial ACK restarts the timer (RFC 6582 §4)",
        Variant {
            recovery: Recovery::Inflate { exit: Exit::Recover, deflate: true, timer: PartialAckTimer::SlowButSteady },
            limited_transmit: true,
            ..BASE
        },
    ),
    (
        "sack",
        "conservative SACK-based recovery (RFC 6675), limited transmit",
        Variant { recovery: Recovery::Pipe(PipeForm::Rfc6675), sack: true, limited_transmit: true, ..BASE },
    ),
    (
        "sack-3517",
        "SACK-based recovery as the transat paper cites it (RFC 3517)",
        Variant { recovery: Recovery::Pipe(PipeForm::Rfc3517), sack: true, ..BASE },
    ),
    #[cfg(feature = "ns2")]
    (
        "sack-ns2",
        "SACK with ns-2's pipe counter (Fall and Floyd 1996)",
        Variant { recovery: Recovery::Pipe(PipeForm::Ns2), sack: true, ..BASE },
    ),
    ("rack", "Reno's window with RACK-TLP and PRR (RFC 5681, RFC 8985, RFC 9937)", RACK),
    (
        "sack-frto",
        "SACK and F-RTO (RFC 6675, RFC 5682)",
        Variant { recovery: Recovery::Pipe(PipeForm::Rfc6675), sack: true, limited_transmit: true, frto: true, ..BASE },
    ),
    (
        "reno-super-fast",
        "Reno that treats the first duplicate ACK as a loss, for a leg that keeps the order (minei §4.2)",
        Variant { recovery: RENO, dup_thresh: DupThresh { count: 1, window_fraction: None }, ..BASE },
    ),
    (
        "cubic",
        "CUBIC with HyStart++, RACK-TLP, PRR and F-RTO (RFC 9438, 9406, 8985, 9937, 5682)",
        Variant {
            congestion: CongestionControl::Cubic,
            // RFC 9406 §4.3: L = 8 without pacing.
            growth: Growth::Bytes(8),
            slow_start_exit: SlowStartExit::HyStartPlusPlus,
            recovery: Recovery::Pipe(PipeForm::Rack),
            prr: true,
            sack: true,
            frto: true,
            tail_probe: true,
            ..BASE
        },
    ),
    (
        "vegas",
        "Vegas with RACK-TLP and PRR (Brakmo and Peterson 1995)",
        Variant { congestion: CongestionControl::Vegas, ..RACK },
    ),
    (
        "westwood",
        "Westwood+ with RACK-TLP (Grieco and Mascolo 2004)",
        // The window is what the path carries at once, not in proportion to the half.
        Variant { congestion: CongestionControl::Westwood, prr: false, ..RACK },
    ),
    (
        "hybla",
        "Hybla with RACK-TLP, PRR and paced segments, for long round trips (Caini and Firrincieli 2004)",
        Variant { congestion: CongestionControl::Hybla, ..RACK },
    ),
    (
        "prague",
        "Prague with RACK-TLP, for L4S; needs `ecn = \"accurate\"` at both ends (draft-briscoe-iccrg-prague-congestion-control-04)",
        Variant { congestion: CongestionControl::Prague, frto: true, ..RACK },
    ),
    ("linux-reno", "Reno as in Linux 6.18, with RACK-TLP, PRR and F-RTO; for the profile `linux`", LINUX),
    (
        "linux-cubic",
        "CUBIC with HyStart as in Linux 6.18, with RACK-TLP, PRR and F-RTO; for the profile `linux`",
        Variant { congestion: CongestionControl::CubicLinux, slow_start_exit: SlowStartExit::HyStart, ..LINUX },
    ),
    (
        "bbr",
        "BBR v1 as in Linux 6.18, with RACK-TLP and F-RTO; for the profile `linux`",
        Variant { congestion: CongestionControl::Bbr, prr: false, pacing: Pacing::LINUX, ..LINUX },
    ),
    (
        "bbr3",
        "BBRv3 with RACK-TLP and F-RTO (draft-ietf-ccwg-bbr-06); for the profile `linux`",
        Variant { congestion: CongestionControl::Bbr3, prr: false, ..LINUX },
    ),
    (
        "constant-window",
        "Reno with a constant window, for a leg without congestion (minei §4.2)",
        Variant { startup: SATELLITE_WINDOW, recovery: RENO, ..BASE },
    ),
    (
        "constant-rack",
        "RACK-TLP with a constant window, for a leg without congestion (RFC 8985)",
        Variant { startup: SATELLITE_WINDOW, ..RACK },
    ),
    (
        "burst",
        "estimates a run of losses and retransmits it at once, constant window (minei §5.3)",
        Variant { startup: SATELLITE_WINDOW, recovery: ESTIMATE, ..BASE },
    ),
    (
        "burst-ca",
        "the same with slow start and congestion avoidance, halved after each phase (minei §5.3)",
        Variant { recovery: ESTIMATE, ..BASE },
    ),
];
