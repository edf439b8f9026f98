//! Emulation without root: a user namespace in which an ordinary user may create devices and networks.
//!
//! The user namespace does not include the machine's own network. If `pasta` (of passt) is installed, it joins the two
//! without root; otherwise nothing outside can be reached.

use std::fs;
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bentpipe_io::ip;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::EmulateError;
use crate::nat;

/// Maximum time that `pasta` may take to set up its device.
const PATIENCE: Duration = Duration::from_secs(3);

/// The connection to the outside for a process that has become root. Dropping it ends the connection.
#[derive(Debug)]
pub struct Pasta(Child);

impl Pasta {
    /// The address at which `pasta` passes connections on to the machine's own programs: that of the default gateway.
    pub fn machine(&self) -> Option<Ipv4Addr> {
        nat::gateway().ok()?
    }
}

impl Drop for Pasta {
    fn drop(&mut self) {
        // It may already have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Makes the process root in new user, network and mount namespaces. Returns the connection to the outside, if `pasta`
/// provides one. Call this first: the system refuses it for a process with several threads.
///
/// # Errors
/// Fails if the kernel does not allow it for ordinary users.
pub fn become_root() -> Result<Option<Pasta>, EmulateError> {
    let (uid, gid) = (geteuid(), getegid());
    // It is started in the old namespaces and waits until this process is in the new ones, which it then joins by this
    // process's pid. It ends if this process is killed.
    let pasta =
        format!("read _ && exec setpriv --pdeathsig TERM pasta --foreground --config-net -q {}", std::process::id());
    let pasta = Command::new("sh")
        .args(["-c", &pasta])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C at the terminal is for the command, which may continue and need it.
        .process_group(0)
        .spawn();
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).map_err(|error| {
        EmulateError::Lacking {
            what: format!("not root, and the kernel allows no user namespaces: {error}"),
            help: "run it with sudo, or allow them (kernel.apparmor_restrict_unprivileged_userns=0, \
                   user.max_user_namespaces above 0; in a container: --security-opt seccomp=unconfined)"
                .to_owned(),
        }
    })?;
    let write = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text).map_err(EmulateError::system(format!("/proc/self/{file}")))
    };
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("0 {uid} 1"))?;
    write("gid_map", format!("0 {gid} 1"))?;
    ip(&["link", "set", "lo", "up"]).map_err(EmulateError::system("the loopback device"))?;
    let Ok(mut child) = pasta else { return Ok(None) };
    let begun = child.stdin.take().is_some_and(|mut stdin| stdin.write_all(b"\n").is_ok());
    let mut pasta = Pasta(child);
    let start = Instant::now();
    while begun && start.elapsed() < PATIENCE {
        // It has no other way to report that it is ready.
        if nat::has_default(&[]).unwrap_or(false) || nat::has_default(&["-6"]).unwrap_or(false) {
            return Ok(Some(pasta));
        }
        match pasta.0.try_wait() {
            Ok(None) => std::thread::sleep(Duration::from_millis(10)),
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// True if this user is not root.
pub fn is_needed() -> bool {
    !geteuid().is_root()
}
