//! A memory limit: what is dropped, what must be sent again, and what always continues.

use bentpipe_engine::slacp::Queueing;
use bentpipe_engine::slacp::classify::{FlowHash, HostAddress};

use super::*;

/// A receiver with room for a fraction of a round trip's packets: frames are sent again, and everything arrives.
#[test]
fn a_receiver_without_memory_loses_nothing() {
    const ROOM: u64 = 50_000;
    let packets = traffic(1000);
    for fec in [None, FEC] {
        let channel = ChannelConfig { arq: ARQ, fec, resends_oldest_first: true, ..CHANNEL };
        let mut pair = Pair::new(&config(channel), 0.05);
        pair.ports[1].set_room(ROOM);
        let pair = pair.run(&packets, Time::ZERO + MS(300_000));
        let numbers = pair.whole(&packets);
        assert!(in_order(&numbers) && numbers.len() == 1000, "{}", numbers.len());
        // With repair frames: packets kept for them are evicted first, and gaps are filled before frames must be refused.
        assert!(fec.is_some() || pair.ports[1].stats().no_room > 0);
        // The packet that all others wait for is accepted at any time, and so are those of a block that repair frames recover.
        let block = fec.map_or(0, |fec| u64::from(fec.block)) * cost(1500);
        assert!(pair.max_bytes <= ROOM + cost(1500) + block, "{}", pair.max_bytes);
    }
}

/// The same traffic without a limit takes more, or the test above would show nothing.
#[test]
fn without_a_limit_it_takes_what_it_needs() {
    let packets = traffic(1000);
    let pair = Pair::new(&config(ChannelConfig { arq: ARQ, ..CHANNEL }), 0.05).run(&packets, Time::ZERO + MS(60_000));
    assert!(pair.max_bytes > 150_000, "{}", pair.max_bytes);
    assert_eq!(pair.ports[1].stats().no_room, 0);
    assert_eq!(pair.ports.map(|port| port.held_bytes()), [0, 0], "all is given back");
}

/// Packets that are kept for repair frames only go as soon as something else needs the memory.
#[test]
fn what_is_kept_for_repairs_goes_first() {
    let packets = traffic(300);
    let channel = ChannelConfig { arq: ARQ, fec: FEC, ..CHANNEL };
    let mut pair = Pair::new(&config(channel), 0.0).run(&packets, Time::ZERO + MS(5000));
    let port = &mut pair.ports[1];
    let held = port.held_bytes();
    assert!(held > 50 * cost(500), "{held}");
    assert_eq!(port.needed_bytes(), 0, "all is delivered");
    port.set_room(held);
    assert_eq!(port.held_bytes(), held, "there is room");
    port.set_room(held / 2);
    let left = port.held_bytes();
    // Only as much as is needed, in steps of a sixteenth.
    assert!(left <= held / 2 && left > held / 2 - held / 16 - cost(1500), "{left} of {held}");
    port.set_room(0);
    assert_eq!(port.held_bytes(), 0);
}

/// And after a pause, which may be as long as an outage. What comes later is repaired as before.
#[test]
fn what_is_kept_for_repairs_goes_after_a_pause() {
    let channel = ChannelConfig { arq: ARQ, fec: FEC, ..CHANNEL };
    let mut packets = traffic(2000);
    packets.iter_mut().skip(1000).for_each(|(time, _)| *time += MS(20_000));
    let mut pair = Pair::new(&config(channel), 0.0);
    // The last of the first half is sent after 2 s, and arrives 250 ms later.
    let mut held_at = |until: u64, loss: f64| {
        let given: Vec<_> = packets.extract_if(.., |(time, _)| *time < Time::ZERO + MS(until)).collect();
        pair.loss = loss;
        pair = std::mem::replace(&mut pair, Pair::new(&config(channel), 0.0)).run(&given, Time::ZERO + MS(until));
        pair.ports[1].held_bytes()
    };
    let held = [held_at(12_000, 0.0), held_at(13_000, 0.0), held_at(27_000, 0.2), held_at(40_000, 0.2)];
    assert!(held[0] > 500 * cost(500) && held[1] == 0 && held[2] > 500 * cost(500) && held[3] == 0, "{held:?}");
    assert_eq!(pair.whole(&traffic(2000)).len(), 2000);
    assert!(pair.ports[1].layer_stats().channels[0].recovered > 100);
}

/// Where lost packets do not come again, some blocks have repair frames that are not enough. These go when the packets of their block are
/// given up, and not once there are hundreds of such blocks.
#[test]
fn repair_frames_of_blocks_that_are_given_up_go() {
    let packets = traffic(600);
    let channel = ChannelConfig { fec: FEC, ..CHANNEL };
    let pair = Pair::new(&config(channel), 0.3).run(&packets, Time::ZERO + MS(60_000));
    let stats = pair.ports[1].layer_stats().channels[0];
    assert!(stats.skipped > 20 && stats.recovered > 20, "{stats:?}");
    assert_eq!((pair.ports[1].held_bytes(), pair.ports[1].held()), (0, 0));
}

/// A packet from a host of this address.
fn of_host(host: u8, number: u32) -> Vec<u8> {
    let mut packet = packet(1, number, 1000);
    let header = ipv4::Header::new([192, 0, 2, host].into(), [198, 51, 100, 1].into(), 17);
    let payload = packet.len() - ipv4::HEADER;
    ipv4::emit(&header, payload, &mut packet).expect("it fits");
    packet
}

/// A sender without memory drops packets of the host that holds the most, and accepts those of another.
#[test]
fn a_flood_gives_way_to_others() {
    let channel = ChannelConfig { arq: ARQ, queueing: Queueing::Hosts, ..CHANNEL };
    let flows = Some(FlowHash { key: [1, 2], host: HostAddress::Source });
    let mut port = LinkEndpoint::new(&LinkEndpointConfig { flows, ..config(channel) });
    port.set_room(100_000);
    let mut out = [0; 2000];
    // What is dropped is released with the next poll. One frame goes out at once, the line is busy for a millisecond.
    let mut send = |host, number| {
        let mut cx = Context::silent(Time::ZERO);
        port.send(&mut cx, &of_host(host, number)).expect("short enough");
        while let Ok(Step::Do(_)) = port.poll(&mut cx, &mut out) {}
        (port.held_bytes(), port.layer_stats().channels[0].dropped_full, port.end().waiting(0))
    };
    let (held, dropped, waiting) = (0..500).map(|number| send(1, number)).last().expect("some");
    // Half of the limit holds 39 packets that take 1256 bytes each, of which one is on its way.
    assert_eq!((held, dropped, waiting), (39 * cost(1000), 500 - 39, 38));
    assert_eq!(send(2, 500), (39 * cost(1000), 500 - 39 + 1, 38), "one comes and another goes");
    let mut cx = Context::silent(Time::ZERO + MS(20));
    let mut hosts = Vec::new();
    while let Ok(Step::Do(Emitted::Frame(length))) = port.poll(&mut cx, &mut out) {
        // The source's last byte lies 15 bytes into the packet.
        hosts.push(out[length - 4 - 1000 + 15]);
        cx = Context::silent(cx.now + MS(2));
    }
    assert!(hosts.contains(&2), "{hosts:?}");
}

/// A burst of flows with one packet each leaves nothing behind: two pauses later the last of them is forgotten, and no timer runs.
#[test]
fn what_a_burst_leaves_is_freed() {
    let channel = ChannelConfig { order: bentpipe_engine::slacp::Order::Flow, arq: ARQ, ..CHANNEL };
    let packets: Vec<_> = (0..5000).map(|n| (Time::ZERO + MS(n), packet(n as u16, n as u32, 40))).collect();
    let config =
        LinkEndpointConfig { flows: Some(FlowHash { key: [7, 7], host: HostAddress::Source }), ..config(channel) };
    let mut pair = Pair::new(&config, 0.0).run(&packets, Time::ZERO + MS(8000));
    assert_eq!(pair.whole(&packets).len(), 5000);
    assert!(pair.ports[0].trims_at.is_some());
    pair = pair.run(&[], Time::ZERO + MS(60_000));
    for port in &mut pair.ports {
        assert!(port.trims_at.is_none() && !port.end.trim());
        assert_eq!(port.poll(&mut Context::silent(Time::ZERO + MS(60_000)), &mut [0; 2000]), Ok(Step::Wait(None)));
    }
}

/// An end that may not send frees as much memory as one that may, and wakes up for it.
#[test]
fn who_may_not_send_keeps_no_more() {
    let channel = ChannelConfig { arq: ARQ, fec: FEC, ..CHANNEL };
    let mut ports = [(); 2].map(|()| LinkEndpoint::new(&config(channel)));
    let mut out = [0; 2000];
    let mut next = |now, ports: &mut [LinkEndpoint; 2]| {
        while let Ok(Step::Do(_)) = ports[0].poll(&mut Context::silent(now), &mut out) {}
        loop {
            match ports[1].poll_received(&mut Context::silent(now), &mut out).expect("room for any packet") {
                Step::Wait(until) => return until,
                Step::Do(length) => assert_eq!(length, 100),
            }
        }
    };
    let mut packet = [0; 2000];
    for n in 0..3000 {
        let now = Time::ZERO + MS(n);
        let mut bring = |frame, body: usize| {
            let length = slacp::emit(&frame, 0, &[&[7; 200][..body]], Integrity::Crc, &mut packet).expect("it fits");
            for port in &mut ports {
                port.receive(&mut Context::silent(now), &packet[..length]).expect("a frame");
            }
        };
        let floor = n / 10 * 10;
        bring(Frame::Data { channel: 0, number: 2 * n, seq: n, behind: 0, floor, len: 100 }, 100);
        if n % 10 == 5 {
            let repair =
                Frame::Repair { channel: 0, number: 2 * n + 1, first: floor, count: 10, index: 0, floor, len: 106 };
            bring(repair, 106);
        }
        next(now, &mut ports);
        let held = ports.each_ref().map(LinkEndpoint::held_bytes);
        assert_eq!(held[0], held[1], "at {n} ms");
    }
    assert!(ports[1].held_bytes() > 0);
    let mut now = Time::ZERO + MS(3000);
    while let Some(until) = next(now, &mut ports) {
        assert!(until > now);
        now = until;
    }
    assert_eq!(ports[1].held_bytes(), 0);
}
