//! What a driver learns when it offers a packet to the network: whether the packet is lost, and why.

use bentpipe_engine::NoProbe;
use bentpipe_engine::link::{CellConfig, CellPort, Link, LinkConfig, QueueLimit, Wire};
use bentpipe_engine::network::{Bound, EndId, Hop, LayerEnds, LinkId, Network, Routes, Station, StationId};
use bentpipe_engine::probe::DropReason;
use bentpipe_engine::units::{Duration, Probability, Rate, Time};

/// A packet with a number and this many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packet(u32, u32);

impl Wire for Packet {
    fn wire_len(&self) -> u32 {
        self.1
    }
}

impl Bound for Packet {
    fn to(&self) -> EndId {
        EndId(0)
    }
}

/// 1 Mbit/s, so that 1000 B take 8 ms, and 100 ms of delay.
fn config() -> LinkConfig {
    LinkConfig::clean(Rate::from_bits_per_second(1_000_000), Duration::from_millis(100))
}

/// Links in a row, and a port on no path.
fn network(links: &[LinkConfig], chains: bool) -> Network<Packet> {
    let port = LinkConfig { cells: Some(CellConfig::OPEN), drop_list: vec![1], ..config() };
    let mut routes = Routes::new(links.len(), 1, 1);
    let way: Vec<Hop> = LinkId::first(links.len()).map(Hop::Link).collect();
    routes.lead(EndId(0), &way);
    let made = links.iter().zip(["one", "two"]).map(|(config, name)| Link::new(config, 1, name)).collect();
    let port = Station::Cells { link: LinkId(0), port: Box::new(CellPort::new(&port, 1, "port", 1)) };
    Network::new(made, vec![port], (routes, LayerEnds::new(1)), vec![0], chains)
}

fn offer(network: &mut Network<Packet>, packet: Packet) -> Result<(), (Packet, DropReason)> {
    network.offer(Time::ZERO, || Time::ZERO, &mut NoProbe, LinkId(0), packet)
}

#[test]
fn a_link_says_why_it_refuses() {
    let mut link = LinkConfig { mtu: Some(1000), drop_list: vec![0], ..config() };
    link.queue.limit = QueueLimit::Packets(1);
    let mut network = network(&[link], false);
    let fates = [1000, 1001, 1000, 1000, 1000].map(|length| offer(&mut network, Packet(0, length)));
    let reasons = fates.map(|fate| fate.err().map(|(_, reason)| reason));
    // One is on the line, and one waits.
    let full = Some(DropReason::QueueFull);
    assert_eq!(reasons, [Some(DropReason::Listed), Some(DropReason::TooLong), None, None, full]);
}

/// In a chain, the links behind the first decide at once, too.
#[test]
fn a_chain_says_why_it_loses() {
    let mut narrow = LinkConfig { rate: Rate::from_bits_per_second(100_000), ..config() };
    narrow.queue.limit = QueueLimit::Packets(1);
    let lost = |links: &[LinkConfig], chains| {
        let mut network = network(links, chains);
        [1, 2, 3].map(|n| offer(&mut network, Packet(n, 1000)))
    };
    let third = Err((Packet(3, 1000), DropReason::QueueFull));
    assert_eq!(lost(&[config(), narrow.clone()], true), [Ok(()), Ok(()), third]);
    // Without chains, the packet reaches the second link later.
    assert_eq!(lost(&[config(), narrow], false), [Ok(()); 3]);
    let mut dark = config();
    dark.good.packet = Probability::ONE;
    let all = [1, 2, 3].map(|n| Err((Packet(n, 1000), DropReason::Channel)));
    assert_eq!(lost(&[dark.clone(), config()], true), all);
    // The last link of a chain reports a loss at the time of the arrival.
    assert_eq!(lost(&[config(), dark], true), [Ok(()); 3]);
}

/// A station keeps what it drops until the driver takes it, so that nothing is reported twice.
#[test]
fn a_station_says_why_and_returns_the_packet_later() {
    let mut network = network(&[config()], false);
    let fates = [1, 2].map(|n| network.enter(Time::ZERO, &mut NoProbe, StationId(0), Packet(n, 1000)));
    assert_eq!(fates, [Ok(()), Err(DropReason::Listed)]);
    let first = network.first();
    assert_eq!((first.at(), first.component()), (Time::ZERO, 1));
    let taken = network.take(first.at(), &mut NoProbe, first.component());
    assert_eq!(taken, Some((Packet(2, 1000), Err(DropReason::Listed))));
    assert_eq!(network.take(first.at(), &mut NoProbe, first.component()), None);
}
