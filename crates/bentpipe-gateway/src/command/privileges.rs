//! The privileges of the process, and how it drops them.

use caps::{CapSet, Capability, CapsHashSet};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::failure::Failure;
use super::user::User;

/// Number of descriptors that a gateway wants, as the service's LimitNOFILE: two for each of 16 384 connections, and as
/// many again for a hub's peers.
const DESCRIPTORS: u64 = 65_536;

/// Raises the limit of open files, which is 1024 in a usual shell, as far as the hard limit allows.
pub(super) fn raise_descriptors() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let wanted = soft.max(DESCRIPTORS.min(hard));
        // With fewer descriptors there are fewer connections.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, wanted, hard);
    }
}

/// Requires CAP_NET_ADMIN. Without it, everything here would fail with misleading system errors.
pub(super) fn needs_privilege() -> Result<(), Failure> {
    match caps::has_cap(None, CapSet::Effective, Capability::CAP_NET_ADMIN) {
        Ok(true) => Ok(()),
        _ => Err(Failure::usage(
            "gateways change kernel rules, which this user may not do",
            Some("run it as root, or with CAP_NET_ADMIN (`uplink`: and CAP_NET_RAW); `doctor` shows what is missing"),
        )),
    }
}

/// Switches to `user` and keeps only CAP_NET_ADMIN. It is needed for listeners and connections in others' names, and
/// for `nft` and `ip` at the end, which inherit it unless the gateway is root.
pub(super) fn give_up_privileges(user: Option<&User>) -> Result<(), Failure> {
    let had = caps::read(None, CapSet::Permitted).map_err(Failure::broken)?;
    if had.contains(&Capability::CAP_SETPCAP) {
        for capability in caps::all() {
            if capability != Capability::CAP_NET_ADMIN {
                // This fails for capabilities that the kernel does not know.
                let _ = caps::drop(None, CapSet::Bounding, capability);
            }
        }
    }
    user.map_or(Ok(()), User::enter)?;
    let kept: CapsHashSet = had.intersection(&[Capability::CAP_NET_ADMIN].into_iter().collect()).copied().collect();
    caps::set(None, CapSet::Effective, &kept).map_err(Failure::broken)?;
    caps::set(None, CapSet::Permitted, &kept).map_err(Failure::broken)?;
    // The ambient set shrinks along with these two sets.
    let inherited = if nix::unistd::geteuid().is_root() { CapsHashSet::new() } else { kept };
    caps::set(None, CapSet::Inheritable, &inherited).map_err(Failure::broken)?;
    // The change of user has emptied the ambient set.
    share_privileges()
}

/// Passes the capabilities on to child processes, unless the user is root.
pub(super) fn share_privileges() -> Result<(), Failure> {
    if nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    let admin = Capability::CAP_NET_ADMIN;
    caps::raise(None, CapSet::Inheritable, admin).map_err(Failure::broken)?;
    caps::raise(None, CapSet::Ambient, admin).map_err(Failure::broken)
}
