//! How long the kernel's TCP waits for a client that does not answer.
//!
//! By itself it doubles its timeouts up to two minutes, so after an outage a connection may wait about as long again.
//! From Linux 6.15 on, a socket can have a limit of its own. The kernel gives a connection up after `tcp_retries2`
//! timeouts, which would then be over in about a minute; a time (TCP_USER_TIMEOUT) takes the place of that number.

use std::os::fd::AsFd;

use bentpipe_engine::gateway::PATIENCE;
use bentpipe_engine::units::Duration;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::sockopt::{GetStruct, SetStruct, TcpUserTimeout};
use nix::sys::socket::{GetSockOpt, SetSockOpt};
use socket2::{SockRef, TcpKeepalive};

/// The time after which the kernel gives up, in milliseconds: 2 h 4 min, as the engine's sender. The kernel measures it
/// for a closed window, too, although the client answers the probes, so it must be long. It also replaces the number of
/// keepalives. [`is_silent`] finds clients that do not answer sooner.
const USER_TIMEOUT: u32 = 7_440_000;

/// TCP_RTO_MAX_MS (linux/tcp.h), which `libc` lacks.
const TCP_RTO_MAX_MS: i32 = 44;

/// The maxima that the kernel accepts for it.
const ACCEPTED_MS: std::ops::RangeInclusive<u64> = 1_000..=120_000;

#[derive(Clone, Copy, Debug)]
struct MaxTimeout;

nix::setsockopt_impl!(MaxTimeout, libc::IPPROTO_TCP, TCP_RTO_MAX_MS, i32, SetStruct<'_, i32>);
nix::getsockopt_impl!(MaxTimeout, libc::IPPROTO_TCP, TCP_RTO_MAX_MS, i32, GetStruct<i32>);

/// The beginning of `struct tcp_info` (linux/tcp.h). The kernel copies as much as it is asked for.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Beginning {
    _state: [u8; 3],
    probes: u8,
    _options: [u8; 4],
    _sizes: [u32; 4],
    unacked: u32,
    _counts: [u32; 4],
    _last: [u32; 3],
    last_ack_recv: u32,
}

#[derive(Clone, Copy, Debug)]
struct TcpInfo;

nix::getsockopt_impl!(TcpInfo, libc::IPPROTO_TCP, libc::TCP_INFO, Beginning, GetStruct<Beginning>);

/// Limits the timeouts of the connections that a listener accepts. A kernel older than 6.15 keeps its own.
pub(super) fn limit(listener: &impl AsFd, max: Duration) -> nix::Result<()> {
    let max_ms = milliseconds(max).clamp(*ACCEPTED_MS.start(), *ACCEPTED_MS.end());
    match MaxTimeout.set(listener, &(max_ms as i32)) {
        Err(Errno::ENOPROTOOPT) => Ok(()),
        Err(errno) => Err(errno),
        Ok(()) => TcpUserTimeout.set(listener, &USER_TIMEOUT),
    }
}

/// True if a client owes an acknowledgement, of data or of a probe, and has sent none for this time. An idle client owes
/// none, but answers keepalives every two minutes, so data that follows a pause is not given up at once.
pub(super) fn is_silent(client: &impl AsFd, patience: Duration) -> bool {
    TcpInfo.get(client).is_ok_and(|info| {
        let owes = info.unacked > 0 || info.probes > 0;
        owes && u64::from(info.last_ack_recv) >= milliseconds(patience)
    })
}

fn milliseconds(time: Duration) -> u64 {
    time.as_nanos() / 1_000_000
}

/// Sends the next keepalive to a server that has finished only after [`PATIENCE`]. If it has closed, its kernel forgets the connection
/// within a minute and answers by a reset, while the client may still be receiving. A client that never closes is not kept for ever.
pub(super) fn probe_late(server: &impl AsFd) {
    let late = TcpKeepalive::new().with_time(std::time::Duration::from_nanos(PATIENCE.as_nanos()));
    // A kernel that refuses it probes as before.
    let _ = SockRef::from(server).set_tcp_keepalive(&late);
}

/// Lets the kernel wait no longer than that for the acknowledgement of the last data, once the socket is closed.
pub(super) fn end(client: &impl AsFd) {
    // Without it, the kernel waits longer or shorter.
    let _ = TcpUserTimeout.set(client, &(milliseconds(PATIENCE) as u32));
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Accepted connections inherit both limits. Without the first, the second must not be set either: the kernel would
    /// give up after other times.
    #[test]
    fn connections_inherit_the_limits() {
        for (seconds, expected_ms) in [(5, 5_000), (8, 8_000), (0, 1_000), (200, 120_000)] {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            limit(&listener, Duration::from_secs(seconds)).expect("the kernel accepts it, or does not know it");
            let _client = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
            let (socket, _) = listener.accept().expect("it has connected");
            let user = TcpUserTimeout.get(&socket).expect("it is old");
            match MaxTimeout.get(&socket) {
                Ok(max) => assert_eq!((max, user), (expected_ms, USER_TIMEOUT)),
                Err(errno) => assert_eq!((errno, user), (Errno::ENOPROTOOPT, 0)),
            }
            end(&socket);
            assert_eq!(TcpUserTimeout.get(&socket), Ok(600_000));
            assert!(!is_silent(&socket, Duration::ZERO), "it owes nothing");
        }
    }
}
