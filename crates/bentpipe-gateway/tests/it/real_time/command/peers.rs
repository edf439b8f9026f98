//! `[[peers]]`: one hub, several terminals.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::pair::{SERVER, asks, bentpipe, bytes, echo, inside, send, until};
use super::star::{Star, back, datagram_as, pour};

const ALL: [bool; 6] = [false, false, false, true, true, true];

/// All six links are up, and data comes back.
fn carries(mut stream: TcpStream) {
    let sent = bytes(300_000);
    let sender = send(&stream, sent.clone());
    let mut got = Vec::new();
    stream.read_to_end(&mut got).expect("no reset");
    sender.join().expect("all is sent");
    assert!(got == sent, "{} of {} bytes", got.len(), sent.len());
}

/// Through each terminal, from its host to the server behind the hub and back. The hub counts it under the terminal's name.
#[test]
fn split_and_link_on_one_hub() {
    let mut star = Star::new(&ALL);
    let peers: String = (0..ALL.len()).map(|n| star.peer(n)).collect();
    star.write_hub("100 Mbit/s", &peers);
    let shown = bentpipe(star.hosts.folder.path(), &["run", "--dry-run", "hub.toml"]).stdout;
    let shown = String::from_utf8(shown).expect("text");
    let line = "# peer t3: link, 10.23.0.0/24, it calls, 100000000 bit/s, 20 ms, weight 1, key ";
    assert!(shown.contains(line) && shown.contains("ip daddr { 10.20.0.0/24, 10.21.0.0/24, 10.22.0.0/24 }"), "{shown}");
    star.start();
    star.wait_for(0..ALL.len());
    let server = star.hosts.serve(80, back);
    for (n, is_link) in ALL.into_iter().enumerate() {
        carries(star.connect_behind(n, server).expect("it connects"));
        let behind = star.serve_behind(n, back);
        carries(star.hosts.connect(behind).expect("it connects"));
        // Traffic did not bypass the gateways: each terminal has carried both directions, as streams or as packets.
        let (table, key) = if is_link { ("satellite", "sent_bytes") } else { ("split", "bytes_sent") };
        assert!(star.counted(n, table, key) >= 600_000, "t{n}");
    }
    // The hub forwards packets from one terminal to another, but refuses connections of `split`.
    for (n, other) in [(3, 4), (4, 3)] {
        inside(&star.terminals[n].gate, &format!("ip route add {} dev bentpipe0", super::star::prefix(other)));
    }
    carries(star.connect_behind(3, (super::star::host(4), 80).into()).expect("it connects"));
    let refused = star.connect_behind(0, (super::star::host(1), 80).into());
    assert!(!refused.is_ok_and(|mut stream| asks(&mut stream).is_ok()), "the hub does not connect");
    assert_eq!(star.counted(0, "split", "forbidden"), 1);
    let said = star.hosts.said("hub");
    for n in 0..ALL.len() {
        assert!(said.contains(&format!("peer t{n} at 10.9.{n}.2:4500 is up")), "{said}");
    }
    let status = star.hosts.fresh_status("hub");
    assert_eq!((&status["tunnel"]["peers"], &status["tunnel"]["peers_up"]), (&6.into(), &6.into()));
    assert_eq!((&status["up"], &status["shape"]), (&true.into(), &"split+link".into()));
    assert_eq!(status["peers"]["t1"]["split"]["connected"], 1);
    assert_eq!(status["peers"]["t1"]["split"]["accepted"], 1);
}

/// A terminal may send only for its own hosts, and packets to unknown hosts are dropped.
#[test]
fn a_terminal_speaks_for_its_own_hosts() {
    let mut star = Star::new(&[false, true, true]);
    // Packets that the kernel sends on a new device, such as router solicitations, would be counted too.
    for terminal in &star.terminals {
        inside(&terminal.gate, "sysctl -qw net.ipv6.conf.default.disable_ipv6=1");
    }
    let peers: String = (0..3).map(|n| star.peer(n)).collect();
    star.write_hub("100 Mbit/s", &peers);
    star.start();
    star.wait_for(0..3);
    let server = star.hosts.serve(80, echo);
    // With the address of a host behind another terminal.
    datagram_as(&star.terminals[2].host, [10, 21, 0, 77], SERVER);
    assert_eq!(star.counted(2, "link", "forbidden"), 5);
    assert_eq!(star.counted(1, "link", "forbidden"), 0);
    inside(&star.terminals[0].host, "ip addr add 10.21.0.78/32 dev eth");
    inside(&star.terminals[0].gate, "ip route add 10.21.0.78 via 10.20.0.2");
    let claimed = star.terminals[0].host.inside(move || {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        socket.bind(&SocketAddr::from(([10, 21, 0, 78], 0)).into()).expect("it is ours");
        // The terminal accepts. On a busy machine the hub's reset arrives before the client notices.
        socket.connect_timeout(&server.into(), Duration::from_secs(5))?;
        let mut stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("not zero");
        let _ = stream.write_all(&[7; 100]);
        stream.read_exact(&mut [0; 100])
    });
    assert!(claimed.is_err(), "the hub resets it");
    assert_eq!(star.counted(0, "split", "forbidden"), 1);
    // Their own hosts are served.
    for n in 0..3 {
        asks(&mut star.connect_behind(n, server).expect("it connects")).expect("an answer");
    }
    // To an address behind no terminal. The kernel itself sends some such packets, for example router solicitations.
    inside(&star.hub, "ip route add 10.77.0.0/24 dev bentpipe0");
    let unrouted = || star.hosts.status("hub").and_then(|status| status["link"]["unrouted"].as_u64()).unwrap_or(0);
    let before = unrouted();
    star.hosts.client.inside(|| {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a port");
        (0..50).for_each(|_| drop(socket.send_to(b"to nobody", "10.77.0.1:9")));
    });
    until("it is counted", || unrouted() >= before + 50);
}

/// A reload adds, changes and removes terminals; connections through the others continue.
#[test]
fn a_reload_touches_nobody_else() {
    let mut star = Star::new(&ALL);
    let some = |star: &Star, list: &[usize]| list.iter().map(|&n| star.peer(n)).collect::<String>();
    // t5 is not known yet.
    star.write_hub("100 Mbit/s", &some(&star, &[0, 1, 2, 3, 4]));
    star.start();
    star.wait_for(0..5);
    let server = star.hosts.serve(80, echo);
    let behind: Vec<_> = (0..6).map(|n| star.serve_behind(n, echo)).collect();
    let mut open: Vec<_> = (0..5)
        .map(|n| {
            let [mut up, mut down] =
                [star.connect_behind(n, server), star.hosts.connect(behind[n])].map(|made| made.expect("it connects"));
            asks(&mut up).and_then(|()| asks(&mut down)).expect("an answer");
            [up, down]
        })
        .collect();
    assert_eq!(star.is_up(5), None);
    // t1 is removed, t5 is added, t2 has another weight and name, t4 another rate.
    let changed = star.peer(2).replace("name = \"t2\"", "name = \"second\"\nweight = 5");
    let anew = star.peer(4) + "rate = \"20 Mbit/s\"\n";
    star.write_hub("100 Mbit/s", &(some(&star, &[0, 3, 5]) + &changed + &anew));
    let said = star.reload();
    for line in
        ["peers added: t5; ", "peers changed: second (was t2); ", "peers connected anew: t4; ", "peers removed: t1; "]
    {
        assert!(said.contains(line), "{line}: {said}");
    }
    for n in [0, 2, 3] {
        let [up, down] = &mut open[n];
        asks(up).and_then(|()| asks(down)).unwrap_or_else(|error| panic!("t{n}: {error}"));
    }
    // Both hosts see the end of t1's streams. Its new streams do not reach the hub.
    for stream in &mut open[1] {
        let error = asks(stream).expect_err("t1 is gone");
        assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
    }
    star.wait_for([0, 3, 4, 5].into_iter());
    assert_eq!(star.is_up(1), None);
    for n in [0, 2, 3, 4, 5] {
        asks(&mut star.connect_behind(n, server).expect("it connects")).expect("an answer");
        asks(&mut star.hosts.connect(behind[n]).expect("it connects")).expect("an answer");
    }
    // With `link`, TCP is end to end and outlives the link.
    open[4].iter_mut().for_each(|stream| asks(stream).expect("an answer"));
    // A file with a mistake changes nothing.
    let wrong = some(&star, &[0, 3]) + &star.peer(5).replace("10.25.0.0/24", "10.20.0.0/16");
    star.write_hub("100 Mbit/s", &wrong);
    let said = star.reload();
    assert!(said.contains("10.20.0.0/16 overlaps 10.20.0.0/24 of peer `t0`"), "{said}");
    assert!(said.contains("reload: the old settings remain"), "{said}");
    // Nor does a file in which the hub itself is a peer.
    star.write_hub("100 Mbit/s", &(some(&star, &[0, 3]) + &star.own()));
    let said = star.reload();
    assert!(said.contains("this is this box's own public key"), "{said}");
    for n in [0, 2, 3] {
        let [up, down] = &mut open[n];
        asks(up).and_then(|()| asks(down)).unwrap_or_else(|error| panic!("t{n}: {error}"));
    }
}

/// While one terminal's hosts send and receive all they can, requests of other terminals are answered, on open and on new connections.
#[test]
fn a_flood_leaves_others_their_turn() {
    let mut star = Star::new(&[false, false, true, true]);
    let peers: String = (0..4).map(|n| star.peer(n)).collect();
    star.write_hub("10 Mbit/s", &peers);
    star.start();
    star.wait_for(0..4);
    let (server, much) = (star.hosts.serve(80, echo), star.hosts.serve(81, pour));
    // One terminal of `split` and one of `link`, each with twenty downloads.
    let floods: Vec<_> = (0..40).map(|n| star.connect_behind(n % 2 * 2, much).expect("it connects")).collect();
    until("it is full", || {
        let status = star.hosts.status("hub").unwrap_or_default();
        [("t0", "split", "unsent_bytes"), ("t2", "satellite", "sent_bytes")]
            .iter()
            .all(|(peer, table, key)| status["peers"][peer][table][key].as_u64() > Some(100_000))
    });
    for n in [1, 3] {
        for _ in 0..3 {
            asks(&mut star.connect_behind(n, server).expect("it connects")).expect("an answer");
        }
    }
    drop(floods);
}
