//! ns-2's settings.

use bentpipe_engine::tcp::variant::{DupThresh, Exit, Growth, PartialAckTimer, Recovery};
use bentpipe_engine::tcp::{AckPolicy, RtoConfig, RtoFloor, RtoTiming, RttClock, Shortcuts, SsthreshBase, TcpConfig};
use bentpipe_engine::units::Duration;

use super::Profile;

pub(super) const NS2: Profile = Profile {
    name: "ns2",
    description: "ns-2 2.35 with the settings of the validation's reference scenarios",
    default_variant: "newreno",
    ssthresh_is_clamp: true,
    config: ns2,
    adjust: |variant| {
        // Windows grow by ACK: ns-2's `slowdown` counts ACKs, not bytes.
        variant.growth = Growth::PerAck;
        // ns-2 2.35, `Agent/TCP set windowInit_`: 2.
        variant.initial_window = 2;
        // The reference scenarios use `singledup_ 0` unless stated (2.35's default is 1).
        variant.limited_transmit = false;
    },
};

pub(super) const NS2_2003: Profile = Profile {
    name: "ns2-2003",
    description: "ns-2.26 as the transat paper most likely used it (\"gold\" profile)",
    default_variant: "newreno-sbs",
    ssthresh_is_clamp: true,
    config: ns2_2003,
    adjust: |variant| {
        variant.growth = Growth::PerAck;
        // transat §3.2: the Reference TCP starts with one segment.
        variant.initial_window = 1;
        // transat §3.2: limited transmit is a separate variant.
        variant.limited_transmit = false;
        match &mut variant.recovery {
            // ns-2 before 2003-05-05: no partial window deflation, timer restarted by every partial ACK.
            Recovery::Inflate { exit: Exit::Recover, deflate, timer } => {
                *deflate = false;
                *timer = PartialAckTimer::SlowButSteady;
            }
            // `numdupacksFrac_ 10`, by search: in ns-2 since October 2002, off in 2.35, only effective in Sack1.
            Recovery::Pipe(_) => variant.dup_thresh = DupThresh { window_fraction: Some(10), ..variant.dup_thresh },
            _ => {}
        }
    },
};

/// The base of the ns-2 reference scenarios.
fn ns2() -> TcpConfig {
    TcpConfig {
        // 960 B of data, 1000 B on the wire with ns-2's header of 40 B (`tcpip_base_hdr_size_ 40`).
        mss: 960,
        // `Agent/TCPSink` without DelAck acknowledges each segment.
        ack: AckPolicy::IMMEDIATE,
        rto: RtoConfig {
            // `rtxcur_init_ 3.0`, ns-2 2.35's default.
            initial: Duration::from_secs(3),
            // `minrto_ 1`: RFC 6298 §2.4 (2.35's own default is 0.2 s).
            min: Duration::from_secs(1),
            floor: RtoFloor::Timeout,
            timing: RtoTiming::Acks,
            // `maxrto_ 60`, ns-2 2.35's default.
            max: Duration::from_secs(60),
            // `tcpTick_ 0.001`; timers expire at exact times.
            clock: RttClock::Ticks {
                tick: Duration::from_millis(1),
                phase: Duration::ZERO,
                fire_on_tick: false,
                bsd: false,
            },
            // ns-2 never gives up.
            max_retries: u32::MAX,
            linear_syn_timeouts: 0,
            ..RtoConfig::RFC6298
        },
        // `maxSackBlocks_ 3`, ns-2 2.35's default.
        sack_blocks: 3,
        // `generateDSacks_ false`, ns-2 2.35's default.
        dsack: false,
        // `timestamps_ false`, ns-2 2.35's default.
        timestamps: false,
        // ns-2 keeps its window over an idle period (`slow_start_restart_` applies only to sources with `QOption_`).
        restart_after_idle: false,
        shortcuts: Shortcuts::NS2,
        ..TcpConfig::default()
    }
}

/// The profile that comes closest to the transat paper's tables, found by a search with ns-2 over all of them.
fn ns2_2003() -> TcpConfig {
    let base = ns2();
    TcpConfig {
        // transat §3.2: every second segment, 200 ms.
        ack: AckPolicy::DELAYED,
        rto: RtoConfig {
            // `rtxcur_init_ 6.0`, by search (ns-2 changed its default to 3.0 in January 2006).
            initial: Duration::from_secs(6),
            // `minrto_ 1.0`, by search (ns-2 changed its default to 0.2 s later).
            min: Duration::from_secs(1),
            // `tcpTick_ 0.5`: by search; finer ticks give too many spurious timeouts in tables 4 and 5.
            clock: RttClock::Ticks {
                tick: Duration::from_millis(500),
                phase: Duration::ZERO,
                fire_on_tick: false,
                bsd: false,
            },
            ..base.rto
        },
        // By search: any cap from about 250 to 330 segments fits table 1.
        window_clamp: Some(300),
        shortcuts: Shortcuts {
            // `precisionReduce_ 0`: whole segments, ns-2's default until January 2006.
            ssthresh_base: SsthreshBase::WholeWindow,
            // `exitFastRetrans_ 0`: as before July 2003, when ns-2 added it.
            ns2_inflate_always: true,
            // `SYN_immediate_ack_ 0`: as before February 2010, when ns-2 added it.
            ns2_delayed_syn_ack: true,
            ..base.shortcuts
        },
        ..base
    }
}
