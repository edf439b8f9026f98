//! Connections that the kernel turns away before the gateway sees them.

use super::pair::{Line, inside, until};

/// With `tcp_syncookies = 2` the kernel answers every SYN by a cookie, and through TPROXY no client can connect: the gateway says so, and
/// counts it. A reload makes its queues as long as the kernel then allows.
#[test]
fn what_the_kernel_turns_away_is_noticed() {
    let line = Line::new("100 Mbit/s");
    inside(&line.near, "sysctl -qw net.core.somaxconn=64");
    let server = line.serve(80, drop);
    let near = line.start("near", 1024);
    let _far = line.start("far", 1024);
    line.wait_until_up(&["near", "far"], true);
    assert!(line.said("near").contains("as root, sets net.core.somaxconn = 65536"), "{}", line.said("near"));
    let places = || inside(&line.near, "ss -Hltn sport = :4000").split_whitespace().nth(2).map(str::to_owned);
    assert_eq!(places().as_deref(), Some("64"));
    // A socket that is about to be counted: the first look is the reference.
    line.fresh_status("near");

    inside(&line.near, "sysctl -qw net.ipv4.tcp_syncookies=2");
    for _ in 0..3 {
        // The client believes that it is connected until the reset comes.
        let _ = line.connect(server);
    }
    until("it is counted", || {
        line.status("near").is_some_and(|status| status["listener"]["syns_turned_away"].as_u64() >= Some(3))
    });
    until("it is said", || line.said("near").contains("new connections are turned away: net.ipv4.tcp_syncookies is 2"));
    until("its end is said", || line.said("near").contains("new connections are accepted again"));

    for setting in ["net.ipv4.tcp_syncookies=1", "net.core.somaxconn=4096"] {
        inside(&line.near, &format!("sysctl -qw {setting}"));
    }
    near.signal("HUP");
    until("the queue is longer", || places().as_deref() == Some("4096"));
    line.connect(server).expect("it is accepted");
    assert_eq!(line.said("near").matches("turned away").count(), 1, "{}", line.said("near"));
}
