//! Kernel settings that make a gateway faster. If a service has no right to write them, root sets them before it
//! starts.

use std::fs;

use super::failure::{End, Failure, print};
use crate::settings::{GatewayFile, ShapeTable};
use crate::sockets;

/// Maximum size of UDP's buffers: a tenth of a second at 300 Mbit/s.
const BUFFER: u64 = 4 << 20;

/// Maximum number of connections being opened: the backlog of the gateway's listeners.
const BACKLOG: u64 = sockets::BACKLOG as u64;
const SOMAXCONN: &str = "net/core/somaxconn";

/// A kernel setting, and its new value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    name: &'static str,
    value: String,
}

pub(super) fn prepare(file: &GatewayFile) -> Result<End, Failure> {
    let read = |name: &str| fs::read_to_string(format!("/proc/sys/{name}")).ok()?.trim().parse().ok();
    for Change { name, value } in changes(file, read) {
        let written = fs::write(format!("/proc/sys/{name}"), &value);
        written.map_err(|error| Failure::broken(format!("/proc/sys/{name}: {error}")))?;
        print(&format!("{} = {value}\n", name.replace('/', ".")))?;
    }
    Ok(End::Done)
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
    let listens = match &file.shape {
        ShapeTable::Split(table) | ShapeTable::Both(table, _) => !table.taken.interfaces.is_empty(),
        ShapeTable::Relay(_) => true,
        ShapeTable::Link(_) | ShapeTable::Uplink(_) => false,
    };
    if listens && read(SOMAXCONN).is_some_and(|count| count < BACKLOG) {
        changes.push(Change { name: SOMAXCONN, value: BACKLOG.to_string() });
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
    }
}
