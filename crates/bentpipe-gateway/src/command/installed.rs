//! The kernel rules of a running gateway.
//!
//! A thread of their own looks after them: `nft` waits while another program changes rules, which may take seconds, and
//! connections must not wait with it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
/// The interval at which the thread looks for removed rules.
const LOOK: Duration = Duration::from_secs(1);
/// Minimum time between two log lines about removed rules.
const PAUSE: Duration = Duration::from_secs(60);

/// The rules of a running gateway; `None` if the command must leave the kernel's rules alone, or at the end.
#[derive(Debug)]
pub(super) struct Installed(Arc<Mutex<Option<Keeper>>>);

impl Installed {
    /// Installs the rules, and reinstalls them from then on if another program removes them.
    pub(super) fn new(no_rules: bool, file: &GatewayFile) -> Result<Installed, Failure> {
        let keeper = (!no_rules).then(|| Keeper::new(file)).transpose()?;
        let installed = Installed(Arc::new(Mutex::new(keeper)));
        let kept = Installed(installed.0.clone());
        let look = move || {
            loop {
                // The lock is free while the thread sleeps.
                match &mut *kept.keeper() {
                    Some(keeper) => keeper.look(),
                    None => return,
                }
                std::thread::sleep(LOOK);
            }
        };
        let thread = std::thread::Builder::new().name("rules".into());
        if let Err(error) = thread.spawn(look) {
            installed.end(true)?;
            return Err(Failure::broken(error));
        }
        Ok(installed)
    }

    fn keeper(&self) -> MutexGuard<'_, Option<Keeper>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies the settings of the rules that may change while the gateway runs: whether new connections are refused,
    /// and which destinations are behind peers.
    pub(super) fn reload(&self, read: &GatewayFile) {
        if let Some(keeper) = &mut *self.keeper() {
            keeper.reload(read);
        }
    }

    /// Removes all rules after an orderly end. After a failure, keeps the rules that the settings require.
    pub(super) fn end(self, is_orderly: bool) -> Result<(), Failure> {
        let keeper = self.keeper().take();
        keeper.map_or(Ok(()), |keeper| keeper.end(is_orderly))
    }
}

/// The rules, and whether they are still there.
#[derive(Debug)]
struct Keeper {
    rules: Rules,
    instance: Instance,
    notices: [Notices; 2],
    /// True if the last look failed, so that rules may be missing.
    is_unsure: bool,
    said: Option<Instant>,
}

impl Keeper {
    fn new(file: &GatewayFile) -> Result<Keeper, Failure> {
        let (rules, instance) = (plan::rules(file), plan::instance(file));
        rules.install(&instance).map_err(Failure::broken)?;
        let notices = [(NETLINK_NETFILTER, TABLES), (NETLINK_ROUTE, RULES)];
        let notices = notices.map(|(protocol, groups)| Notices::new(protocol, groups));
        Ok(Keeper { rules, instance, notices, is_unsure: false, said: None })
    }

    /// Reinstalls the rules if another program has removed them: `nft flush ruleset`, or a network manager that deletes
    /// routing rules unknown to it. If that fails, it is tried again at the next look, because the kernel announces each
    /// change only once.
    fn look(&mut self) {
        // Both sockets must be read.
        let news = self.notices.each_mut().map(Notices::has_news);
        if !news.contains(&true) && !self.is_unsure {
            return;
        }
        let done = match self.rules.are_installed(&self.instance) {
            Ok(true) => Ok(false),
            Ok(false) => self.rules.install(&self.instance).map(|()| true),
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
                    "another program has changed the kernel's rules, and this gateway's may be missing: {error}; it tries again every \
                     second"
                );
            }
            _ => return,
        }
        self.said = Some(Instant::now());
    }

    fn reload(&mut self, read: &GatewayFile) {
        let Rules::Split { refuse, to, .. } = &mut self.rules else { return };
        let Rules::Split { refuse: may_refuse, to: behind, .. } = plan::rules(read) else { return };
        if to.is_some() != behind.is_some() || (*refuse, &*to) == (may_refuse, &behind) {
            return;
        }
        (*refuse, *to) = (may_refuse, behind);
        if let Err(error) = self.rules.install(&self.instance) {
            note!("reload: the kernel's rules remain: {error}");
        }
    }

    fn end(self, is_orderly: bool) -> Result<(), Failure> {
        let Keeper { rules, instance, .. } = self;
        let done = if is_orderly { rules.remove(&instance) } else { rules.fall_back(&instance) };
        done.map_err(Failure::broken)
    }
}
