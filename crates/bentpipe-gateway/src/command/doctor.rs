//! `doctor`: lists what the machine lacks and how to provide it.

use std::fs;
use std::io;
use std::process::Stdio;

use bentpipe_io::tun;
use caps::{CapSet, Capability};

use super::failure::{End, Failure, print};
use super::prepare::{self, MAX_SYN_BACKLOG, SOMAXCONN, SYN_COOKIES};
use crate::relay::has_congestion;
use crate::{Instance, Rules, congestion_controls};

/// A check, its result, and a remedy.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What was looked for.
    pub what: &'static str,
    /// True if gateways cannot run without it; otherwise they run less well.
    pub is_needed: bool,
    /// The finding, or what is missing and a remedy.
    pub result: Result<String, (String, &'static str)>,
}

/// The gateway's requirements and how well this machine meets them, with `more` findings in between.
pub fn findings(more: &[Finding]) -> Vec<Finding> {
    let programs = [nft(), program("ip", "iproute2")];
    let findings = [tun(), admin(), raw()].into_iter().chain(programs).chain([tproxy(), uplink(), congestion()]);
    findings
        .chain(more.iter().cloned())
        .chain(settings(|path| fs::read_to_string(format!("/proc/sys/{path}"))))
        .collect()
}

/// Prints the gateway's requirements and how well this machine meets them, with `more` findings.
///
/// # Errors
/// Fails if standard output cannot be written.
pub fn doctor(more: &[Finding]) -> Result<End, Failure> {
    let (mut lacks, mut text) = (false, String::new());
    for Finding { what, is_needed, result } in findings(more) {
        match result {
            Ok(is) => text += &format!("ok       {what}: {is}\n"),
            Err((is, help)) => {
                lacks |= is_needed;
                text += &format!("{} {what}: {is}\n         {help}\n", if is_needed { "missing " } else { "warning " });
            }
        }
    }
    print(&text)?;
    Ok(if lacks { End::Lacking } else { End::Done })
}

fn tun() -> Finding {
    let result =
        tun::can_be_made().map(|()| "can be opened".to_owned()).map_err(|(error, help)| (error.to_string(), help));
    Finding { what: "/dev/net/tun", is_needed: true, result }
}

fn admin() -> Finding {
    let help = "run as root, or with the systemd unit; in a container: --cap-add NET_ADMIN";
    let result = if is_admin() { Ok("available".into()) } else { Err(("not available".into(), help)) };
    Finding { what: "CAP_NET_ADMIN", is_needed: true, result }
}

/// Only `uplink` needs it, for its raw sockets.
fn raw() -> Finding {
    let help = "run as root, or with the systemd unit, for `uplink`; in a container: --cap-add NET_RAW";
    let result =
        if has(Capability::CAP_NET_RAW) { Ok("available".into()) } else { Err(("not available".into(), help)) };
    Finding { what: "CAP_NET_RAW", is_needed: false, result }
}

fn program(name: &'static str, package: &'static str) -> Finding {
    let ran =
        bentpipe_io::program(name).arg("-V").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let help = match package {
        "nftables" => "install nftables; `gateway` needs it",
        _ => "install iproute2; `emulate` and `gateway` need it",
    };
    let result = ran.map(|_| "runs".to_owned()).map_err(|error| (error.to_string(), help));
    Finding { what: name, is_needed: true, result }
}

fn nft() -> Finding {
    program("nft", "nftables")
}

/// Asks nft to check the rules without installing them.
fn tproxy() -> Finding {
    let help = "a kernel with CONFIG_NFT_TPROXY and CONFIG_NFT_SOCKET (modprobe nft_tproxy nft_socket), for `split` and \
                `sender = \"kernel\"`";
    let rules = Rules::Split {
        capture: vec!["lo".into()],
        port: 4000,
        ports: Vec::new(),
        refuse: true,
        to: None,
        device: None,
    };
    Finding { what: "TPROXY", is_needed: true, result: accepted(&rules, help) }
}

/// Checks whether nft accepts the rules; only root can do that.
fn accepted(rules: &Rules, help: &'static str) -> Result<String, (String, &'static str)> {
    if !is_admin() {
        return Err(("not checked: this needs root".to_owned(), "run it as root"));
    }
    // The kernel may well accept them.
    if let Err((_, help)) = nft().result {
        return Err(("not checked: this needs nft".to_owned(), help));
    }
    let checked = rules.check(&Instance::new("doctor"));
    checked.map(|()| "nft accepts the rules".to_owned()).map_err(|error| (error.to_string(), help))
}

fn is_admin() -> bool {
    has(Capability::CAP_NET_ADMIN)
}

fn has(capability: Capability) -> bool {
    caps::has_cap(None, CapSet::Effective, capability).unwrap_or(false)
}

/// Checks the rules of `uplink`.
fn uplink() -> Finding {
    let help = "a kernel with CONFIG_NFT_SOCKET and CONFIG_NFT_CT (modprobe nft_socket nft_ct), for `uplink`";
    let rules = Rules::Uplink { satellite: vec!["lo".into()], device: "bentpipe0".into(), ports: Vec::new() };
    Finding { what: "rules of uplink", is_needed: false, result: accepted(&rules, help) }
}

/// Checks the default congestion control of `sender = "kernel"`.
fn congestion() -> Finding {
    let help =
        "a kernel with CONFIG_TCP_CONG_BBR (modprobe tcp_bbr), or another `congestion`, for `sender = \"kernel\"`";
    let list = congestion_controls().join(", ");
    let result = match has_congestion("bbr") {
        // Without /proc.
        Ok(true) if list.is_empty() => Ok("bbr is available".to_owned()),
        Ok(true) => Ok(format!("bbr is available (of {list})")),
        Ok(false) => Err((format!("no bbr, only {list}"), help)),
        Err(error) => Err((error.to_string(), help)),
    };
    Finding { what: "congestion control", is_needed: false, result }
}

/// Whether a flood of SYNs, or even a single one, is answered by cookies, which do not work through TPROXY.
fn syn_cookies(cookies: Option<u64>, places: Option<u64>) -> Finding {
    let result = match (cookies, places) {
        (Some(2), _) => Err((
            format!(
                "{SYN_COOKIES} = 2: every connection to a gateway with `capture` or `sender = \"kernel\"` is reset"
            ),
            "sysctl -w net.ipv4.tcp_syncookies=1",
        )),
        (Some(0), Some(places)) if places < prepare::UNKNOWN => Err((
            format!("{SYN_COOKIES} = 0 and {MAX_SYN_BACKLOG} = {places}"),
            "sysctl -w net.ipv4.tcp_max_syn_backlog=131072",
        )),
        (Some(cookies), _) => Ok(format!("{SYN_COOKIES} = {cookies}")),
        (None, _) => Err((format!("{SYN_COOKIES} cannot be read"), "a kernel with CONFIG_SYN_COOKIES, and /proc/sys")),
    };
    Finding { what: "SYN cookies", is_needed: false, result }
}

/// What is found in the kernel's settings, which `read` returns as text.
fn settings(read: impl Fn(&str) -> io::Result<String>) -> Vec<Finding> {
    let setting = |what, paths: &[&str], is_right: fn(&[u64]) -> bool, help| {
        let values = paths.iter().map(|path| match read(path) {
            Ok(text) => text.trim().parse().map_err(|error| format!("{path}: {error}")),
            Err(error) => Err(format!("{path}: {error}")),
        });
        let result = values.collect::<Result<Vec<u64>, _>>().map_err(|error| (error, help)).and_then(|values| {
            let shown = paths.iter().zip(&values).map(|(path, value)| format!("{path} = {value}"));
            let shown = shown.collect::<Vec<_>>().join(", ");
            if is_right(&values) { Ok(shown) } else { Err((shown, help)) }
        });
        Finding { what, is_needed: false, result }
    };
    let number = |path: &str| read(path).ok()?.trim().parse().ok();
    vec![
        setting("forwarding, IPv4", &["net/ipv4/ip_forward"], |is| is[0] == 1, "sysctl -w net.ipv4.ip_forward=1"),
        setting(
            "forwarding, IPv6",
            &["net/ipv6/conf/all/forwarding"],
            |is| is[0] == 1,
            "sysctl -w net.ipv6.conf.all.forwarding=1",
        ),
        // For each interface, the kernel uses the greater of its own value, which new ones have from `default`, and that of all.
        setting(
            "reverse path filter",
            &["net/ipv4/conf/all/rp_filter", "net/ipv4/conf/default/rp_filter"],
            |is| is.iter().max() != Some(&1),
            "sysctl -w net.ipv4.conf.all.rp_filter=2",
        ),
        setting(
            "UDP buffers of 4 MiB",
            &["net/core/rmem_max", "net/core/wmem_max"],
            |is| is.iter().all(|&bytes| bytes >= prepare::BUFFER),
            "sysctl -w net.core.rmem_max=4194304 net.core.wmem_max=4194304",
        ),
        setting(
            "connections being opened",
            &[SOMAXCONN],
            |is| is[0] >= prepare::BACKLOG,
            "sysctl -w net.core.somaxconn=65536",
        ),
        syn_cookies(number(SYN_COOKIES), number(MAX_SYN_BACKLOG)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A setting of two values is right only if both are.
    #[test]
    fn both_buffers_and_both_filters_count() {
        let found = |what: &str, small: &str| {
            let read = |path: &str| Ok(if path == small { "1\n".to_owned() } else { format!("{}\n", 4 << 20) });
            let read = |path: &str| match path.ends_with("rp_filter") && path != small {
                true => Ok("0\n".to_owned()),
                false => read(path),
            };
            settings(read).into_iter().find(|finding| finding.what == what).expect("it is looked for").result
        };
        for half in ["all", "default"] {
            let path = format!("net/ipv4/conf/{half}/rp_filter");
            let (is, help) = found("reverse path filter", &path).expect_err("it is strict");
            assert!(is.contains(&format!("{path} = 1")) && help.contains("rp_filter=2"), "{is}");
        }
        assert!(found("reverse path filter", "").is_ok());
        for half in ["net/core/rmem_max", "net/core/wmem_max"] {
            let (is, _) = found("UDP buffers of 4 MiB", half).expect_err("it is small");
            assert!(is.contains(&format!("{half} = 1")), "{is}");
        }
        let is = found("UDP buffers of 4 MiB", "").expect("both are large");
        assert_eq!(is, "net/core/rmem_max = 4194304, net/core/wmem_max = 4194304");
    }

    /// Containers may have one of the two capabilities.
    #[test]
    fn a_lack_of_raw_sockets_is_noticed() {
        let found = std::thread::spawn(|| {
            // Capabilities belong to threads.
            let _ = caps::drop(None, CapSet::Effective, Capability::CAP_NET_RAW);
            findings(&[]).into_iter().find(|finding| finding.what == "CAP_NET_RAW")
        });
        let found = found.join().expect("no panic").expect("it is looked for");
        assert!(!found.is_needed && found.result.is_err_and(|(_, help)| help.contains("--cap-add NET_RAW")));
    }

    #[test]
    fn cookies_are_good_only_as_a_last_resort() {
        let helps = |cookies, places| syn_cookies(Some(cookies), Some(places)).result.map_err(|(_, help)| help);
        assert_eq!(helps(2, 1 << 20), Err("sysctl -w net.ipv4.tcp_syncookies=1"));
        assert_eq!(helps(0, 4096), Err("sysctl -w net.ipv4.tcp_max_syn_backlog=131072"));
        assert!(helps(0, 131_072).is_ok() && helps(1, 128).is_ok());
    }
}
