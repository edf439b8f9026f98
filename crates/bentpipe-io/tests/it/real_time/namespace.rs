//! A private network namespace, with TUN devices and sockets in it.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::thread::JoinHandle;

use bentpipe_io::Tun;
use nix::sched::{CloneFlags, setns};

/// A network namespace. It is removed with everything in it on drop.
pub(crate) struct Namespace {
    name: String,
    devices: AtomicU8,
}

/// A TUN device and the addresses on its two sides.
pub(crate) struct Door {
    pub(crate) tun: Tun,
    /// The host's side.
    pub(crate) host: Ipv4Addr,
    /// The engine's side.
    pub(crate) engine: SocketAddr,
}

impl Namespace {
    /// Creates a namespace. Returns `None` if the machine does not allow it; with `CI=true` that is a failure, since a test that never runs
    /// tests nothing.
    pub(crate) fn new() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if let Err(reason) = possible() {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "CI must run this test: {reason}");
            eprintln!("SKIPPED, not tested: {reason}");
            return None;
        }
        let name = format!("bentpipe-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        ip(&["netns", "add", &name]);
        Some(Namespace { name, devices: AtomicU8::new(0) })
    }

    /// Its name, as `ip netns` knows it.
    #[allow(dead_code)] // One of the test programs has no use for it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Starts a thread whose sockets and devices belong to the namespace.
    pub(crate) fn spawn<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let path = Path::new("/run/netns").join(&self.name);
        std::thread::spawn(move || {
            let namespace = File::open(&path).expect("the namespace has a name");
            setns(namespace, CloneFlags::CLONE_NEWNET).expect("root may enter it");
            work()
        })
    }

    /// As [`Namespace::spawn`], but waits for the end.
    pub(crate) fn inside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.spawn(work).join().expect("the thread does not panic")
    }

    /// Creates a device with its own network.
    pub(crate) fn door(&self) -> Door {
        let number = self.devices.fetch_add(1, Ordering::Relaxed);
        let [host, engine] = [1, 2].map(|last| Ipv4Addr::new(10, 88, number, last));
        let name = format!("bp{number}");
        let address = [(host.into(), 24)];
        let tun = self.inside(move || Tun::with_addresses(&name, &address, 1500).expect("root may make a device"));
        // Linux's smallest retransmission timeout, 200 ms, does not suit a path of a few milliseconds.
        let network = format!("10.88.{number}.0/24");
        let device = format!("bp{number}");
        ip(&[
            "-n",
            &self.name,
            "route",
            "replace",
            &network,
            "dev",
            &device,
            "src",
            &host.to_string(),
            "rto_min",
            "50ms",
        ]);
        Door { tun, host, engine: SocketAddr::from((engine, 4000)) }
    }

    /// Sets `net.ipv4.NAME`.
    pub(crate) fn sysctl(&self, name: &str, value: &str) {
        let (path, value) = (format!("/proc/sys/net/ipv4/{name}"), value.to_owned());
        self.inside(move || std::fs::write(path, value).expect("the host has the setting"));
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Not `ip()`: no panic while panicking.
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}

fn possible() -> Result<(), String> {
    if !nix::unistd::geteuid().is_root() {
        return Err("network namespaces need root".into());
    }
    File::open("/dev/net/tun").map_err(|error| format!("/dev/net/tun: {error}"))?;
    Command::new("ip").arg("-V").output().map_err(|error| format!("ip (iproute2): {error}"))?;
    Ok(())
}

fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().expect("iproute2 is there");
    assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}
