//! The command in real time, and sockets in its namespaces.

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use bentpipe_io::Namespace;
use serde_json::Value;

/// True if real time can be tested here. With `CI=true` it must be, since a test that never runs tests nothing.
pub(crate) fn possible() -> bool {
    let reason = if !nix::unistd::geteuid().is_root() {
        Some("it needs root".to_owned())
    } else if let Err(error) = std::fs::File::open("/dev/net/tun") {
        Some(format!("/dev/net/tun: {error}"))
    } else {
        Command::new("ip").arg("-V").output().err().map(|error| format!("ip (iproute2): {error}"))
    };
    if let Some(reason) = reason {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI must run this test: {reason}");
        eprintln!("SKIPPED, not tested: {reason}");
        return false;
    }
    true
}

pub(crate) fn bentpipe(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bentpipe"));
    command.args(arguments).stdin(Stdio::null());
    command
}

pub(crate) fn output(arguments: &[&str]) -> Output {
    bentpipe(arguments).output().expect("the binary starts")
}

/// False for SIGHUP if these tests themselves run under `nohup`.
pub(crate) fn is_heard(signal: &nix::sys::signal::Signal) -> bool {
    use nix::sys::signal::Signal::SIGHUP;
    *signal != SIGHUP || !bentpipe_io::is_ignored(SIGHUP as i32)
}

/// A file in a temporary folder.
pub(crate) fn file(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("link.toml");
    std::fs::write(&path, text).expect("writable");
    let path = path.to_str().expect("plain").to_owned();
    (folder, path)
}

/// If wake-ups were later than this, the machine itself may have decided what was measured.
pub(crate) const MAX_LATE_US: f64 = 3_000.0;

/// The latest wake-up, from the JSON of `emulate` or `verify`.
pub(crate) fn late_us(report: &Value) -> f64 {
    report["late_max_us"].as_f64().unwrap_or_else(|| panic!("no lateness: {report}"))
}

/// Repeats a measurement that the machine has spoilt. It then returns how late its latest wake-up was.
pub(crate) fn undisturbed<T>(mut measure: impl FnMut() -> Result<T, f64>) -> T {
    let mut late = Vec::new();
    while late.len() < 5 {
        match measure() {
            Ok(measured) => return measured,
            Err(late_us) => late.push(late_us),
        }
    }
    panic!("the machine stalled each time: wake-ups were late by up to {late:?} us")
}

/// A host of a running emulation.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) namespace: String,
    pub(crate) v4: Ipv4Addr,
    pub(crate) v6: Option<Ipv6Addr>,
}

impl Host {
    /// Runs a closure in the host's network.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> std::io::Result<T> + Send) -> T {
        let namespace = Namespace::named(&self.namespace).expect("it is there");
        namespace.inside(work).expect("the host's stack works")
    }

    pub(crate) fn exists(&self) -> bool {
        Path::new("/run/netns").join(&self.namespace).exists()
    }

    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        std::iter::once(IpAddr::V4(self.v4)).chain(self.v6.map(IpAddr::V6)).collect()
    }
}

/// A running `bentpipe emulate --json`.
pub(crate) struct Emulation {
    pub(crate) child: Child,
    lines: BufReader<ChildStdout>,
    hosts: Value,
    /// The gateways with their nodes and files; `null` if there are none.
    pub(crate) gateways: Value,
}

impl Emulation {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let all: Vec<&str> = ["emulate", "--json"].into_iter().chain(arguments.iter().copied()).collect();
        let mut child = bentpipe(&all).stdout(Stdio::piped()).spawn().expect("the binary starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("text");
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        Emulation { child, lines, hosts: ready["hosts"].clone(), gateways: ready["gateways"].clone() }
    }

    pub(crate) fn host(&self, name: &str) -> Host {
        let all = self.hosts.as_array().expect("a list");
        let host = all.iter().find(|host| host["host"] == name).unwrap_or_else(|| panic!("no {name}: {all:?}"));
        let text = |key: &str| host[key].as_str().map(str::to_owned);
        Host {
            namespace: text("namespace").expect("text"),
            v4: text("ipv4").expect("text").parse().expect("an address"),
            v6: text("ipv6").map(|v6| v6.parse().expect("an address")),
        }
    }

    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(self.child.id() as i32);
        nix::sys::signal::kill(pid, signal).expect("it runs");
    }

    /// Ends it as Ctrl-C does. Returns its summary.
    pub(crate) fn stop(self) -> Value {
        let (code, summary) = self.end();
        assert_eq!(code, Some(0), "{summary}");
        summary
    }

    /// Ends it as Ctrl-C does. Returns its exit code and its summary.
    pub(crate) fn end(mut self) -> (Option<i32>, Value) {
        self.signal(nix::sys::signal::Signal::SIGINT);
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("text");
        let code = self.child.wait().expect("ours").code();
        (code, serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}")))
    }
}

/// A test that fails leaves nothing running.
impl Drop for Emulation {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(nix::sys::signal::Signal::SIGTERM);
            let _ = self.child.wait();
        }
    }
}

/// The summary's figures for a link.
pub(crate) fn of_link(summary: &Value, link: &str, key: &str) -> u64 {
    let links = summary["links"].as_array().expect("a list");
    let found = links.iter().find(|entry| entry["name"] == link).unwrap_or_else(|| panic!("no {link}: {summary}"));
    found[key].as_u64().unwrap_or_else(|| panic!("no {key}: {summary}"))
}

/// The sizes that alternate in [`talk`], bytes.
pub(crate) const SIZES: [usize; 5] = [1000, 100, 100, 1000, 50];

/// The number of datagrams in one [`talk`].
pub(crate) const DATAGRAMS: u64 = 500 * SIZES.len() as u64;

pub(crate) fn bound(address: IpAddr) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind((address, 0))?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    Ok(socket)
}

/// Sends [`DATAGRAMS`] datagrams of these sizes in turn and returns how many arrived. Each one that arrives was sent, is unchanged, and is
/// in order.
pub(crate) fn talk(near: &UdpSocket, far: &UdpSocket, sizes: &[usize]) -> u64 {
    let to = far.local_addr().expect("bound");
    let datagram = |number: u64| -> Vec<u8> {
        let size = sizes[number as usize % sizes.len()];
        let bytes = (0..size as u64).map(|n| (number + n).wrapping_mul(0x9e37_79b9).to_be_bytes()[5]);
        number.to_be_bytes().into_iter().chain(bytes).take(size).collect()
    };
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            // Longer than any datagram, so that one that grew is not cut to a valid size.
            let mut buffer = [0; 65_535];
            let (mut came, mut next) = (0, 0);
            while next < DATAGRAMS
                && let Ok(length) = far.recv(&mut buffer)
            {
                let number = u64::from_be_bytes(buffer[..8].try_into().expect("eight bytes"));
                assert!(
                    (next..DATAGRAMS).contains(&number),
                    "{length} bytes after {next}: nobody sent that, or not now"
                );
                assert!(buffer[..length] == datagram(number), "{number} has {length} bytes");
                (came, next) = (came + 1, number + 1);
            }
            came
        });
        for number in 0..DATAGRAMS {
            near.send_to(&datagram(number), to).expect("a route");
        }
        receiver.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The number of datagrams that sockets in the calling thread's network namespace had no room for.
pub(crate) fn socket_drops() -> std::io::Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp")?;
    let mut udp = text.lines().filter_map(|line| line.strip_prefix("Udp: ")).map(str::split_whitespace);
    let (names, values) = (udp.next().expect("names"), udp.next().expect("values"));
    let v4 = names.zip(values).find(|(name, _)| *name == "RcvbufErrors").map(|(_, value)| value);
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp6")?;
    let v6 = text.lines().find_map(|line| line.strip_prefix("Udp6RcvbufErrors"));
    let number = |text: Option<&str>| text.and_then(|text| text.trim().parse::<u64>().ok()).expect("a number");
    Ok(number(v4) + number(v6))
}
