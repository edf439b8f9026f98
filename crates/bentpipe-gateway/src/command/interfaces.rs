//! Checks whether the interfaces named in the settings exist.
//!
//! They are listed again only after the kernel has announced a change. Listing needs a netlink socket, and closing one
//! waits for a machine-wide lock: 200 gateways on two cores that each listed interfaces every second left little CPU
//! for anything else.

use std::collections::BTreeSet;

use crate::log::note;
use netlink_sys::protocols::NETLINK_ROUTE;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

use super::notices::Notices;
use crate::settings::{GatewayFile, ShapeTable};

/// RTMGRP_LINK (rtnetlink(7)).
const LINKS: u32 = 1;

/// The interfaces that a gateway needs.
pub(super) fn needed(file: &GatewayFile) -> Vec<String> {
    match &file.shape {
        ShapeTable::Split(table) => table.taken.interfaces.clone(),
        ShapeTable::Link(table) => vec![table.device.clone()],
        ShapeTable::Both(table, link) => [&table.taken.interfaces[..], std::slice::from_ref(&link.device)].concat(),
        ShapeTable::Uplink(table) => [&table.taken.interfaces[..], std::slice::from_ref(&table.device)].concat(),
        ShapeTable::Relay(table) => table.taken.interfaces.clone(),
    }
}

/// The needed interfaces that do not exist or are down.
pub(super) fn absent(needed: &[String]) -> Vec<String> {
    // If the kernel does not answer, no interface is reported as absent.
    let Ok(all) = getifaddrs() else { return Vec::new() };
    let up: BTreeSet<String> =
        all.filter(|one| one.flags.contains(InterfaceFlags::IFF_UP)).map(|one| one.interface_name).collect();
    needed.iter().filter(|&name| !up.contains(name)).cloned().collect()
}

/// Logs once when interfaces disappear, and once when they return.
#[derive(Debug)]
pub(super) struct Watched {
    absent: Vec<String>,
    notices: Notices,
}

impl Watched {
    pub(super) fn new() -> Self {
        Watched { absent: Vec::new(), notices: Notices::new(NETLINK_ROUTE, LINKS) }
    }

    pub(super) fn look(&mut self, needed: &[String]) -> &[String] {
        if !self.notices.has_news() {
            return &self.absent;
        }
        let now = absent(needed);
        for name in now.iter().filter(|name| !self.absent.contains(name)) {
            note!("interface {name} is absent or down: no traffic enters by it");
        }
        for name in self.absent.iter().filter(|name| !now.contains(name)) {
            note!("interface {name} is up");
        }
        self.absent = now;
        &self.absent
    }
}
