//! epoll: edges, and the data of events.

use super::*;

/// Each connection to a listener is an edge, also after the one before was accepted. A SYN is none.
#[test]
fn each_connection_is_an_edge() {
    let open = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 5) = 0\n+0 epoll_create(1) = 5\n\
        +0 epoll_ctl(5, EPOLL_CTL_ADD, 3, {events=EPOLLIN|EPOLLET, fd=3}) = 0\n";
    let syn = |port: u16| {
        format!("+0 < {port} > 8080 S 0:0(0) win 100 <mss 1000>\n+0 > 8080 > {port} S. 0:0(0) ack 1 <...>\n")
    };
    let ack = |port: u16| format!("+.1 < {port} > 8080 . 1:1(0) ack 1 win 100\n");
    let (one, none) =
        ("+0 epoll_wait(5, {events=EPOLLIN, fd=3}, 1, 0) = 1\n", "+0 epoll_wait(5, {events=0, ptr=0}, 1, 0) = 0\n");
    let first = format!("{open}{}{none}{}{one}{none}", syn(1), ack(1));
    for between in ["+0 accept(3, ..., ...) = 4\n", ""] {
        passes(Profile::Linux, &format!("{first}{between}{}{none}{}{one}{none}", syn(2), ack(2)));
    }
}

/// epoll_wait() returns what epoll_ctl() has stored. Of two descriptors, either may come first.
#[test]
fn an_event_has_the_data_of_its_descriptor() {
    let script = |stored: &str, expected: &str| {
        server(&format!(
            "+0 epoll_create(1) = 5\n+0 epoll_ctl(5, EPOLL_CTL_ADD, 4, {{events=EPOLLOUT, {stored}}}) = 0\n\
             +0 epoll_wait(5, {{events=EPOLLOUT, {expected}}}, 1, 0) = 1\n"
        ))
    };
    for data in ["fd=4", "ptr=9", "u32=9", "u64=9"] {
        passes(Profile::Linux, &script(data, data));
    }
    for (stored, expected) in [("fd=4", "fd=3"), ("ptr=9", "ptr=4"), ("u32=9", "u32=8"), ("u64=9", "u64=0")] {
        assert_eq!(fails(Profile::Linux, &script(stored, expected)), 10, "{stored} {expected}");
    }
    let modified = |expected: &str| {
        let modify = format!(
            "+0 epoll_ctl(5, EPOLL_CTL_MOD, 4, {{events=EPOLLOUT, u32=7}}) = 0\n+0 epoll_wait(5, {{events=EPOLLOUT, {expected}}}, 1, 0) = 1\n"
        );
        format!("{}{modify}", script("fd=4", "fd=4"))
    };
    passes(Profile::Linux, &modified("u32=7"));
    assert_eq!(fails(Profile::Linux, &modified("fd=4")), 12);
    let two = |expected: u32| {
        let next = |port: u16, fd: u16| {
            format!(
                "+.1 < {port} > 8080 S 0:0(0) win 100 <mss 1000>\n+0 > 8080 > {port} S. 0:0(0) ack 1 <...>\n\
                 +.1 < {port} > 8080 . 1:1(0) ack 1 win 100\n+0 accept(3, ..., ...) = {fd}\n"
            )
        };
        let add = |fd: u16| format!("+0 epoll_ctl(6, EPOLL_CTL_ADD, {fd}, {{events=EPOLLOUT, u32={fd}}}) = 0\n");
        format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 5) = 0\n{}{}\
             +0 epoll_create(1) = 6\n{}{}+0 epoll_wait(6, {{events=EPOLLOUT, u32={expected}}}, 1, 0) = 1\n",
            next(1, 4),
            next(2, 5),
            add(4),
            add(5)
        )
    };
    passes(Profile::Linux, &two(4));
    passes(Profile::Linux, &two(5));
    assert_eq!(fails(Profile::Linux, &two(6)), 15);
}
