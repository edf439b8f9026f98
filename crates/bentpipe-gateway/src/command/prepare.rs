//! Kernel settings that make a gateway faster. If a service has no right to write them, root sets them before it
//! starts.

use std::fmt;
use std::fs;
use std::path::Path;

use super::failure::{End, Failure, print};
use crate::settings::{GatewayFile, ShapeTable};
use crate::sockets;

/// Maximum size of UDP's buffers: a tenth of a second at 300 Mbit/s.
pub(super) const BUFFER: u64 = 4 << 20;

/// Maximum number of connections being opened: the backlog of the gateway's listeners.
pub(super) const BACKLOG: u64 = sockets::BACKLOG as u64;
pub(super) const SOMAXCONN: &str = "net/core/somaxconn";
/// With 2, the kernel answers every SYN by a cookie, whose ACKs TPROXY does not match. With 0, MAX_SYN_BACKLOG limits
/// connections being opened, too, and its last quarter is for clients that have connected before.
pub(super) const SYN_COOKIES: &str = "net/ipv4/tcp_syncookies";
pub(super) const MAX_SYN_BACKLOG: &str = "net/ipv4/tcp_max_syn_backlog";
/// Three quarters of this are more than the backlog.
pub(super) const UNKNOWN: u64 = 2 * BACKLOG;

/// A kernel setting, and its new value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    name: &'static str,
    value: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.name.replace('/', "."), self.value)
    }
}

pub(super) fn prepare(file: &GatewayFile) -> Result<End, Failure> {
    for change in changes(file, read) {
        let Change { name, value } = &change;
        let written = fs::write(format!("/proc/sys/{name}"), value);
        written.map_err(|error| Failure::broken(format!("/proc/sys/{name}: {error}")))?;
        print(&format!("{change}\n"))?;
    }
    Ok(End::Done)
}

/// A kernel setting of this machine.
pub(super) fn read(name: &str) -> Option<u64> {
    fs::read_to_string(format!("/proc/sys/{name}")).ok()?.trim().parse().ok()
}

/// A warning if there are settings to change.
pub(super) fn hint(path: &Path, file: &GatewayFile) -> Option<String> {
    let changes: Vec<_> = changes(file, read).iter().map(Change::to_string).collect();
    (!changes.is_empty()).then(|| {
        format!(
            "the kernel's settings are not what this gateway needs under load: `bentpipe-gateway prepare {}`, as root, sets {}",
            path.display(),
            changes.join(", ")
        )
    })
}

/// True if the gateway listens for connections of hosts.
pub(super) fn listens(file: &GatewayFile) -> bool {
    match &file.shape {
        ShapeTable::Split(table) | ShapeTable::Both(table, _) => !table.taken.interfaces.is_empty(),
        ShapeTable::Relay(_) => true,
        ShapeTable::Link(_) | ShapeTable::Uplink(_) => false,
    }
}

/// The settings to change. Values that are already large enough are left alone.
fn changes(file: &GatewayFile, read: impl Fn(&str) -> Option<u64>) -> Vec<Change> {
    let mut changes = Vec::new();
    if file.tunnel.is_some() {
        for name in ["net/core/rmem_max", "net/core/wmem_max"] {
            if read(name).is_some_and(|bytes| bytes < BUFFER) {
                changes.push(Change { name, value: BUFFER.to_string() });
            }
        }
    }
    if listens(file) {
        if read(SOMAXCONN).is_some_and(|count| count < BACKLOG) {
            changes.push(Change { name: SOMAXCONN, value: BACKLOG.to_string() });
        }
        match read(SYN_COOKIES) {
            Some(2) => changes.push(Change { name: SYN_COOKIES, value: "1".to_owned() }),
            Some(0) if read(MAX_SYN_BACKLOG).is_some_and(|count| count < UNKNOWN) => {
                changes.push(Change { name: MAX_SYN_BACKLOG, value: UNKNOWN.to_string() });
            }
            _ => {}
        }
    }
    // The device of `uplink` inherits this value. The kernel uses the greater of the device's value and the host's: 2
    // is loose, 1 is strict.
    let default = "net/ipv4/conf/default/rp_filter";
    let is_strict = [default, "net/ipv4/conf/all/rp_filter"].into_iter().filter_map(&read).max() == Some(1);
    if matches!(file.shape, ShapeTable::Uplink(_)) && is_strict {
        changes.push(Change { name: default, value: "2".to_owned() });
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_needed_is_changed() {
        let satellite = "name = \"x\"\n[satellite]\nrate = \"1 Mbit/s\"\nround_trip = \"600 ms\"\n";
        let key = format!("CQ{}=", "A".repeat(41));
        let tunnel = format!("[tunnel]\nprivate_key = \"key\"\npeer_key = \"{key}\"\n[split]\n");
        let near = format!("{tunnel}capture = [\"lan0\"]\n");
        let kernel = "[uplink]\nsatellite = [\"sat0\"]\nsender = \"kernel\"\n";
        let [uplink, split, near, kernel] =
            ["[uplink]\nsatellite = [\"sat0\"]\n", &tunnel, &near, kernel].map(|shape| {
                GatewayFile::parse(&format!("{satellite}{shape}"), "x.toml").unwrap_or_else(|error| panic!("{error}"))
            });
        let names = |file: &GatewayFile, values: [u64; 3]| -> Vec<_> {
            let [buffers, all, default] = values;
            let read = |name: &str| match name {
                "net/ipv4/conf/all/rp_filter" => Some(all),
                "net/ipv4/conf/default/rp_filter" => Some(default),
                SOMAXCONN => Some(4096),
                SYN_COOKIES => Some(1),
                _ => Some(buffers),
            };
            changes(file, read).into_iter().map(|change| (change.name, change.value)).collect()
        };
        let loose = || ("net/ipv4/conf/default/rp_filter", "2".to_owned());
        let more = |name| (name, "4194304".to_owned());
        assert_eq!(names(&split, [212_992, 1, 1]), [more("net/core/rmem_max"), more("net/core/wmem_max")]);
        assert_eq!(names(&split, [8 << 20, 1, 1]), []);
        assert_eq!(names(&uplink, [212_992, 1, 0]), [loose()]);
        assert_eq!(names(&uplink, [212_992, 0, 1]), [loose()]);
        assert_eq!(names(&uplink, [212_992, 0, 0]), [], "no filter");
        assert_eq!(names(&uplink, [212_992, 1, 2]), []);
        for listens in [&near, &kernel] {
            assert_eq!(names(listens, [8 << 20, 0, 0]), [("net/core/somaxconn", "65536".to_owned())]);
        }
        let cookies = |cookies: u64, places: u64| {
            let read = move |name: &str| match name {
                SYN_COOKIES => Some(cookies),
                MAX_SYN_BACKLOG => Some(places),
                _ => Some(1 << 30),
            };
            changes(&near, read).iter().map(Change::to_string).collect::<Vec<_>>()
        };
        assert_eq!(cookies(2, 1), ["net.ipv4.tcp_syncookies = 1"]);
        assert_eq!(cookies(0, 4096), ["net.ipv4.tcp_max_syn_backlog = 131072"]);
        assert!(cookies(1, 4096).is_empty() && cookies(0, 131_072).is_empty());
    }
}
