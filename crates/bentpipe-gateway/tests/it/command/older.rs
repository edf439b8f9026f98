//! Connections that are older than a gateway: whatever it does, they are not harmed.

use std::net::TcpStream;

use super::faults::many_descriptors;
use super::pair::{Hosts, Line, Running, asks, echo};
use super::uplink::Hub;

/// 1000 in the full form, which `make bench-gateway-faults` runs; CI's is shorter.
fn count() -> usize {
    std::env::var("BENTPIPE_OLDER").map_or(100, |count| count.parse().expect("a number"))
}

/// Connections of the client to the server, each of which has answered once.
struct Older(Vec<TcpStream>);

impl Older {
    fn begin(hosts: &Hosts) -> Older {
        many_descriptors();
        // The second port is the one at which gateways listen: a listener there must not be mistaken for a connection.
        let ports = [80, 4000].map(|port| hosts.serve(port, echo));
        let begun = (0..count()).map(|n| hosts.connect(ports[n % 2]).expect("it connects"));
        let mut older = Older(begun.collect());
        older.live("before any gateway");
        older
    }

    /// All of them answer.
    fn live(&mut self, when: &str) {
        let harmed = self.0.iter_mut().filter_map(|stream| asks(stream).err()).collect::<Vec<_>>();
        let (count, of) = (harmed.len(), self.0.len());
        println!("{when}: {count} of {of} older connections are harmed");
        assert!(harmed.is_empty(), "{when}: {count} of {of} older connections are harmed: {}", harmed[0]);
    }
}

/// Asked to end, it ends.
fn stop(gateway: &mut Running) {
    gateway.signal("TERM");
    gateway.ends();
}

#[test]
fn connections_older_than_a_pair_live_on() {
    let line = Line::new("100 Mbit/s");
    let mut older = Older::begin(&line);
    let mut near = line.start("near", 1024);
    older.live("after the start of one");
    let mut far = line.start("far", 1024);
    line.wait_until_up(&["near", "far"], true);
    older.live("after the start of both");
    let young = line.serve(81, echo);
    let mut stream = line.connect(young).expect("it connects");
    asks(&mut stream).expect("through the gateways");
    assert_eq!(line.fresh_status("near")["split"]["open"], 1, "only the new one is taken");

    for (name, gateway) in [("near", &near), ("far", &far)] {
        gateway.signal("HUP");
        super::pair::until("it reads again", || line.said(name).contains("reload: "));
    }
    older.live("after a reload");
    drop(stream);

    far.0.kill().expect("it runs");
    far.0.wait().expect("it ends");
    line.wait_until_up(&["near"], false);
    older.live("without the peer");
    // One that began while there was no peer.
    let mut direct = line.connect(young).expect("it connects");
    asks(&mut direct).expect("directly");
    older.0.push(direct);
    let mut far = line.start("far", 1024);
    line.wait_until_up(&["near", "far"], true);
    older.live("after the peer's return");

    stop(&mut near);
    older.live("after the stop of one");
    let mut near = line.start("near", 1024);
    line.wait_until_up(&["near"], true);
    older.live("after a restart");
    stop(&mut near);
    stop(&mut far);
    older.live("after the stop of both");
}

/// Of one box: start, reload, stop, and start after it was killed.
fn one_box(settings: &str) {
    let hub = Hub::new(settings);
    let mut older = Older::begin(&hub.hosts);
    let mut gateway = hub.run(1024);
    older.live("after the start");
    gateway.signal("HUP");
    super::pair::until("it reads again", || hub.hosts.said("hub").contains("reload: "));
    older.live("after a reload");
    stop(&mut gateway);
    older.live("after the stop");
    let mut gateway = hub.run(1024);
    older.live("after the second start");
    gateway.0.kill().expect("it runs");
    gateway.0.wait().expect("it ends");
    older.live("after it was killed");
    let mut gateway = hub.run(1024);
    older.live("after the third start");
    stop(&mut gateway);
    older.live("after the last stop");
}

#[test]
fn connections_older_than_an_uplink_live_on() {
    one_box("");
}

#[test]
fn connections_older_than_the_kernels_sender_live_on() {
    one_box("sender = \"kernel\"\n");
}
