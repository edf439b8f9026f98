use bentpipe_engine::gateway::ROOM;
use bentpipe_engine::units::Duration;

use super::*;
use crate::policy::Policy;
use crate::split::Fallback;

fn config() -> SplitConfig {
    SplitConfig {
        listen: Vec::new(),
        client_address: sockets::ClientAddress::Replace,
        fallback: Fallback::Refuse,
        window: 1 << 20,
        max_streams: 10_000,
        budget: 64 << 20,
        policy: Policy::default(),
    }
}

fn mux(side: Side) -> Mux {
    Mux::new(MuxConfig { side, window: 1 << 20, max_payload: 1400, max_streams: 10_000, budget: 64 << 20 })
}

/// Opens `count` connections at a peer, which the policy forbids, so that no socket is made.
fn open(far: &mut Mux, streams: &mut Streams, cx: &mut Cx<'_>, count: usize) {
    let route = Route { source: ([10, 0, 0, 1], 4000).into(), destination: ([127, 0, 0, 1], 80).into() };
    for _ in 0..count {
        assert!(far.open(route).is_some());
    }
    let mut packet = [0; 2048];
    far.handle(&mut Context::silent(cx.now), Input::Room(ROOM as u32 + 10 * count as u32));
    while let Step::Do(output) = far.poll(&mut Context::silent(cx.now)) {
        if let Output::Send(message) = output {
            let length = wire::emit(&message, &[], &mut packet).expect("it fits");
            streams.on_packet(cx, &packet[..length]);
        }
    }
}

/// One of several peers may open a burst, and then a limited number per second. Other peers are not affected, and a single peer
/// is not limited.
#[test]
fn openings_of_one_peer_among_others_are_limited() {
    let poll = mio::Poll::new().expect("the system has epoll");
    for (peers, expected) in
        [(2, [(1000, 0), (1000, 1000), (1500, 1500), (1, 0)]), (1, [(1000, 0), (2000, 0), (3000, 0), (1, 0)])]
    {
        let mut common = Common::new(config(), 0);
        (0..peers).for_each(|slot| common.memory.join(Slot(slot)));
        let now = Time::ZERO + Duration::from_secs(9);
        let mut cx = Cx { now, registry: poll.registry(), common: &mut common };
        let mut ends = [0, 1].map(|slot| {
            let streams = Streams { mux: Some(mux(Side::Responder)), ..Streams::new(Slot(slot), &config()) };
            (mux(Side::Initiator), streams)
        });
        let [(far, streams), (other_far, other)] = &mut ends;
        let judged = |streams: &Streams| (streams.forbidden, streams.stats.throttled);
        open(far, streams, &mut cx, 1000);
        let mut seen = vec![judged(streams)];
        open(far, streams, &mut cx, 1000);
        seen.push(judged(streams));
        open(other_far, other, &mut cx, 1);
        cx.now += Duration::from_secs(1);
        open(far, streams, &mut cx, 1000);
        seen.extend([judged(streams), judged(other)]);
        assert_eq!(seen, expected, "{peers} peers");
        // Each is answered.
        assert_eq!(streams.stats().mux.reset_here, 3000);
    }
}
