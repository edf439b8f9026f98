//! The user that a gateway which root has started becomes.

use std::path::Path;

use bentpipe_io::note;
use caps::{CapSet, Capability};
use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Gid, Uid, geteuid, setgroups, setresgid, setresuid};

use super::failure::Failure;
use super::plan;
use crate::settings::GatewayFile;

/// Users of gateways whose settings name none: the package's own, or the one that owns nothing.
const DEFAULTS: [&str; 2] = ["bentpipe", "nobody"];

/// Whoever is not root.
#[derive(Debug)]
pub(super) struct User {
    name: String,
    uid: Uid,
    gid: Gid,
    /// True if the settings name this user.
    is_asked_for: bool,
}

impl User {
    /// Whom the settings name, or a default. None if the process is not root's, or is to stay so.
    pub(super) fn wanted(path: &Path, file: &GatewayFile) -> Result<Option<User>, Failure> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        match file.user.as_deref() {
            None => {
                let found = DEFAULTS.into_iter().find_map(|name| User::find(name, false));
                if found.is_none() {
                    note!(
                        "warning: the gateway stays root, since this machine has neither user `bentpipe` nor `nobody`"
                    );
                }
                Ok(found)
            }
            Some(name) => match User::find(name, true) {
                Some(user) => Ok(Some(user).filter(|user| !user.uid.is_root())),
                None => {
                    let message = format!("this machine has no user `{name}`");
                    let expected = "a user of /etc/passwd, or \"root\"".to_owned();
                    Err(plan::mistake(path, "user", message, expected)?)
                }
            },
        }
    }

    fn find(name: &str, is_asked_for: bool) -> Option<User> {
        let found = nix::unistd::User::from_name(name).ok().flatten()?;
        Some(User { name: found.name, uid: found.uid, gid: found.gid, is_asked_for })
    }

    /// Makes the folders that a gateway writes to while it runs. Those that were missing become this user's.
    pub(super) fn make_folders(&self, file: &GatewayFile) -> Result<(), Failure> {
        let state = file.tunnel.as_ref().map(|tunnel| &tunnel.state);
        for folder in [Some(&file.control), state].into_iter().flatten().filter_map(|path| path.parent()) {
            if !folder.as_os_str().is_empty() && !folder.exists() {
                let made = std::fs::create_dir_all(folder);
                made.map_err(|error| Failure::broken(format!("{}: {error}", folder.display())))?;
                self.give(folder);
            }
        }
        Ok(())
    }

    /// Gives this user a file or folder, if it may be given away.
    pub(super) fn give(&self, path: &Path) {
        // Without CAP_CHOWN it stays root's. What cannot be written later is said then.
        // Not what a link there leads to: the folder may be another user's.
        let _ = std::os::unix::fs::lchown(path, Some(self.uid.as_raw()), Some(self.gid.as_raw()));
    }

    /// Becomes this user permanently. The capabilities stay permitted. Stays root with a warning if the machine does not let it, as in a
    /// container without CAP_SETUID, and the settings do not name the user.
    pub(super) fn enter(&self) -> Result<(), Failure> {
        match self.change() {
            Err(error) if self.is_asked_for => {
                Err(Failure::broken(format!("the gateway cannot become user `{}`: {error}", self.name)))
            }
            Err(error) => {
                note!("warning: the gateway stays root, since it cannot become user `{}`: {error}", self.name);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn change(&self) -> Result<(), String> {
        for capability in [Capability::CAP_SETGID, Capability::CAP_SETUID] {
            if !caps::has_cap(None, CapSet::Effective, capability).map_err(|error| error.to_string())? {
                return Err(format!("{capability} is missing"));
            }
        }
        caps::securebits::set_keepcaps(true).map_err(|error| error.to_string())?;
        // A copy of memory in a file would be one of keys.
        let changed = setrlimit(Resource::RLIMIT_CORE, 0, 0)
            .and_then(|()| set_no_new_privs())
            .and_then(|()| setgroups(&[]))
            .and_then(|()| setresgid(self.gid, self.gid, self.gid))
            .and_then(|()| setresuid(self.uid, self.uid, self.uid));
        changed.map_err(|error| error.to_string())
    }
}

/// Warns if the process could not read its settings again, as the user that it is now.
pub(super) fn check_reload(path: &Path) {
    if let Err(error) = std::fs::File::open(path) {
        note!("warning: SIGHUP will change nothing: {}: {error}", path.display());
    }
}
