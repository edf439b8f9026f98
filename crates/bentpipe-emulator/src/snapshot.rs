//! The state of a kernel sender while it sends, as `ss -ti` shows it: read by netlink's sock_diag (sock_diag(7)).
//!
//! The layouts are those of the kernel's interface (`linux/inet_diag.h`, `linux/tcp.h`), which is only extended at the end.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, OwnedFd};

use bentpipe_engine::units::{Duration, Time};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, connect, recv, send, socket,
};

/// A sender at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The time of the snapshot.
    pub at: Time,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow start threshold, segments; `None` if there is none.
    pub ssthresh: Option<u32>,
    /// Smoothed round trip; zero before the first sample.
    pub srtt: Duration,
    /// Data bytes of a full segment.
    pub mss: u32,
}

/// `nlmsghdr`.
const HEADER: usize = 16;
/// `inet_diag_req_v2`.
const REQUEST: usize = 56;
/// `inet_diag_msg`.
const ANSWER: usize = 72;
/// `SOCK_DIAG_BY_FAMILY`, `NLMSG_ERROR`, `NLM_F_REQUEST`.
const BY_FAMILY: u16 = 20;
const ERROR: u16 = 2;
const IS_REQUEST: u16 = 1;
/// `INET_DIAG_INFO`: an attribute; bit `INFO - 1` requests it.
const INFO: u16 = 2;
/// `TCP_INFINITE_SSTHRESH`.
const NO_SSTHRESH: u32 = 0x7fff_ffff;

/// A socket for queries to the kernel, in the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Diag {
    socket: OwnedFd,
}

impl Diag {
    pub(crate) fn open() -> io::Result<Self> {
        let (family, protocol) = (AddressFamily::Netlink, SockProtocol::NetlinkSockDiag);
        let socket = socket(family, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        // Port 0 of group 0: the kernel.
        connect(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        Ok(Diag { socket })
    }

    /// The state of the connection between these ends; `None` if there is none, or if it no longer sends.
    pub(crate) fn ask(&self, now: Time, near: SocketAddrV4, far: SocketAddrV4) -> io::Result<Option<Snapshot>> {
        send(self.socket.as_raw_fd(), &request(near, far), MsgFlags::empty())?;
        let mut answer = [0; 4096];
        // The kernel answers before the system call above returns.
        let len = recv(self.socket.as_raw_fd(), &mut answer, MsgFlags::MSG_DONTWAIT)?;
        Ok(snapshot(now, &answer[..len]))
    }
}

fn request(near: SocketAddrV4, far: SocketAddrV4) -> [u8; HEADER + REQUEST] {
    let mut message = [0; HEADER + REQUEST];
    let mut put = |at: usize, bytes: &[u8]| message[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &((HEADER + REQUEST) as u32).to_ne_bytes());
    put(4, &BY_FAMILY.to_ne_bytes());
    put(6, &IS_REQUEST.to_ne_bytes());
    // AF_INET, IPPROTO_TCP, and the requested attributes. States only matter for lists.
    put(HEADER, &[2, 6, 1 << (INFO - 1)]);
    put(HEADER + 8, &near.port().to_be_bytes());
    put(HEADER + 10, &far.port().to_be_bytes());
    put(HEADER + 12, &near.ip().octets());
    put(HEADER + 28, &far.ip().octets());
    // Matches any cookie.
    put(HEADER + 48, &[0xff; 8]);
    message
}

/// A four-byte number in the machine's byte order.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn snapshot(at: Time, answer: &[u8]) -> Option<Snapshot> {
    if half(answer, 4)? == ERROR {
        return None;
    }
    let mut attributes = answer.get(HEADER + ANSWER..)?;
    loop {
        let len = usize::from(half(attributes, 0)?);
        if half(attributes, 2)? == INFO {
            return values(at, attributes.get(4..len)?);
        }
        // Attributes begin at multiples of four.
        attributes = attributes.get(len.max(4).next_multiple_of(4)..)?;
    }
}

/// `tcp_info`. A connection in TIME-WAIT has none.
fn values(at: Time, info: &[u8]) -> Option<Snapshot> {
    let ssthresh = word(info, 76)?;
    Some(Snapshot {
        at,
        cwnd: word(info, 80)?,
        ssthresh: (ssthresh < NO_SSTHRESH).then_some(ssthresh),
        srtt: Duration::from_micros(u64::from(word(info, 68)?)),
        mss: word(info, 16)?,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::process::Command;

    use super::*;

    fn v4(address: SocketAddr) -> SocketAddrV4 {
        let SocketAddr::V4(address) = address else { panic!("{address}") };
        address
    }

    /// The values equal those of `ss -ti`, which queries the same kernel for a list.
    #[test]
    fn a_snapshot_is_what_ss_shows() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let far = v4(listener.local_addr().expect("bound"));
        let mut stream = TcpStream::connect(far).expect("connects");
        let (_other, _) = listener.accept().expect("accepts");
        stream.write_all(&[1; 100_000]).expect("room");
        let near = v4(stream.local_addr().expect("connected"));
        let diag = Diag::open().expect("every user may ask");
        // While data is in flight, the state can change between two questions.
        let (mut before, mut said, mut after) = (None, String::new(), None);
        for _ in 0..50 {
            before = diag.ask(Time::ZERO, near, far).expect("an answer");
            let ports = format!("sport = :{} and dport = :{}", near.port(), far.port());
            let Ok(output) = Command::new("ss").args(["-tiHn", &ports]).output() else {
                eprintln!("SKIPPED, not tested: no ss (iproute2)");
                return;
            };
            said = String::from_utf8(output.stdout).expect("text");
            after = diag.ask(Time::ZERO, near, far).expect("an answer");
            if before == after {
                break;
            }
        }
        let snapshot = before.expect("it is connected");
        assert_eq!(Some(snapshot), after, "it does not come to rest");
        let value = |name: &str| {
            let word = said.split_whitespace().find_map(|word| word.strip_prefix(name))?;
            let first = word.split('/').next().expect("a first part");
            Some(first.parse::<f64>().unwrap_or_else(|_| panic!("{said}")))
        };
        assert_eq!(value("cwnd:"), Some(f64::from(snapshot.cwnd)), "{said}");
        assert_eq!(value("mss:"), Some(f64::from(snapshot.mss)), "{said}");
        assert_eq!(value("ssthresh:"), snapshot.ssthresh.map(f64::from), "{said}");
        // ss prints three digits or more.
        let srtt = snapshot.srtt.as_millis_f64();
        assert!((value("rtt:").expect("rtt") - srtt).abs() <= 0.01 * srtt + 0.001, "{said} {srtt}");
    }

    #[test]
    fn no_connection_has_no_state() {
        let diag = Diag::open().expect("every user may ask");
        let nobody: SocketAddrV4 = "127.0.0.1:1".parse().expect("an address");
        assert_eq!(diag.ask(Time::ZERO, nobody, nobody).expect("an answer"), None);
        // The answer is truncated, or lacks the attribute.
        assert_eq!(snapshot(Time::ZERO, &[]), None);
        assert_eq!(snapshot(Time::ZERO, &[0; HEADER + ANSWER + 8]), None);
    }
}
