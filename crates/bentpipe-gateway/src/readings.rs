//! What a gateway says of itself: one list of values, which status shows as JSON and Prometheus as text.
//!
//! The loop makes the list and hands it over; who renders it does so in a thread of its own.

mod reference;
mod split;
mod uplink;

use std::sync::{Arc, Mutex};

use bentpipe_engine::units::{Duration, Time};

use super::carrier::{Carrier, CarrierStats};
use super::run::GatewayStats;

pub use reference::{Metric, metrics};
pub(super) use split::Waiting;

/// A value, and what it is in.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// What only grows.
    Total(u64),
    /// What rises and falls.
    Level(u64),
    /// Yes or no.
    Flag(bool),
    /// A time, in milliseconds in status and in seconds for Prometheus; `None` as long as it is not known.
    Millis(Option<Duration>),
    /// A time, in microseconds in status.
    Micros(Duration),
    /// A time that only grows, in milliseconds in status.
    Spent(Duration),
    /// A text: for Prometheus a label of that key.
    Text(Option<String>),
}

impl Value {
    /// Its type for Prometheus.
    fn kind(&self) -> &'static str {
        if matches!(self, Value::Total(_) | Value::Spent(_)) { "counter" } else { "gauge" }
    }
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The table that it stands in, in status; empty: the outermost.
    pub table: &'static str,
    /// Its key there. Of several with one key status shows the sum.
    pub key: &'static str,
    /// Its name for Prometheus.
    pub metric: &'static str,
    /// What it means.
    pub help: &'static str,
    /// What it is of, where there are several.
    pub label: Option<(&'static str, String)>,
    /// The value.
    pub value: Value,
}

/// All of a gateway at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readings {
    name: String,
    shape: &'static str,
    list: Vec<Reading>,
}

/// Where the loop puts what there is to say, and others find it.
pub type Published = Arc<Mutex<Arc<Readings>>>;

impl Readings {
    /// None yet, of the gateway of this name and shape.
    pub fn new(name: &str, shape: &'static str) -> Self {
        Readings { name: name.to_owned(), shape, list: Vec::new() }
    }

    /// The gateway's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The gateway's shape.
    pub fn shape(&self) -> &'static str {
        self.shape
    }

    /// The values; those of one metric follow each other.
    pub fn list(&self) -> &[Reading] {
        &self.list
    }

    /// Adds a value.
    pub fn add(
        &mut self,
        table: &'static str,
        key: &'static str,
        metric: &'static str,
        help: &'static str,
        value: Value,
    ) {
        self.list.push(Reading { table, key, metric, help, label: None, value });
    }

    /// Adds a value for each channel.
    fn add_by_channel(
        &mut self,
        key: &'static str,
        metric: &'static str,
        help: &'static str,
        values: impl Iterator<Item = Value>,
    ) {
        self.list.extend(values.enumerate().map(|(channel, value)| {
            let label = Some(("channel", channel.to_string()));
            Reading { table: "satellite", key, metric, help, label, value }
        }));
    }

    /// Adds what any gateway's loop counted.
    pub(super) fn add_loop(&mut self, stats: &GatewayStats) {
        use Value::{Flag, Micros, Text, Total};
        let version = Text(Some(env!("CARGO_PKG_VERSION").to_owned()));
        self.add("", "version", "bentpipe_gateway_build_info", "Version of bentpipe, as a label; always 1.", version);
        let draining = Flag(stats.draining_since.is_some());
        self.add("", "draining", "bentpipe_gateway_draining", "1 while the gateway drains.", draining);
        let late = &stats.lateness;
        let help = "Timer wake-ups of the event loop.";
        self.add("timers", "wakeups", "bentpipe_gateway_wakeups_total", help, Total(late.count()));
        for (key, metric, help, span) in [
            (
                "median_late_us",
                "bentpipe_gateway_late_median_seconds",
                "Median lateness of timer wake-ups.",
                late.median(),
            ),
            (
                "p99_late_us",
                "bentpipe_gateway_late_p99_seconds",
                "99th percentile of the lateness of timer wake-ups.",
                late.p99(),
            ),
            ("most_late_us", "bentpipe_gateway_late_most_seconds", "Maximum lateness of timer wake-ups.", late.max()),
        ] {
            self.add("timers", key, metric, help, Micros(span));
        }
    }

    /// Adds what the kernel knows of this process.
    ///
    /// # Errors
    /// Fails if `/proc/self` cannot be read.
    pub fn add_process(&mut self) -> std::io::Result<()> {
        use Value::{Level, Spent};
        use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
        // Reading the folder takes a descriptor, which is in it.
        let open = std::fs::read_dir("/proc/self/fd")?.count().saturating_sub(1) as u64;
        let statm = std::fs::read_to_string("/proc/self/statm")?;
        let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
        let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)?.unwrap_or(4096) as u64;
        let usage = getrusage(UsageWho::RUSAGE_SELF)?;
        let spent = [usage.user_time(), usage.system_time()].map(|span| span.tv_sec() * 1_000_000 + span.tv_usec());
        let spent = Duration::from_micros(spent.iter().sum::<i64>() as u64);
        let table = "process";
        self.add(table, "open_fds", "process_open_fds", "Open file descriptors.", Level(open));
        let max = getrlimit(Resource::RLIMIT_NOFILE)?.0;
        self.add(table, "max_fds", "process_max_fds", "Maximum number of open file descriptors.", Level(max));
        let help = "Resident memory.";
        self.add(table, "resident_bytes", "process_resident_memory_bytes", help, Level(pages * page));
        self.add(table, "cpu_ms", "process_cpu_seconds_total", "CPU time used.", Spent(spent));
        Ok(())
    }

    /// The text exposition format of Prometheus, version 0.0.4. Not by a crate: `prometheus-client` writes OpenMetrics,
    /// and `prometheus` would be a second home for each value.
    pub fn exposition(&self) -> String {
        use std::fmt::Write;
        let mut text = String::new();
        let mut before = "";
        for Reading { key, metric, help, label, value, .. } in &self.list {
            if *metric != before {
                let kind = value.kind();
                let _ = write!(text, "# HELP {metric} {help}\n# TYPE {metric} {kind}\n");
                before = metric;
            }
            let mut labels = format!("gateway=\"{}\",shape=\"{}\"", escaped(&self.name), self.shape);
            if let Some((name, value)) = label {
                let _ = write!(labels, ",{name}=\"{}\"", escaped(value));
            }
            let seconds = |span: Duration| format!("{}", span.as_secs_f64());
            let number = match value {
                Value::Total(count) | Value::Level(count) => count.to_string(),
                Value::Flag(flag) => u8::from(*flag).to_string(),
                Value::Millis(Some(span)) | Value::Micros(span) | Value::Spent(span) => seconds(*span),
                Value::Text(Some(value)) => {
                    let _ = write!(labels, ",{key}=\"{}\"", escaped(value));
                    "1".to_owned()
                }
                // What is not known is left out: a zero would be a lie.
                Value::Millis(None) | Value::Text(None) => continue,
            };
            let _ = writeln!(text, "{metric}{{{labels}}} {number}");
        }
        text
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

impl Readings {
    /// Adds what the way to the other box counted.
    pub(super) fn add_carrier(&mut self, now: Time, carrier: &Carrier, refused_by_kernel: u64) {
        use Value::{Flag, Level, Millis, Text, Total};
        let (all, tunnel) = (self, carrier.tunnel());
        all.add("", "up", "bentpipe_gateway_link_up", "1 while the link to the peer is up.", Flag(carrier.is_up()));

        let peer = Text(tunnel.endpoint().map(|at| at.to_string()));
        all.add("tunnel", "peer", "bentpipe_gateway_peer_info", "Address of the peer, as a label.", peer);
        let cipher = Text(tunnel.cipher().map(|cipher| cipher.name().to_owned()));
        all.add("tunnel", "cipher", "bentpipe_gateway_cipher_info", "Cipher of the tunnel, as a label.", cipher);
        let silence = Millis(Some(now.saturating_since(tunnel.heard_at())));
        let help = "Time since the last packet from the peer.";
        all.add("tunnel", "heard_ms_ago", "bentpipe_gateway_peer_silence_seconds", help, silence);
        let counted = tunnel.stats();
        for (key, metric, help, count) in [
            ("sent", "bentpipe_gateway_datagrams_sent_total", "Datagrams encrypted and sent.", counted.sent),
            (
                "received",
                "bentpipe_gateway_datagrams_received_total",
                "Datagrams received and decrypted.",
                counted.received,
            ),
            ("handshakes", "bentpipe_gateway_handshakes_total", "Handshakes completed.", counted.handshakes),
            (
                "garbage",
                "bentpipe_gateway_datagrams_garbage_total",
                "Received datagrams that do not belong to the tunnel.",
                counted.garbage,
            ),
            (
                "refused",
                "bentpipe_gateway_datagrams_refused_total",
                "Received datagrams that were forged or replayed.",
                counted.refused,
            ),
            (
                "unknown",
                "bentpipe_gateway_datagrams_unknown_total",
                "Received datagrams of unknown sessions.",
                counted.unknown,
            ),
            (
                "throttled",
                "bentpipe_gateway_handshakes_throttled_total",
                "Handshakes not answered because of the rate limit.",
                counted.throttled,
            ),
            (
                "refused_by_kernel",
                "bentpipe_gateway_datagrams_unsent_total",
                "Datagrams that the kernel did not accept for sending.",
                refused_by_kernel,
            ),
        ] {
            all.add("tunnel", key, metric, help, Total(count));
        }

        let layer = carrier.stats();
        layer_readings(all, &layer);
        let waiting = (0..layer.channels.len()).map(|channel| Level(carrier.waiting(channel as u8) as u64));
        let help = "Packets waiting for their first transmission.";
        all.add_by_channel("waiting", "bentpipe_gateway_packets_waiting", help, waiting);
        let (told, used) = (carrier.rate_told(), carrier.rate_used());
        let [told, used] = [told, used].map(|rate| Level(rate.map_or(0, |rate| rate.bits_per_second() / 8)));
        let help = "Configured rate of the sender.";
        all.add("satellite", "told_bytes_per_second", "bentpipe_gateway_rate_told_bytes_per_second", help, told);
        let help = "Rate that the sender uses now.";
        all.add("satellite", "used_bytes_per_second", "bentpipe_gateway_rate_used_bytes_per_second", help, used);
    }
}

impl Readings {
    /// Adds what the device of the shape `link` counted; `overruns` is `None` if the device is gone.
    pub(super) fn add_link(&mut self, refused: u64, overruns: Option<u64>, too_long: u64) {
        use Value::Total;
        let help = "Packets from the peer that the host's stack did not accept.";
        self.add("link", "refused_by_host", "bentpipe_gateway_packets_refused_by_host_total", help, Total(refused));
        if let Some(overruns) = overruns {
            let help = "Sends of the host (packets or GSO trains) that the kernel dropped because the TUN device's queue was full.";
            self.add("link", "overruns", "bentpipe_gateway_device_overruns_total", help, Total(overruns));
        }
        let help = "Packets of the host that are too long for a frame.";
        self.add("link", "too_long", "bentpipe_gateway_packets_too_long_total", help, Total(too_long));
    }
}

fn layer_readings(all: &mut Readings, stats: &CarrierStats) {
    use Value::{Millis, Total};
    let CarrierStats {
        channels,
        frames,
        frame_bytes,
        srtt,
        no_link,
        refused,
        received_bytes,
        headers_saved,
        unexpanded,
    } = stats;
    let help = "Smoothed round-trip time of the link; absent until measured.";
    all.add("satellite", "round_trip_ms", "bentpipe_gateway_round_trip_seconds", help, Millis(*srtt));
    for (key, metric, help, count) in [
        ("frames", "bentpipe_gateway_frames_sent_total", "Frames sent.", frames),
        (
            "frame_bytes",
            "bentpipe_gateway_frame_sent_bytes_total",
            "Bytes of frames sent, with tunnel, UDP and IP headers.",
            frame_bytes,
        ),
        (
            "received_bytes",
            "bentpipe_gateway_packet_received_bytes_total",
            "Bytes of packets received from the peer, without repetitions.",
            received_bytes,
        ),
        (
            "without_link",
            "bentpipe_gateway_packets_without_link_total",
            "Packets dropped because the link was down.",
            no_link,
        ),
        ("refused", "bentpipe_gateway_frames_refused_total", "Malformed frames received.", refused),
        (
            "headers_saved_bytes",
            "bentpipe_gateway_header_saved_bytes_total",
            "Bytes of headers saved by compression, without repetitions.",
            headers_saved,
        ),
        (
            "unexpanded",
            "bentpipe_gateway_packets_unexpanded_total",
            "Packets from the peer whose headers could not be decompressed.",
            unexpanded,
        ),
    ] {
        all.add("satellite", key, metric, help, Total(*count));
    }
    type Pick = fn(&bentpipe_engine::slacp::ChannelStats) -> u64;
    let picks: [(&'static str, &'static str, &'static str, Pick); 13] = [
        ("packets_sent", "bentpipe_gateway_packets_sent_total", "Packets sent, without repetitions.", |channel| {
            channel.sent
        }),
        (
            "sent_bytes",
            "bentpipe_gateway_packet_sent_bytes_total",
            "Bytes of packets sent, with compressed headers, without repetitions.",
            |channel| channel.sent_bytes,
        ),
        (
            "packets_delivered",
            "bentpipe_gateway_packets_delivered_total",
            "Packets from the peer delivered.",
            |channel| channel.delivered,
        ),
        ("lost", "bentpipe_gateway_frames_lost_total", "Lost transmissions.", |channel| channel.lost),
        ("resent", "bentpipe_gateway_packets_resent_total", "Packets retransmitted.", |channel| channel.resent),
        (
            "copies",
            "bentpipe_gateway_packets_copied_total",
            "Copies of packets sent while the line was idle.",
            |channel| channel.copies,
        ),
        ("repairs", "bentpipe_gateway_repairs_sent_total", "Repair frames (FEC) sent.", |channel| channel.repairs),
        (
            "repaired",
            "bentpipe_gateway_packets_repaired_total",
            "Lost packets that the peer recovered from repair frames.",
            |channel| channel.repaired,
        ),
        (
            "recovered",
            "bentpipe_gateway_packets_recovered_total",
            "Lost packets recovered here from repair frames.",
            |channel| channel.recovered,
        ),
        ("abandoned", "bentpipe_gateway_packets_abandoned_total", "Packets abandoned.", |channel| channel.abandoned),
        ("skipped", "bentpipe_gateway_packets_skipped_total", "Packets of the peer that never arrived.", |channel| {
            channel.skipped
        }),
        (
            "dropped",
            "bentpipe_gateway_packets_dropped_total",
            "Packets dropped at the queue, because it was full or by CoDel.",
            |channel| channel.dropped_full + channel.dropped_early,
        ),
        ("superseded", "bentpipe_gateway_acks_superseded_total", "Waiting ACKs replaced by a later one.", |channel| {
            channel.superseded
        }),
    ];
    for (key, metric, help, pick) in picks {
        all.add_by_channel(key, metric, help, channels.iter().map(|channel| Total(pick(channel))));
    }
}

#[cfg(test)]
mod tests;
