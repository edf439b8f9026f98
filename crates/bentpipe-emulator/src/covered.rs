//! Files that a program behind the link sees with different contents: `resolv.conf`, and `hosts` with the names of the
//! scenario's nodes.

use std::fs::{self, Permissions};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

const HOSTS: &str = "/etc/hosts";

/// Makes the mounts of the calling thread, and of the programs that it starts, private.
pub(crate) fn own_mounts() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_FS)?;
    let none = None::<&str>;
    Ok(mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?)
}

/// Covers the file `path`, after resolving links, with this text.
pub(crate) fn cover(path: &Path, text: &[u8]) -> io::Result<()> {
    let (folder, none) = (tempfile::tempdir()?, None::<&str>);
    // The file is on a file system of its own and keeps its name there: a second link behind this one could not mount
    // over a file without a name.
    mount(Some("tmpfs"), folder.path(), Some("tmpfs"), MsFlags::empty(), Some("size=1m,mode=755"))?;
    let file = folder.path().join("file");
    let covered = fs::write(&file, text)
        .and_then(|()| fs::set_permissions(&file, Permissions::from_mode(0o644)))
        .and_then(|()| Ok(mount(Some(&file), path, none, MsFlags::MS_BIND, none)?));
    umount2(folder.path(), MntFlags::MNT_DETACH)?;
    covered
}

/// Adds names to `hosts`, before the machine's own. Without such a file it does nothing, because there is nothing to
/// mount on.
pub(crate) fn add_hosts(names: &[(String, IpAddr)]) -> io::Result<()> {
    let Ok(path) = fs::canonicalize(HOSTS) else { return Ok(()) };
    let text = hosts_with(names)?.unwrap_or_default();
    cover(&path, &text)
}

/// The text of `hosts` with names added before the machine's own, whose comments may be in any encoding; `None` without such a file.
pub(crate) fn hosts_with(names: &[(String, IpAddr)]) -> io::Result<Option<Vec<u8>>> {
    with_names(Path::new(HOSTS), names)
}

fn with_names(hosts: &Path, names: &[(String, IpAddr)]) -> io::Result<Option<Vec<u8>>> {
    match fs::read(hosts) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        own => Ok(Some([lines(names).into_bytes(), own?].concat())),
    }
}

/// True if a resolver would look this name up there.
pub(crate) fn can_resolve(name: &str) -> bool {
    name != "localhost" && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.') && !name.is_empty()
}

/// The lines for the names that can resolve.
fn lines(names: &[(String, IpAddr)]) -> String {
    let named = names.iter().filter(|(name, _)| can_resolve(name));
    named.map(|(name, address)| format!("{address} {name}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_resolve_are_added() {
        let address = IpAddr::from([10, 0, 0, 1]);
        let names = ["server", "localhost", "ground station", "a\nb", ""].map(|name| (name.to_owned(), address));
        assert_eq!(lines(&names), "10.0.0.1 server\n");
    }

    #[test]
    fn the_machines_own_hosts_stay_as_they_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let (hosts, names) = (folder.path().join("hosts"), [("server".to_owned(), IpAddr::from([10, 0, 0, 1]))]);
        assert_eq!(with_names(&hosts, &names).expect("it is absent"), None);
        // Latin-1.
        fs::write(&hosts, b"10.9.9.9 other # caf\xe9\n").expect("room");
        let text = with_names(&hosts, &names).expect("readable").expect("it is there");
        assert_eq!(text, b"10.0.0.1 server\n10.9.9.9 other # caf\xe9\n");
    }
}
