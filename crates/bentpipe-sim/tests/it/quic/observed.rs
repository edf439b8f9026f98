//! The events of QUIC flows that observers get.

use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{Event, Probe, QuicKind, QuicPacket, Who};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_sim::record::{Plot, Sequence};
use bentpipe_sim::{Body, Observer, Packet, Passage, run};

use super::{bulk, geo};

/// The events of an observer.
#[derive(Default)]
struct Told {
    sent: Vec<(u32, QuicPacket)>,
    received: Vec<(u32, QuicPacket)>,
    windows: u64,
    /// Machine, sample and timeout.
    round_trips: Vec<(u32, Duration, Duration)>,
}

impl Probe for Told {
    fn event(&mut self, _: Time, who: Who, event: &Event) {
        match *event {
            Event::QuicSent(packet) => self.sent.push((who.0, packet)),
            Event::QuicReceived(packet) => self.received.push((who.0, packet)),
            Event::Window { .. } => self.windows += 1,
            Event::Rtt { sample, rto } => self.round_trips.push((who.0, sample, rto)),
            _ => {}
        }
    }
}

impl Observer for Told {
    fn packet(&mut self, _: Time, _: LinkId, _: Passage, packet: &Packet) {
        assert!(matches!(packet.body, Body::Quic(_)));
    }
}

/// An observer sees every type of packet, each packet that arrived as it was sent, and the data's place in its stream.
#[test]
fn packets_are_told() {
    let scenario = geo("", &bulk("300 kB", "zero_rtt = true"));
    let mut told = Told::default();
    let result = run(&scenario, 1, &mut told).expect("a path");
    for kind in [QuicKind::Initial, QuicKind::ZeroRtt, QuicKind::Handshake, QuicKind::OneRtt] {
        assert!(told.sent.iter().any(|(_, packet)| packet.kind == kind), "{kind:?}");
    }
    for (who, packet) in &told.received {
        let same = |(from, sent): &&(u32, QuicPacket)| {
            (*from ^ 1, sent.kind, sent.number) == (*who, packet.kind, packet.number)
        };
        let sent = told.sent.iter().find(same).unwrap_or_else(|| panic!("{packet:?} was not sent"));
        assert_eq!(QuicPacket { repeats: false, ..sent.1 }, *packet);
    }
    // Without losses the data is sent once: its pieces, put one after the other, are the stream.
    let mut data: Vec<_> = told.sent.iter().filter(|(who, packet)| *who == 0 && packet.data > 0).collect();
    data.sort_by_key(|(_, packet)| packet.at);
    let mut end = 0;
    for (_, packet) in data {
        assert_eq!((packet.at.map(|(_, offset)| offset), packet.repeats), (Some(end), false));
        end += u64::from(packet.data);
    }
    assert_eq!((end, result.flows[0].stats.retransmits), (300_000, 0));
    assert!(told.windows > 50);
    // A round trip of 600 ms, with the lines' time, an ACK's delay of 25 ms and the queue.
    assert!(told.round_trips.iter().all(|(_, rtt, _)| (600..1300).contains(&(rtt.as_nanos() / 1_000_000))));
}

/// RFC 9002 §5.3 and §6.2.1: after the first round trip R the timeout is R + 4 R/2; after the next one R', it is 7/8 R + 1/8 R' + 3/2 R +
/// |R - R'|. quinn takes the ACK's delay, here at most 25 ms, from R', which changes the second timeout by up to 9/8 of it.
#[test]
fn the_timeout_follows_the_round_trip() {
    let scenario = geo("", &bulk("300 kB", ""));
    let mut told = Told::default();
    run(&scenario, 1, &mut told).expect("a path");
    let own = told.round_trips.iter().filter(|(who, ..)| *who == 0);
    let mut client = own.map(|(_, rtt, rto)| (rtt.as_millis_f64(), rto.as_millis_f64()));
    let (first, rto) = client.next().expect("a handshake");
    assert!((rto - 3.0 * first).abs() < 0.001, "{first} {rto}");
    let (second, rto) = client.next().expect("data");
    let expected = 0.875 * first + 0.125 * second + 1.5 * first + (first - second).abs();
    assert!((rto - expected).abs() <= 9.0 / 8.0 * 25.0, "{second} {rto} {expected}");
}

/// A plot has points for data, ACKs, losses and repetitions.
#[test]
fn a_plot_has_its_points() {
    let scenario = geo("loss = \"1 %\"", &bulk("1 MB", ""));
    let mut sequence = Sequence::at_bottleneck(&scenario);
    run(&scenario, 1, &mut sequence).expect("a path");
    let flow = &sequence.flows[0];
    let repeated = flow.sent.iter().filter(|(_, again)| *again).count();
    assert!(flow.sent.len() > 700 && flow.received.len() > 700 && flow.acks.len() > 300);
    assert!(repeated > 3 && flow.channel_drops.len() > 3 && flow.windows.len() > 100);
    // 1 MB in segments of at most 1424 B.
    let last = flow.acks.iter().map(|(_, segment)| *segment).fold(0.0, f64::max);
    assert_eq!(last, (1_000_000.0_f64 / 1424.0).ceil());
    let panel = sequence.plot(Plot::Sequence, 0, "quic", Default::default());
    assert!(panel.series.len() >= 3);
}
