//! Finds the program that has taken a port.

use std::fs;
use std::io;
use std::path::Path;

/// The owner of a port if no process is found that has it. The kernel's tables list neither a process of another user or container nor a
/// TCP socket that is bound without listening, such as that of a gateway whose peer is down. The kernel's tunnels have ports of UDP.
fn unseen(kind: Kind) -> String {
    let owner = match kind {
        Kind::Tcp => "a program that does not listen there yet (another gateway?)",
        Kind::Udp => "the kernel (WireGuard, VXLAN)",
    };
    format!("{owner}, or by a program that this user cannot see")
}

/// Kinds of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tcp,
    Udp,
}

/// The error for a socket that cannot be bound. If the port is taken, it names the program that has it.
pub(crate) fn explained(kind: Kind, port: u16, error: io::Error) -> io::Error {
    let name = if kind == Kind::Tcp { "TCP" } else { "UDP" };
    let message = match error.kind() {
        io::ErrorKind::AddrInUse => {
            let owner = owner(kind, port).unwrap_or_else(|| unseen(kind));
            format!("{name} port {port} is taken by {owner}")
        }
        _ => format!("{name} port {port}: {error}"),
    };
    io::Error::new(error.kind(), message)
}

/// The program that has a port open; `None` if it cannot be found.
fn owner(kind: Kind, port: u16) -> Option<String> {
    let tables = if kind == Kind::Tcp { ["tcp", "tcp6"] } else { ["udp", "udp6"] };
    let inodes: Vec<String> = tables
        .iter()
        .filter_map(|table| fs::read_to_string(format!("/proc/thread-self/net/{table}")).ok())
        .flat_map(|text| inodes(kind, port, &text))
        .collect();
    // Skips other names of processes, such as /proc/self.
    let is_number =
        |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit));
    let processes = fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
    let owners = processes.filter(|process| is_number(process)).filter(|process| has_one_of(process, &inodes));
    // A child that has been forked and runs no program yet has its parent's descriptors, and may have a lower number.
    let oldest = owners.min_by_key(|process| {
        fs::read_to_string(process.join("stat")).ok().and_then(|stat| started(&stat)).unwrap_or(u64::MAX)
    })?;
    let name = fs::read_to_string(oldest.join("comm")).ok()?;
    Some(format!("`{}` (process {})", name.trim(), oldest.file_name()?.to_string_lossy()))
}

/// When a process started, in ticks since boot: field 22 of `/proc/PID/stat` (proc_pid_stat(5)). Field 2, the name in
/// parentheses, may contain anything.
fn started(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// The inodes of the sockets that keep a port from being bound: those of TCP that listen, and all of UDP.
fn inodes(kind: Kind, port: u16, table: &str) -> Vec<String> {
    let of = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [_, local, _, state, ..] = fields[..] else { return None };
        // 0A: LISTEN.
        let is_bound = local.ends_with(&format!(":{port:04X}")) && (kind == Kind::Udp || state == "0A");
        is_bound.then(|| fields.get(9).map(|&inode| inode.to_owned())).flatten()
    };
    table.lines().skip(1).filter_map(of).collect()
}

fn has_one_of(process: &Path, inodes: &[String]) -> bool {
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else { return false };
    descriptors.flatten().filter_map(|entry| fs::read_link(entry.path()).ok()).any(|target| {
        let target = target.to_string_lossy().into_owned();
        let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        inode.is_some_and(|inode| inodes.iter().any(|known| known == inode))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_process_is_read_behind_its_name() {
        let fields = (3..=52).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(started(&format!("4050 (a) b (c 1) {fields}\n")), Some(22));
        assert_eq!(started("4050 (a) S 1"), None);
        let own = fs::read_to_string("/proc/self/stat").expect("it is there");
        let first = fs::read_to_string("/proc/1/stat").expect("it is there");
        assert!(started(&first) < started(&own) && started(&first).is_some());
    }

    /// Ports of the kernel's own tunnels are in no process.
    #[test]
    fn a_port_without_a_process_may_be_the_kernels() {
        // Nobody has port 1, which is TCPMUX.
        let error = explained(Kind::Udp, 1, io::ErrorKind::AddrInUse.into());
        let expected =
            "UDP port 1 is taken by the kernel (WireGuard, VXLAN), or by a program that this user cannot see";
        assert_eq!(error.to_string(), expected);
    }

    /// A gateway whose peer is down keeps its port without listening, and the kernel's table does not list such a socket.
    #[test]
    fn a_port_may_be_kept_without_listening() {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        socket.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
        let at = socket.local_addr().expect("it is bound").as_socket().expect("an address");
        let error = std::net::TcpListener::bind(at).expect_err("it is taken");
        let told = explained(Kind::Tcp, at.port(), error).to_string();
        let expected = "is taken by a program that does not listen there yet (another gateway?), or by a program that this user cannot see";
        assert!(told.ends_with(expected), "{told}");
    }

    /// This process has the port, and finds its own name.
    #[test]
    fn the_owner_of_a_port_is_named() {
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let ports = [tcp.local_addr(), udp.local_addr()].map(|at| at.expect("it is bound").port());
        for (kind, port) in [(Kind::Tcp, ports[0]), (Kind::Udp, ports[1])] {
            let taken = match kind {
                Kind::Tcp => std::net::TcpListener::bind(("127.0.0.1", port)).map(drop),
                Kind::Udp => std::net::UdpSocket::bind(("127.0.0.1", port)).map(drop),
            };
            let error = explained(kind, port, taken.expect_err("it is taken"));
            let told = error.to_string();
            assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
            assert!(told.contains(&format!("(process {})", std::process::id())), "{told}");
            assert!(told.contains(&format!("port {port} is taken by `")), "{told}");
        }
    }
}
