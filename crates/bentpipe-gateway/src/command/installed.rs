//! The kernel rules of a running gateway.
//!
//! A thread of their own looks after them: `nft` waits while another program changes rules, which may take seconds, and
//! connections must not wait with it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::log::note;
use netlink_sys::protocols::{NETLINK_NETFILTER, NETLINK_ROUTE};

use super::failure::Failure;
use super::notices::Notices;
use super::plan;
use crate::access::Table;
use crate::policy::Whose;
use crate::settings::GatewayFile;
use crate::{Instance, Rules};

/// NFNLGRP_NFTABLES, group 7 (nfnetlink.h).
const TABLES: u32 = 1 << 6;
/// RTNLGRP_IPV4_RULE and RTNLGRP_IPV6_RULE, groups 8 and 19 (rtnetlink.h).
const RULES: u32 = 1 << 7 | 1 << 18;
/// The interval at which the thread looks for removed rules.
const LOOK: Duration = Duration::from_secs(1);
/// Addresses of documentation (RFC 5737, RFC 3849). Only packets with the gateway's mark are for this machine.
const ELSEWHERE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];
/// Minimum time between two log lines about removed rules.
const PAUSE: Duration = Duration::from_secs(60);

/// The rules of a running gateway; `None` if the command must leave the kernel's rules alone, and after the end. Dropped before the end,
/// as if the gateway had failed.
#[derive(Debug)]
pub(super) struct Installed(Option<(Sender<Rules>, JoinHandle<Keeper>)>);

impl Installed {
    /// Installs the rules, and reinstalls them from then on if another program removes them.
    pub(super) fn new(no_rules: bool, file: &GatewayFile) -> Result<Installed, Failure> {
        if no_rules {
            return Ok(Installed(None));
        }
        let (wishes, wanted) = mpsc::channel();
        let (rules, instance) = (plan::rules(file), plan::instance(file));
        rules.install(&instance).map_err(Failure::broken)?;
        let mut keeper = Keeper::new(rules.clone(), instance.clone());
        let keep = move || {
            loop {
                match wanted.recv_timeout(LOOK) {
                    Ok(rules) => keeper.change(rules),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return keeper,
                }
                keeper.look();
            }
        };
        match thread::Builder::new().name("rules".into()).spawn(keep) {
            Ok(thread) => Ok(Installed(Some((wishes, thread)))),
            Err(error) => {
                rules.remove(&instance).map_err(Failure::broken)?;
                Err(Failure::broken(error))
            }
        }
    }

    /// Applies the settings of the rules that may change while the gateway runs: whether new connections are refused,
    /// and which destinations are behind peers. Does not wait until this is done.
    pub(super) fn reload(&self, read: &GatewayFile) {
        if let Some((wishes, _)) = &self.0 {
            // Fails only if the thread has panicked.
            let _ = wishes.send(plan::rules(read));
        }
    }

    /// Removes all rules after an orderly end. After a failure, keeps the rules that the settings require.
    pub(super) fn end(mut self, is_orderly: bool) -> Result<(), Failure> {
        self.finish(is_orderly)
    }

    fn finish(&mut self, is_orderly: bool) -> Result<(), Failure> {
        let Some((wishes, thread)) = self.0.take() else { return Ok(()) };
        drop(wishes);
        let keeper = thread.join().map_err(|_| Failure::broken("the thread for the kernel's rules has panicked"))?;
        keeper.end(is_orderly)
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        if let Err(error) = self.finish(false) {
            error.report();
        }
    }
}

/// The rules, and whether they are still there.
#[derive(Debug)]
struct Keeper {
    rules: Rules,
    instance: Instance,
    notices: [Notices; 2],
    table: Table,
    /// Whether marked packets were for this machine at the last look, by IP version.
    are_ours: [bool; 2],
    /// True if routes are missing.
    is_unrouted: bool,
    /// True if the last look failed, so that rules may be missing.
    is_unsure: bool,
    /// True if the kernel may have the rules of the settings before a reload.
    is_outdated: bool,
    said: Option<Instant>,
}

impl Keeper {
    /// Of rules that are installed.
    fn new(rules: Rules, instance: Instance) -> Keeper {
        let notices = [(NETLINK_NETFILTER, TABLES), (NETLINK_ROUTE, RULES)];
        let notices = notices.map(|(protocol, groups)| Notices::new(protocol, groups));
        let mut keeper = Keeper {
            rules,
            instance,
            notices,
            table: Table::default(),
            are_ours: [false; 2],
            is_unrouted: false,
            is_unsure: false,
            is_outdated: false,
            said: None,
        };
        keeper.look_at_routes();
        keeper
    }

    /// Reinstalls the rules if another program has removed them: `nft flush ruleset`, or a network manager that deletes
    /// routing rules unknown to it. If that fails, it is tried again at the next look, because the kernel announces each
    /// change only once.
    fn look(&mut self) {
        if self.is_outdated {
            self.update();
        }
        // Both sockets must be read.
        let news = self.notices.each_mut().map(Notices::has_news);
        self.look_at_routes();
        if !news.contains(&true) && !self.is_unrouted && !self.is_unsure {
            return;
        }
        let done = match self.rules.are_installed(&self.instance) {
            Ok(true) if !self.is_unrouted => Ok(false),
            Ok(_) => self.rules.install(&self.instance).map(|()| true),
            Err(error) => Err(error),
        };
        if let Ok(true) = done {
            self.look_at_routes();
            self.is_unrouted = false;
        }
        let was_unsure = std::mem::replace(&mut self.is_unsure, done.is_err());
        let is_due = self.said.is_none_or(|said| said.elapsed() >= PAUSE);
        match done {
            Ok(true) if is_due || was_unsure => {
                note!("another program removed this gateway's rules from the kernel: they are installed again");
            }
            Ok(false) if was_unsure => note!("this gateway's rules are in the kernel"),
            Err(error) if is_due => {
                note!(
                    "another program has changed the kernel's rules, and this gateway's may be missing: {error}; it tries again every \
                     second"
                );
            }
            _ => return,
        }
        self.said = Some(Instant::now());
    }

    /// Notices that marked packets are no longer for this machine, because somebody has deleted the routes. The kernel's
    /// notices about routes are not used: on a router, there may be thousands per second.
    fn look_at_routes(&mut self) {
        let mark = self.instance.mark();
        let are_ours = ELSEWHERE.map(|address| self.table.whose(address, mark) == Whose::Own);
        let before = std::mem::replace(&mut self.are_ours, are_ours);
        self.is_unrouted |= before.into_iter().zip(are_ours).any(|(before, now)| before && !now);
    }

    /// Replaces the rules by those of the settings read again.
    fn change(&mut self, read: Rules) {
        let Rules::Split { refuse, to, .. } = &mut self.rules else { return };
        let Rules::Split { refuse: may_refuse, to: behind, .. } = read else { return };
        if to.is_some() != behind.is_some() || (*refuse, &*to) == (may_refuse, &behind) {
            return;
        }
        (*refuse, *to) = (may_refuse, behind);
        self.update();
    }

    /// Installs changed rules. If this fails, it is tried again at the next look.
    fn update(&mut self) {
        let done = self.rules.replace(&self.instance);
        let was_outdated = std::mem::replace(&mut self.is_outdated, done.is_err());
        match done {
            Ok(()) if was_outdated => note!("reload: the kernel has the new rules"),
            Err(error) if !was_outdated => {
                note!("reload: the kernel keeps the old rules for now: {error}; it tries again every second");
            }
            _ => {}
        }
    }

    fn end(self, is_orderly: bool) -> Result<(), Failure> {
        let Keeper { rules, instance, .. } = self;
        let done = if is_orderly { rules.remove(&instance) } else { rules.fall_back(&instance) };
        done.map_err(Failure::broken)
    }
}
