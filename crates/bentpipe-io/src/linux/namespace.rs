//! Network namespaces: created, entered by threads, and removed with their last user.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Output};

use nix::ifaddrs::getifaddrs;
use nix::sched::{CloneFlags, setns, unshare};

/// An open network namespace; it exists at least as long as this handle.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// Opens the namespace with this name, as in `ip netns`.
    ///
    /// # Errors
    /// Fails if `/run/netns/NAME` cannot be opened, for example because it does not exist.
    pub fn named(name: &str) -> io::Result<Self> {
        Ok(Namespace { file: File::open(Path::new("/run/netns").join(name))? })
    }

    /// Creates a namespace without a name; it disappears with its last user.
    ///
    /// # Errors
    /// Fails if the kernel does not create a network namespace (`unshare`): CAP_SYS_ADMIN is needed.
    pub fn fresh() -> io::Result<Self> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                unshare(CloneFlags::CLONE_NEWNET)?;
                Ok(Namespace { file: File::open("/proc/thread-self/ns/net")? })
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs `work` in a thread inside the namespace. Everything that the thread opens and creates belongs to the
    /// namespace.
    ///
    /// # Errors
    /// Fails if the namespace cannot be entered (without CAP_SYS_ADMIN), or if `work` fails.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                setns(&self.file, CloneFlags::CLONE_NEWNET)?;
                work()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// The addresses of all devices in the network namespace of the calling thread.
///
/// # Errors
/// Fails if the kernel does not list the interfaces (getifaddrs).
pub fn addresses() -> io::Result<Vec<IpAddr>> {
    let address = |interface: nix::ifaddrs::InterfaceAddress| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    };
    Ok(getifaddrs()?.filter_map(address).collect())
}

/// A program of administrators, such as `nft`, to be run. It is found in their folders, too, which the search paths of users and of cron
/// lack.
pub fn program(name: &str) -> Command {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let is_in = |folder: &Path| folder.join(name).is_file();
    if std::env::split_paths(&folders).any(|folder| is_in(&folder)) {
        return Command::new(name);
    }
    match ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(Path::new).into_iter().find(|folder| is_in(folder)) {
        Some(folder) => Command::new(folder.join(name)),
        None => Command::new(name),
    }
}

/// Runs iproute2's `ip`, in the network namespace of the calling thread.
///
/// # Errors
/// Fails if `ip` is not installed, or with the message of `ip` if it fails.
pub fn ip(arguments: &[&str]) -> io::Result<()> {
    run("ip", arguments)
}

/// Runs a program to its end. Its standard error becomes the error message.
pub fn run(name: &str, arguments: &[&str]) -> io::Result<()> {
    let output = program(name)
        .args(arguments)
        .output()
        .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
    succeeded(&format!("{name} {}", arguments.join(" ")), &output)
}

/// Checks how a program has ended.
///
/// # Errors
/// Fails if it did not succeed, with what it wrote to standard error or, if that is nothing, with its status: a program that was killed
/// gives no reason.
pub fn succeeded(what: &str, output: &Output) -> io::Result<()> {
    let said = String::from_utf8_lossy(&output.stderr);
    match (output.status.success(), said.trim()) {
        (true, _) => Ok(()),
        (false, "") => Err(io::Error::other(format!("{what}: {}", output.status))),
        (false, said) => Err(io::Error::other(format!("{what}: {said}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_killed_has_a_reason() {
        let ended = |script: &str| {
            let output = Command::new("sh").args(["-c", script]).output().expect("a shell");
            succeeded("nft", &output).map_err(|error| error.to_string())
        };
        assert_eq!(ended("echo fine >&2"), Ok(()));
        assert_eq!(ended("echo not permitted >&2; exit 1"), Err("nft: not permitted".to_owned()));
        assert_eq!(ended("kill -TERM $$"), Err("nft: signal: 15 (SIGTERM)".to_owned()));
    }
}
