//! The kernel rules that decide which packets belong to the gateway: nftables rules in a table of their own and, for
//! TPROXY, a routing rule and a routing table that make marked packets local.
//!
//! Either all rules are installed or none, and they are removed by name. Rules of other programs and other gateways on
//! the machine are not touched. Reading order: [`Instance`] (the names); [`Rules`] (the text); `install` (installs and
//! removes them).

mod install;
mod instance;

pub use instance::Instance;

use crate::policy::Prefix;

/// Which packets belong to a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rules {
    /// TCP connections to other hosts that enter by these interfaces.
    Split {
        /// The interfaces. None: only the far side, whose connections with clients' addresses also need the routing.
        capture: Vec<String>,
        /// The port at which the gateway listens.
        port: u16,
        /// Destination ports to capture; none: all.
        ports: Vec<u16>,
        /// True to reset new connections that the gateway does not accept, even while it is not running. Otherwise they
        /// pass.
        refuse: bool,
        /// Destinations to capture, those behind peers; `None`: all.
        to: Option<Vec<Prefix>>,
        /// The TUN device, if the same gateway has peers of `link`, as in [`Rules::Link`].
        device: Option<String>,
    },
    /// TCP connections of clients behind these interfaces to other hosts, routed into a TUN device.
    Uplink {
        /// The interfaces towards the clients.
        satellite: Vec<String>,
        /// The device.
        device: String,
        /// Destination ports; none: all.
        ports: Vec<u16>,
    },
    /// New TCP connections of clients behind these interfaces to other hosts, redirected to a listener. Both sides then
    /// use the kernel's TCP.
    Relay {
        /// The interfaces towards the clients.
        satellite: Vec<String>,
        /// The port at which the gateway listens.
        port: u16,
        /// Destination ports; none: all.
        ports: Vec<u16>,
    },
    /// Packets through the TUN device. TCP segments are made to fit it, since not every path tells hosts its MTU.
    Link {
        /// The device.
        device: String,
    },
}

/// The match on destination addresses of an IP version; `None` if no packets would match.
fn addresses(to: Option<&[Prefix]>, is_v6: bool) -> Option<String> {
    let Some(all) = to else { return Some(String::new()) };
    let of_version: Vec<_> = all.iter().filter(|prefix| prefix.is_v6() == is_v6).map(Prefix::to_string).collect();
    let name = if is_v6 { "ip6" } else { "ip" };
    (!of_version.is_empty()).then(|| format!(" {name} daddr {}", set(of_version.into_iter())))
}

/// The match on destination ports.
fn destinations(ports: &[u16]) -> String {
    if ports.is_empty() { String::new() } else { format!(" tcp dport {}", set(ports.iter().map(u16::to_string))) }
}

/// Connection tracking would see two connections with the same addresses: the client's, and the gateway's own to the
/// server.
const UNTRACKED: &str = "\tchain prerouting {\n\t\ttype filter hook prerouting priority raw; policy accept;\n";

/// The end of that chain, and the chain for packets that the gateway sends.
fn sent_untracked(instance: &Instance) -> String {
    let sent = instance.sent();
    format!(
        "\t}}\n\tchain output {{\n\t\ttype filter hook output priority raw; policy accept;\n\t\tmeta mark {sent:#x} \
         notrack\n\t}}\n"
    )
}

/// Matches only the first packet of a connection: connections that began without the gateway continue without it.
const NEW: &str = "tcp flags & (fin | syn | rst | ack) == syn";

/// The match on fragments, by IP version.
const FRAGMENTS: [(&str, bool, &str); 2] =
    [("ipv4", false, "ip frag-off & 0x3fff != 0"), ("ipv6", true, "exthdr frag exists")];

/// A note for an administrator who does not find these connections in FORWARD.
const BYPASS: &str = "\t\t# Connections that end here do not pass the FORWARD chain of this machine, nor do those that the gateway opens:\n\t\t# `allow` and `deny` in the settings say which destinations they may reach.\n";

/// The new connections that a gateway captures, by interface and destination.
struct Captured<'a> {
    from: &'a [String],
    to: Option<&'a [Prefix]>,
    ports: &'a [u16],
}

impl Captured<'_> {
    /// Redirects packets to the listener at `port`, except those for this machine.
    fn handed_over(&self, port: u16, (mark, untracked): (u32, &str)) -> String {
        let (from, ports) = (interfaces(self.from), destinations(self.ports));
        let of = |(family, name, is_v6)| {
            let Some(to) = addresses(self.to, is_v6) else { return String::new() };
            format!(
                "\t\tiifname {from} meta nfproto {family}{to} {NEW}{ports} fib daddr type != local tproxy {name} to :{port} meta \
                 mark set {mark:#x}{untracked} accept\n"
            )
        };
        let mut text = String::from(BYPASS);
        text += "\t\t# New connections: they end here, or pass while the gateway does not listen. This comes before the rule for\n";
        text += "\t\t# existing connections, so that addresses and ports in TIME-WAIT can be used again at once.\n";
        text + &[("ipv4", "ip", false), ("ipv6", "ip6", true)].map(of).concat()
    }

    /// Refuses the first packet of a connection that the gateway should have accepted, so that no connection bypasses
    /// the tunnel.
    fn guard(&self) -> String {
        let (from, ports) = (interfaces(self.from), destinations(self.ports));
        let mut text =
            "\t\t# `without_peer = \"refuse\"`: connections that the gateway does not take are reset, even while it is stopped.\n\t\t# Fragments are dropped, because the TCP flags may not be in the first one; while the gateway runs, they arrive\n\t\t# reassembled (TPROXY).\n"
                .to_owned();
        for (family, is_v6, is_part) in FRAGMENTS {
            if let Some(to) = addresses(self.to, is_v6) {
                text += &format!(
                    "\t\tiifname {from} meta nfproto {family}{to} meta l4proto tcp {is_part}{ports} fib daddr type != local drop\n"
                );
            }
        }
        let versions = if self.to.is_some() { &[false, true][..] } else { &[false] };
        for to in versions.iter().filter_map(|&is_v6| addresses(self.to, is_v6)) {
            text += &format!("\t\tiifname {from}{to} {NEW}{ports} fib daddr type != local reject with tcp reset\n");
        }
        text
    }
}

/// Matches packets of connections that the gateway already has. `icmpv6` is a word of nft; `ipv6-icmp` would be looked up in
/// /etc/protocols, which small systems lack.
const OURS: &str = "\t\t# Connections that already end here, whatever their addresses; those older than the gateway pass.\n\t\tmeta l4proto tcp socket transparent 1 jump ours\n\t\t# ICMP errors about them, whose destination is the client or the server: routers tell the MTU, and that a server cannot be reached.\n\t\tmeta l4proto { icmp, icmpv6 } socket transparent 1 jump ours\n";

/// Packets of older connections to a listener's port do not match. (About a connection that is being opened, the kernel
/// reveals only that it is transparent.)
fn ours(mark: u32, untracked: &str) -> String {
    format!("\tchain ours {{\n\t\tsocket wildcard 1 return\n\t\tmeta mark set {mark:#x}{untracked} accept\n\t}}\n")
}

/// The chain of `link`: makes TCP segments fit the device.
fn fitting(device: &str) -> String {
    let mut text = "\tchain forward {\n\t\ttype filter hook forward priority mangle; policy accept;\n".to_owned();
    for way in ["iifname", "oifname"] {
        text += &format!("\t\t{way} \"{device}\" tcp flags syn tcp option maxseg size set rt mtu\n");
    }
    text + "\t}\n"
}

/// The chain of `split`.
const PREROUTING: &str = "\tchain prerouting {\n\t\ttype filter hook prerouting priority mangle; policy accept;\n";

fn interfaces(names: &[String]) -> String {
    set(names.iter().map(|name| format!("\"{name}\"")))
}

fn set(names: impl Iterator<Item = String>) -> String {
    format!("{{ {} }}", names.collect::<Vec<_>>().join(", "))
}

impl Rules {
    /// The rules as input for `nft -f`.
    pub fn nft(&self, instance: &Instance) -> String {
        let mark = instance.mark();
        let text = match self {
            Rules::Split { capture, port, ports, refuse, to, device } => {
                let captured = Captured { from: capture, to: to.as_deref(), ports };
                let mut text = ours(mark, "") + PREROUTING;
                if !capture.is_empty() {
                    text += &captured.handed_over(*port, (mark, ""));
                }
                text += OURS;
                if *refuse && !capture.is_empty() {
                    text += &captured.guard();
                }
                text + "\t}\n" + &device.as_deref().map_or(String::new(), fitting)
            }
            Rules::Uplink { satellite, ports, .. } => {
                let (from, to, into) = (interfaces(satellite), destinations(ports), instance.into_mark());
                let mut text = format!("{}{UNTRACKED}{BYPASS}{OURS}", ours(mark, " notrack"));
                text += "\t\t# Packets from clients go into the device; without a device they pass, as do those with IPv6 extension headers.\n";
                for is_tcp in ["ipv4 meta l4proto tcp", "ipv6 ip6 nexthdr tcp"] {
                    text += &format!(
                        "\t\tiifname {from} meta nfproto {is_tcp}{to} fib daddr type != local meta mark set {into:#x} notrack accept\n"
                    );
                }
                text + &sent_untracked(instance)
            }
            Rules::Relay { satellite, port, ports } => {
                let captured = Captured { from: satellite, to: None, ports };
                let taken = captured.handed_over(*port, (mark, " notrack"));
                format!("{}{UNTRACKED}{taken}{OURS}{}", ours(mark, " notrack"), sent_untracked(instance))
            }
            Rules::Link { device } => fitting(device),
        };
        replaced(instance, &text)
    }

    /// The rules that stay after a gateway has failed: those that refuse connections with `without_peer = "refuse"`,
    /// otherwise none.
    pub fn guard(&self, instance: &Instance) -> Option<String> {
        match self {
            Rules::Split { capture, ports, refuse: true, to, .. } if !capture.is_empty() => {
                let guard = Captured { from: capture, to: to.as_deref(), ports }.guard();
                Some(replaced(instance, &format!("{PREROUTING}{guard}\t}}\n")))
            }
            _ => None,
        }
    }

    /// The commands of `ip` that belong to the rules.
    pub fn routes(&self, instance: &Instance) -> Vec<Vec<String>> {
        let (local, into) = self.marks();
        let mut commands = Vec::new();
        for family in VERSIONS {
            if local {
                commands.push(instance.rule(family, "add", instance.local()));
            }
            if into {
                commands.push(instance.rule(family, "add", instance.device()));
            }
            if local {
                let table = instance.local().table;
                commands.push(words(&format!("{family} route replace local default dev lo table {table}")));
            }
        }
        commands
    }

    /// Two flags: true if there are packets to make local, and true if there are packets for the device of `uplink`.
    fn marks(&self) -> (bool, bool) {
        (!matches!(self, Rules::Link { .. }), matches!(self, Rules::Uplink { .. }))
    }

    /// All rules as shell commands.
    pub fn script(&self, instance: &Instance) -> String {
        let mut text = format!("nft -f - <<'END'\n{}END\n", self.nft(instance));
        for words in self.routes(instance) {
            text += &format!("ip {}\n", words.join(" "));
        }
        if let Rules::Uplink { device, .. } = self {
            text += "# Once the gateway has created its device:\n";
            for (_, words) in install::into(instance, device) {
                text += &format!("ip {}\n", words.join(" "));
            }
            text += &format!("sysctl -w net.ipv4.conf.{device}.rp_filter={}\n", install::LOOSE);
        }
        text
    }
}

/// Adding, deleting and writing a table in one transaction replaces it.
fn replaced(instance: &Instance, chains: &str) -> String {
    let table = instance.table();
    format!("add table inet {table}\ndelete table inet {table}\ntable inet {table} {{\n{chains}}}\n")
}

const VERSIONS: [&str; 2] = ["-4", "-6"];

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
