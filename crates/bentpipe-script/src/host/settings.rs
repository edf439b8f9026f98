//! The settings of a host: a kernel's defaults, and changes by `sysctl`.

use bentpipe_engine::tcp::variant::Growth;
use bentpipe_engine::tcp::{
    AckPolicy, Compress, EcnOption, EcnUse, RtoConfig, Shortcuts, SsthreshBase, TcpConfig, Variant,
};
use bentpipe_engine::units::Duration;

use super::linux::Kernel;

/// The system whose defaults a host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Linux.
    Linux,
    /// FreeBSD.
    FreeBsd,
    /// The RFCs' recommended values, compared strictly: PSH, exact times, and packets that no line expects count.
    Rfc,
}

impl Profile {
    /// The profile of that name.
    pub fn named(name: &str) -> Option<Profile> {
        Some(match name {
            "linux" => Profile::Linux,
            "freebsd" => Profile::FreeBsd,
            "rfc" => Profile::Rfc,
            _ => return None,
        })
    }
}

/// The IP versions of packets and sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
    /// IPv4 packets, IPv6 sockets.
    V4Mapped,
}

impl IpVersion {
    /// The version of that name in `--ip_version`.
    pub fn named(name: &str) -> Option<IpVersion> {
        Some(match name {
            "ipv4" => IpVersion::V4,
            "ipv6" => IpVersion::V6,
            "ipv4-mapped-ipv6" => IpVersion::V4Mapped,
            _ => return None,
        })
    }
}

/// The settings of a host.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The system whose defaults they are.
    pub profile: Profile,
    /// IP version of packets and sockets.
    pub version: IpVersion,
    /// Largest packet.
    pub mtu: u32,
    /// Use of ECN by connections that the host opens, if it is another one than that of `config`.
    pub(super) connect_ecn: Option<EcnUse>,
    /// Linux's senders.
    pub(super) kernel: Kernel,
    /// Initial settings of connections; the MSS comes from the MTU.
    pub config: TcpConfig,
    /// An MSS set by the script, regardless of the MTU.
    pub mss: Option<u16>,
    /// Size of a socket's send buffer in bytes.
    pub send_buffer: usize,
    /// Retransmissions of a SYN and of a SYN-ACK.
    pub syn_retries: (u32, u32),
    /// ICMP errors end connections that are being opened.
    pub icmp_may_reset: bool,
    /// A SYN with a FIN is dropped.
    pub drops_syn_fin: bool,
    /// Keepalive: seconds until the handshake is given up, before the first probe, between probes; and the number of
    /// probes.
    pub keep: [u32; 4],
    /// getsockopt(TCP_MAXSEG) before the handshake returns the value set, as in Linux since 6.6, not the default.
    pub tells_own_mss: bool,
    /// Limit of unsent bytes, below which a socket is writable.
    pub notsent_lowat: u64,
}

impl Settings {
    /// A host with this profile's defaults.
    pub fn new(profile: Profile) -> Self {
        let base = TcpConfig::default();
        let named = |name| Variant::named(name).expect("a row of the table");
        let config = match profile {
            Profile::Linux => TcpConfig {
                // TCP_INIT_CWND 10, F-RTO. What depends on the congestion control is set for each socket.
                variant: named("linux-cubic"),
                ack: AckPolicy::LINUX,
                rto: RtoConfig::LINUX,
                // The window is reduced, not the data in flight.
                shortcuts: Shortcuts { ssthresh_base: SsthreshBase::Window, ..Shortcuts::NONE },
                // The initial window, before autotuning.
                receive_buffer: 65_535,
                gaps_take_room: true,
                echo_repetitions: true,
                // tcp_ecn 2, tcp_ecn_option 2.
                ecn: EcnUse::Accept,
                ecn_option: EcnOption::Always,
                ecn_control: true,
                syn_losses: 1,
                timestamps: true,
                nagle: true,
                ..base
            },
            Profile::FreeBsd => TcpConfig {
                // net.inet.tcp.abc_l_var 2, initcwnd_segments 10.
                variant: Variant { growth: Growth::Bytes(2), ..named("sack") },
                // net.inet.tcp.delacktime.
                ack: AckPolicy { delay: Duration::from_millis(40), every: 2, ..AckPolicy::DELAYED },
                // net.inet.tcp.rexmit_initial, rexmit_min and rexmit_slop.
                rto: RtoConfig {
                    min: Duration::from_millis(230),
                    max: Duration::from_secs(64),
                    max_retries: 12,
                    ..RtoConfig::RFC6298
                },
                receive_buffer: 65_536,
                // net.inet.tcp.ecn.enable 2.
                ecn: EcnUse::Accept,
                timestamps: true,
                nagle: true,
                ..base
            },
            // Scripts are short: a small segment, an ACK for each segment, a small window.
            Profile::Rfc => TcpConfig {
                mss: 1000,
                ack: AckPolicy::IMMEDIATE,
                receive_buffer: 100_000,
                variant: Variant { initial_window: 4, ..named("newreno") },
                ..base
            },
        };
        Settings {
            profile,
            connect_ecn: None,
            kernel: Kernel::default(),
            version: IpVersion::V4,
            mtu: 1500,
            config,
            mss: (profile == Profile::Rfc).then_some(1000),
            send_buffer: 1 << 20,
            syn_retries: (6, 5),
            icmp_may_reset: true,
            drops_syn_fin: false,
            keep: [75, 7200, 75, if profile == Profile::Linux { 9 } else { 8 }],
            tells_own_mss: false,
            notsent_lowat: u64::MAX,
        }
    }

    /// Bytes of IP and TCP headers without options.
    pub fn headers(&self) -> u32 {
        if self.version == IpVersion::V6 { 60 } else { 40 }
    }

    /// The MSS that a SYN offers.
    pub(crate) fn offered_mss(&self) -> u16 {
        self.mss.unwrap_or_else(|| u16::try_from(self.mtu.saturating_sub(self.headers())).unwrap_or(u16::MAX).max(1))
    }

    /// Applies a kernel setting. `name` is without `net.ipv4.` and `net.inet.`; returns false if it has no effect
    /// here.
    pub fn sysctl(&mut self, name: &str, value: &str) -> bool {
        let config = &mut self.config;
        let numbers: Vec<u64> = value.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let Some(&number) = numbers.first() else { return self.kernel.sysctl(name, value) };
        let is_on = number != 0;
        let millis = Duration::from_millis(number);
        let mut none = Compress::LINUX;
        let compress = config.ack.compress.as_mut().unwrap_or(&mut none);
        match name {
            "tcp_timestamps" => config.timestamps = is_on,
            "tcp.rfc1323" => (config.timestamps, config.window_scaling) = (is_on, is_on),
            "tcp_window_scaling" => config.window_scaling = is_on,
            "tcp_sack" | "tcp.sack.enable" => config.variant.sack = is_on,
            "tcp_ecn" | "tcp.ecn.enable" => {
                config.ecn = match number {
                    0 => EcnUse::Off,
                    1 => EcnUse::On,
                    2 => EcnUse::Accept,
                    3 => EcnUse::Accurate,
                    4 | 5 => EcnUse::AcceptAccurate,
                    _ => return false,
                };
                // Linux's 4: it accepts accurate ECN, and asks for RFC 3168's.
                self.connect_ecn = (number == 4 && name == "tcp_ecn").then_some(EcnUse::On);
            }
            "tcp_ecn_option" => {
                config.ecn_option = match number {
                    0 => EcnOption::Off,
                    1 => EcnOption::Changes,
                    _ => EcnOption::Always,
                }
            }
            "tcp.ecn.maxretries" => config.ecn_retries = number as u32,
            "tcp_dsack" => config.dsack = is_on,
            "tcp_frto" => config.variant.frto = is_on,
            "tcp_slow_start_after_idle" => config.restart_after_idle = is_on,
            "tcp_reordering" => config.variant.dup_thresh.count = number as u32,
            "tcp_wmem" => self.send_buffer = numbers.get(2).copied().unwrap_or(number).clamp(1, 1 << 22) as usize,
            // Half of it is the window.
            "tcp_rmem" => {
                config.receive_buffer = numbers.get(1).copied().unwrap_or(number).clamp(2, 1 << 22) as u32 / 2;
            }
            "tcp.recvspace" => config.receive_buffer = number.clamp(1, 1 << 22) as u32,
            "tcp.sendspace" => self.send_buffer = number.clamp(1, 1 << 22) as usize,
            "tcp.rexmit_initial" => config.rto.initial = millis,
            "tcp.delacktime" => config.ack.delay = millis,
            "tcp_comp_sack_delay_ns" => compress.delay = Duration::from_nanos(number),
            "tcp_comp_sack_slack_ns" => compress.slack = Duration::from_nanos(number),
            "tcp_comp_sack_nr" => compress.max = number.min(255) as u32,
            "tcp_syn_linear_timeouts" => config.rto.linear_syn_timeouts = number.min(127) as u8,
            "tcp_syn_retries" => self.syn_retries.0 = number as u32,
            "tcp_synack_retries" => self.syn_retries.1 = number as u32,
            "bentpipe.tells_own_mss" => self.tells_own_mss = is_on,
            "tcp_notsent_lowat" => self.notsent_lowat = number,
            "tcp.icmp_may_rst" => self.icmp_may_reset = is_on,
            "tcp.drop_synfin" => self.drops_syn_fin = is_on,
            "tcp.keepinit" => self.keep[0] = (number / 1000) as u32,
            "tcp.keepidle" => self.keep[1] = (number / 1000) as u32,
            "tcp.keepintvl" => self.keep[2] = (number / 1000) as u32,
            "tcp.keepcnt" => self.keep[3] = number as u32,
            name => return self.kernel.sysctl(name, value),
        }
        if !self.config.variant.sack && matches!(name, "tcp_sack" | "tcp.sack.enable") {
            // Without SACK, recovery by scoreboard has no information.
            let newreno = Variant::named("newreno").expect("a row of the table");
            self.config.variant.recovery = newreno.recovery;
        }
        true
    }
}
