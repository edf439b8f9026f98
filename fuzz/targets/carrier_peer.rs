//! A peer that has the keys and sends what it likes over the whole carrier: frames, parts of frames, probes and their
//! acknowledgements. Whatever it sends, the end asks for a bounded number of things, and delivers no packet that is longer than
//! the link's.

use bentpipe_engine::Step;
use bentpipe_engine::slacp::classify::HostAddress;
use bentpipe_engine::units::{Duration, Rate, Time};
use bentpipe_gateway::tunnel::{DATA_HEADER, PrivateKey, Todo, Tunnel, TunnelConfig, What};
use bentpipe_gateway::{Carried, Carrier, Satellite, for_packets, for_streams};

/// What an input of this length may make an end do at one instant; far above what it does.
const MAX_STEPS: usize = 10_000;

/// Steps the end until it waits; its datagrams go to the peer.
fn settle(end: &mut Carrier, peer: &mut Tunnel, now: Time, out: &mut [u8]) {
    for _ in 0..MAX_STEPS {
        match end.poll(now, 1, out) {
            Step::Wait(_) => return,
            Step::Do(Carried::Send(sealed)) => {
                peer.receive(now, ([192, 0, 2, 1], 1).into(), &mut out[..sealed.len]);
            }
            Step::Do(Carried::Packet(at)) => assert!(at.len() <= 1500, "a packet of {} bytes", at.len()),
            Step::Do(Carried::Event(_) | Carried::Log(_) | Carried::PathMtu(_)) => {}
        }
    }
    panic!("an end that does not wait");
}

pub(crate) fn run(data: &[u8]) {
    let [own, other] = ["4GWIBQGy+ykODPHIYWyxBVtmcmHFZlWbU5BDWJzhc0M=", "EOXVdFLr6cdSWbcCkTa1KrbiNbc5XhUgQcNZXLm1p0s="]
        .map(|text| text.parse::<PrivateKey>().expect("a key"));
    let mut now = Time::ZERO + Duration::from_secs(1);
    let config = TunnelConfig::new(own.clone(), other.public(), None);
    let satellite = Satellite {
        rate: Rate::from_bits_per_second(1_000_000).expect("not zero"),
        round_trip: Duration::from_millis(20),
        path_mtu: 1500,
        over_ipv6: false,
        reordering: 3,
        shared: false,
    };
    let Some((&first, mut rest)) = data.split_first() else { return };
    let link = if first % 2 == 0 { for_streams(&satellite) } else { for_packets(&satellite, HostAddress::Source) };
    let mut end = Carrier::new(config, link, now);
    let mut peer = Tunnel::new(TunnelConfig::new(other, own.public(), Some(([192, 0, 2, 2], 1).into())), now);
    let mut out = vec![0; 1 << 16];
    // The handshake, and the datagram that confirms it.
    for _ in 0..2 {
        if let Step::Do(Todo::Send(sealed)) = peer.poll(now, 1, &mut out) {
            let mut datagram = out[..sealed.len].to_vec();
            end.receive(now, ([192, 0, 2, 3], 1).into(), &mut datagram);
        }
        settle(&mut end, &mut peer, now, &mut out);
    }
    assert!(end.is_up(), "a peer with the right keys is let in");
    while let [kind, length, more @ ..] = rest {
        let (payload, next) = more.split_at(usize::from(*length).min(more.len()));
        rest = next;
        let what = [What::Frame, What::Part, What::Probe, What::Ack][usize::from(kind % 4)];
        now += Duration::from_millis(u64::from(kind / 4));
        out[DATA_HEADER..DATA_HEADER + payload.len()].copy_from_slice(payload);
        if let Some(sealed) = peer.seal(now, what, payload.len(), &mut out) {
            let mut datagram = out[..sealed.len].to_vec();
            end.receive(now, ([192, 0, 2, 3], 1).into(), &mut datagram);
        }
        settle(&mut end, &mut peer, now, &mut out);
    }
}
