use std::net::Ipv4Addr;

use bentpipe_engine::wire::ip::{Addresses, Ports};

use super::*;
use crate::header::Options;

const MS: i64 = 1_000_000;

fn header(seq: u32, ack: u32, payload: u32) -> Header {
    Header {
        addresses: Addresses::V4 { source: Ipv4Addr::LOCALHOST, destination: Ipv4Addr::LOCALHOST },
        ports: Ports { source: 1, destination: 2 },
        seq,
        ack,
        flags: Header::ACK,
        window: 1000,
        payload,
        headers: 40,
        id: 0,
        options: Default::default(),
        is_cut: false,
    }
}

/// Segments of 100 bytes are numbered; `sent` has time (ms) and number, `acks` time and the next number expected.
fn play(sent: &[(i64, u32)], acks: &[(i64, u32)]) -> Ledger {
    play_on(Ledger::new(100), sent, acks)
}

fn play_on(mut ledger: Ledger, sent: &[(i64, u32)], acks: &[(i64, u32)]) -> Ledger {
    let data = sent.iter().map(|&(at, number)| (at, true, header(5000 + number * 100, 0, 100)));
    let acks = acks.iter().map(|&(at, number)| (at, false, header(0, 5000 + number * 100, 0)));
    let mut all: Vec<_> = data.chain(acks).collect();
    all.sort_by_key(|(at, _, _)| *at);
    all.iter().for_each(|(at, along, header)| ledger.take(at * MS, *along, header));
    ledger
}

fn fates(ledger: &Ledger) -> Vec<Fate> {
    ledger.transmissions.iter().map(|sent| sent.fate).collect()
}

#[test]
fn what_was_sent_again_and_came_a_round_trip_later_was_lost() {
    // Segment 1 is lost; its second transmission at 30 ms is acknowledged a round trip of 10 ms later.
    let ledger = play(&[(0, 0), (1, 1), (2, 2), (30, 1)], &[(10, 1), (40, 3)]);
    assert_eq!(fates(&ledger), [Fate::Delivered, Fate::Lost, Fate::Delivered, Fate::Delivered]);
    // The acknowledgement at 40 ms does not show when segment 2 arrived.
    assert_eq!(ledger.arrivals.iter().map(|a| (a.of, a.timely)).collect::<Vec<_>>(), [(0, true), (3, false)]);
}

#[test]
fn what_was_sent_again_too_early_was_not_lost() {
    // The acknowledgement comes 4 ms after the second transmission: the round trip is 10 ms.
    let ledger = play(&[(0, 0), (1, 1), (30, 1)], &[(10, 1), (34, 2)]);
    assert_eq!(fates(&ledger), [Fate::Delivered, Fate::Delivered, Fate::NotNeeded]);
}

#[test]
fn reports_of_a_gap_may_be_held_back_from_the_fourth_on() {
    // Segment 0 is lost, 1 to 5 are reported one by one. The second transmission of 0 lets the acknowledgement jump to 3, where 3 is lost
    // too.
    let mut ledger = Ledger::new(100);
    for number in 0..8 {
        ledger.take(0, true, &header(5000 + number * 100, 0, 100));
    }
    let mut report = |at: i64, ack: u32, number: u32| {
        let block = (5000 + number * 100, 5100 + number * 100);
        let header = Header { options: Options::with_block(block), ..header(0, 5000 + ack * 100, 0) };
        ledger.take(at * MS, false, &header);
    };
    for (at, ack, number) in [(10, 0, 1), (11, 0, 2), (12, 0, 4), (13, 0, 5), (20, 3, 6), (21, 3, 7)] {
        report(at, ack, number);
    }
    let compressed: Vec<bool> = ledger.arrivals.iter().map(|arrival| arrival.compressed).collect();
    assert_eq!(compressed, [false, false, false, true, false, false]);
}

#[test]
fn a_transmission_may_be_lost_twice() {
    // An acknowledgement of this segment alone shows when it arrived, if the handshake shows how long a trip takes.
    for has_handshake in [false, true] {
        let mut ledger = Ledger::new(100);
        if has_handshake {
            let syn = |along: bool| Header {
                flags: Header::SYN | if along { 0 } else { Header::ACK },
                ..header(4999, 5000, 0)
            };
            ledger.take(-20 * MS, true, &syn(true));
            ledger.take(-10 * MS, false, &syn(false));
        }
        let ledger = play_on(ledger, &[(0, 0), (1, 1), (30, 1), (60, 1)], &[(10, 1), (70, 2)]);
        assert_eq!(fates(&ledger), [Fate::Delivered, Fate::Lost, Fate::Lost, Fate::Delivered]);
        let arrivals: Vec<_> = ledger.arrivals.iter().map(|arrival| (arrival.of, arrival.timely)).collect();
        assert_eq!(arrivals, [(0, true), (3, has_handshake)]);
    }
}

/// An acknowledgement that echoes the stamp of the second transmission belongs to it, however long it took.
#[test]
fn an_echo_shows_which_transmission_arrived() {
    let stamped = |mut header: Header, value, echo| {
        header.options.timestamps = Some((value, echo));
        header
    };
    for (echo, fates_of_1) in [(31, [Fate::Lost, Fate::Delivered]), (1, [Fate::Delivered, Fate::NotNeeded])] {
        let mut ledger = Ledger::new(100);
        for (at, number) in [(0, 0), (1, 1), (31, 1)] {
            ledger.take(at * MS, true, &stamped(header(5000 + number * 100, 0, 100), at as u32, 0));
        }
        // Segment 0 waited in a queue, so half of its trip is longer than that of segment 1.
        ledger.take(30 * MS, false, &stamped(header(0, 5100, 0), 0, 0));
        ledger.take(41 * MS, false, &stamped(header(0, 5200, 0), 0, echo));
        assert_eq!(fates(&ledger)[1..], fates_of_1);
        assert_eq!(ledger.arrivals[1].timely, echo == 31);
    }
}

/// The first segments after a gap before the capture came long before it was repaired. In order, they come one or two at a time.
#[test]
fn a_repair_before_the_capture_tells_no_time() {
    for (before, timely) in [(-5i64, false), (-1, true)] {
        let mut ledger = play(&[(0, 0), (1, 1)], &[]);
        ledger.take(10 * MS, false, &header(0, (5000 + before * 100) as u32, 0));
        ledger.take(40 * MS, false, &header(0, 5100, 0));
        ledger.take(41 * MS, false, &header(0, 5200, 0));
        let arrivals: Vec<_> = ledger.arrivals.iter().map(|arrival| (arrival.of, arrival.timely)).collect();
        assert_eq!(arrivals, [(0, timely), (1, true)]);
    }
}

/// Data below a gap in the capture may have been sent before the capture for the first time, and so may what fills it.
#[test]
fn repairs_of_earlier_data_tell_no_time() {
    // 0 and 2 are sent again; 4 is new.
    let ledger = play(&[(0, 0), (5, 4), (6, 2)], &[(10, 1), (12, 5), (15, 5)]);
    let arrivals: Vec<_> = ledger.arrivals.iter().map(|arrival| (arrival.of, arrival.timely)).collect();
    assert_eq!(arrivals, [(0, false), (2, false)]);
    // An acknowledgement of data that was not captured delivers what was, and tells no time either.
    let ledger = play(&[(0, 0), (20, 4)], &[(10, 3), (30, 5)]);
    assert_eq!(fates(&ledger), [Fate::Delivered; 2]);
    assert_eq!(ledger.arrivals.iter().map(|arrival| (arrival.of, arrival.timely)).collect::<Vec<_>>(), [(1, true)]);
}

#[test]
fn merged_segments_are_several() {
    let mut ledger = Ledger::new(100);
    ledger.take(0, true, &header(5000, 0, 250));
    let lengths: Vec<u32> = ledger.transmissions.iter().map(|sent| sent.wire).collect();
    assert_eq!((lengths, ledger.counts.merged), (vec![140, 140, 90], 1));
}

#[test]
fn a_packet_captured_twice_is_one() {
    let mut ledger = Ledger::new(100);
    let packet = Header { id: 7, ..header(5000, 0, 100) };
    ledger.take(0, true, &packet);
    ledger.take(MS, true, &packet);
    ledger.take(20 * MS, true, &packet);
    assert_eq!((ledger.transmissions.len(), ledger.counts.copies), (2, 1));
}

#[test]
fn numbers_wrap() {
    let mut ledger = Ledger::new(100);
    ledger.take(0, true, &header(u32::MAX - 49, 0, 100));
    ledger.take(MS, true, &header(50, 0, 100));
    ledger.take(10 * MS, false, &header(0, 150, 0));
    assert_eq!(fates(&ledger), [Fate::Delivered; 2]);
    assert_eq!(ledger.arrivals[0].segments, 2);
}

/// Each repeats 4096 one-byte segments: 1100 repetitions would be 4.5 million entries.
#[test]
fn repeats_of_many_small_segments_are_bounded() {
    let mut ledger = Ledger::new(4096);
    (0..4096).for_each(|number| ledger.take(0, true, &header(5000 + number, 0, 1)));
    (0..1100).for_each(|_| ledger.take(MS, true, &header(5000, 0, 4096)));
    let kept: usize = ledger.open.values().map(|range| range.again.len()).sum();
    assert_eq!((kept, ledger.repeats), (MAX_REPEATS, MAX_REPEATS));
    assert!(ledger.counts.beyond > 0);
    ledger.take(20 * MS, false, &header(0, 5000 + 4096, 0));
    assert_eq!(ledger.repeats, 0);
}

/// A SYN may announce a maximum segment size of one byte: packets of 64 kB are then split into at most as many pieces as are kept.
#[test]
fn pieces_of_a_byte_are_bounded() {
    let mut ledger = Ledger::new(1);
    (0..100).for_each(|number| ledger.take(0, true, &header(5000 + number * 65_000, 0, 65_000)));
    assert_eq!(ledger.transmissions.len(), MAX_TRANSMISSIONS);
    assert!((1..=100).contains(&ledger.counts.beyond), "{}", ledger.counts.beyond);
}

/// What does not fit is left out and nothing else: its acknowledgements do not tell of bytes that the capture lacks, and the sender has
/// not paused.
#[test]
fn what_does_not_fit_is_neither_missing_nor_a_pause() {
    let mut ledger = Ledger::new(1);
    let packets = MAX_TRANSMISSIONS as u32 / 50_000;
    (0..packets).for_each(|number| ledger.take(0, true, &header(5000 + number * 50_000, 0, 50_000)));
    ledger.take(10 * MS, false, &header(0, 5000 + packets * 50_000, 0));
    for number in packets..packets + 10 {
        let sent = i64::from(number - packets) * 20 * MS + 20 * MS;
        ledger.take(sent, true, &header(5000 + number * 50_000, 0, 50_000));
        ledger.take(sent + 10 * MS, false, &header(0, 5000 + (number + 1) * 50_000, 0));
    }
    let counts = ledger.counts;
    assert_eq!((ledger.transmissions.len(), counts.beyond), (MAX_TRANSMISSIONS, 10));
    assert_eq!((counts.unseen, counts.paused), (0, 0));
}

/// A pause is counted once, however many segments are sent again in it.
#[test]
fn a_pause_counts_once() {
    let pause = |sent: &[(i64, u32)]| play(sent, &[(10, 1), (1010, 2)]).counts.paused;
    assert_eq!(pause(&[(0, 0), (1000, 1)]), 990 * MS);
    assert_eq!(pause(&[(0, 0), (300, 0), (600, 0), (1000, 1)]), 990 * MS);
}

/// A SYN with a window scale, in either direction.
fn syn(is_answer: bool) -> Header {
    let flags = if is_answer { Header::SYN | Header::ACK } else { Header::SYN };
    Header { flags, options: Options::with_scale(7), ..header(4999, 5000, 0) }
}

/// RFC 7323 §2.2: the window of a SYN is not scaled.
#[test]
fn the_window_of_a_syn_is_as_written() {
    let mut ledger = Ledger::new(100);
    ledger.take(0, true, &syn(false));
    ledger.take(10 * MS, false, &syn(true));
    assert_eq!((ledger.window, ledger.handshake), (1000, Some(10 * MS)));
    ledger.take(12 * MS, true, &header(5000, 5000, 0));
    assert_eq!(ledger.sender_trips.iter().map(|trip| trip.took).collect::<Vec<_>>(), [2 * MS]);
    ledger.take(20 * MS, false, &header(5000, 5000, 0));
    assert_eq!(ledger.window, 128_000);
}

/// RFC 7323 §2.2: both SYNs must have the option, or no window is scaled.
#[test]
fn a_scale_of_one_end_alone_is_none() {
    let plain = |is_answer| Header { options: Default::default(), ..syn(is_answer) };
    let window = |receiver: &Header, sender: &Header| {
        let mut ledger = Ledger::new(100);
        ledger.take(0, false, receiver);
        ledger.take(10 * MS, true, sender);
        ledger.take(20 * MS, false, &header(5000, 5000, 0));
        ledger.window
    };
    assert_eq!(window(&syn(false), &syn(true)), 128_000);
    assert_eq!(window(&syn(false), &plain(true)), 1000);
    assert_eq!(window(&plain(false), &syn(true)), 1000);
}

/// Of a SYN that was sent again it is not known which one was answered.
#[test]
fn a_repeated_syn_measures_nothing() {
    let mut ledger = Ledger::new(100);
    ledger.take(0, true, &syn(false));
    ledger.take(1000 * MS, true, &syn(false));
    ledger.take(1010 * MS, false, &syn(true));
    ledger.take(1012 * MS, true, &header(5000, 5000, 0));
    assert_eq!((ledger.handshake, ledger.sender_trips.len(), ledger.whole_handshake), (None, 0, false));
}

/// A packet with bytes that were sent before and new ones counts as two transmissions.
#[test]
fn what_is_new_is_a_piece_of_its_own() {
    let mut ledger = Ledger::new(1000);
    ledger.take(0, true, &header(5000, 0, 100));
    ledger.take(MS, true, &header(5050, 0, 100));
    let pieces: Vec<_> = ledger.transmissions.iter().map(|sent| (sent.start, sent.end)).collect();
    assert_eq!(pieces, [(0, 100), (50, 100), (100, 150)]);
}

/// A number outside of any window is not the connection's, and bytes that the capture lacks are counted once.
#[test]
fn numbers_far_away_change_nothing() {
    let mut ledger = Ledger::new(100);
    ledger.take(0, true, &header(5000, 0, 100));
    ledger.take(MS, true, &header(5000 + (1 << 30) + 101, 0, 100));
    assert_eq!((ledger.transmissions.len(), ledger.counts.data), (1, 1));
    for _ in 0..2 {
        ledger.take(2 * MS, false, &header(0, 5000 + 1100, 0));
    }
    assert_eq!(ledger.counts.unseen, 1000);
}
