//! What a host does around connections, one behaviour each, as scripts that pass, and beside some of them one that fails:
//! the runner must see the difference.

use bentpipe_script::host::Profile;
use bentpipe_script::{Options, Verdict, run};

mod epoll;

fn play(profile: Profile, script: &str) -> Verdict {
    let played = run(script, &Options::new(profile)).unwrap_or_else(|mistake| panic!("{mistake}\n{script}"));
    if let Verdict::Fails(difference) = &played.verdict {
        println!("{}\n{difference:#?}", played.packets.join("\n"));
    }
    played.verdict
}

#[track_caller]
fn passes(profile: Profile, script: &str) {
    assert_eq!(play(profile, script), Verdict::Passes, "{script}");
}

/// The line at which the script fails.
#[track_caller]
fn fails(profile: Profile, script: &str) -> u32 {
    match play(profile, script) {
        Verdict::Fails(difference) => difference.line,
        other => panic!("{other:?}\n{script}"),
    }
}

/// Four lines: a listener and a connection accepted from it.
const SERVER: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0
+0 < S 0:0(0) win 65535 <mss 1000,sackOK>\n+0 > S. 0:0(0) ack 1 <...>
+.1 < . 1:1(0) ack 1 win 65535\n+0 accept(3, ..., ...) = 4\n";

/// A connection that the host opens.
const CLIENT: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 fcntl(3, F_SETFL, O_RDWR | O_NONBLOCK) = 0
+0 connect(3, ..., ...) = -1 EINPROGRESS\n+0 > S 0:0(0) <...>\n";

fn server(rest: &str) -> String {
    format!("{SERVER}{rest}")
}

fn client(rest: &str) -> String {
    format!("{CLIENT}{rest}")
}

#[test]
fn a_stranger_is_reset() {
    passes(
        Profile::Linux,
        "0 < S 5:5(0) win 100\n+0 > R. 0:0(0)! ack 6\n+0 < . 6:6(0) ack 77 win 100\n+0 > R 77:77(0)!",
    );
    // And a reset is never answered.
    assert_eq!(fails(Profile::Linux, "0 < R 5:5(0) win 100\n+0 > R. 0:0(0) ack 5"), 2);
}

#[test]
fn a_full_queue_takes_no_syn() {
    let script = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 0) = 0\n";
    let one = |port: u16| format!("+0 < {port} > 8080 S 0:0(0) win 100 <mss 1000>\n");
    let answer = |port: u16| format!("+0 > 8080 > {port} S. 0:0(0) ack 1 <...>\n");
    passes(Profile::Linux, &format!("{script}{}{}", one(1), answer(1)));
    assert_eq!(fails(Profile::Linux, &format!("{script}{}{}{}{}", one(1), answer(1), one(2), answer(2))), 7);
}

//= RFC 9293 §3.10.7.2: "Any acknowledgment is bad if it arrives on a connection still in the LISTEN state."
#[test]
fn a_reset_of_a_handshake_makes_room() {
    let script = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 0) = 0\n\
        +0 < S 0:0(0) win 100 <mss 1000>\n+0 > S. 0:0(0) ack 1 <...>\n";
    let again = "+0 < S 0:0(0) win 100 <mss 1000>\n+0 > S. 0:0(0) ack 1 <...>";
    let late = "+.1 < . 1:1(0) ack 1 win 100\n+0 > R 1:1(0)\n";
    passes(Profile::Linux, &format!("{script}+.1 < R 1:1(0) win 100\n{late}{again}"));
    // A reset elsewhere in the window is challenged, and ends nothing.
    passes(
        Profile::Linux,
        &format!(
            "{script}+.1 < R 2:2(0) win 100\n+0 > . 1:1(0) ack 1\n+.1 < . 1:1(0) ack 1 win 100\n+0 accept(3, ..., ...) = 4"
        ),
    );
}

#[test]
fn unread_data_is_reset_at_close() {
    let data = "+0 < . 1:1001(1000) ack 1 win 65535\n+0 > . 1:1(0) ack 1001\n";
    passes(Profile::Linux, &server(&format!("{data}+0 close(4) = 0\n+0 > R. 1:1(0) ack 1001")));
    passes(
        Profile::Linux,
        &server(&format!("{data}+0 read(4, ..., 1000) = 1000\n+0 close(4) = 0\n+0 > F. 1:1(0) ack 1001")),
    );
}

#[test]
fn data_for_nobody_is_reset() {
    passes(
        Profile::Linux,
        &server("+0 close(4) = 0\n+0 > F. 1:1(0) ack 1\n+.1 < P. 1:101(100) ack 2 win 65535\n+0 > R 2:2(0)"),
    );
    // A direction that was only shut still takes data.
    passes(
        Profile::Linux,
        &server(
            "+0 shutdown(4, SHUT_WR) = 0\n+0 > F. 1:1(0) ack 1\n+.1 < P. 1:101(100) ack 2 win 65535\n+0 > . 2:2(0) ack 101\n+0 read(4, ..., 200) = 100",
        ),
    );
}

#[test]
fn linger_of_no_time_resets() {
    passes(
        Profile::Linux,
        &server(
            "+0 setsockopt(4, SOL_SOCKET, SO_LINGER, {onoff=1, linger=0}, 8) = 0\n+0 close(4) = 0\n+0 > R. 1:1(0) ack 1",
        ),
    );
}

#[test]
fn errors_wait_in_so_error() {
    passes(
        Profile::FreeBsd,
        &client(
            "+.1 < R. 0:0(0) ack 1 win 0\n+0 getsockopt(3, SOL_SOCKET, SO_ERROR, [ECONNREFUSED], [4]) = 0\n+0 getsockopt(3, SOL_SOCKET, SO_ERROR, [0], [4]) = 0",
        ),
    );
    passes(
        Profile::Linux,
        &server(
            "+0 < R. 1:1(0) ack 1 win 0\n+0 read(4, ..., 10) = -1 ECONNRESET\n+0 read(4, ..., 10) = 0\n+0 write(4, ..., 10) = -1 EPIPE",
        ),
    );
    assert_eq!(fails(Profile::Linux, &server("+0 < R. 1:1(0) ack 1 win 0\n+0 read(4, ..., 10) = 0")), 9);
}

#[test]
fn connect_tells_its_state() {
    passes(
        Profile::Linux,
        &client(
            "+0 connect(3, ..., ...) = -1 EALREADY\n+.1 < S. 0:0(0) ack 1 win 100 <mss 1000>\n+0 > . 1:1(0) ack 1\n+0 connect(3, ..., ...) = 0\n+0 connect(3, ..., ...) = -1 EISCONN",
        ),
    );
}

#[test]
fn calls_that_block_return_when_they_can() {
    let connect = |until: &str| {
        format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0...{until} connect(3, ..., ...) = 0\n+0 > S 0:0(0) <...>\n+.1 < S. 0:0(0) ack 1 win 100 <mss 1000>\n+0 > . 1:1(0) ack 1"
        )
    };
    passes(Profile::Linux, &connect("0.1"));
    assert!(matches!(play(Profile::Linux, &connect("0.2")), Verdict::Fails(_)));
    assert!(matches!(play(Profile::Linux, &connect("0.05")), Verdict::Fails(_)));
    passes(
        Profile::Linux,
        &server("+0...0.2 read(4, ..., 100) = 50\n+.2 < P. 1:51(50) ack 1 win 100\n+0 > . 1:1(0) ack 51"),
    );
    assert_eq!(fails(Profile::Linux, &server("+0 read(4, ..., 100) = 50\n+.2 < P. 1:51(50) ack 1 win 100")), 8);
    passes(
        Profile::Linux,
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
        +0...0.1 accept(3, ..., ...) = 4\n+0 < S 0:0(0) win 100 <mss 1000>\n+0 > S. 0:0(0) ack 1 <...>\n+.1 < . 1:1(0) ack 1 win 100",
    );
}

#[test]
fn time_wait_is_left_by_a_later_syn_on_linux() {
    let closed = "+0 close(4) = 0\n+0 > F. 1:1(0) ack 1\n+.1 < F. 1:1(0) ack 2 win 100\n+0 > . 2:2(0) ack 2\n";
    passes(
        Profile::Linux,
        &server(&format!("{closed}+.1 < S 9000:9000(0) win 100 <mss 1000>\n+0 > S. ...(0) ack 9001 <...>")),
    );
    // RFC 5961 §4.2: an older one is answered with an ACK.
    passes(Profile::Linux, &server(&format!("{closed}+.1 < S 1:1(0) win 100 <mss 1000>\n+0 > . 2:2(0) ack 2")));
}

#[test]
fn icmp_ends_what_is_being_opened() {
    let icmp = |quoted: u32| {
        client(&format!(
            "+.1 < icmp unreachable port_unreachable [{quoted}:{quoted}(0)]\n+0 getsockopt(3, SOL_SOCKET, SO_ERROR, [ECONNREFUSED], [4]) = 0"
        ))
    };
    passes(Profile::FreeBsd, &icmp(0));
    // RFC 5927 §4.1: not about anything outstanding.
    assert_eq!(fails(Profile::FreeBsd, &icmp(1)), 6);
    // An open connection is left alone.
    passes(
        Profile::FreeBsd,
        &server("+0 < icmp unreachable port_unreachable [1:1(0)]\n+0 write(4, ..., 10) = 10\n+0 > P. 1:11(10) ack 1"),
    );
}

#[test]
fn nagle_cork_and_more() {
    let first = "+0 write(4, ..., 100) = 100\n+0 > P. 1:101(100) ack 1\n+0 write(4, ..., 100) = 100\n";
    passes(Profile::Linux, &server(&format!("{first}+.01 < . 1:1(0) ack 101 win 65535\n+0 > P. 101:201(100) ack 1")));
    passes(
        Profile::Linux,
        &server(&format!("{first}+.01 setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0\n+0 > P. 101:201(100) ack 1")),
    );
    let corked = "+0 setsockopt(4, SOL_TCP, TCP_CORK, [1], 4) = 0\n+0 write(4, ..., 100) = 100\n";
    passes(
        Profile::Linux,
        &server(&format!("{corked}+.1 setsockopt(4, SOL_TCP, TCP_CORK, [0], 4) = 0\n+0 > P. 1:101(100) ack 1")),
    );
    passes(Profile::Linux, &server(&format!("{corked}+.2 > P. 1:101(100) ack 1")));
    assert_eq!(fails(Profile::Linux, &server(&format!("{corked}+0 > P. 1:101(100) ack 1"))), 10);
    passes(
        Profile::Linux,
        &server("+0 send(4, ..., 50, MSG_MORE) = 50\n+.1 send(4, ..., 50, 0) = 50\n+0 > P. 1:101(100) ack 1"),
    );
}

#[test]
fn segments_are_joined_and_push_is_free_but_not_by_the_rfc() {
    let text = server("+0 write(4, ..., 3000) = 3000\n+0 > . 1:3001(3000) ack 1");
    passes(Profile::Linux, &text);
    assert!(matches!(play(Profile::Linux, &text.replace("1:3001(3000)", "1:2501(2500)")), Verdict::Fails(_)));
    let strict = "--mss=1000\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 fcntl(3, F_SETFL, O_RDWR | O_NONBLOCK) = 0\n+0 connect(3, ..., ...) = -1 EINPROGRESS\n\
        +0 > S 0:0(0) <...>\n+.1 < S. 0:0(0) ack 1 win 65535 <mss 1000>\n+0 > . 1:1(0) ack 1\n+0 write(3, ..., 2000) = 2000\n";
    passes(Profile::Rfc, &format!("{strict}+0 > . 1:1001(1000) ack 1\n+0 > P. 1001:2001(1000) ack 1"));
    assert_eq!(fails(Profile::Rfc, &format!("{strict}+0 > . 1:1001(1000) ack 1\n+0 > . 1001:2001(1000) ack 1")), 10);
    assert_eq!(fails(Profile::Rfc, &format!("{strict}+0 > . 1:2001(2000) ack 1")), 9);
    // A packet that no line expects, and one that comes a microsecond late.
    assert_eq!(fails(Profile::Rfc, &format!("{strict}+0 > . 1:1001(1000) ack 1")), 9);
    assert_eq!(fails(Profile::Rfc, &format!("{strict}+.000001 > . 1:1001(1000) ack 1")), 9);
}

/// As in packetdrill: each packet may come within the tolerance, and the next one counts from it.
#[test]
fn relative_times_count_from_what_happened() {
    let write = "+0 write(4, ..., 3000) = 3000\n";
    let after = |ms: u32| {
        format!(
            "{SERVER}{write}+.00{ms} > . 1:1001(1000) ack 1\n+.00{ms} > . 1001:2001(1000) ack 1\n+.00{ms} > P. 2001:3001(1000) ack 1\n\
             +.1 < . 1:1(0) ack 3001 win 65535\n+0 %{{ assert tcpi_rtt == 100000, tcpi_rtt }}%"
        )
    };
    passes(Profile::Linux, &after(3));
    assert_eq!(fails(Profile::Linux, &after(5)), 9);
}

/// Linux doubles SO_RCVBUF, and the window takes half.
#[test]
fn a_receive_buffer_gives_its_window() {
    let script = |window: u32| {
        SERVER.replace("+0 bind", "+0 setsockopt(3, SOL_SOCKET, SO_RCVBUF, [20000], 4) = 0\n+0 bind")
            + &format!(
                "+0 < P. 1:1001(1000) ack 1 win 100\n+0 > . 1:1(0) ack 1001 win {window}\n+0 getsockopt(4, SOL_SOCKET, SO_RCVBUF, [40000], [4]) = 0"
            )
    };
    passes(Profile::Linux, &script(19_000));
    assert_eq!(fails(Profile::Linux, &script(39_000)), 10);
}

/// Linux's `tcp_ecn=4`.
#[test]
fn accurate_ecn_may_be_accepted_and_not_requested() {
    const FOUR: &str = "`sysctl -q net.ipv4.tcp_ecn=4`\n";
    passes(Profile::Linux, &format!("{FOUR}{}", CLIENT.replace("> S 0:0(0)", "> SEW 0:0(0)")));
    assert_eq!(fails(Profile::Linux, &format!("{FOUR}{}", CLIENT.replace("> S 0:0(0)", "> SEWA 0:0(0)"))), 5);
    let accept = SERVER.replace("< S 0:0(0)", "< SEWA 0:0(0)").replace("> S. 0:0(0)", "> SW. 0:0(0)");
    passes(Profile::Linux, &format!("{FOUR}{accept}"));
}

/// Features are found from what a script asks for.
#[test]
fn what_a_host_lacks_is_named() {
    let lacks = |line: &str, feature: &str| {
        assert_eq!(play(Profile::Linux, &server(line)), Verdict::Unsupported(vec![feature.to_owned()]), "{line}");
    };
    lacks("+0 %{ assert SK_MEMINFO_RCVBUF > 0 }%", "the memory of a socket");
    lacks("+0 setsockopt(4, SOL_IP, IP_MTU_DISCOVER, [IP_PMTUDISC_DO], 1) = 0", "socket option IP_MTU_DISCOVER");
    passes(Profile::Linux, &server("+0 setsockopt(4, SOL_IP, IP_MTU_DISCOVER, [IP_PMTUDISC_DONT], 1) = 0"));
    lacks("+0 `sysctl -q net.ipv4.tcp_invalid_ratelimit=500`", "sysctl tcp_invalid_ratelimit");
    passes(Profile::Linux, &server("+0 `sysctl -q net.ipv4.tcp_invalid_ratelimit=0`"));
}

#[test]
fn readiness() {
    passes(
        Profile::Linux,
        &server(
            "+0 poll([{fd=4, events=POLLIN|POLLOUT, revents=POLLOUT}], 1, 0) = 1\n+0 < P. 1:51(50) ack 1 win 100\n+0 > . 1:1(0) ack 51\n\
         +0 poll([{fd=4, events=POLLIN, revents=POLLIN}], 1, 0) = 1\n+0 read(4, ..., 100) = 50\n+0...0.1 poll([{fd=4, events=POLLIN, revents=0}], 1, 100) = 0",
        ),
    );
    let epoll = "+0 epoll_create(1) = 5\n+0 epoll_ctl(5, EPOLL_CTL_ADD, 4, {events=EPOLLIN|EPOLLET, fd=4}) = 0\n+0 epoll_wait(5, {events=0, ptr=0}, 1, 0) = 0\n\
         +0 < P. 1:51(50) ack 1 win 100\n+0 > . 1:1(0) ack 51\n+0 epoll_wait(5, {events=EPOLLIN, fd=4}, 1, 0) = 1\n";
    // An edge is reported once.
    passes(Profile::Linux, &server(&format!("{epoll}+0 epoll_wait(5, {{events=0, ptr=0}}, 1, 0) = 0")));
    assert_eq!(
        fails(Profile::Linux, &server(&format!("{epoll}+0 epoll_wait(5, {{events=EPOLLIN, fd=4}}, 1, 0) = 1"))),
        14
    );
}

/// accept4() sets the flags of the new socket; without them it waits, whatever the listener does.
#[test]
fn accept4_sets_the_new_sockets_flags() {
    let open = SERVER.replace("+0 accept(3, ..., ...) = 4\n", "");
    let accepted = |call: &str, rest: &str| format!("{open}+0 {call} = 4\n{rest}");
    let refused = "+0 read(4, ..., 100) = -1 EAGAIN\n+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 1";
    let flags = "accept4(3, ..., ..., SOCK_NONBLOCK | SOCK_CLOEXEC)";
    passes(Profile::Linux, &accepted(flags, refused));
    passes(Profile::Linux, &accepted(flags, "+0 fcntl(4, F_GETFL) = 2050"));
    assert_eq!(fails(Profile::Linux, &accepted("accept4(3, ..., ..., SOCK_CLOEXEC)", refused)), 8);
    assert_eq!(fails(Profile::Linux, &accepted("accept(3, ..., ...)", refused)), 8);
}

/// A descriptor that a call has returned again is open, whichever call it was.
#[test]
fn descriptors_are_used_again() {
    let epoll = |make: &str| {
        let add = "+0 epoll_ctl(5, EPOLL_CTL_ADD, 4, {events=EPOLLOUT, fd=4}) = 0\n+0 epoll_wait(5, {events=EPOLLOUT, fd=4}, 1, 0) = 1\n";
        format!("+0 {make} = 5\n+0 close(5) = 0\n+0 {make} = 5\n{add}")
    };
    for make in ["epoll_create(1)", "epoll_create1(0)"] {
        passes(Profile::Linux, &server(&epoll(make)));
    }
    let again = |accept: &str| {
        let close = "+0 < F. 1:1(0) ack 1 win 65535\n* > . 1:1(0) ack 2\n+.1 close(4) = 0\n+0 > F. 1:1(0) ack 2\n+.1 < . 2:2(0) ack 2 win 65535\n";
        let next =
            "+.1 < S 0:0(0) win 65535 <mss 1000,sackOK>\n+0 > S. 0:0(0) ack 1 <...>\n+.1 < . 1:1(0) ack 1 win 65535\n";
        format!("{close}{next}+0 {accept} = 4\n+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 1")
    };
    for accept in ["accept(3, ..., ...)", "accept4(3, ..., ..., 0)"] {
        passes(Profile::Linux, &server(&again(accept)));
    }
    // A close that fails closes nothing.
    passes(
        Profile::Linux,
        "0 close(3) = -1 EBADF\n+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0",
    );
}

#[test]
fn what_waits_in_the_queues() {
    passes(
        Profile::Linux,
        &server(
            "+0 write(4, ..., 500) = 500\n+0 > P. 1:501(500) ack 1\n+0 ioctl(4, SIOCOUTQ, [500]) = 0\n+0 < P. 1:51(50) ack 501 win 65535\n+0 > . 501:501(0) ack 51\n\
         +0 ioctl(4, SIOCOUTQ, [0]) = 0\n+0 ioctl(4, SIOCINQ, [50]) = 0\n+0 recv(4, ..., 20, MSG_PEEK) = 20\n+0 read(4, ..., 20) = 20\n+0 ioctl(4, SIOCINQ, [30]) = 0",
        ),
    );
}

#[test]
fn windows_and_timestamps_are_translated() {
    let open = |rest: &str| {
        format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 fcntl(3, F_SETFL, O_RDWR | O_NONBLOCK) = 0\n+0 connect(3, ..., ...) = -1 EINPROGRESS\n\
            +0 > S 0:0(0) <mss 1460,sackOK,TS val 100 ecr 0,nop,wscale 8>\n+.1 < S. 0:0(0) ack 1 win 100 <mss 1000,sackOK,TS val 700 ecr 100,nop,wscale 7>\n{rest}"
        )
    };
    passes(
        Profile::Linux,
        &open("+0 > . 1:1(0) ack 1 win 256 <nop,nop,TS val 200 ecr 700>\n+0 %{ assert 99000 <= tcpi_rtt <= 101000 }%"),
    );
    assert_eq!(fails(Profile::Linux, &open("+0 > . 1:1(0) ack 1 win 200 <nop,nop,TS val 200 ecr 700>")), 6);
    assert_eq!(fails(Profile::Linux, &open("+0 > . 1:1(0) ack 1 <nop,nop,TS val 200 ecr 701>")), 6);
    assert_eq!(fails(Profile::Linux, &open("+0 > . 1:1(0) ack 1")), 6);
    let ticks = |value: u32| {
        format!("--tcp_ts_tick_usecs=1000\n{}", open(&format!("+0 > . 1:1(0) ack 1 <TS val {value} ecr 700>")))
    };
    passes(Profile::Linux, &ticks(200));
    assert_eq!(fails(Profile::Linux, &ticks(300)), 7);
}

#[test]
fn sysctls_and_states() {
    passes(
        Profile::FreeBsd,
        "`sysctl -w net.inet.tcp.rfc1323=0`\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 fcntl(3, F_SETFL, O_RDWR | O_NONBLOCK) = 0\n\
        +0 connect(3, ..., ...) = -1 EINPROGRESS\n+0 > S 0:0(0) win 65535 <mss 1460,sackOK>\n+0 %{ assert tcpi_state == TCPI_SYN_SENT }%\n+0 `sockstat -4 -P tcp -s | grep packetdril | grep -c SYN_SENT | grep 1`",
    );
    assert_eq!(fails(Profile::FreeBsd, "0 `sockstat -4 -P tcp -s | grep packetdril | grep -c SYN_SENT | grep 1`"), 1);
    passes(
        Profile::Linux,
        "--ip_version=ipv6 --mtu=1280\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 fcntl(3, F_SETFL, O_RDWR | O_NONBLOCK) = 0\n\
        +0 connect(3, ..., ...) = -1 EINPROGRESS\n+0 > S 0:0(0) <mss 1220,sackOK,TS val 1 ecr 0,wscale 7>",
    );
}

/// The smallest sizes that the kernels take leave room for a byte.
#[test]
fn tiny_buffers_do_no_harm() {
    let linux = "0 `sysctl -q net.ipv4.tcp_rmem=\"1 1 1\" net.ipv4.tcp_wmem=\"1 1 1\"`\n";
    let rest = "+0 < . 1:2(1) ack 1 win 65535\n+0 > . 1:1(0) ack 2 win 0\n+0 read(4, ..., 1) = 1\n+0 > . 1:1(0) ack 2 win 1\n\
        +0 write(4, ..., 1) = 1\n+0 > P. 1:2(1) ack 2";
    passes(Profile::Linux, &format!("{linux}{SERVER}{rest}"));
}

/// The largest numbers that the language has, in each place that calculates with them.
#[test]
fn huge_numbers_do_no_harm() {
    const MAX: i64 = i64::MAX;
    let watch = "[{fd=4, events=POLLIN, revents=POLLIN}]";
    passes(Profile::Linux, &server(&format!("+0...0.9 poll({watch}, 1, {MAX}) = 1\n+.9 < P. 1:51(50) ack 1 win 100")));
    for value in [MAX, -MAX] {
        let set = |name| format!("+0 setsockopt(4, SOL_SOCKET, {name}, [{value}], 4) = 0");
        passes(Profile::Linux, &server(&format!("{}\n{}", set("SO_RCVBUF"), set("SO_SNDBUF"))));
    }
    let open = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
        +0 < S 0:0(0) win 1000 <mss 1000,wscale 7>\n+0 > S. 0:0(0) ack 1 <mss 1460,nop,wscale 255>\n\
        +0 < . 1:1(0) ack 1 win 100\n+0 accept(3, ..., ...) = 4\n+0 < P. 1:51(50) ack 1 win 100\n+0 > . 1:1(0) ack 51 win 65535";
    assert_eq!(fails(Profile::Linux, open), 9);
}

/// packetdrill's `--mss` is the length of the segments that it joins for the kernel's device. In bentpipe's own scripts, which have the
/// profile `rfc`, it is the host's.
#[test]
fn an_mss_of_packetdrill_is_not_the_hosts() {
    let script = |offered: u32| {
        let options = "<mss 1000,sackOK,nop,nop>";
        format!(
            "--mss=1000\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
             +0 < S 0:0(0) win 32792 {options}\n+0 > S. 0:0(0) ack 1 <mss {offered},nop,nop,sackOK>"
        )
    };
    passes(Profile::Linux, &script(1460));
    assert_eq!(fails(Profile::Linux, &script(1000)), 6);
}
