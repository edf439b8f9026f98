//! A server that has ended while its client has not: the connection is not an orphan, and is repeated and probed as an
//! open one.

use super::raw::Said;
use super::*;

/// Settings by which a connection that nobody waits for is given up soon.
fn impatient() -> UplinkConfig {
    let mut config = config();
    config.sender.tcp.rto.max_closed_retries = Some(1);
    config.sender.tcp.rto.max_probes = Some(15);
    config
}

fn is_reset(world: &World) -> bool {
    world.said.iter().any(|said| matches!(said, Uplinked::Reset(_)))
}

/// Everything is lost for a minute.
#[test]
fn data_to_a_client_that_may_still_send_is_repeated_as_if_open() {
    let mut world = World::new(impatient());
    let mut client = Raw::new(CLIENT.1, 1000, None);
    let id = client.open(&mut world);
    let from = world.sent.len();
    assert_eq!(world.machine.write(world.now, id, b"200 OK"), 6);
    world.machine.close(world.now, id);
    world.run(world.now + Duration::from_secs(60));
    assert!(!is_reset(&world), "{:?}", world.said);
    client.peer = client.heard(&world, from).iter().map(Said::end).max().expect("data and a FIN");
    client.send(&mut world, Flags::ACK, b"");
    client.send(&mut world, Flags::ACK | Flags::PSH, b"thanks");
    assert_eq!(world.machine.read(world.now, id, &mut [0; 10]), 6);
    client.send(&mut world, Flags::ACK | Flags::FIN, b"");
    assert_eq!(world.said.last(), Some(&Uplinked::Closed(id)));
}

/// Once both have ended, only the client's ACK is waited for.
#[test]
fn a_connection_that_both_have_ended_is_given_up_soon() {
    for client_is_first in [false, true] {
        let mut world = World::new(impatient());
        let mut client = Raw::new(CLIENT.1, 1000, None);
        let id = client.open(&mut world);
        if client_is_first {
            client.send(&mut world, Flags::ACK | Flags::FIN, b"");
        }
        assert_eq!(world.machine.write(world.now, id, b"200 OK"), 6);
        world.machine.close(world.now, id);
        if !client_is_first {
            client.send(&mut world, Flags::ACK | Flags::FIN, b"");
        }
        world.run(world.now + Duration::from_secs(60));
        assert!(is_reset(&world), "{client_is_first}: {:?}", world.said);
    }
}
