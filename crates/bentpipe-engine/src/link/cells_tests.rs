use proptest::prelude::*;

use super::*;
use crate::atm::cell::{Header, PAYLOAD, PayloadType};
use crate::link::config::LossConfig;
use crate::probe::{NoProbe, Who};
use crate::units::{Bytes, Probability};

/// A packet with this many cells, and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packet {
    number: usize,
    cells: u32,
}

impl Wire for Packet {
    fn wire_len(&self) -> u32 {
        self.cells * 48 - 16
    }
}

#[derive(Clone, Copy, Debug)]
struct Offer {
    at: Time,
    vc: u32,
    packet: Packet,
}

type Fate_ = Result<Time, DropReason>;

fn rate(bits: u64) -> Rate {
    Rate::from_bits_per_second(bits).expect("not zero")
}

fn config(bits: u64, cells: CellConfig) -> LinkConfig {
    LinkConfig { cells: Some(cells), ..LinkConfig::clean(Some(rate(bits)), Duration::from_micros(7)) }
}

/// Runs the port like a driver: the fate of each packet, in the order reported.
fn port(config: &LinkConfig, channels: usize, offers: &[Offer]) -> Vec<(usize, Fate_)> {
    let mut port = CellPort::new(config, 1, "port", channels);
    let (mut fates, mut dropped) = (Vec::new(), Vec::new());
    let mut offers = offers.iter().peekable();
    loop {
        let head = port.head().map(|(at, _)| at);
        let offer = offers.next_if(|offer| head.is_none_or(|head| offer.at < head));
        let Some(now) = offer.map(|offer| offer.at).or(head) else { break };
        let mut cx = Context { now, who: Who(0), probe: &mut NoProbe };
        if let Some(offer) = offer {
            let verdict = port.offer(&mut cx, offer.vc, offer.packet);
            dropped.extend(verdict.err().map(|reason| (offer.packet.number, Err(reason))));
        }
        while let Some((packet, fate)) = port.take(&mut cx) {
            fates.push((packet.number, fate.map(|()| now)));
        }
    }
    assert_eq!(port.in_flight(), 0);
    let counters = port.counters();
    assert_eq!(counters.offered, fates.len() as u64);
    assert_eq!(counters.offered, counters.delivered + counters.dropped());
    // Without lines, all cells come at once, and the port's verdict with them.
    let is_of_port = |&&(_, fate): &&(usize, Fate_)| fate.is_err_and(|reason| reason != DropReason::Channel);
    let lines = config.cells.is_some_and(|cells| cells.line.is_some());
    let at_once: Vec<_> = fates.iter().filter(is_of_port).filter(|_| !lines).copied().collect();
    assert_eq!(sorted(dropped), sorted(at_once));
    fates
}

/// The literal twin: one event per cell, a queue of what waits, and real reassembly at the other end.
fn twin(config: &LinkConfig, offers: &[Offer]) -> Vec<(usize, Fate_)> {
    let cells = config.cells.expect("cells");
    let (cell, spacing) = (cell_time(config.rate.expect("a rate")), cells.line.map_or(0, cell_time));
    let channels = 1 + offers.iter().map(|offer| offer.vc as usize).max().unwrap_or(0);
    // Arrival, channel, offer, first, last.
    let mut arrivals = Vec::new();
    let mut free = vec![0; channels];
    for (n, offer) in offers.iter().enumerate() {
        let line = &mut free[offer.vc as usize];
        let start = (offer.at.as_ticks() << FINE_BITS).max(*line);
        for i in 1..=offer.packet.cells as u64 {
            arrivals.push((start + i * spacing, offer.vc, n, i == 1, i == offer.packet.cells as u64));
        }
        *line = start + offer.packet.cells as u64 * spacing;
    }
    // Stable: simultaneous cells keep their order.
    arrivals.sort_by_key(|&(at, vc, ..)| (at, if spacing == 0 { 0 } else { vc }));
    let mut busy = 0;
    let mut waiting: Vec<(Fine, u32)> = Vec::new();
    let mut discarding = vec![None; offers.len()];
    let mut reassembly = vec![aal5::Reassembler::new(); channels];
    let mut segmenters: Vec<_> = offers.iter().map(|_| None).collect();
    let bytes: Vec<Vec<u8>> =
        offers.iter().enumerate().map(|(n, o)| vec![n as u8; o.packet.cells as usize * PAYLOAD - 8]).collect();
    let pieces: Vec<[&[u8]; 1]> = bytes.iter().map(|bytes| [&bytes[..]]).collect();
    let mut fates = vec![None; offers.len()];
    for (at, vc, n, first, last) in arrivals {
        let header = Header::user(0, vc as u16, false);
        let cells_of = segmenters[n].get_or_insert_with(|| aal5::segment(header, &pieces[n]).expect("fits"));
        let bits = cells_of.next().expect("as many cells");
        waiting.retain(|&(begins, _)| begins > at);
        let mine = waiting.iter().filter(|&&(_, of)| cells.sharing == Sharing::Shared || of == vc).count() as u32;
        let unlimited = cells.buffer.is_none();
        if first && !unlimited && cells.early_discard.is_some_and(|threshold| mine > threshold) {
            discarding[n] = Some(DropReason::Early);
        }
        let refused = match discarding[n] {
            Some(DropReason::Early) => true,
            Some(_) => cells.partial_discard && !last,
            None => false,
        };
        if refused || (busy > at && cells.buffer.is_some_and(|buffer| mine >= buffer)) {
            discarding[n].get_or_insert(DropReason::QueueFull);
            continue;
        }
        let begins = busy.max(at);
        busy = begins + cell;
        waiting.push((begins, vc));
        let (header, payload) = Header::of(&bits).expect("its own check");
        let PayloadType::User { last, .. } = header.payload else { panic!("user data") };
        if let Ok(Some(packet)) = reassembly[vc as usize].push(payload, last) {
            assert_eq!(packet, bytes[n], "whole or nothing");
            fates[n] = Some(Ok(Time::from_ticks(busy.div_ceil(1 << FINE_BITS)) + config.delay));
        }
    }
    let fate = |n: usize| fates[n].unwrap_or(Err(discarding[n].unwrap_or(DropReason::QueueFull)));
    offers.iter().enumerate().map(|(n, offer)| (offer.packet.number, fate(n))).collect()
}

fn sorted(mut fates: Vec<(usize, Fate_)>) -> Vec<(usize, Fate_)> {
    fates.sort_by_key(|&(number, _)| number);
    fates
}

fn offers(of: &[(u64, u32, u32)]) -> Vec<Offer> {
    let mut now = 0;
    let offer = |(number, &(gap, vc, cells)): (usize, &(u64, u32, u32))| {
        now += gap;
        Offer { at: Time::from_nanos(now), vc, packet: Packet { number, cells } }
    };
    of.iter().enumerate().map(offer).collect()
}

#[test]
fn a_lone_packet_takes_its_cells_over_line_and_port() {
    // 424 bits at 424 Mbit/s are 1 µs. Three cells over the line, the last one then through the port, 7 µs after it.
    let cells = CellConfig { line: Some(rate(424_000_000)), ..CellConfig::OPEN };
    let one = offers(&[(5_000, 0, 3)]);
    assert_eq!(port(&config(424_000_000, cells), 1, &one), [(0, Ok(Time::from_nanos(5_000 + 3_000 + 1_000 + 7_000)))]);
    // A slow port: the first cell comes after 1 µs, three of 2 µs each follow.
    assert_eq!(port(&config(212_000_000, cells), 1, &one), [(0, Ok(Time::from_nanos(5_000 + 1_000 + 6_000 + 7_000)))]);
    // No line: as a link of packets.
    assert_eq!(
        port(&config(424_000_000, CellConfig::OPEN), 1, &one),
        [(0, Ok(Time::from_nanos(5_000 + 3_000 + 7_000)))]
    );
}

#[test]
fn two_channels_share_cell_by_cell() {
    // Both lines as fast as the port: cells come in pairs, and each packet takes twice its time. The first channel's
    // last cell is the seventh of eight, at 1 + 7 µs, the second's the eighth.
    let cells = CellConfig { line: Some(rate(424_000_000)), ..CellConfig::OPEN };
    let fates = port(&config(424_000_000, cells), 2, &offers(&[(0, 0, 4), (0, 1, 4)]));
    assert_eq!(fates, [(0, Ok(Time::from_nanos(15_000))), (1, Ok(Time::from_nanos(16_000)))]);
}

/// Three channels at the rate of the port, far more than it can take, with a small buffer.
fn overload(cells: CellConfig) -> (LinkCounters, CellCounters) {
    let config = config(424_000_000, CellConfig { line: Some(rate(424_000_000)), ..cells });
    let mut port = CellPort::new(&config, 1, "port", 3);
    for number in 0..300 {
        let mut cx = Context { now: Time::ZERO, who: Who(0), probe: &mut NoProbe };
        assert_eq!(port.offer(&mut cx, number as u32 % 3, Packet { number, cells: 10 }), Ok(()), "cells are on lines");
    }
    while let Some((now, _)) = port.head() {
        let mut cx = Context { now, who: Who(0), probe: &mut NoProbe };
        while port.take(&mut cx).is_some() {}
    }
    (port.counters(), port.cell_counters())
}

#[test]
fn discard_by_packet_saves_what_goes_through() {
    // Romanow and Floyd 1995: plain UBR fills the line with cells of lost packets; partial discard wastes less, early
    // discard with room for started packets wastes nothing.
    let plain = CellConfig { buffer: Some(40), ..CellConfig::OPEN };
    let partial = CellConfig { partial_discard: true, ..plain };
    let early = CellConfig { early_discard: Some(20), ..plain };
    let [plain, partial, early] = [plain, partial, early].map(overload);
    assert_eq!(early.1.wasted, 0);
    assert_eq!(early.0.dropped_full, 0);
    assert!(plain.1.wasted > partial.1.wasted && partial.1.wasted > 0, "{plain:?} {partial:?}");
    // The port can send a third of the arriving cells, plus its content at the end: up to 30 cells of each channel.
    let delivered = [plain, partial, early].map(|(packets, _)| packets.delivered);
    assert!(delivered[0] <= delivered[1] && delivered[1] < delivered[2], "{delivered:?}");
    assert!((96..=109).contains(&delivered[2]), "{delivered:?}");
}

#[test]
fn cells_are_lost_by_their_bits() {
    // Equation (4) of the ACTS paper: a cell arrives with probability (1-BER)^424, so a packet of 192 with
    // (1-BER)^(424*192).
    let cells = CellConfig::OPEN;
    let bit = Probability::new(1e-6).expect("in range");
    let config = LinkConfig { good: LossConfig { packet: Probability::ZERO, bit }, ..config(424_000_000, cells) };
    let n = 20_000;
    let all: Vec<_> = (0..n).map(|_| (200_000, 0, 192)).collect();
    let lost = port(&config, 1, &offers(&all)).iter().filter(|(_, fate)| fate.is_err()).count() as f64;
    // A packet whose last cell is hit also corrupts the next one.
    let (hit, last) = (bit.any_of_bits(424 * 192).get(), bit.any_of_bits(424).get());
    let expected = n as f64 * (hit + last * (1.0 - hit));
    // Five standard deviations of a binomial count.
    assert!((lost - expected).abs() < 5.0 * (n as f64 * hit).sqrt(), "{lost} of {expected}");
}

#[test]
fn time_starts_afresh_where_the_port_is_empty() {
    // A year and a nanosecond apart: the port's unit would overflow within a week.
    let far = 365 * 86_400 * 1_000_000_000;
    let fates = port(&config(424_000_000, CellConfig::OPEN), 1, &offers(&[(0, 0, 1), (far, 0, 1)]));
    assert_eq!(fates[1], (1, Ok(Time::from_nanos(far + 8_000))));
    assert_eq!(Bytes::new(53).get(), cell::CELL as u64);
}

/// A port that is never empty for 200 hours: a packet of ten cells every 9 s, and ten cells take 10 s. The port's unit
/// overflows after 78 hours.
#[test]
fn a_port_that_is_never_empty_goes_on() {
    let hours = 200;
    let lines = [None, Some(rate(4240))];
    let sharings = [Sharing::PerChannel, Sharing::Shared];
    for (line, sharing) in lines.into_iter().flat_map(|line| sharings.map(|sharing| (line, sharing))) {
        let cells = CellConfig { line, sharing, buffer: Some(1_000_000), ..CellConfig::OPEN };
        let all: Vec<_> = (0..hours * 400).map(|_| (9_000_000_000, 0, 10)).collect();
        let fates = port(&config(424, cells), 1, &offers(&all));
        // The first cell arrives after 9 s and, if it has a line, the time of a cell there, a tenth of a second.
        let first = 9_000_000_000 + if line.is_some() { 100_000_000 } else { 0 } + 7_000;
        for (n, fate) in fates {
            assert_eq!(fate, Ok(Time::from_nanos(first + 10_000_000_000 * (n as u64 + 1))), "{n} {line:?} {sharing:?}");
        }
    }
}

/// The same instant of the port's unit as at the beginning, 2^54 ticks later: it is empty all the same.
#[test]
fn a_port_that_was_idle_for_long_is_empty() {
    let again = (1 << 54) / 64;
    let fates = port(&config(424, CellConfig::OPEN), 1, &offers(&[(0, 0, 10), (again + 1, 0, 1)]));
    assert_eq!(fates, [(0, Ok(Time::from_nanos(10_000_007_000))), (1, Ok(Time::from_nanos(again + 1_000_007_001)))]);
}

prop_compose! {
    fn any_cells()(
        line in prop_oneof![Just(None), Just(Some(424_000_000u64)), Just(Some(130_000_000)), Just(Some(599_040_000))],
        buffer in prop_oneof![1 => Just(None), 4 => (1u32..120).prop_map(Some)],
        shared: bool, early in prop_oneof![Just(None), (0u32..80).prop_map(Some)], partial_discard: bool,
    ) -> CellConfig {
        CellConfig {
            line: line.map(rate), buffer, partial_discard,
            early_discard: early.filter(|_| buffer.is_some()),
            sharing: if shared { Sharing::Shared } else { Sharing::PerChannel },
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    /// Trains are exact: the same departures and the same losses as cell by cell.
    #[test]
    fn agrees_with_cell_by_cell(
        cells in any_cells(),
        bits in prop_oneof![Just(149_760_000u64), Just(424_000_000), Just(1_000_000_000)],
        all in prop::collection::vec((prop_oneof![Just(0u64), 0u64..3_000, 0u64..90_000], 0u32..5, 1u32..60), 1..80),
    ) {
        let offers = offers(&all);
        let config = config(bits, cells);
        prop_assert_eq!(sorted(port(&config, 5, &offers)), sorted(twin(&config, &offers)));
    }
}
