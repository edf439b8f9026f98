//! A terminal whose address changes under a transfer.

use std::io::{Read, Write};

use super::pair::{bytes, inside, send, until};
use super::star::Star;

/// The terminal's box gets another address and loses its first one. The transfer goes on to its end, the hub proves the new address, and
/// no link is made anew.
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
    // UDP sockets that are bound to no address send from the one that the route names.
    for line in [
        "ip addr add 10.9.0.3/32 dev sat",
        "ip route add 10.9.0.1/32 dev sat src 10.9.0.3",
        "ip addr del 10.9.0.2/24 dev sat",
    ] {
        inside(&star.terminals[0].gate, line);
    }
    stream.read_to_end(&mut got).unwrap_or_else(|error| panic!("{error}\n{}", star.hosts.all_said()));
    sender.join().expect("all is sent");
    assert!(got == sent, "{} of {} bytes", got.len(), sent.len());
    until("its new address is proven", || is_at("10.9.0.3:4500"));
    let said = star.hosts.said("hub")[said..].to_owned();
    assert!(!said.contains(" is up") && !said.contains("down"), "{said}");
    assert_eq!(tunnel(1).expect("the hub answers")["endpoint"], "10.9.1.2:4500", "the other one stays");
}
