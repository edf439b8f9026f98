//! The same transfers between sockets of the Linux kernel, over the same links.
//!
//! Buffers match the scenario's windows, and timestamps its setting. Everything else is the kernel's: RACK-TLP, PRR, its delayed
//! ACKs. The receiving program takes all that has arrived at once, and the sending one sets TCP_NODELAY: a small segment at the edge
//! of a window would hold the last one back otherwise, until it is acknowledged.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as StdDuration;

use bentpipe_engine::tcp::{TcpConfig, Variant};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_io::{Clock, Namespace, hurry, ip};
use bentpipe_study::scenario::profile::profile;
use bentpipe_study::scenario::{FlowKind, NodeId, Scenario};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, socket};

use super::EmulateError;
use crate::lab::{DEVICE, Lab};
use crate::plan::PREFIX_V4;
use crate::transfers::{Bulk, Transferred};

/// Additional settings of the hosts' kernels, to study single features.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelSettings {
    /// Names below `net.ipv4`, and values.
    pub sysctls: Vec<(String, String)>,
    /// Attributes of the hosts' routes, as in `ip route` (`initcwnd 4 quickack 1`).
    pub route: Vec<String>,
}

impl KernelSettings {
    /// The congestion control of this name. A route sets it: the sysctl of a namespace takes only those that are free for all.
    pub fn with_control(control: &str) -> Self {
        KernelSettings { sysctls: Vec::new(), route: vec!["congctl".to_owned(), control.to_owned()] }
    }
}

/// The scenario with Linux's ends, as far as the engine has them: the variant `linux-reno` and the settings of the profile `linux`.
pub fn nearest(scenario: &Scenario) -> Scenario {
    let linux =
        profile("linux").expect("a profile").with_row(Variant::named("linux-reno").expect("a row of the table"));
    let mut scenario = scenario.clone();
    for flow in &mut scenario.flows {
        let FlowKind::Tcp(tcp) = &mut flow.kind else { continue };
        let tcp = Arc::make_mut(tcp);
        for end in [&mut tcp.sender, &mut tcp.receiver] {
            let TcpConfig { variant, ack, rto, shortcuts, .. } = linux;
            (end.variant, end.ack, end.rto) = (variant, ack, rto);
            end.shortcuts.ssthresh_base = shortcuts.ssthresh_base;
        }
    }
    scenario
}

/// Interval of checks whether all are done.
const TICK: Duration = Duration::from_millis(20);
/// Longest time that a socket waits before it is looked whether all is over.
const PATIENCE: StdDuration = StdDuration::from_millis(200);

/// Runs the flows between sockets, each in its host's namespace, until all are done, the scenario's time limit is
/// reached or `go_on` returns false. Returns the results in the order of `bulks`.
///
/// # Errors
/// Fails if sockets cannot be opened in the lab's namespaces, or if the lab's links fail (a device was removed).
pub fn run(
    scenario: &Scenario,
    bulks: &[Bulk<'_>],
    lab: &mut Lab,
    more: &KernelSettings,
    mut go_on: impl FnMut(Time) -> bool,
) -> Result<Vec<Transferred>, EmulateError> {
    let system = || EmulateError::system("sockets");
    let clock = lab.emulator().clock();
    let host = |node: NodeId| {
        let name = &scenario[node];
        lab.hosts().iter().find(|host| host.name == *name).expect("ends of flows are hosts").clone()
    };
    let mut pairs = Vec::new();
    for bulk in bulks {
        let (from, to) = (host(bulk.from), host(bulk.to));
        let (near, far) = (Namespace::named(&from.namespace), Namespace::named(&to.namespace));
        let (near, far) = (near.map_err(system())?, far.map_err(system())?);
        for (namespace, address) in [(&near, from.v4), (&far, to.v4)] {
            namespace
                .inside(|| settings(bulk, address, more))
                .map_err(EmulateError::system("the kernel's settings of TCP"))?;
        }
        let listener = far.inside(|| TcpListener::bind((to.v4, 0))).map_err(system())?;
        listener.set_nonblocking(true).map_err(system())?;
        let address = listener.local_addr().map_err(system())?;
        pairs.push((near, listener, address));
    }
    // Building hosts takes longer than some start times: time starts when all are ready.
    let begin = clock.now();
    let limit = begin + scenario.time_limit;
    let over = AtomicBool::new(false);
    let over = &over;
    let results: io::Result<Vec<_>> = std::thread::scope(|scope| {
        let mut receivers = Vec::new();
        for ((near, listener, address), bulk) in pairs.iter().zip(bulks) {
            let start = begin + (bulk.start - Time::ZERO);
            scope.spawn(move || near.inside(|| send(*address, bulk.bytes, clock, start, over)));
            receivers.push(scope.spawn(move || receive(listener, bulk.bytes, clock, over)));
        }
        hurry();
        let mut end = Ok(());
        while end.is_ok() && receivers.iter().any(|receiver| !receiver.is_finished()) {
            let now = clock.now();
            end = lab.emulator_mut().turn(Some(now + TICK)).map(drop);
            if now >= limit || !go_on(Time::ZERO + now.saturating_since(begin)) {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
        let join = |thread: std::thread::ScopedJoinHandle<'_, io::Result<Option<Time>>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        end.and_then(|()| receivers.into_iter().map(join).collect())
    });
    let since = |at: Time| Time::ZERO + at.saturating_since(begin);
    let transferred = |at: Option<Time>| Transferred { received_at: at.map(since), aborted: None, intact: true };
    Ok(results.map_err(system())?.into_iter().map(transferred).collect())
}

/// The scenario's settings of the ends, as far as the kernel supports them.
fn settings(bulk: &Bulk<'_>, own: Ipv4Addr, more: &KernelSettings) -> io::Result<()> {
    // The kernel advertises a fraction of its buffer, estimated from received packets (`scaling_ratio`): 0.633 was
    // measured on Linux 6.18, for packets of 1500 bytes from a TUN device. When the fraction changes, it overrides a
    // window set by a route or a socket. So the window is set by the buffer size, from the start.
    let received = u64::from(bulk.receive_buffer()) * 1000 / 633;
    let received = format!("4096 {received} {received}");
    let sent = format!("4096 131072 {}", (u64::from(bulk.receive_buffer()) * 4).max(131_072));
    let given = more.sysctls.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let ours = [
        ("tcp_congestion_control", "reno"),
        ("tcp_timestamps", if bulk.timestamps() { "1" } else { "0" }),
        ("tcp_no_metrics_save", "1"),
        ("tcp_moderate_rcvbuf", "0"),
        ("tcp_rmem", &received),
        ("tcp_wmem", &sent),
    ];
    for (name, value) in ours.into_iter().chain(given) {
        std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value)
            .map_err(|error| io::Error::new(error.kind(), format!("net.ipv4.{name} = {value}: {error}")))?;
    }
    if more.route.is_empty() {
        return Ok(());
    }
    let [a, b, c, _] = own.octets();
    let (network, own) = (format!("{a}.{b}.{c}.0/{PREFIX_V4}"), own.to_string());
    // Hosts are neighbours: the route between them is their network's.
    let route = ["route", "replace", &network, "dev", DEVICE, "scope", "link", "src", &own].into_iter();
    ip(&route.chain(more.route.iter().map(String::as_str)).collect::<Vec<_>>())
}

/// Sleeps until then, or until it is over.
fn sleep_until(clock: Clock, at: Time, over: &AtomicBool) {
    loop {
        let left = at.saturating_since(clock.now()).as_nanos_ceil();
        if left == 0 || over.load(Ordering::Relaxed) {
            return;
        }
        std::thread::sleep(StdDuration::from_nanos(left).min(PATIENCE));
    }
}

/// A connection, or none if it is over before. The kernel's own call would wait for its last SYN, two minutes, once nobody moves packets.
fn connect(to: SocketAddr, over: &AtomicBool) -> io::Result<Option<TcpStream>> {
    let SocketAddr::V4(v4) = to else { unreachable!("hosts have IPv4") };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
    match nix::sys::socket::connect(socket.as_raw_fd(), &SockaddrIn::from(v4)) {
        Ok(()) | Err(Errno::EINPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    let patience = PollTimeout::try_from(PATIENCE).expect("it fits");
    while poll(&mut [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)], patience)? == 0 {
        if over.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
    stream.take_error()?.map_or(Ok(()), Err)?;
    stream.set_nonblocking(false)?;
    Ok(Some(stream))
}

fn send(to: SocketAddr, bytes: u64, clock: Clock, start: Time, over: &AtomicBool) -> io::Result<()> {
    sleep_until(clock, start, over);
    let Some(mut stream) = connect(to, over)? else { return Ok(()) };
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let block = [0x5a; 1 << 16];
    let mut left = bytes;
    while left > 0 && !over.load(Ordering::Relaxed) {
        let length = left.min(block.len() as u64) as usize;
        match stream.write(&block[..length]) {
            Ok(written) => left -= written as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// When the last byte arrived, if it did.
fn receive(listener: &TcpListener, bytes: u64, clock: Clock, over: &AtomicBool) -> io::Result<Option<Time>> {
    let pause = StdDuration::from_millis(1);
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !over.load(Ordering::Relaxed) => {
                std::thread::sleep(pause);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        }
    };
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut block = vec![0; 1 << 25];
    let mut read = 0;
    while !over.load(Ordering::Relaxed) {
        match stream.read(&mut block) {
            Ok(0) => return Ok(None),
            Ok(got) => read += got as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        }
        if read >= bytes {
            return Ok(Some(clock.now()));
        }
    }
    Ok(None)
}
