//! Hosts in a row, `client ── near ══ far ── server`. The two in the middle run gateways by the command.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bentpipe_engine::link::LinkConfig;
use bentpipe_io::Tun;
use serde_json::Value;

use crate::namespace::Namespace;
use crate::sky::Sky;

pub(crate) const SERVER: [u8; 4] = [10, 2, 0, 2];

pub(crate) fn bentpipe(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bentpipe-gateway"));
    command.current_dir(folder).args(arguments).output().expect("the binary starts")
}

pub(crate) fn inside(host: &Namespace, line: &str) -> String {
    let output = Command::new("ip").args(["netns", "exec", host.name()]).args(line.split(' ')).output();
    let output = output.expect("iproute2 is there");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// A folder for settings. A gateway started by root may write there as the user that it switches to.
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("it is ours");
    folder
}

/// A host in network 10.`net`, reached through `device` of its box.
pub(crate) fn attach(host: &Namespace, gate: &Namespace, device: &str, net: u8) {
    inside(gate, &format!("ip link add {device} type veth peer name eth netns {}", host.name()));
    for line in [
        format!("ip addr add 10.{net}.0.1/24 dev {device}"),
        format!("ip link set {device} up"),
        "ip link set lo up".to_owned(),
        "sysctl -qw net.ipv4.ip_forward=1".to_owned(),
    ] {
        inside(gate, &line);
    }
    let route = format!("ip route add default via 10.{net}.0.1");
    let address = format!("ip addr add 10.{net}.0.2/24 dev eth");
    for line in [&address, "ip link set eth up", "ip link set lo up", &route] {
        inside(host, line);
    }
}

pub(crate) fn keys(folder: &Path) -> [String; 2] {
    ["near.key", "far.key"].map(|file| {
        let output = bentpipe(folder, &["keygen", file]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    })
}

/// A settings file. `top` is placed before the tables, `tunnel` and `split` into theirs.
pub(crate) fn settings(name: &str, peer_key: &str, [top, tunnel, split]: [&str; 3], rate: &str) -> String {
    format!(
        "name = \"{name}\"\ncontrol = \"{name}.sock\"\n{top}\n[tunnel]\nprivate_key = \"{name}.key\"\npeer_key = \
         \"{peer_key}\"\nstate = \"{name}.state\"\n{tunnel}\n[satellite]\nrate = \"{rate}\"\nround_trip = \"20 ms\"\n[split]\n{split}\n"
    )
}

/// A gateway process in a namespace.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Starts it with at most this many descriptors. Its log goes to a file beside the settings.
    pub(crate) fn start(host: &Namespace, folder: &Path, name: &str, descriptors: u32) -> Running {
        Running::start_with(host, folder, name, descriptors, &[])
    }

    /// The same, with these variables in its environment.
    pub(crate) fn start_with(
        host: &Namespace,
        folder: &Path,
        name: &str,
        descriptors: u32,
        environment: &[(&str, &str)],
    ) -> Running {
        let said = std::fs::File::create(folder.join(format!("{name}.said"))).expect("a file");
        Running::start_saying(host, folder, name, descriptors, environment, said.into())
    }

    /// The same, with this as its standard error.
    fn start_saying(
        host: &Namespace,
        folder: &Path,
        name: &str,
        descriptors: u32,
        environment: &[(&str, &str)],
        said: Stdio,
    ) -> Running {
        let line = format!("ulimit -n {descriptors} && exec \"$0\" run {name}.toml");
        let child = Command::new("ip")
            .args(["netns", "exec", host.name(), "sh", "-c", &line, env!("CARGO_BIN_EXE_bentpipe-gateway")])
            .envs(environment.iter().copied())
            .current_dir(folder)
            .stderr(said)
            .spawn();
        Running(child.expect("iproute2 is there"))
    }

    /// As [`Running::start`], as a user who is not root and has what the unit file gives the gateway.
    pub(crate) fn start_as_nobody(host: &Namespace, folder: &Path, name: &str) -> Running {
        let said = std::fs::File::create(folder.join(format!("{name}.said"))).expect("a file");
        // Distributions let everybody open /dev/net/tun; `ip netns exec` gives it mounts of its own.
        let line = "mknod -m 666 $1.tun c 10 200 && mount --bind $1.tun /dev/net/tun && exec setpriv --reuid 65534 --regid 65534 \
                    --clear-groups --inh-caps -all,+net_admin,+net_raw --ambient-caps +net_admin,+net_raw --bounding-set \
                    -all,+net_admin,+net_raw --no-new-privs $0 run $1.toml";
        let child = Command::new("ip")
            .args(["netns", "exec", host.name(), "sh", "-c", line, env!("CARGO_BIN_EXE_bentpipe-gateway"), name])
            .current_dir(folder)
            .stderr(Stdio::from(said))
            .spawn();
        Running(child.expect("iproute2 is there"))
    }

    /// Waits until it has ended. Returns its exit code.
    pub(crate) fn fails(&mut self) -> Option<i32> {
        for _ in 0..500 {
            if let Some(status) = self.0.try_wait().expect("it is ours") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it goes on");
    }

    /// `ip netns exec` and the shell exec the command, so the child's process ID is the gateway's.
    pub(crate) fn signal(&self, name: &str) {
        let done = Command::new("kill").args([&format!("-{name}"), &self.0.id().to_string()]).status();
        assert!(done.expect("kill is there").success());
    }

    /// Waits until it has ended with exit code 0.
    pub(crate) fn ends(&mut self) {
        for _ in 0..1500 {
            if let Some(status) = self.0.try_wait().expect("it is ours") {
                assert_eq!(status.code(), Some(0));
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("a gateway without work does not end");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The settings of a pair.
pub(crate) struct Wanted {
    pub(crate) rate: &'static str,
    /// The limit of each gateway.
    pub(crate) descriptors: u32,
}

/// Two hosts, and the folder with the settings of the boxes between them.
pub(crate) struct Hosts {
    pub(crate) client: Arc<Namespace>,
    pub(crate) server: Arc<Namespace>,
    pub(crate) folder: tempfile::TempDir,
}

/// A running pair whose link is up.
pub(crate) struct Pair {
    hosts: Hosts,
    pub(crate) near: Arc<Namespace>,
    pub(crate) far: Arc<Namespace>,
    pub(crate) gateways: [Running; 2],
}

impl std::ops::Deref for Pair {
    type Target = Hosts;

    fn deref(&self) -> &Hosts {
        &self.hosts
    }
}

pub(crate) const NAMES: [&str; 2] = ["near", "far"];
/// The address of both gateways' metrics, each in its own namespace.
pub(crate) const METRICS: &str = "127.0.0.1:9179";

/// The hosts and boxes of a pair with the gateways' settings. No gateway runs yet.
pub(crate) struct Line {
    hosts: Hosts,
    pub(crate) near: Arc<Namespace>,
    pub(crate) far: Arc<Namespace>,
}

impl std::ops::Deref for Line {
    type Target = Hosts;

    fn deref(&self) -> &Hosts {
        &self.hosts
    }
}

impl Line {
    pub(crate) fn new(rate: &str) -> Line {
        let [client, near, far, server] =
            [(); 4].map(|()| Arc::new(Namespace::new().expect("this test needs root and namespaces")));
        for (gate, host, net) in [(&near, &client, 1), (&far, &server, 2)] {
            attach(host, gate, "lan", net);
        }
        inside(&near, &format!("ip link add sat type veth peer name sat netns {}", far.name()));
        for (gate, n) in [(&near, 1), (&far, 2)] {
            inside(gate, &format!("ip addr add 10.9.0.{n}/24 dev sat"));
            inside(gate, "ip link set sat up");
            inside(gate, &format!("ip route add 10.{}.0.0/24 via 10.9.0.{}", 3 - n, 3 - n));
        }
        let folder = folder();
        let [near_key, far_key] = keys(folder.path());
        let metrics = format!("metrics = \"{METRICS}\"");
        let write =
            |name: &str, text| std::fs::write(folder.path().join(format!("{name}.toml")), text).expect("a file");
        let patience = "keepalive = \"1 s\"\ndead_after = \"5 s\"";
        let peer = format!("peer = \"10.9.0.2:4500\"\n{patience}");
        write("near", settings("near", &far_key, [&metrics, &peer, "capture = [\"lan\"]"], rate));
        write("far", settings("far", &near_key, [&metrics, patience, ""], rate));
        Line { hosts: Hosts { client, server, folder }, near, far }
    }

    /// Replaces the wire between the boxes by an emulated link. `configs`: from near to far, and back.
    pub(crate) fn over_sky(&self, configs: [LinkConfig; 2]) -> Sky {
        inside(&self.near, "ip link del sat");
        let doors = [(&self.near, 1), (&self.far, 2)].map(|(gate, n)| {
            let addresses: [(IpAddr, u8); 1] = [([10, 9, 0, n].into(), 24)];
            let door = gate.inside(move || Tun::with_addresses("sat", &addresses, 1500).expect("root may"));
            inside(gate, &format!("ip route replace 10.{}.0.0/24 dev sat", 3 - n));
            door
        });
        Sky::over(doors, configs, 1)
    }

    /// Changes the settings of one gateway.
    pub(crate) fn edit(&self, name: &str, from: &str, to: &str) {
        let path = self.folder.path().join(format!("{name}.toml"));
        let text = std::fs::read_to_string(&path).expect("it is there");
        assert!(text.contains(from), "{from}: {text}");
        std::fs::write(path, text.replace(from, to)).expect("a file");
    }

    /// Starts one of the two.
    pub(crate) fn start(&self, name: &str, descriptors: u32) -> Running {
        let host = if name == "near" { &self.near } else { &self.far };
        Running::start(host, self.folder.path(), name, descriptors)
    }

    /// Starts one of the two, with this as its standard error.
    pub(crate) fn start_saying(&self, name: &str, said: Stdio) -> Running {
        let host = if name == "near" { &self.near } else { &self.far };
        Running::start_saying(host, self.folder.path(), name, 1024, &[], said)
    }

    /// Waits until both report the link as up, or as down.
    pub(crate) fn wait_until_up(&self, names: &[&str], is_up: bool) {
        let said = |name: &&str| self.status(name).is_some_and(|s| s["up"] == is_up);
        until("both are up", || names.iter().all(said));
    }
}

impl Pair {
    pub(crate) fn new(wanted: &Wanted) -> Pair {
        let line = Line::new(wanted.rate);
        let gateways = NAMES.map(|name| line.start(name, wanted.descriptors));
        line.wait_until_up(&NAMES, true);
        let Line { hosts, near, far } = line;
        Pair { hosts, near, far, gateways }
    }

    /// Sends SIGTERM to both. Both end with exit code 0.
    pub(crate) fn end(mut self) {
        for gateway in &mut self.gateways {
            gateway.signal("TERM");
        }
        self.gateways.iter_mut().for_each(Running::ends);
    }
}

impl Hosts {
    /// A gateway's status; `None` while it does not answer.
    pub(crate) fn status(&self, name: &str) -> Option<Value> {
        let output = bentpipe(self.folder.path(), &["status", &format!("{name}.toml")]);
        serde_json::from_slice(&output.stdout).ok()
    }

    /// The same, after its next update of the counters.
    pub(crate) fn fresh_status(&self, name: &str) -> Value {
        let begin = Instant::now();
        loop {
            std::thread::sleep(Duration::from_millis(50));
            let asked = begin.elapsed();
            let status = self.status(name).expect("it answers");
            if Duration::from_millis(status["age_ms"].as_u64().expect("a number")) < asked {
                return status;
            }
        }
    }

    /// Everything that a gateway has written to its standard error.
    pub(crate) fn said(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(format!("{name}.said"))).expect("the file is there")
    }

    /// The status and standard error of all gateways, for the message of a failing test.
    pub(crate) fn all_said(&self) -> String {
        let files = std::fs::read_dir(self.folder.path()).expect("the folder is there").flatten();
        let paths = files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|end| end == "said"));
        let names = paths.filter_map(|path| path.file_stem()?.to_str().map(str::to_owned));
        names.map(|name| format!("{name}: {:?}\n{}", self.status(&name), self.said(&name))).collect()
    }

    /// A server with a thread for each connection, until the end of the test.
    pub(crate) fn serve(&self, port: u16, work: impl Fn(TcpStream) + Send + Clone + 'static) -> SocketAddr {
        let at = SocketAddr::from((SERVER, port));
        let listener = self.server.inside(move || TcpListener::bind(at).expect("a free port"));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let work = work.clone();
                std::thread::spawn(move || work(stream));
            }
        });
        at
    }

    /// A client's connection.
    pub(crate) fn connect(&self, to: SocketAddr) -> std::io::Result<TcpStream> {
        self.client.inside(move || {
            let stream = TcpStream::connect_timeout(&to, Duration::from_secs(10))?;
            stream.set_read_timeout(Some(Duration::from_secs(30)))?;
            Ok(stream)
        })
    }
}

/// Waits for a condition. Panics after a while.
pub(crate) fn until(what: &str, check: impl Fn() -> bool) {
    let waited = (0..750).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        check()
    });
    assert!(waited, "{what}");
}

/// Sends back blocks of 100 bytes until the client ends.
pub(crate) fn echo(mut stream: TcpStream) {
    let mut request = [0; 100];
    while stream.read_exact(&mut request).is_ok() && stream.write_all(&request).is_ok() {}
}

/// True if a request is answered.
pub(crate) fn asks(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(&[7; 100])?;
    stream.read_exact(&mut [0; 100])
}

/// Bytes that do not repeat.
pub(crate) fn bytes(count: u32) -> Vec<u8> {
    (0..count).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect()
}

/// Sends everything in a thread and then closes that direction.
pub(crate) fn send(stream: &TcpStream, bytes: Vec<u8>) -> JoinHandle<()> {
    let mut writer = stream.try_clone().expect("a descriptor");
    std::thread::spawn(move || {
        writer.write_all(&bytes).expect("the gateway takes it");
        writer.shutdown(std::net::Shutdown::Write).expect("it is open");
    })
}
