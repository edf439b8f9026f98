//! The `link` shape.

use crate::hosts::echo;
use crate::world::{Path, SERVER, SERVER6, World, run};

/// The hosts' own TCP sees no loss, whatever the link loses. Packets of full size pass.
#[test]
fn tcp_and_ping_over_a_lossy_link() {
    let world = World::new(Path::lossy(0.05), 1);
    let gateways = world.link();
    run(&world.client, &format!("ping -q -c 3 -i 0.3 -W 3 -s 1300 {SERVER}"));
    for ip in [SERVER, SERVER6] {
        echo(&world.client, &world.server, ip, 1_000_003);
    }
    drop(gateways);
}
