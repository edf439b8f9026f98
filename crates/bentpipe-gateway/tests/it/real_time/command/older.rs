//! Connections that are older than the gateway: nothing that it does harms them.

use std::net::TcpStream;

use super::hub::Hub;
use super::pair::{Hosts, Line, Running, asks, echo};
use crate::hosts::many_descriptors;

/// Connections of the client to the server, each of which has answered once.
struct Older {
    streams: Vec<TcpStream>,
    /// The number of connections that did not answer again.
    harmed: usize,
}

impl Older {
    fn begin(hosts: &Hosts, count: usize) -> Older {
        many_descriptors();
        // The second port is the one on which gateways listen. A listener there must not be mistaken for a connection.
        let ports = [80, 4000].map(|port| hosts.serve(port, echo));
        let begun = (0..count).map(|n| hosts.connect(ports[n % 2]).expect("it connects"));
        let mut older = Older { streams: begun.collect(), harmed: 0 };
        older.live("before any gateway");
        older
    }

    /// Sends a request on each; those without an answer are broken.
    fn live(&mut self, when: &str) {
        let before = self.streams.len();
        self.streams.retain_mut(|stream| asks(stream).is_ok());
        let harmed = before - self.streams.len();
        println!("{when}: {harmed} of {before} older connections are harmed");
        self.harmed += harmed;
    }
}

/// Sends SIGTERM and waits for the end.
fn stop(gateway: &mut Running) {
    gateway.signal("TERM");
    gateway.ends();
}

/// Two boxes: start, reload, the peer's end and return, stop and restart. Returns how many of `count` connections were harmed.
pub(crate) fn pair(count: usize) -> usize {
    let line = Line::new("100 Mbit/s");
    let mut older = Older::begin(&line, count);
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
    // A connection that began while there was no peer.
    let mut direct = line.connect(young).expect("it connects");
    asks(&mut direct).expect("directly");
    older.streams.push(direct);
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
    older.harmed
}

/// One box: start, reload, stop, and a start after a kill. Returns how many of `count` connections were harmed.
pub(crate) fn one_box(settings: &str, count: usize) -> usize {
    let hub = Hub::new(settings);
    let mut older = Older::begin(&hub.hosts, count);
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
    older.harmed
}

#[test]
fn connections_older_than_a_pair_live_on() {
    assert_eq!(pair(100), 0);
}

#[test]
fn connections_older_than_an_uplink_live_on() {
    assert_eq!(one_box("", 100), 0);
}

#[test]
fn connections_older_than_the_kernels_sender_live_on() {
    assert_eq!(one_box("sender = \"kernel\"\n", 100), 0);
}
