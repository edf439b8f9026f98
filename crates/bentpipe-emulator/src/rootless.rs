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

    /// True if `pasta` has ended, so that the outside can no longer be reached.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Pasta {
    fn drop(&mut self) {
        // It may already have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Makes the process root in new user, network and mount namespaces. Returns the connection to the outside, or the reason why `pasta`
/// provides none. Call this first: the system refuses it for a process with several threads.
///
/// # Errors
/// Fails if the kernel does not allow it for ordinary users.
pub fn become_root() -> Result<Result<Pasta, String>, EmulateError> {
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
    let mut child = match pasta {
        Ok(child) => child,
        Err(error) => return Ok(Err(format!("`pasta` cannot be started: {error}"))),
    };
    // If nobody reads it, the child has ended, which is looked at below.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(b"\n"));
    let mut pasta = Pasta(child);
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        // It has no other way to report that it is ready.
        if nat::has_default(&[]).unwrap_or(false) || nat::has_default(&["-6"]).unwrap_or(false) {
            return Ok(Ok(pasta));
        }
        match pasta.0.try_wait() {
            Ok(None) => std::thread::sleep(Duration::from_millis(10)),
            // The code of a shell, and of setpriv.
            Ok(Some(status)) if status.code() == Some(127) => {
                return Ok(Err("`pasta` (package passt) is not installed".to_owned()));
            }
            Ok(Some(status)) => return Ok(Err(format!("`pasta` has ended ({status})"))),
            Err(error) => return Ok(Err(format!("`pasta`: {error}"))),
        }
    }
    Ok(Err(format!("`pasta` was not ready after {} s", PATIENCE.as_secs())))
}

/// True if this user is not root.
pub fn is_needed() -> bool {
    !geteuid().is_root()
}
