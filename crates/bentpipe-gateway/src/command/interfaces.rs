//! Whether the interfaces that the settings name are there.
//!
//! They are listed again only when the kernel has told of a change. A list takes a netlink socket, and closing one waits for a lock
//! of the whole machine: with 200 gateways on two cores that each listed them every second, little else got done.

use std::collections::BTreeSet;
use std::io::ErrorKind;

use bentpipe_io::note;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr as Netlink};
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
    /// Where the kernel tells of interfaces, from the first look on.
    notices: Option<Socket>,
}

impl Watched {
    pub(super) fn look(&mut self, needed: &[String]) -> &[String] {
        if !self.has_news() {
            return &self.absent;
        }
        let now = absent(needed);
        for name in now.iter().filter(|name| !self.absent.contains(name)) {
            note!("interface {name} is absent or down: nothing comes in by it");
        }
        for name in self.absent.iter().filter(|name| !now.contains(name)) {
            note!("interface {name} is up");
        }
        self.absent = now;
        &self.absent
    }

    /// Whether an interface may have changed since the last look. Where the kernel cannot be heard it may.
    fn has_news(&mut self) -> bool {
        let Some(socket) = &self.notices else {
            self.notices = notices().ok();
            return true;
        };
        let mut has_news = false;
        loop {
            match socket.recv(&mut Vec::with_capacity(4096), 0) {
                Ok(_) => has_news = true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return has_news,
                // ENOBUFS: there were more than the socket holds.
                Err(_) => {
                    self.notices = None;
                    return true;
                }
            }
        }
    }
}

/// A socket for the kernel's notices of interfaces in the network namespace of this thread.
fn notices() -> std::io::Result<Socket> {
    /// RTMGRP_LINK (rtnetlink(7)).
    const LINKS: u32 = 1;
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.set_non_blocking(true)?;
    socket.bind(&Netlink::new(0, LINKS))?;
    Ok(socket)
}
