//! Access from behind the links to the outside: forwarding, masquerading and DNS, as far as the machine has them.

use std::fs;
use std::io;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bentpipe_io::{Made, Session, program, succeeded};

use crate::Addressing;
use crate::plan::OUTER;

/// Where systemd writes the upstream servers of its local resolver.
const UPSTREAM: &str = "/run/systemd/resolve/resolv.conf";

/// What can be reached outside the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outside {
    /// True if IPv4 destinations can be reached.
    pub v4: bool,
    /// True if IPv6 destinations can be reached.
    pub v6: bool,
    /// The content of `resolv.conf` behind the link, if it differs from the machine's.
    pub resolver: Option<String>,
    /// Descriptions of what is missing.
    pub missing: Vec<String>,
}

/// Forwards packets from `device`, whose network is that of `addressing`. They follow the routes of the calling
/// thread's namespace and carry the machine's own address. All changes are recorded in `session`.
///
/// # Errors
/// Fails if the device, its routes or the nftables rules cannot be created, even as root.
pub(crate) fn open(session: &mut Session, device: &str, addressing: Addressing, has_v6: bool) -> io::Result<Outside> {
    let mut outside = Outside { v4: has_default(&[])?, v6: has_v6 && has_default(&["-6"])?, ..Outside::default() };
    if !outside.v4 && !outside.v6 {
        outside.missing.push("the outside: this machine has no default route".to_owned());
        return Ok(outside);
    }
    let servers = servers(&text(Path::new("/etc/resolv.conf")).unwrap_or_default());
    let mut local = None;
    if servers.iter().all(IpAddr::is_loopback) {
        let upstream = text(Path::new(UPSTREAM)).ok();
        let upstream = upstream.filter(|text| self::servers(text).iter().any(|server| !server.is_loopback()));
        local = servers.iter().find(|server| server.is_ipv4()).copied().filter(|_| upstream.is_none());
        outside.resolver = upstream.or(local.map(|_| format!("nameserver {}\n", addressing.v4(OUTER))));
        if outside.resolver.is_none() {
            outside.missing.push("names: /etc/resolv.conf names no server that can be reached from there".to_owned());
        }
    }
    let table = format!("bentpipe_{}_{}", std::process::id(), addressing.network);
    session.note(Made::Table(table.clone()))?;
    if let Err(error) = nft(&rules(&table, device, addressing, local)) {
        outside.missing.push(format!("the outside: {error}"));
        return Ok(Outside { missing: outside.missing, ..Outside::default() });
    }
    if outside.v4 {
        session.set("net/ipv4/ip_forward", "1")?;
    }
    if local.is_some() {
        fs::write(format!("/proc/sys/net/ipv4/conf/{device}/route_localnet"), "1")?;
    }
    if outside.v6 {
        // By default a router ignores router advertisements, but the machine's own route may depend on them.
        for advertised in advertised()? {
            session.set(&format!("net/ipv6/conf/{advertised}/accept_ra"), "2")?;
        }
        session.set("net/ipv6/conf/all/forwarding", "1")?;
    }
    Ok(outside)
}

/// The output of iproute2 in the namespace of the calling thread.
fn ip_says(arguments: &[&str]) -> io::Result<String> {
    let output = program("ip").args(arguments).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// True if the calling thread's namespace has a default route.
pub(crate) fn has_default(version: &[&str]) -> io::Result<bool> {
    let arguments: Vec<&str> = version.iter().copied().chain(["route", "show", "default"]).collect();
    Ok(!ip_says(&arguments)?.trim().is_empty())
}

/// The IPv4 gateway of the default route in the calling thread's namespace.
pub(crate) fn gateway() -> io::Result<Option<Ipv4Addr>> {
    let route = ip_says(&["route", "show", "default"])?;
    Ok(route.split_once(" via ").and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok()))
}

/// Devices whose default route comes from router advertisements.
fn advertised() -> io::Result<Vec<String>> {
    let routes = ip_says(&["-6", "route", "show", "default"])?;
    let device = |line: &str| line.split(" dev ").nth(1)?.split_whitespace().next().map(str::to_owned);
    Ok(routes.lines().filter(|line| line.contains("proto ra")).filter_map(device).collect())
}

/// The text of a `resolv.conf`, whose comments may be in any encoding.
fn text(path: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

/// The servers of a `resolv.conf`.
fn servers(text: &str) -> Vec<IpAddr> {
    let server = |line: &str| {
        let mut words = line.split_whitespace();
        (words.next()? == "nameserver").then(|| words.next()?.split('%').next()?.parse().ok()).flatten()
    };
    text.lines().filter_map(server).collect()
}

/// Masquerading for the emulation's network, and access to a resolver on the machine's loopback.
fn rules(table: &str, device: &str, addressing: Addressing, local: Option<IpAddr>) -> String {
    let (v4, v6) = (addressing.v4(OUTER), addressing.v6(OUTER));
    let resolver = local.map_or(String::new(), |server| {
        format!(
            "chain names {{ type nat hook prerouting priority dstnat;
                iifname \"{device}\" ip daddr {v4} udp dport 53 dnat ip to {server}
                iifname \"{device}\" ip daddr {v4} tcp dport 53 dnat ip to {server}
            }}"
        )
    });
    format!(
        "table inet {table} {{
            chain out {{ type nat hook postrouting priority srcnat;
                ip saddr {v4}/24 oifname != \"{device}\" masquerade
                ip6 saddr {v6}/64 oifname != \"{device}\" masquerade
            }}
            {resolver}
        }}"
    )
}

fn nft(rules: &str) -> io::Result<()> {
    feed(program("nft").args(["-f", "-"]), rules)
}

/// Runs nft, or what a test takes for it. Its own message says more than the error of a pipe whose reader has ended.
fn feed(nft: &mut Command, rules: &str) -> io::Result<()> {
    let mut child = nft
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("nft (nftables) cannot be run: {error}")))?;
    let written = child.stdin.take().expect("piped").write_all(rules.as_bytes());
    succeeded("nft", &child.wait_with_output()?).and(written)
}

/// The target of `/etc/resolv.conf`, with links resolved: the mount point.
pub(crate) fn resolv_conf() -> PathBuf {
    fs::canonicalize("/etc/resolv.conf").unwrap_or_else(|_| Path::new("/etc/resolv.conf").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_may_be_in_any_encoding() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), b"# caf\xe9\nnameserver 192.0.2.53\n").expect("room");
        assert_eq!(servers(&text(file.path()).expect("readable")), [IpAddr::from([192, 0, 2, 53])]);
    }

    /// The input is longer than a pipe holds, so the write fails for certain.
    #[test]
    fn a_program_that_reads_nothing_is_heard() {
        let error = feed(Command::new("sh").args(["-c", "echo not permitted >&2; exit 1"]), &"x".repeat(1 << 20));
        assert_eq!(error.expect_err("it fails").to_string(), "nft: not permitted");
    }

    #[test]
    fn a_program_that_is_missing_is_named_with_its_package() {
        let error = feed(&mut Command::new("./no-such-program"), "").expect_err("it is not there");
        assert!(error.to_string().starts_with("nft (nftables) cannot be run: No such file"), "{error}");
    }

    #[test]
    fn servers_are_read_and_loopback_is_known() {
        let text = "# nameserver 1.1.1.1\nsearch example\nnameserver 127.0.0.53\nnameserver fe80::1%eth0\noptions a\n";
        let found = servers(text);
        assert_eq!(found.iter().map(IpAddr::is_loopback).collect::<Vec<_>>(), [true, false]);
        assert_eq!(
            servers("#nameserver 1.1.1.1\n;nameserver 1.1.1.1\nnameservers 1.1.1.1\nnameserver\n"),
            [] as [IpAddr; 0]
        );
    }
}
