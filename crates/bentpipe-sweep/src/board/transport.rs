//! The transports of the board: hosts as people run them.

use bentpipe_engine::units::{Bytes, Duration};
use bentpipe_language::quantity::{SIZE, format_duration};
use bentpipe_study::limit::flow_limit;
use bentpipe_study::scenario::Scenario;
use bentpipe_study::topology;

/// A transport at both hosts.
#[derive(Debug)]
pub struct Transport {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub what: &'static str,
    hosts: Hosts,
    knows: Knows,
    /// Settings of TCP beyond its row of the table.
    cells: &'static [(&'static str, &'static str)],
}

/// The hosts' side of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hosts {
    /// TCP with this profile and this row of the table of variants.
    Tcp { profile: &'static str, variant: &'static str },
    /// QUIC with this congestion control, and repair symbols for this part of the data.
    Quic { control: &'static str, repair: Option<&'static str> },
}

/// What the hosts know of the path from an earlier connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Knows {
    /// Nothing.
    Nothing,
    /// Its window and its minimum round trip, for careful resume (RFC 9959).
    Resume,
    /// Its window and round trip, with which the connection starts; the server's keys, for 0-RTT; and a rate of ACKs that both ends
    /// have agreed on.
    Path,
}

const fn tcp(name: &'static str, variant: &'static str, what: &'static str) -> Transport {
    Transport { name, what, hosts: Hosts::Tcp { profile: "linux", variant }, knows: Knows::Nothing, cells: &[] }
}

const fn quic(name: &'static str, control: &'static str, what: &'static str) -> Transport {
    Transport { name, what, hosts: Hosts::Quic { control, repair: None }, knows: Knows::Nothing, cells: &[] }
}

/// The transports, in the board's order.
pub const TRANSPORTS: &[Transport] = &[
    tcp("linux-cubic", "linux-cubic", "Linux 6.18 as it is shipped: CUBIC with HyStart, RACK, PRR"),
    tcp("linux-reno", "linux-reno", "Linux with Reno"),
    tcp("linux-bbr", "bbr", "Linux with BBR v1"),
    tcp("bbr3", "bbr3", "Linux's TCP with BBRv3"),
    tcp("hybla", "hybla", "Linux's TCP with Hybla, paced"),
    tcp("westwood", "westwood", "Linux's TCP with Westwood+"),
    tcp("vegas", "vegas", "Linux's TCP with Vegas"),
    tcp("cubic", "cubic", "Linux's TCP with RFC 9438 and HyStart++"),
    Transport {
        name: "sack",
        what: "TCP of the RFCs with SACK (RFC 6675) and Reno's window",
        hosts: Hosts::Tcp { profile: "rfc", variant: "sack" },
        knows: Knows::Nothing,
        cells: &[],
    },
    Transport {
        cells: &[("slow_start_exit", "search")],
        ..tcp("search", "linux-cubic", "linux-cubic with SEARCH in place of HyStart")
    },
    Transport {
        cells: &[("limited_slow_start", "100")],
        ..tcp("limited", "linux-cubic", "linux-cubic with limited slow start (RFC 3742, max_ssthresh of 100 segments)")
    },
    Transport {
        cells: &[("ecn", "accurate")],
        ..tcp("prague", "prague", "Linux's TCP with Prague, for L4S; no queue here marks, so it reacts to losses alone")
    },
    Transport {
        knows: Knows::Resume,
        ..tcp("resume", "linux-cubic", "linux-cubic with careful resume (RFC 9959), a cache with the path's window")
    },
    quic("quic-cubic", "cubic", "QUIC (quinn) with quinn's CUBIC"),
    quic("quic-linux", "linux-cubic", "QUIC (quinn) with Linux's CUBIC and HyStart"),
    quic("quic-bbr", "bbr", "QUIC (quinn) with quinn's BBR"),
    quic("quic-steady", "steady", "QUIC (quinn) with a window that does not shrink for losses of up to 2 %"),
    Transport {
        knows: Knows::Path,
        ..quic(
            "quic-known",
            "steady",
            "quic-steady that knows the path: 0-RTT, the path's window and round trip at the start, an ACK for 64 packets",
        )
    },
    Transport {
        name: "quic-coded",
        what: "quic-known with repair symbols for 3 % of the data (Reed-Solomon, by the application)",
        hosts: Hosts::Quic { control: "steady", repair: Some("3 %") },
        knows: Knows::Path,
        cells: &[],
    },
];

/// ACKs of a peer that knows the path. An ACK with all ranges that quinn reports is 250 bytes long, so one for 64 packets takes 0.3 % of
/// their bytes. The maximum delay is the default (RFC 9000 §18.2).
const RARE_ACKS: [(&str, &str); 3] = [("every", "64"), ("delay", "25 ms"), ("at_once", "true")];

impl Transport {
    /// True if boxes cannot terminate its connections.
    pub fn is_quic(&self) -> bool {
        matches!(self.hosts, Hosts::Quic { .. })
    }

    /// The values of a scenario's keys that give the hosts their settings, what they know, and QUIC instead of TCP. `path` is the scenario
    /// with TCP.
    pub(crate) fn sets(&self, path: &Scenario) -> Vec<(String, String)> {
        let mut sets = Vec::new();
        let mut set = |key: &str, value: &str| sets.push((key.to_owned(), value.to_owned()));
        for (key, value) in self.cells {
            set(&format!("tcp.{key}"), value);
        }
        if let Hosts::Quic { control, repair } = self.hosts {
            set("flows.download.type", "quic");
            set("flows.download.quic.congestion_control", control);
            set("flows.download.quic.zero_rtt", if self.knows == Knows::Path { "true" } else { "false" });
            // A file may be written in any order; quinn gives up a stream with many gaps.
            set("flows.download.quic.unordered", "true");
            if let Some(repair) = repair {
                set("flows.download.quic.repair", repair);
            }
            // The run is the same and is computed faster.
            set("flows.download.quic.encryption", "false");
        }
        if self.knows != Knows::Nothing
            && let Some((window, round_trip)) = measured(path)
        {
            let window = SIZE.format(window.get());
            match self.hosts {
                Hosts::Tcp { .. } if self.knows == Knows::Resume => {
                    set("tcp.resume.cwnd", &window);
                    set("tcp.resume.min_rtt", &format_duration(round_trip));
                }
                Hosts::Tcp { .. } => {}
                Hosts::Quic { .. } => {
                    set("flows.download.quic.initial_window", &window);
                    set("flows.download.quic.initial_rtt", &format_duration(round_trip));
                    for (key, value) in RARE_ACKS {
                        set(&format!("flows.download.quic.ack_frequency.{key}"), value);
                    }
                }
            }
        }
        sets
    }

    /// The profile and the variant of its TCP.
    pub(crate) fn tcp(&self) -> Option<(&'static str, &'static str)> {
        match self.hosts {
            Hosts::Tcp { profile, variant } => Some((profile, variant)),
            Hosts::Quic { .. } => None,
        }
    }
}

/// The measurements of an earlier connection alone on the path: the window that keeps the path busy, and the minimum
/// round trip.
fn measured(path: &Scenario) -> Option<(Bytes, Duration)> {
    let flow = path.flows.first()?;
    let delay = |way: topology::Path| way.iter().fold(Duration::ZERO, |sum, &link| sum + path[link].config.delay);
    let round_trip = delay(topology::forward_path(path, flow).ok()?) + delay(topology::return_path(path, flow).ok()?);
    let rate = flow_limit(path, flow).ok()??.long_run?;
    Some((Bytes::new((rate * round_trip.as_secs_f64() / 8.0) as u64), round_trip))
}
