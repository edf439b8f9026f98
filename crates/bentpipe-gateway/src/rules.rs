//! What the kernel has to know: which packets are the gateway's. Rules of nftables in a table of their own, and, for
//! TPROXY, a routing rule and a table that make marked packets local.
//!
//! All of it is installed at once or not at all, and removed by name: nothing of anybody else's is touched.

use std::io::{self, Write};
use std::process::{Command, Stdio};

/// The mark of packets that are to be delivered here, whoever they are for.
const MARK: u32 = 0xb3;
/// The routing table for them.
const ROUTES: u32 = 179;
/// The rule's place among the host's: before the main table's, 32766.
const PREFERENCE: u32 = 17_900;
/// The mark of clients' packets that go into the uplink's device.
const INTO: u32 = 0xb4;
/// The routing table for them: its only route is the device's, and goes with it.
const INTO_ROUTES: u32 = 180;
const INTO_PREFERENCE: u32 = 17_901;
/// The mark of packets that the uplink sends in others' names.
pub(super) const SENT: u32 = 0xb5;

/// Which packets are the gateway's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rules {
    /// TCP connections that come in by these interfaces, for other hosts.
    Split {
        /// The interfaces; none: only the far side, whose connections in clients' names need the routing too.
        capture: Vec<String>,
        /// Where the gateway listens.
        port: u16,
        /// Destination ports to capture; none: all.
        ports: Vec<u16>,
    },
    /// TCP connections of clients behind these interfaces, for other hosts: into a TUN device.
    Uplink {
        /// The interfaces towards the clients.
        satellite: Vec<String>,
        /// The device.
        device: String,
        /// Destination ports; none: all.
        ports: Vec<u16>,
    },
    /// New TCP connections of clients behind these interfaces, for other hosts: to a listener, whose connections are the
    /// kernel's on both sides.
    Relay {
        /// The interfaces towards the clients.
        satellite: Vec<String>,
        /// Where the gateway listens.
        port: u16,
        /// Destination ports; none: all.
        ports: Vec<u16>,
    },
    /// The TUN device: TCP's segments must fit it, since not every path tells its hosts what does.
    Link {
        /// The device.
        device: String,
    },
}

/// What a rule says of destination ports.
fn destinations(ports: &[u16]) -> String {
    if ports.is_empty() { String::new() } else { format!(" tcp dport {}", set(ports.iter().map(u16::to_string))) }
}

/// Connection tracking would see two connections of one name, a client's and ours to its server.
const UNTRACKED: &str = "\tchain prerouting {\n\t\ttype filter hook prerouting priority raw; policy accept;\n";

/// The end of that chain, and the one for what we send.
fn sent_untracked() -> String {
    format!(
        "\t}}\n\tchain output {{\n\t\ttype filter hook output priority raw; policy accept;\n\t\tmeta mark {SENT:#x} \
         notrack\n\t}}\n"
    )
}

/// `what` comes in by these interfaces for other hosts goes to whoever listens at `port`.
fn handed_over(from: &[String], what: &str, ports: &[u16], port: u16, untracked: &str) -> String {
    let (from, to) = (interfaces(from), destinations(ports));
    let of = |(family, name)| {
        format!(
            "\t\tiifname {from} meta nfproto {family} {what}{to} fib daddr type != local tproxy {name} to :{port} meta \
             mark set {MARK:#x}{untracked} accept\n"
        )
    };
    [("ipv4", "ip"), ("ipv6", "ip6")].map(of).concat()
}

fn interfaces(names: &[String]) -> String {
    set(names.iter().map(|name| format!("\"{name}\"")))
}

fn set(names: impl Iterator<Item = String>) -> String {
    format!("{{ {} }}", names.collect::<Vec<_>>().join(", "))
}

impl Rules {
    /// The rules as `nft -f` takes them.
    pub fn nft(&self) -> String {
        // A table that is added, deleted and written anew is replaced in one transaction.
        let mut text = String::from("add table inet bentpipe\ndelete table inet bentpipe\ntable inet bentpipe {\n");
        match self {
            Rules::Split { capture, port, ports } => {
                text += "\tchain prerouting {\n\t\ttype filter hook prerouting priority mangle; policy accept;\n";
                text += "\t\t# Connections that are ours already, in whoever's name.\n";
                text += &format!("\t\tmeta l4proto tcp socket transparent 1 meta mark set {MARK:#x} accept\n");
                if !capture.is_empty() {
                    text += "\t\t# New ones, to be ended here. While nobody listens they pass.\n";
                    text += &handed_over(capture, "meta l4proto tcp", ports, *port, "");
                }
                text += "\t}\n";
            }
            Rules::Uplink { satellite, ports, .. } => {
                let (from, to) = (interfaces(satellite), destinations(ports));
                text += UNTRACKED;
                text += "\t\t# Answers of servers to connections that are ours, in clients' names.\n";
                text += &format!("\t\tmeta l4proto tcp socket transparent 1 meta mark set {MARK:#x} notrack accept\n");
                text += "\t\t# What clients send: into the device. While there is none it passes.\n";
                for family in ["ipv4", "ipv6"] {
                    text += &format!(
                        "\t\tiifname {from} meta nfproto {family} meta l4proto tcp{to} fib daddr type != local \
                         meta mark set {INTO:#x} notrack accept\n"
                    );
                }
                text += &sent_untracked();
            }
            Rules::Relay { satellite, port, ports } => {
                text += UNTRACKED;
                text += "\t\t# New ones, to be ended here. While nobody listens they pass. Before what is ours already: a name that a\n";
                text += "\t\t# connection has just left (TIME-WAIT) may be taken again at once.\n";
                text += &handed_over(satellite, "tcp flags & (fin | syn | rst | ack) == syn", ports, *port, " notrack");
                text += "\t\t# Connections that are ours already, in whoever's name; older ones pass.\n";
                text += &format!("\t\tmeta l4proto tcp socket transparent 1 meta mark set {MARK:#x} notrack accept\n");
                text += &sent_untracked();
            }
            Rules::Link { device } => {
                text += "\tchain forward {\n\t\ttype filter hook forward priority mangle; policy accept;\n";
                for way in ["iifname", "oifname"] {
                    text += &format!("\t\t{way} \"{device}\" tcp flags syn tcp option maxseg size set rt mtu\n");
                }
                text += "\t}\n";
            }
        }
        text + "}\n"
    }

    /// The commands of `ip` that go with them.
    pub fn routes(&self) -> Vec<Vec<String>> {
        self.ip("add")
    }

    fn ip(&self, verb: &str) -> Vec<Vec<String>> {
        let marks: &[(u32, u32, u32)] = match self {
            Rules::Split { .. } | Rules::Relay { .. } => &[(PREFERENCE, MARK, ROUTES)],
            Rules::Uplink { .. } => &[(PREFERENCE, MARK, ROUTES), (INTO_PREFERENCE, INTO, INTO_ROUTES)],
            Rules::Link { .. } => &[],
        };
        let mut commands = Vec::new();
        for family in VERSIONS {
            for (preference, mark, table) in marks {
                let rule = format!("{family} rule {verb} preference {preference} fwmark {mark:#x} lookup {table}");
                commands.push(words(&rule));
            }
            if !marks.is_empty() {
                commands.push(words(&format!("{family} route {verb} local default dev lo table {ROUTES}")));
            }
        }
        commands
    }

    /// All of it as a person would type it.
    pub fn script(&self) -> String {
        let mut text = format!("nft -f - <<'END'\n{}END\n", self.nft());
        for words in self.routes() {
            text += &format!("ip {}\n", words.join(" "));
        }
        if let Rules::Uplink { device, .. } = self {
            text += "# As soon as the gateway has made its device:\n";
            for (_, words) in into(device) {
                text += &format!("ip {}\n", words.join(" "));
            }
            text += &format!("sysctl -w net.ipv4.conf.{device}.rp_filter={LOOSE}\n");
        }
        text
    }

    /// Asks the kernel whether it would take them, and changes nothing.
    ///
    /// # Errors
    /// What `nft` said.
    pub fn check(&self) -> io::Result<()> {
        nft(&["-c"], &self.nft())
    }

    /// Installs them. What an earlier gateway left is replaced.
    ///
    /// # Errors
    /// What `nft` or `ip` said; nothing is left behind then.
    pub fn install(&self) -> io::Result<()> {
        self.remove()?;
        let done = nft(&[], &self.nft()).and_then(|()| self.routes().iter().try_for_each(|words| ip(words)));
        if done.is_err() {
            let _ = self.remove();
        }
        done
    }

    /// Removes them; what is not there is no error.
    ///
    /// # Errors
    /// What `nft` said.
    pub fn remove(&self) -> io::Result<()> {
        for words in self.ip("del") {
            // Until none is left: each start of a gateway that was killed may have added one.
            let mut max = 16;
            while max > 0 && ip(&words).is_ok() {
                max -= 1;
            }
        }
        nft(&[], "add table inet bentpipe\ndelete table inet bentpipe\n")
    }
}

const VERSIONS: [&str; 2] = ["-4", "-6"];

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// Packets that come out of the device have clients' addresses, which are routed elsewhere. The greater of the device's
/// setting and of the host's counts: strict (1) is less than loose (2), which is content with any route.
const LOOSE: u8 = 2;

/// The routes into the uplink's device, by the IP version.
fn into(device: &str) -> [(&'static str, Vec<String>); 2] {
    VERSIONS.map(|family| (family, words(&format!("{family} route replace default dev {device} table {INTO_ROUTES}"))))
}

/// Gives the uplink's device its routes and settings, and says what cannot be done.
pub(super) fn route_into(device: &str) -> Vec<String> {
    let mut lacks = Vec::new();
    for (family, words) in into(device) {
        if let Err(error) = ip(&words) {
            lacks.push(format!("IPv{} passes directly: {error}", &family[1..]));
        }
    }
    let setting = format!("/proc/sys/net/ipv4/conf/{device}/rp_filter");
    if let Err(error) = std::fs::write(&setting, LOOSE.to_string()) {
        lacks.push(format!(
            "connections older than the gateway may break off, where net.ipv4.conf.all.rp_filter is 1: {setting}: {error}"
        ));
    }
    lacks
}

fn nft(options: &[&str], script: &str) -> io::Result<()> {
    let mut child = start(Command::new("nft").args(options).args(["-f", "-"]).stdin(Stdio::piped()), "nft (nftables)")?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(script.as_bytes())?;
    }
    finish("nft", child)
}

fn ip(words: &[String]) -> io::Result<()> {
    let child = start(Command::new("ip").args(words).stdin(Stdio::null()), "ip (iproute2)")?;
    finish(&format!("ip {}", words.join(" ")), child)
}

fn start(command: &mut Command, what: &str) -> io::Result<std::process::Child> {
    let spawned = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    spawned.map_err(|error| io::Error::new(error.kind(), format!("{what} cannot be run: {error}")))
}

fn finish(what: &str, child: std::process::Child) -> io::Result<()> {
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{what}: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_typed() {
        let split = Rules::Split { capture: vec!["lan0".into(), "lan1".into()], port: 4000, ports: vec![80, 443] };
        let expected = "nft -f - <<'END'
add table inet bentpipe
delete table inet bentpipe
table inet bentpipe {
\tchain prerouting {
\t\ttype filter hook prerouting priority mangle; policy accept;
\t\t# Connections that are ours already, in whoever's name.
\t\tmeta l4proto tcp socket transparent 1 meta mark set 0xb3 accept
\t\t# New ones, to be ended here. While nobody listens they pass.
\t\tiifname { \"lan0\", \"lan1\" } meta nfproto ipv4 meta l4proto tcp tcp dport { 80, 443 } fib daddr type != local tproxy ip to :4000 meta mark set 0xb3 accept
\t\tiifname { \"lan0\", \"lan1\" } meta nfproto ipv6 meta l4proto tcp tcp dport { 80, 443 } fib daddr type != local tproxy ip6 to :4000 meta mark set 0xb3 accept
\t}
}
END
ip -4 rule add preference 17900 fwmark 0xb3 lookup 179
ip -4 route add local default dev lo table 179
ip -6 rule add preference 17900 fwmark 0xb3 lookup 179
ip -6 route add local default dev lo table 179
";
        assert_eq!(split.script(), expected);
        let uplink = Rules::Uplink { satellite: vec!["sat0".into()], device: "bentpipe0".into(), ports: vec![443] };
        let expected = "nft -f - <<'END'
add table inet bentpipe
delete table inet bentpipe
table inet bentpipe {
\tchain prerouting {
\t\ttype filter hook prerouting priority raw; policy accept;
\t\t# Answers of servers to connections that are ours, in clients' names.
\t\tmeta l4proto tcp socket transparent 1 meta mark set 0xb3 notrack accept
\t\t# What clients send: into the device. While there is none it passes.
\t\tiifname { \"sat0\" } meta nfproto ipv4 meta l4proto tcp tcp dport { 443 } fib daddr type != local meta mark set 0xb4 notrack accept
\t\tiifname { \"sat0\" } meta nfproto ipv6 meta l4proto tcp tcp dport { 443 } fib daddr type != local meta mark set 0xb4 notrack accept
\t}
\tchain output {
\t\ttype filter hook output priority raw; policy accept;
\t\tmeta mark 0xb5 notrack
\t}
}
END
ip -4 rule add preference 17900 fwmark 0xb3 lookup 179
ip -4 rule add preference 17901 fwmark 0xb4 lookup 180
ip -4 route add local default dev lo table 179
ip -6 rule add preference 17900 fwmark 0xb3 lookup 179
ip -6 rule add preference 17901 fwmark 0xb4 lookup 180
ip -6 route add local default dev lo table 179
# As soon as the gateway has made its device:
ip -4 route replace default dev bentpipe0 table 180
ip -6 route replace default dev bentpipe0 table 180
sysctl -w net.ipv4.conf.bentpipe0.rp_filter=2
";
        assert_eq!(uplink.script(), expected);
        let relay = Rules::Relay { satellite: vec!["sat0".into()], port: 4000, ports: Vec::new() };
        let expected = "nft -f - <<'END'
add table inet bentpipe
delete table inet bentpipe
table inet bentpipe {
\tchain prerouting {
\t\ttype filter hook prerouting priority raw; policy accept;
\t\t# New ones, to be ended here. While nobody listens they pass. Before what is ours already: a name that a
\t\t# connection has just left (TIME-WAIT) may be taken again at once.
\t\tiifname { \"sat0\" } meta nfproto ipv4 tcp flags & (fin | syn | rst | ack) == syn fib daddr type != local tproxy ip to :4000 meta mark set 0xb3 notrack accept
\t\tiifname { \"sat0\" } meta nfproto ipv6 tcp flags & (fin | syn | rst | ack) == syn fib daddr type != local tproxy ip6 to :4000 meta mark set 0xb3 notrack accept
\t\t# Connections that are ours already, in whoever's name; older ones pass.
\t\tmeta l4proto tcp socket transparent 1 meta mark set 0xb3 notrack accept
\t}
\tchain output {
\t\ttype filter hook output priority raw; policy accept;
\t\tmeta mark 0xb5 notrack
\t}
}
END
ip -4 rule add preference 17900 fwmark 0xb3 lookup 179
ip -4 route add local default dev lo table 179
ip -6 rule add preference 17900 fwmark 0xb3 lookup 179
ip -6 route add local default dev lo table 179
";
        assert_eq!(relay.script(), expected);
        let link = Rules::Link { device: "bentpipe0".into() };
        assert!(link.script().contains("oifname \"bentpipe0\" tcp flags syn tcp option maxseg size set rt mtu"));
        assert_eq!(link.routes(), Vec::<Vec<String>>::new());
    }
}
