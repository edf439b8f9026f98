//! The kernel's rules while a gateway runs.

use bentpipe_io::note;

use super::failure::Failure;
use super::plan;
use crate::settings::GatewayFile;
use crate::{Instance, Rules};

/// The rules of a running gateway; none if the command leaves the kernel's rules alone.
#[derive(Debug)]
pub(super) struct Installed {
    rules: Option<Rules>,
    instance: Instance,
}

impl Installed {
    pub(super) fn new(no_rules: bool, file: &GatewayFile) -> Result<Installed, Failure> {
        let (rules, instance) = (plan::rules(file), plan::instance(file));
        if !no_rules {
            rules.install(&instance).map_err(Failure::broken)?;
        }
        Ok(Installed { rules: (!no_rules).then_some(rules), instance })
    }

    /// Applies the settings of rules that may change while the gateway runs: whether new connections are refused, and
    /// which destinations lie behind peers.
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

    /// Removes all rules after an orderly end. After a failure, keeps those that the settings ask for.
    pub(super) fn end(self, is_orderly: bool) -> Result<(), Failure> {
        let Some(rules) = self.rules else { return Ok(()) };
        let done = if is_orderly { rules.remove(&self.instance) } else { rules.fall_back(&self.instance) };
        done.map_err(Failure::broken)
    }
}
