//! When the packets of a window leave.

use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_engine::units::Time;
use bentpipe_sim::{Observer, Packet, Passage, run};

use super::{CONTROLS, bulk, geo, result, seconds};

/// The client's datagrams of 1350 bytes and when each reached the line.
#[derive(Default)]
struct Full(Vec<Time>);

impl Probe for Full {
    fn event(&mut self, _: Time, _: Who, _: &Event) {}
}

impl Observer for Full {
    fn packet(&mut self, now: Time, _: LinkId, passage: Passage, packet: &Packet) {
        if passage == Passage::Offered && packet.forward && packet.wire_len == 1378 {
            self.0.push(now);
        }
    }
}

/// When the full datagrams of a transfer leave that begins with a window of 135 kB, in seconds after the first one.
fn departures(pacing: bool) -> Vec<f64> {
    let settings = format!("datagram = \"1350 B\", initial_window = \"135 kB\", pacing = {pacing}");
    let mut full = Full::default();
    run(&geo("", &bulk("1 MB", &settings)), 1, &mut full).expect("a path");
    // The first one is the Initial packet.
    let data = &full.0[1..];
    data.iter().map(|at| at.saturating_since(data[0]).as_secs_f64()).collect()
}

/// A window of 100 datagrams: without pacing it leaves at once, except for the last datagram, since quinn sends one if the flight is
/// then below the window. The next ones follow the ACKs, a round trip later. With pacing bursts of ten are spread over 0.8 round trips.
#[test]
fn a_window_leaves_at_once_or_over_a_round_trip() {
    let at_once = departures(false);
    let together = at_once.iter().take_while(|at| **at == 0.0).count();
    assert!((97..=99).contains(&together), "{together}");
    assert!(at_once[together] > 0.59, "{}", at_once[together]);
    let paced = departures(true);
    let together = paced.iter().take_while(|at| **at == 0.0).count();
    assert!((10..=20).contains(&together), "{together}");
    let half = paced.partition_point(|at| *at < 0.24);
    assert!((45..=65).contains(&half), "{half}");
}

/// Every control, with losses: all data arrives, and the flight is never above the largest window by more than a probe of the path MTU.
#[test]
fn windows_are_kept_without_pacing() {
    for control in CONTROLS {
        let settings = format!("congestion_control = \"{control}\", pacing = false");
        let flow = result(&geo("loss = \"1 %\"", &bulk("2 MB", &settings)));
        assert_eq!((flow.delivered, flow.aborted), (2_000_000, None), "{control}");
        let (flight, window) = (flow.stats.max_flight, flow.stats.max_cwnd);
        assert!(flight <= window + 1452 && flight > window / 2, "{control}: {flight} B, window {window} B");
        assert!(seconds(&flow) > 0.0);
    }
}
