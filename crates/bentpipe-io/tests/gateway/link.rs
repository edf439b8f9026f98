//! The `link` shape.

use bentpipe_engine::units::Duration;

use crate::hosts::{connect, data, echo_after_end, hash, send_then_take, serve};
use crate::world::{Path, SERVER, SERVER6, World, run};

/// The hosts' own TCP meets no loss, whatever the sky does; large packets fit.
#[test]
fn tcp_and_ping_over_a_lossy_link() {
    let world = World::new(Path { rate: 20_000_000, delay: Duration::from_millis(30), loss: 0.05, outages: false }, 1);
    let gateways = world.link();
    run(&world.client, &format!("ping -q -c 3 -i 0.3 -W 3 -s 1300 {SERVER}"));
    for ip in [SERVER, SERVER6] {
        let (at, server) = serve(&world.server, ip, 1, echo_after_end);
        let bytes = data(1_000_003, 7);
        assert_eq!(send_then_take(connect(&world.client, at), &bytes), (bytes.len(), hash(&bytes)));
        server.join().expect("the server ends");
    }
    drop(gateways);
}
