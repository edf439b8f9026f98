//! Profiles: the default settings of a TCP.
//!
//! A profile is a complete [`TcpConfig`], with changes to the rows of the variant table: ns-2's NewReno is not the
//! RFC's.

#[cfg(feature = "ns2")]
mod ns2;

use bentpipe_engine::tcp::variant::{CongestionControl, Growth, SlowStartExit};
use bentpipe_engine::tcp::{
    AckPolicy, EcnUse, RtoConfig, RtoFloor, RtoTiming, RttClock, Shortcuts, SsthreshBase, TcpConfig, Variant,
};
use bentpipe_engine::units::Duration;

/// A named set of defaults.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// Its description.
    pub description: &'static str,
    /// The default variant.
    pub default_variant: &'static str,
    /// True if the initial ssthresh defaults to the window clamp, as in ns-2.
    pub ssthresh_is_clamp: bool,
    config: fn() -> TcpConfig,
    adjust: fn(&mut Variant),
}

impl Profile {
    /// The settings, with the default variant.
    pub fn config(&self) -> TcpConfig {
        self.with_row(Variant::named(self.default_variant).expect("a row of the table"))
    }

    /// The settings with a row of the engine's table, as changed by the profile.
    pub fn with_row(&self, mut variant: Variant) -> TcpConfig {
        (self.adjust)(&mut variant);
        TcpConfig { variant, ..(self.config)() }
    }
}

/// All profiles.
pub(crate) const PROFILES: &[Profile] = &[
    Profile {
        name: "rfc",
        description: "TCP on the wire as the RFCs recommend",
        default_variant: "sack",
        ssthresh_is_clamp: false,
        config: TcpConfig::default,
        adjust: |_| {},
    },
    #[cfg(feature = "ns2")]
    ns2::NS2,
    #[cfg(feature = "ns2")]
    ns2::NS2_2003,
    Profile {
        name: "bsd-reno",
        description: "4.3BSD Reno: timers in ticks of 500 and 200 ms, window growth per ACK plus an eighth of a segment, no guard against a second fast retransmit",
        default_variant: "reno",
        ssthresh_is_clamp: false,
        config: bsd_reno,
        adjust: |variant| {
            // `tcp_input`: `cwnd` starts at one segment and grows per ACK.
            variant.growth = Growth::PerAck;
            variant.initial_window = 1;
            variant.limited_transmit = false;
            // Only `t_dupacks` decides: nothing prevents a second fast retransmit in the same window.
            variant.once_per_window = false;
            variant.guard_after_timeout = false;
        },
    },
    Profile {
        name: "linux",
        description: "hosts with Linux 6.18 and its default settings",
        default_variant: "linux-cubic",
        ssthresh_is_clamp: false,
        config: linux,
        adjust: |_| {},
    },
    Profile {
        name: "macos",
        description: "hosts with macOS 15 and the default settings of its kernel; docs/specs/macos-windows.md lists the known settings",
        default_variant: "cubic",
        ssthresh_is_clamp: false,
        config: macos,
        adjust: |variant| {
            // tcp_cc.h: `TCP_CC_CWND_INIT_PKTS` 10.
            variant.initial_window = 10;
            if variant.congestion == CongestionControl::Cubic {
                // tcp_cubic.c, `tcp_cubic_ack_rcvd`: an ACK counts for at most the initial window.
                variant.growth = Growth::Bytes(10);
                // Neither HyStart nor PRR nor F-RTO is in bsd/netinet.
                variant.slow_start_exit = SlowStartExit::Loss;
                (variant.prr, variant.frto) = (false, false);
                // tcp_input.c, `tcp_bad_rexmt_check`.
                variant.undo = true;
            }
        },
    },
    Profile {
        name: "windows",
        description: "hosts with Windows Server 2019 and its template `InternetCustom`; docs/specs/macos-windows.md lists the known settings",
        default_variant: "cubic",
        ssthresh_is_clamp: false,
        config: windows,
        adjust: |_| {},
    },
];

/// The profile of that name.
pub fn profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}

/// Linux 6.18. The names are those of its sources and settings.
fn linux() -> TcpConfig {
    TcpConfig {
        // With 12 bytes of timestamps in each segment of 1500.
        timestamps: true,
        ack: AckPolicy::LINUX,
        rto: RtoConfig::LINUX,
        // tcp_rmem[2] is 32 MiB and tcp_rmem[1] 128 KiB, of which 0.633 can be offered with packets of 1500 bytes.
        receive_buffer: 21_240_000,
        first_window: Some(81_920),
        window_follows: true,
        gaps_take_room: true,
        echo_repetitions: true,
        // tcp_wmem[2].
        send_buffer: Some(4 << 20),
        // `tcp_cwnd_restart` in tcp_output.c.
        idle_decay: true,
        // `tcp_init_transfer` in tcp_input.c.
        syn_losses: 1,
        // net.ipv4.tcp_ecn is 2.
        ecn: EcnUse::Accept,
        shortcuts: Shortcuts {
            // `tcp_reno_ssthresh` and CUBIC's reduce the window, not the data in flight.
            ssthresh_base: SsthreshBase::Window,
            ..Shortcuts::NONE
        },
        ..TcpConfig::default()
    }
}

/// macOS 15.4: XNU 11417.101.15, github.com/apple-oss-distributions/xnu. Files are those of bsd/netinet.
fn macos() -> TcpConfig {
    TcpConfig {
        // tcp_subr.c: `tcp_do_timestamps` is 1.
        timestamps: true,
        // tcp_timer.c: `tcp_delack` is 100 ms.
        ack: AckPolicy { delay: Duration::from_millis(100), ..AckPolicy::DELAYED },
        rto: RtoConfig {
            // tcp_timer.h: `TCPTV_RTOBASE`, `TCPTV_REXMTSLOP` (added to the round trip and its variance), `TCPTV_REXMTMAX`,
            // `TCP_MAXRXTSHIFT`.
            initial: Duration::from_secs(1),
            min: Duration::from_millis(200),
            floor: RtoFloor::Variance,
            timing: RtoTiming::Acks,
            max: Duration::from_secs(64),
            max_retries: 12,
            // tcp_timer.c: `tcp_syn_backoff` begins 1, 1, 1, 1, 1, 2.
            linear_syn_timeouts: 4,
            ..RtoConfig::RFC6298
        },
        // tcp_subr.c, `tcp_init`: `tcp_autorcvbuf_max` with more than 4 GB of memory. tcp_usrreq.c: `tcp_recvspace`.
        receive_buffer: 4 << 20,
        first_window: Some(1448 * 384),
        // net/dlil.c: with `tcp_ecn_outbound` 2 (tcp_output.c) interfaces that are not cellular have it.
        ecn: EcnUse::On,
        // tcp_timer.h: `TCPTV_MSL` is 15 s.
        time_wait: Duration::from_secs(30),
        shortcuts: Shortcuts {
            // tcp_cubic.c, `tcp_cubic_pre_fr`: min(snd_cwnd, snd_wnd).
            ssthresh_base: SsthreshBase::InForce,
            ..Shortcuts::NONE
        },
        ..TcpConfig::default()
    }
}

/// Windows Server 2019: what `Get-NetTCPSetting -SettingName InternetCustom` shows in "TCP Templates for Windows Server 2019", Microsoft's
/// Networking Blog, 3 October 2018.
fn windows() -> TcpConfig {
    TcpConfig {
        // DelayedAckTimeout(ms) 40, DelayedAckFrequency 2.
        ack: AckPolicy { delay: Duration::from_millis(40), every: 2, ..AckPolicy::DELAYED },
        // MinRto(ms) 300.
        rto: RtoConfig { min: Duration::from_millis(300), ..RtoConfig::RFC6298 },
        // CwndRestart False.
        restart_after_idle: false,
        ..TcpConfig::default()
    }
}

/// 4.3BSD Reno with the window scaling of RFC 1323.
fn bsd_reno() -> TcpConfig {
    TcpConfig {
        // `PR_FASTHZ`: `tcp_fasttimo` runs five times a second.
        ack: AckPolicy { tick: Some(Duration::from_millis(200)), ..AckPolicy::DELAYED },
        rto: RtoConfig {
            // `TCPTV_RTOBASE` is 3 s, and the first timeout twice that.
            initial: Duration::from_secs(6),
            // `TCPTV_MIN`: two ticks.
            min: Duration::from_secs(1),
            // `TCPTV_REXMTMAX`.
            floor: RtoFloor::Timeout,
            timing: RtoTiming::Acks,
            max: Duration::from_secs(64),
            // `PR_SLOWHZ`: `tcp_slowtimo` runs twice a second.
            clock: RttClock::Ticks {
                tick: Duration::from_millis(500),
                phase: Duration::ZERO,
                fire_on_tick: true,
                bsd: true,
            },
            // `TCP_MAXRXTSHIFT`.
            max_retries: 12,
            linear_syn_timeouts: 0,
            ..RtoConfig::RFC6298
        },
        dsack: false,
        shortcuts: Shortcuts {
            // `tcp_input` and `tcp_timers` halve min(snd_wnd, snd_cwnd), in whole segments.
            ssthresh_base: SsthreshBase::InForce,
            // `tcp_input` adds `t_maxseg / 8` to the increment of congestion avoidance (RFC 2525 §2.6).
            bsd_additive_constant: true,
            ..Shortcuts::NONE
        },
        ..TcpConfig::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_names_every_profile() {
        let key = crate::tcp::TCP_HEAD.iter().find(|field| field.key == "profile").expect("a key");
        for profile in PROFILES {
            assert!(key.doc.contains(&format!("\"{}\"", profile.name)), "{}", profile.name);
        }
    }

    /// The values of XNU's sources and of Microsoft's listing, by hand; the rest is the RFCs'.
    #[test]
    fn macos_and_windows_are_what_their_sources_say() {
        let macos = profile("macos").expect("a profile").config();
        let ms = Duration::from_millis;
        assert_eq!((macos.ack.delay, macos.rto.min, macos.rto.max), (ms(100), ms(200), ms(64_000)));
        assert_eq!((macos.first_window, macos.receive_buffer), (Some(556_032), 4_194_304));
        assert_eq!((macos.variant.initial_window, macos.variant.growth), (10, Growth::Bytes(10)));
        assert_eq!((macos.variant.slow_start_exit, macos.variant.prr), (SlowStartExit::Loss, false));
        let windows = profile("windows").expect("a profile").config();
        assert_eq!((windows.ack.delay, windows.ack.every, windows.rto.min), (ms(40), 2, ms(300)));
        assert_eq!((windows.variant.initial_window, windows.variant.congestion), (10, CongestionControl::Cubic));
        let rfc = TcpConfig { variant: windows.variant, ..TcpConfig::default() };
        let TcpConfig { ack, rto, restart_after_idle, .. } = windows;
        assert_eq!(windows, TcpConfig { ack, rto, restart_after_idle, ..rfc }, "nothing else");
    }

    /// What a packet script each of `crates/bentpipe-script/tests/scripts/bsd` shows.
    #[test]
    fn bsd_reno_is_4_3_bsd_reno() {
        let config = profile("bsd-reno").expect("a profile").config();
        assert!(!config.variant.once_per_window && !config.variant.guard_after_timeout, "no guard of RFC 6582");
        assert_eq!(config.shortcuts.ssthresh_base, SsthreshBase::InForce);
        assert!(config.shortcuts.bsd_additive_constant);
        let rest =
            Shortcuts { ssthresh_base: SsthreshBase::FlightSize, bsd_additive_constant: false, ..config.shortcuts };
        assert_eq!(rest, Shortcuts::NONE, "nothing of ns-2");
    }
}
