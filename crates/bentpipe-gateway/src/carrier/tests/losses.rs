//! A peer moves while most datagrams are lost.

use super::*;
use crate::tunnel::seed_draws;

/// What packets there are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Traffic {
    Download,
    Upload,
}

/// After the second end has moved: until it is heard from there, until the first one may send there what it likes, and until a packet
/// has arrived that was sent from then on.
#[derive(Clone, Copy, Debug, Default)]
struct Took {
    heard: Option<Duration>,
    proven: Option<Duration>,
    flows: Option<Duration>,
    is_down: bool,
}

fn recovery(traffic: Traffic, loss: u64, seed: u64) -> Took {
    seed_draws(seed);
    let mut world = World::new();
    world.sink = usize::from(traffic != Traffic::Upload);
    world.run(world.after(5), u64::MAX, greedy);
    (world.loss, world.random) = (loss, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    world.run(world.after(5), u64::MAX, greedy);
    let new = address(7);
    (world.at, world.says) = (new, new);
    let moved = world.now;
    let mut took = Took::default();
    let mut before = world.arrived;
    while took.flows.is_none() && world.now < moved + Duration::from_secs(60) {
        world.run(world.now + Duration::from_millis(10), u64::MAX, greedy);
        let since = world.now - moved;
        let tunnel = world.ends[0].tunnel();
        if tunnel.endpoint() == Some(new) {
            took.heard.get_or_insert(since);
            if tunnel.is_proven() && took.proven.is_none() {
                took.proven = Some(since);
                before = world.arrived;
            }
        }
        if took.proven.is_some() && world.arrived > before {
            took.flows = Some(since);
        }
        took.is_down |= world.events.concat().contains(&Event::Down);
    }
    took
}

/// Downloads and uploads of a peer that moves, over a path that loses 30 to 60 % in each direction, with 20 seeds each. The link stays up.
#[test]
fn a_move_under_heavy_loss_is_no_outage() {
    // A probe per half a second arrives, and so does its answer, with probability (1 - loss)^2. So many are lost one after the other in
    // one of 20 000 runs: ln(1/20 000) / ln(1 - (1 - loss)^2).
    for (loss, max_probes) in [(30, 15), (45, 28), (60, 57)] {
        // The first frames may be lost as often as the probes were.
        let max_proven = Duration::from_millis(1000 + 500 * max_probes);
        let max_flows = max_proven.saturating_mul(2);
        for traffic in [Traffic::Download, Traffic::Upload] {
            for took in (1..=20).map(|seed| recovery(traffic, loss, seed)) {
                assert!(!took.is_down, "{traffic:?} {loss} %: {took:?}");
                assert!(took.heard.is_some_and(|span| span < Duration::from_secs(1)), "{traffic:?} {loss} %: {took:?}");
                assert!(took.proven.is_some_and(|span| span < max_proven), "{traffic:?} {loss} %: {took:?}");
                assert!(took.flows.is_some_and(|span| span < max_flows), "{traffic:?} {loss} %: {took:?}");
            }
        }
    }
}
