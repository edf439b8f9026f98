//! Whether the interfaces that the settings name are there.

use std::collections::BTreeSet;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

use crate::settings::{GatewayFile, ShapeTable};

/// The interfaces that a gateway needs to be of use.
pub(super) fn needed(file: &GatewayFile) -> Vec<String> {
    match &file.shape {
        ShapeTable::Split(table) => table.taken.interfaces.clone(),
        ShapeTable::Link(table) => vec![table.device.clone()],
        ShapeTable::Both(table, link) => [&table.taken.interfaces[..], std::slice::from_ref(&link.device)].concat(),
        ShapeTable::Uplink(table) => [&table.taken.interfaces[..], std::slice::from_ref(&table.device)].concat(),
        ShapeTable::Relay(table) => table.taken.interfaces.clone(),
    }
}

/// Those of them that do not exist or are down.
pub(super) fn absent(needed: &[String]) -> Vec<String> {
    // Where the kernel does not say, nothing is known to be absent.
    let Ok(all) = getifaddrs() else { return Vec::new() };
    let up: BTreeSet<String> =
        all.filter(|one| one.flags.contains(InterfaceFlags::IFF_UP)).map(|one| one.interface_name).collect();
    needed.iter().filter(|&name| !up.contains(name)).cloned().collect()
}

/// Says once when interfaces go and when they are back.
#[derive(Debug, Default)]
pub(super) struct Watched {
    absent: Vec<String>,
}

impl Watched {
    pub(super) fn look(&mut self, needed: &[String]) -> &[String] {
        let now = absent(needed);
        for name in now.iter().filter(|name| !self.absent.contains(name)) {
            eprintln!("interface {name} is absent or down: nothing comes in by it");
        }
        for name in self.absent.iter().filter(|name| !now.contains(name)) {
            eprintln!("interface {name} is up");
        }
        self.absent = now;
        &self.absent
    }
}
