//! The kernel rules of a running gateway.

use std::time::{Duration, Instant};

use crate::log::note;
use netlink_sys::protocols::{NETLINK_NETFILTER, NETLINK_ROUTE};

use super::failure::Failure;
use super::notices::Notices;
use super::plan;
use crate::settings::GatewayFile;
use crate::{Instance, Rules};

/// NFNLGRP_NFTABLES, group 7 (nfnetlink.h).
const TABLES: u32 = 1 << 6;
/// RTNLGRP_IPV4_RULE and RTNLGRP_IPV6_RULE, groups 8 and 19 (rtnetlink.h).
const RULES: u32 = 1 << 7 | 1 << 18;
/// Minimum time between two log lines about removed rules.
const PAUSE: Duration = Duration::from_secs(60);

/// The rules of a running gateway; none if the command must leave the kernel's rules alone.
#[derive(Debug)]
pub(super) struct Installed {
    rules: Option<Rules>,
    instance: Instance,
    notices: [Notices; 2],
    /// True if the last look failed, so that rules may be missing.
    is_unsure: bool,
    said: Option<Instant>,
}

impl Installed {
    pub(super) fn new(no_rules: bool, file: &GatewayFile) -> Result<Installed, Failure> {
        let (rules, instance) = (plan::rules(file), plan::instance(file));
        if !no_rules {
            rules.install(&instance).map_err(Failure::broken)?;
        }
        let notices = [(NETLINK_NETFILTER, TABLES), (NETLINK_ROUTE, RULES)];
        let notices = notices.map(|(protocol, groups)| Notices::new(protocol, groups));
        Ok(Installed { rules: (!no_rules).then_some(rules), instance, notices, is_unsure: false, said: None })
    }

    /// Reinstalls the rules if another program has removed them: `nft flush ruleset`, or a network manager that deletes
    /// routing rules unknown to it. If that fails, it is tried again at the next look, because the kernel announces each
    /// change only once.
    pub(super) fn look(&mut self) {
        let Some(rules) = &self.rules else { return };
        // Both sockets must be read.
        let news = self.notices.each_mut().map(Notices::has_news);
        if !news.contains(&true) && !self.is_unsure {
            return;
        }
        let done = match rules.are_installed(&self.instance) {
            Ok(true) => Ok(false),
            Ok(false) => rules.install(&self.instance).map(|()| true),
            Err(error) => Err(error),
        };
        let was_unsure = std::mem::replace(&mut self.is_unsure, done.is_err());
        let is_due = self.said.is_none_or(|said| said.elapsed() >= PAUSE);
        match done {
            Ok(true) if is_due || was_unsure => {
                note!("another program removed this gateway's rules from the kernel: they are installed again");
            }
            Ok(false) if was_unsure => note!("this gateway's rules are in the kernel"),
            Err(error) if is_due => {
                note!(
                    "another program has changed the kernel's rules, and this gateway's may be missing: {error}; it tries again every second"
                );
            }
            _ => return,
        }
        self.said = Some(Instant::now());
    }

    /// Applies the settings of the rules that may change while the gateway runs: whether new connections are refused,
    /// and which destinations are behind peers.
    pub(super) fn reload(&mut self, read: &GatewayFile) {
        let Some(Rules::Split { refuse, to, .. }) = &mut self.rules else { return };
        let Rules::Split { refuse: may_refuse, to: behind, .. } = plan::rules(read) else { return };
        if to.is_some() != behind.is_some() || (*refuse, &*to) == (may_refuse, &behind) {
            return;
        }
        (*refuse, *to) = (may_refuse, behind);
        if let Some(rules) = &self.rules
            && let Err(error) = rules.install(&self.instance)
        {
            note!("reload: the kernel's rules remain: {error}");
        }
    }

    /// Removes all rules after an orderly end. After a failure, keeps the rules that the settings require.
    pub(super) fn end(self, is_orderly: bool) -> Result<(), Failure> {
        let Some(rules) = self.rules else { return Ok(()) };
        let done = if is_orderly { rules.remove(&self.instance) } else { rules.fall_back(&self.instance) };
        done.map_err(Failure::broken)
    }
}
