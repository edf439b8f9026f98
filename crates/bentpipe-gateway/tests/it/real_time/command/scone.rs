//! Rate advice by `link` to QUIC hosts that ask for it (draft-ietf-scone-protocol), through TUN devices.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use bentpipe_engine::units::Rate;
use bentpipe_engine::wire::scone::{self, Signal};

use super::pair::{SERVER, inside};
use super::star::{Star, host};
use crate::namespace::Namespace;

const SERVER6: Ipv6Addr = Ipv6Addr::new(0xfd02, 0, 0, 0, 0, 0, 0, 2);
const HOST6: Ipv6Addr = Ipv6Addr::new(0xfd20, 0, 0, 0, 0, 0, 0, 2);

/// A SCONE packet without advice, and a packet with a short header behind it.
fn datagram() -> Vec<u8> {
    let mut bytes = Vec::new();
    scone::emit(&[7; 8], &mut bytes);
    bytes.extend([0x47; 300]);
    bytes
}

/// Returns the datagram as it arrives. The receiving kernel drops it if its checksum is wrong.
fn sent(datagram: &[u8], (from, source): (&Namespace, IpAddr), (to, at): (&Namespace, IpAddr)) -> Vec<u8> {
    // The kernel chooses the port. A child forked by another test holds the previous socket until its exec, and a second bind to a fixed
    // port would fail meanwhile.
    let receiver = to.inside(move || UdpSocket::bind(SocketAddr::from((at, 0))).expect("it is ours"));
    let at = receiver.local_addr().expect("it is bound");
    receiver.set_read_timeout(Some(Duration::from_millis(500))).expect("not zero");
    let sender = from.inside(move || UdpSocket::bind(SocketAddr::from((source, 0))).expect("it is ours"));
    let mut buffer = [0; 2000];
    for _ in 0..40 {
        sender.send_to(datagram, at).expect("there is a route");
        if let Ok(length) = receiver.recv(&mut buffer) {
            return buffer[..length].to_vec();
        }
    }
    panic!("{at} gets nothing from {source}");
}

fn mbit(rate: u64) -> Signal {
    Signal::at_most(Rate::from_bits_per_second(rate * 1_000_000).expect("not zero"))
}

/// Routes IPv6 between the server and the host behind t0.
fn version_6(star: &Star) {
    let t0 = &star.terminals[0];
    for (host, gate, address, own) in
        [(&star.hosts.server, &star.hub, SERVER6, "fd02::1"), (&t0.host, &t0.gate, HOST6, "fd20::1")]
    {
        inside(gate, &format!("ip addr add {own}/64 dev lan nodad"));
        inside(gate, "sysctl -qw net.ipv6.conf.all.forwarding=1");
        inside(host, &format!("ip addr add {address}/64 dev eth nodad"));
        inside(host, &format!("ip route add default via {own}"));
    }
    inside(&star.hub, "ip -6 route add fd20::/64 dev bentpipe0");
    inside(&t0.gate, "ip -6 route add fd02::/64 dev bentpipe0");
}

/// The hosts of each terminal get that terminal's rate, or the rate in the settings. No other packet is changed. A reload changes the
/// advice without a new tunnel.
#[test]
fn quic_hosts_are_told_the_rate_of_their_terminal() {
    let mut star = Star::new(&[true, true]);
    let peers = |star: &Star, of_t1: &str| {
        let t0 = star.peer(0).replace("\"]\nshape", "\", \"fd20::/64\"]\nthroughput_advice = \"5 Mbit/s\"\nshape");
        // In the file, the device's settings are the last before the peers.
        format!("throughput_advice = \"line\"\n{t0}{}rate = \"20 Mbit/s\"\n{of_t1}", star.peer(1))
    };
    star.write_hub("100 Mbit/s", &peers(&star, ""));
    star.start();
    star.wait_for(0..2);
    version_6(&star);
    let server = (&*star.hosts.server, IpAddr::from(SERVER));
    let behind = |n: usize| (&*star.terminals[n].host, IpAddr::from(host(n)));
    let six = [(&*star.hosts.server, IpAddr::from(SERVER6)), (&*star.terminals[0].host, IpAddr::from(HOST6))];
    for (from, to, signal) in [
        (server, behind(0), mbit(5)),
        (six[0], six[1], mbit(5)),
        (server, behind(1), mbit(20)),
        // The terminal's own settings do not mention SCONE.
        (behind(0), server, Signal::UNKNOWN),
        (six[1], six[0], Signal::UNKNOWN),
    ] {
        let got = sent(&datagram(), from, to);
        assert_eq!(scone::parse(&got), Some((signal, scone::length(8))), "{} to {}", from.1, to.1);
        assert_eq!(got[2..], datagram()[2..], "{} to {}", from.1, to.1);
    }
    // An Initial of QUIC version 1, and arbitrary bytes.
    for bytes in [[&[0xc0, 0, 0, 0, 1, 8][..], &[9; 300]].concat(), vec![0x6f; 40]] {
        assert_eq!(sent(&bytes, server, behind(0)), bytes);
    }
    // Retries count too.
    assert!(star.counted(0, "link", "advised") >= 2 && star.counted(1, "link", "advised") >= 1);
    star.write_hub("100 Mbit/s", &peers(&star, "throughput_advice = \"1 Mbit/s\"\n"));
    let said = star.reload();
    assert!(said.contains("peers changed: t1; ") && !said.contains("anew"), "{said}");
    let got = sent(&datagram(), server, behind(1));
    assert_eq!(scone::parse(&got).map(|(signal, _)| signal), Some(mbit(1)));
}
