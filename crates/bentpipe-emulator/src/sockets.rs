//! Runs the same transfers between sockets of the Linux kernel, over the same links.
//!
//! Buffers and their tuning match the scenario's windows, and timestamps match its setting. Everything else is the
//! kernel's: RACK-TLP, PRR, delayed ACKs. The receiving program reads all available data at once. The sending one sets
//! TCP_NODELAY: otherwise a small segment at the edge of a window would delay the last one until it is acknowledged.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration as StdDuration;

use bentpipe_engine::tcp::{TcpConfig, Variant};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_io::{Clock, Namespace, hurry, ip};
use bentpipe_study::scenario::profile::profile;
use bentpipe_study::scenario::{FlowKind, NodeId, Scenario, UplinkSpec};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, socket};

use super::EmulateError;
use crate::lab::{DEVICE, Lab};
use crate::plan::PREFIX_V4;
use crate::snapshot::{Diag, Snapshot};
use crate::transfers::{Bulk, Transferred};

/// Additional settings of the hosts' kernels, to study single features.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelSettings {
    /// Names below `net.ipv4`, with their values.
    pub sysctls: Vec<(String, String)>,
    /// Attributes of the hosts' routes, as in `ip route` (`initcwnd 4 quickack 1`).
    pub route: Vec<String>,
    /// True if the senders' states are read while they send.
    pub watch: bool,
}

/// The outcome of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Went {
    /// Its result.
    pub transferred: Transferred,
    /// The sender's state at intervals, if it was watched, on the same clock as the results.
    pub snapshots: Vec<Snapshot>,
}

impl KernelSettings {
    /// Uses the congestion control of this name. A route sets it, because a namespace's sysctl accepts only
    /// unrestricted ones.
    pub fn with_control(control: &str) -> Self {
        KernelSettings { route: vec!["congctl".to_owned(), control.to_owned()], ..KernelSettings::default() }
    }
}

/// The scenario with the engine's nearest model of Linux, in the profile `linux`, under one of the controls of
/// [`UplinkSpec::KERNEL`].
///
/// # Panics
/// Panics if `control` is not one of them.
pub fn nearest(scenario: &Scenario, control: &str) -> Scenario {
    let (_, row) = UplinkSpec::KERNEL.iter().find(|(name, _)| *name == control).expect("a control of Linux");
    let linux = profile("linux").expect("a profile").with_row(Variant::named(row).expect("a row of the table"));
    let mut scenario = scenario.clone();
    for flow in &mut scenario.flows {
        let FlowKind::Tcp(tcp) = &mut flow.kind else { continue };
        let tcp = Arc::make_mut(tcp);
        // Of a connection through a gateway, only the hosts' ends are Linux's.
        let receiver = tcp.splits.last_mut().map_or(&mut tcp.receiver, |split| &mut split.receiver);
        for end in [&mut tcp.sender, receiver] {
            let TcpConfig { variant, ack, rto, shortcuts, .. } = linux;
            (end.variant, end.ack, end.rto) = (variant, ack, rto);
            end.shortcuts.ssthresh_base = shortcuts.ssthresh_base;
        }
    }
    scenario
}

/// Interval at which it is checked whether all transfers are done.
const TICK: Duration = Duration::from_millis(20);
/// Interval at which a sender's state is read: a quarter of the shortest round trip in the grid.
const GLANCE: Duration = Duration::from_millis(10);
/// Maximum time that a socket waits before it checks whether the run is over.
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
) -> Result<Vec<Went>, EmulateError> {
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
        let SocketAddr::V4(address) = address else { unreachable!("it was bound to an address of IPv4") };
        let ask = || near.inside(Diag::open).map_err(EmulateError::system("reading the state of sockets"));
        let diag = more.watch.then(ask).transpose()?;
        pairs.push((near, listener, address, diag));
    }
    // Building hosts takes longer than some start times, so time starts when all of them are ready.
    let begin = clock.now();
    let limit = begin + scenario.time_limit;
    let over = AtomicBool::new(false);
    let over = &over;
    let results: io::Result<Vec<_>> = std::thread::scope(|scope| {
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        for ((near, listener, address, diag), bulk) in pairs.iter().zip(bulks) {
            let start = begin + (bulk.start - Time::ZERO);
            let send = move || send(*address, bulk.bytes, clock, start, over, diag.as_ref());
            senders.push(scope.spawn(move || near.inside(send)));
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
        end?;
        let joined = receivers.into_iter().zip(senders).map(|(receiver, sender)| {
            let received_at = joined(receiver)?;
            // A failed sender shows up as a transfer that did not finish.
            Ok((received_at, joined(sender).unwrap_or_default()))
        });
        joined.collect()
    });
    let since = |at: Time| Time::ZERO + at.saturating_since(begin);
    let went = |(at, snapshots): (Option<Time>, Vec<Snapshot>)| Went {
        transferred: Transferred { received_at: at.map(since), aborted: None, intact: true },
        snapshots: snapshots.into_iter().map(|shot| Snapshot { at: since(shot.at), ..shot }).collect(),
    };
    Ok(results.map_err(system())?.into_iter().map(went).collect())
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// How long a write may wait for room in the send buffer. If this is too short, a write returns with a part of its
/// block, and the next block begins elsewhere. Where the buffer is the limit, different packets would then leave.
const BLOCKED: StdDuration = StdDuration::from_secs(5);

/// Applies the scenario's settings of the ends, as far as the kernel supports them.
fn settings(bulk: &Bulk<'_>, own: Ipv4Addr, more: &KernelSettings) -> io::Result<()> {
    // The kernel advertises a fraction of its buffer, estimated from received packets (`scaling_ratio`): 0.625 on Linux
    // 6.18, for segments of 1448 bytes from a TUN device, which take 2304. When the fraction changes, it overrides a
    // window set by a route or a socket. So the window is set by the buffer size, from the start.
    let received = u64::from(bulk.receive_buffer()) * 8 / 5;
    // Or the kernel tunes the buffer itself, from a first window on.
    let first = bulk.first_window().map_or(received, |first| u64::from(first) * 8 / 5);
    let received = format!("4096 {} {received}", first.min(received));
    let tuned = if bulk.first_window().is_some() { "1" } else { "0" };
    // Without a limit, the buffer is four times what the peer can hold, which is never the limit.
    let sent = match bulk.send_buffer() {
        Some(limit) => format!("4096 {} {limit}", limit.min(bulk.first_send_buffer())),
        None => format!("4096 131072 {}", (u64::from(bulk.receive_buffer()) * 4).max(131_072)),
    };
    let given = more.sysctls.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let ours = [
        ("tcp_congestion_control", "reno"),
        ("tcp_timestamps", if bulk.timestamps() { "1" } else { "0" }),
        ("tcp_no_metrics_save", "1"),
        ("tcp_moderate_rcvbuf", tuned),
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
    // Hosts are neighbours, so the route between them is their network's.
    let route = ["route", "replace", &network, "dev", DEVICE, "scope", "link", "src", &own].into_iter();
    ip(&route.chain(more.route.iter().map(String::as_str)).collect::<Vec<_>>())
}

/// Sleeps until `at`, or until the run is over.
fn sleep_until(clock: Clock, at: Time, over: &AtomicBool) {
    loop {
        let left = at.saturating_since(clock.now()).as_nanos_ceil();
        if left == 0 || over.load(Ordering::Relaxed) {
            return;
        }
        std::thread::sleep(StdDuration::from_nanos(left).min(PATIENCE));
    }
}

/// Connects, or fails once the run is over. The blocking call would wait for its last SYN for two minutes when packets
/// are no longer moved.
fn connect(to: SocketAddrV4, over: &AtomicBool) -> io::Result<Option<TcpStream>> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
    match nix::sys::socket::connect(socket.as_raw_fd(), &SockaddrIn::from(to)) {
        Ok(()) | Err(Errno::EINPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    let patience = PollTimeout::try_from(PATIENCE).expect("it fits");
    loop {
        match poll(&mut [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)], patience) {
            Ok(0) | Err(Errno::EINTR) if over.load(Ordering::Relaxed) => return Ok(None),
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => break,
            Err(error) => return Err(error.into()),
        }
    }
    stream.take_error()?.map_or(Ok(()), Err)?;
    stream.set_nonblocking(false)?;
    Ok(Some(stream))
}

/// Sends the data. Returns the sender's states until its connection is closed, if available.
fn send(
    to: SocketAddrV4,
    bytes: u64,
    clock: Clock,
    start: Time,
    over: &AtomicBool,
    diag: Option<&Diag>,
) -> io::Result<Vec<Snapshot>> {
    sleep_until(clock, start, over);
    let Some(stream) = connect(to, over)? else { return Ok(Vec::new()) };
    let SocketAddr::V4(own) = stream.local_addr()? else { unreachable!("it is connected to an address of IPv4") };
    std::thread::scope(|scope| {
        let watcher = diag.map(|diag| scope.spawn(move || watch(diag, own, to, clock, over)));
        // The kernel continues to send the data that it has accepted.
        write(stream, bytes, over)?;
        watcher.map_or(Ok(Vec::new()), joined)
    })
}

fn watch(
    diag: &Diag,
    own: SocketAddrV4,
    to: SocketAddrV4,
    clock: Clock,
    over: &AtomicBool,
) -> io::Result<Vec<Snapshot>> {
    let mut snapshots = Vec::new();
    let mut due = clock.now();
    while !over.load(Ordering::Relaxed) {
        let Some(snapshot) = diag.ask(clock.now(), own, to)? else { break };
        snapshots.push(snapshot);
        due += GLANCE;
        sleep_until(clock, due, over);
    }
    Ok(snapshots)
}

/// True if a call ended because its time was over, or by a signal. The system does not restart a call with a time
/// limit.
fn is_no_failure(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn write(mut stream: TcpStream, bytes: u64, over: &AtomicBool) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(BLOCKED))?;
    let block = [0x5a; 1 << 16];
    let mut left = bytes;
    while left > 0 && !over.load(Ordering::Relaxed) {
        let length = left.min(block.len() as u64) as usize;
        match stream.write(&block[..length]) {
            Ok(written) => left -= written as u64,
            Err(error) if is_no_failure(&error) => {}
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
            Err(error) if is_no_failure(&error) => continue,
            Err(error) => return Err(error),
        }
        if read >= bytes {
            return Ok(Some(clock.now()));
        }
    }
    Ok(None)
}
