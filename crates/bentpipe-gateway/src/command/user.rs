//! The user to which a gateway started by root switches.

use std::path::Path;

use crate::control::make_folder;
use crate::log::note;
use caps::{CapSet, Capability};
use nix::fcntl::{OFlag, open};
use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::stat::Mode;
use nix::unistd::{AccessFlags, Gid, Uid, access, fchown, geteuid, setgroups, setresgid, setresuid};

use super::failure::Failure;
use super::plan;
use crate::settings::GatewayFile;

/// Users of gateways whose settings name none: the package's user, or `nobody`.
const DEFAULTS: [&str; 2] = ["bentpipe", "nobody"];

/// A user other than root.
#[derive(Debug)]
pub(super) struct User {
    name: String,
    uid: Uid,
    gid: Gid,
    /// True if the settings name this user.
    is_asked_for: bool,
}

impl User {
    /// The user that the settings name, or a default. `None` if the process does not run as root, or must stay root.
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
                    let expected = "a user in /etc/passwd, or \"root\"".to_owned();
                    Err(plan::mistake(path, "user", message, expected)?)
                }
            },
        }
    }

    fn find(name: &str, is_asked_for: bool) -> Option<User> {
        let found = nix::unistd::User::from_name(name).ok().flatten()?;
        Some(User { name: found.name, uid: found.uid, gid: found.gid, is_asked_for })
    }

    /// Creates the folders to which a gateway writes while it runs. New ones belong to this user. The gateway's own
    /// folder is also given to this user, because it may belong to an earlier one.
    pub(super) fn make_folders(&self, file: &GatewayFile) -> Result<(), Failure> {
        for folder in written_folders(file) {
            if !folder.exists() || folder == file.own_folder() {
                let made = make_folder(folder);
                made.map_err(|error| Failure::broken(format!("{}: {error}", folder.display())))?;
                self.give_folder(folder);
            }
        }
        Ok(())
    }

    /// Makes this user the owner of a folder, if permitted. If another user has put a link or a file in its place, that
    /// is not given away.
    fn give_folder(&self, folder: &Path) {
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        if let Ok(folder) = open(folder, flags, Mode::empty()) {
            let _ = fchown(folder, Some(self.uid), Some(self.gid));
        }
    }

    /// Makes this user the owner of a file, if permitted.
    pub(super) fn give(&self, path: &Path) {
        // Without CAP_CHOWN it stays root's; a failed write is reported later. Symbolic links are not followed, because
        // the folder may belong to another user.
        let _ = std::os::unix::fs::lchown(path, Some(self.uid.as_raw()), Some(self.gid.as_raw()));
    }

    /// Switches to this user permanently; the capabilities stay permitted. If the machine does not permit the switch,
    /// as in a container without CAP_SETUID, the process stays root with a warning, unless the settings name the user.
    pub(super) fn enter(&self) -> Result<(), Failure> {
        match self.change() {
            Err(error) if self.is_asked_for => {
                Err(Failure::broken(format!("the gateway cannot switch to user `{}`: {error}", self.name)))
            }
            Err(error) => {
                note!("warning: the gateway stays root, since it cannot switch to user `{}`: {error}", self.name);
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
        // A core dump would contain keys.
        let changed = setrlimit(Resource::RLIMIT_CORE, 0, 0)
            .and_then(|()| set_no_new_privs())
            .and_then(|()| setgroups(&[]))
            .and_then(|()| setresgid(self.gid, self.gid, self.gid))
            .and_then(|()| setresuid(self.uid, self.uid, self.uid));
        changed.map_err(|error| error.to_string())
    }
}

/// The folders of the socket for `status` and of the peers' addresses.
fn written_folders(file: &GatewayFile) -> impl Iterator<Item = &Path> {
    let state = file.tunnel.as_ref().map(|tunnel| &*tunnel.state);
    let folders = [Some(&*file.control), state].into_iter().flatten().filter_map(Path::parent);
    folders.filter(|folder| !folder.as_os_str().is_empty())
}

/// Warns about actions that the process can no longer take as its new user: saving the peers' addresses, removing its
/// socket, and reading its settings again.
pub(super) fn check_rights(path: &Path, file: &GatewayFile) {
    let refused = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        access(folder, AccessFlags::W_OK).err().map(|error| format!("{}: {}", folder.display(), error.desc()))
    };
    if let Some(why) = file.tunnel.as_ref().and_then(|tunnel| refused(&tunnel.state)) {
        note!(
            "warning: peers' addresses are not saved: after a restart, the gateway waits until they contact it: {why}"
        );
    }
    if let Some(why) = refused(&file.control) {
        note!("warning: the gateway cannot remove the socket for `status` when it ends: {why}");
    }
    if let Err(error) = std::fs::File::open(path) {
        note!("warning: a reload (SIGHUP) will fail: {}: {error}", path.display());
    }
}
