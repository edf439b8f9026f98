//! A terminal whose address changes during a transfer.

use std::io::{Read, Write};
use std::time::Duration;

use bentpipe_engine::link::LinkConfig;
use bentpipe_engine::units::{self, Rate};

use super::pair::{asks, bytes, echo, inside, send, until};
use super::star::Star;

/// The first terminal's box loses an address and gets another. A UDP socket that is not bound to an address sends from the one that the
/// route prefers.
fn moves(star: &Star, from: &str, to: &str) {
    for line in [
        format!("ip addr add {to}/32 dev sat"),
        format!("ip route replace 10.9.0.1/32 dev sat src {to}"),
        format!("ip addr del {from} dev sat"),
    ] {
        inside(&star.terminals[0].gate, &line);
    }
}

/// The terminal's box gets another address and loses its first one. The transfer completes, the hub validates the new address, and no new
/// link is made.
#[test]
fn a_terminal_moves_under_a_transfer() {
    let mut star = Star::new(&[false, false]);
    star.write_hub("50 Mbit/s", &[star.peer(0), star.peer(1)].concat());
    star.start();
    star.wait_for(0..2);
    let server = star.hosts.serve(80, |mut stream| {
        let mut block = vec![0; 65_536];
        while let Ok(got @ 1..) = stream.read(&mut block) {
            if stream.write_all(&block[..got]).is_err() {
                break;
            }
        }
    });
    let tunnel = |n: usize| star.hosts.status("hub").map(|status| status["peers"][format!("t{n}")]["tunnel"].clone());
    let is_at = |address: &str| {
        tunnel(0).is_some_and(|tunnel| tunnel["endpoint"] == address && tunnel["address_proven"] == true)
    };
    until("its first address is proven", || is_at("10.9.0.2:4500"));

    let sent = bytes(20_000_000);
    let mut stream = star.connect_behind(0, server).expect("it connects");
    let sender = send(&stream, sent.clone());
    let mut got = vec![0; 2_000_000];
    stream.read_exact(&mut got).expect("the server answers");
    let said = star.hosts.said("hub").len();
    moves(&star, "10.9.0.2/24", "10.9.0.3");
    stream.read_to_end(&mut got).unwrap_or_else(|error| panic!("{error}\n{}", star.hosts.all_said()));
    sender.join().expect("all is sent");
    assert!(got == sent, "{} of {} bytes", got.len(), sent.len());
    until("its new address is proven", || is_at("10.9.0.3:4500"));
    let said = star.hosts.said("hub")[said..].to_owned();
    assert!(!said.contains(" is up") && !said.contains("down"), "{said}");
    assert_eq!(tunnel(1).expect("the hub answers")["endpoint"], "10.9.1.2:4500", "the other one stays");
}

/// The hub reloads its settings while a terminal is at an address that is not validated yet. The terminal's connections continue if its
/// name or weight changes, or if another terminal is added or removed. If its own rate changes, a new link is made at the current address.
#[test]
fn reloads_while_a_terminal_moves() {
    let mut star = Star::new(&[false, false]);
    let link = || LinkConfig::clean(Rate::from_bits_per_second(50_000_000), units::Duration::from_millis(300));
    let _sky = star.over_sky(0, [link(), link()]);
    let named = |name: &str| star.peer(0).replace("name = \"t0\"", &format!("name = \"{name}\"\nweight = 3"));
    star.write_hub("50 Mbit/s", &[star.peer(0), star.peer(1)].concat());
    let settings = [
        [named("t0"), star.peer(1)].concat(),
        named("moves"),
        [star.peer(0), star.peer(1)].concat(),
        [star.peer(0), star.peer(1)].concat(),
        star.peer(0),
    ];
    star.start();
    star.wait_for(0..2);
    let server = star.hosts.serve(80, echo);
    let mut stream = star.connect_behind(0, server).expect("it connects");
    asks(&mut stream).expect("an answer");
    let tunnel = |name: &str| star.hosts.status("hub").map(|status| status["peers"][name]["tunnel"].clone());
    let is_at = |name: &str, address: &str| {
        tunnel(name).is_some_and(|tunnel| {
            tunnel["endpoint"] == format!("{address}:4500").as_str() && tunnel["address_proven"] == true
        })
    };
    let said = star.hosts.said("hub").len();
    let mut from = "10.9.0.2/24".to_owned();
    for (n, peers) in settings.iter().enumerate() {
        let to = format!("10.9.0.{}", n + 3);
        moves(&star, &from, &to);
        // A packet from the new address arrives after 0.3 s, and its validation takes 0.6 s more.
        stream.write_all(&[7; 100]).expect("it is open");
        std::thread::sleep(Duration::from_millis(400));
        star.write_hub("50 Mbit/s", peers);
        let reloaded = star.reload();
        assert!(!reloaded.contains("the old settings remain"), "{reloaded}");
        stream.read_exact(&mut [0; 100]).unwrap_or_else(|error| panic!("{n}: {error}\n{}", star.hosts.all_said()));
        asks(&mut stream).unwrap_or_else(|error| panic!("{n}: {error}\n{}", star.hosts.all_said()));
        let name = if n == 1 { "moves" } else { "t0" };
        until("its new address is proven", || is_at(name, &to));
        from = format!("{to}/32");
    }
    let since = star.hosts.said("hub")[said..].to_owned();
    assert!(!since.contains("peer t0") && !since.contains("peer moves"), "{since}");

    moves(&star, &from, "10.9.0.20");
    let _ = stream.write_all(&[7; 100]);
    std::thread::sleep(Duration::from_millis(400));
    star.write_hub("50 Mbit/s", &(star.peer(0) + "rate = \"20 Mbit/s\"\n"));
    assert!(star.reload().contains("peers connected anew: t0"));
    assert!(stream.read_exact(&mut [0; 100]).is_err(), "the connection is reset");
    until("it is there", || is_at("t0", "10.9.0.20"));
    asks(&mut star.connect_behind(0, server).expect("it connects")).expect("an answer");
}
