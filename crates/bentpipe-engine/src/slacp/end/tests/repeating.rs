//! Retransmission, copies, and how packets that waited are passed on.

use super::world::{COPIES, FEC, Fate, MS, Pair, at, bulk, config, nth_data_lost, paced};
use crate::machine::{Context, Machine};
use crate::slacp::config::{ChannelConfig, Copies, Release, SlacpConfig};
use crate::slacp::end::{COPY_SPAN, MAX_COPIES};
use crate::slacp::{Frame, Input, Released};
use crate::units::{Duration, Rate, Time};

#[test]
fn a_lost_frame_costs_its_flow_one_round_trip() {
    let mut pair = Pair::new(&config(vec![ChannelConfig::reliable()]));
    pair.run(&bulk(100), at(5000), nth_data_lost(&[10]));
    assert_eq!(pair.handles(), (0..100).collect::<Vec<_>>());
    // Frames end a millisecond apart but arrive here as their transmission begins: 10 would have come at 260 ms.
    let (arrived, _) = pair.delivered[10];
    // The frame behind it arrives at 261 ms; the report is due 20 ms after the first arrival since the last report:
    // 250, 270 at the latest; 250 ms back, the frame then on the line, 250 ms there again.
    assert!(arrived >= at(761) && arrived <= at(772), "{arrived:?}");
    assert!(pair.delivered[9].0 == at(259) && pair.delivered[99].0 == arrived);
    assert_eq!(pair.ends[0].stats().channels[0].resent, 1);
    assert!(pair.released.values().all(|&how| how == Released::Acknowledged) && pair.released.len() == 100);
    assert!(pair.truth.is_empty());
}

/// A packet every 200 ms, with a tolerance of three frames or more. A quarter of a round trip is 125 ms. The line takes 1.5 ms for a full
/// packet.
#[test]
fn few_frames_tell_of_a_loss_too() {
    for (reordering, later) in [(3, 1), (131, 1), (133, 2)] {
        let mut pair =
            Pair::new(&SlacpConfig { reordering, patience: MS(500), ..config(vec![ChannelConfig::reliable()]) });
        let packets: Vec<_> = (0..10).map(|n| (at(1000 * (n / 5) + 200 * (n % 5)), 0, 976, 7)).collect();
        pair.run(&packets, at(5000), nth_data_lost(&[5]));
        // 5 is sent after a round trip is known, at 1000 ms. The frame that decides arrives 250 ms after it is sent, is
        // reported 20 ms later, and the packet takes as long again.
        assert_eq!(pair.delivered[5], (at(1000 + 200 * later + 250 + 20 + 250 + 250), 5), "{reordering}");
    }
}

#[test]
fn another_flow_does_not_wait() {
    let mut packets = bulk(40);
    packets.iter_mut().enumerate().for_each(|(n, packet)| packet.3 = n as u64 % 2);
    let mut pair = Pair::new(&config(vec![ChannelConfig::reliable()]));
    pair.run(&packets, at(5000), nth_data_lost(&[10]));
    let odd: Vec<_> = pair.delivered.iter().filter(|(_, handle)| handle % 2 == 1).collect();
    assert!(odd.iter().all(|&&(time, handle)| time == at(250 + handle as u64)), "untouched");
    let even: Vec<_> = pair.handles().into_iter().filter(|handle| handle % 2 == 0).collect();
    assert_eq!(even, (0..40).step_by(2).collect::<Vec<_>>());
}

#[test]
fn an_idle_line_spares_the_round_trip() {
    let mut pair = Pair::new(&config(vec![ChannelConfig { copies: Some(COPIES), ..ChannelConfig::reliable() }]));
    // Frames 5 to 9 are lost, and of their copies those in the next 150 ms: all 100 ms after the first.
    let fade = |side, n, _: &Frame| if side == 0 && (5..10).contains(&n) { Fate::Lost } else { Fate::Arrives };
    pair.run(&bulk(10), at(5000), fade);
    assert_eq!(pair.handles(), (0..10).collect::<Vec<_>>());
    // The fifth frame began at 5 ms; its copy 100 ms later, behind those of the five before it, which are due earlier.
    assert_eq!(pair.delivered[5].0, at(105 + 250));
    let stats = pair.ends[0].stats().channels[0];
    assert_eq!((stats.resent, stats.lost), (0, 5), "the copy's arrival came before anything else was to be done");
    assert!(stats.copies <= 30 && stats.copies >= 10, "{stats:?}");
    assert_eq!(pair.ends[1].stats().channels[0].delivered, 10);
}

#[test]
fn copies_take_only_what_is_left_of_the_line() {
    let times = [None, Some(COPIES)].map(|copies| {
        let mut pair = Pair::new(&config(vec![ChannelConfig { copies, ..ChannelConfig::reliable() }]));
        // A packet of 1 ms each millisecond: the line is never idle, until the last has gone.
        let packets: Vec<_> = (0..2000).map(|n| (at(n), 0, 976, 7)).collect();
        pair.run(&packets, at(5000), |_, _, _| Fate::Arrives);
        pair.delivered.last().map(|&(time, _)| time)
    });
    assert_eq!(times[0], times[1]);
    let mut pair = Pair::new(&config(vec![ChannelConfig { copies: Some(COPIES), ..ChannelConfig::reliable() }]));
    pair.run(&bulk(2000), at(1999), |_, _, _| Fate::Arrives);
    // The last packet begins at 1999 ms: until then nothing but packets went out.
    assert_eq!(pair.ends[0].stats().channels[0].copies, 0);
}

/// Copies cost the line nothing, but they cost CPU time.
#[test]
fn copies_are_counted() {
    let once = ChannelConfig { copies: Some(Copies { max: 1, ..COPIES }), ..ChannelConfig::reliable() };
    let fast = SlacpConfig { rate: Rate::from_bits_per_second(800_000_000), ..config(vec![once]) };
    let mut pair = Pair::new(&fast);
    // All have gone out in 20 ms, and all might be copied in 20 more.
    pair.run(&bulk(2000), at(299), |_, _, _| Fate::Arrives);
    let spans = MS(200).as_nanos() / COPY_SPAN.as_nanos();
    assert_eq!(pair.ends[0].stats().channels[0].copies, spans * u64::from(MAX_COPIES));
}

#[test]
fn a_copy_that_is_lost_too_is_made_good() {
    let mut pair = Pair::new(&config(vec![ChannelConfig { copies: Some(COPIES), ..ChannelConfig::reliable() }]));
    // The packets and all thirty copies are lost; later retransmissions are not.
    let fade = |side, n, _: &Frame| if side == 0 && n < 40 { Fate::Lost } else { Fate::Arrives };
    pair.run(&bulk(10), at(20_000), fade);
    let lost = pair.ends[0].stats().channels[0].lost;
    assert_eq!(pair.handles(), (0..10).collect::<Vec<_>>());
    assert!(lost >= 40 && pair.truth.is_empty(), "{lost}");
    assert!(pair.released.values().all(|&how| how == Released::Acknowledged));
}

#[test]
fn release_after_a_repair_is_paced() {
    let mut pair = Pair::new(&SlacpConfig { release: paced(16_000_000), ..config(vec![ChannelConfig::reliable()]) });
    pair.run(&bulk(100), at(5000), nth_data_lost(&[10]));
    assert_eq!(pair.handles(), (0..100).collect::<Vec<_>>());
    let gaps: Vec<_> = pair.delivered[12..].windows(2).map(|w| w[1].0 - w[0].0).collect();
    // 976 bytes at 16 Mbit/s.
    assert!(gaps.iter().all(|&gap| gap == Duration::from_micros(488)), "{gaps:?}");
}

/// The times at which packets are delivered if some are lost in a row.
fn deliveries(release: Release, lost: core::ops::Range<usize>) -> Vec<(Time, u32)> {
    let mut pair = Pair::new(&SlacpConfig { release, ..config(vec![ChannelConfig::reliable()]) });
    let fade = |side, n, _: &Frame| if side == 0 && lost.contains(&n) { Fate::Lost } else { Fate::Arrives };
    pair.run(&bulk(400), at(5000), fade);
    assert_eq!(pair.handles(), (0..400).collect::<Vec<_>>());
    pair.delivered.clone()
}

#[test]
fn what_an_outage_took_passes_in_groups() {
    let instants = |delivered: &[(Time, u32)]| {
        let mut instants: Vec<_> = delivered[100..300].iter().map(|&(time, _)| time).collect();
        instants.dedup();
        instants
    };
    let singly = deliveries(Release::AtOnce, 100..300);
    assert_eq!(instants(&singly).len(), 200, "each as it comes");
    let grouped = deliveries(Release::Grouped, 100..300);
    // An eighth of the round trip of 500 ms, and what reports add to it.
    let gaps: Vec<_> = instants(&grouped).windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.len() >= 2 && gaps.iter().all(|&gap| gap >= MS(62) && gap < MS(80)), "{gaps:?}");
    // None is late by more than that, and packets that were not lost are not delayed.
    for (&(time, _), &(alone, _)) in grouped.iter().zip(&singly) {
        assert!(time >= alone && time - alone < MS(80));
    }
    assert_eq!(grouped[..100], singly[..100]);
    assert_eq!(deliveries(Release::Grouped, 100..108), deliveries(Release::AtOnce, 100..108), "no outage");
}

#[test]
fn persistence_is_bounded() {
    let stubborn = ChannelConfig::persistent(2);
    let mut pair = Pair::new(&config(vec![stubborn]));
    // The sixth packet never gets through.
    pair.run(&bulk(30), at(10_000), |_, _, frame| {
        if matches!(frame, Frame::Data { seq: 5, .. }) { Fate::Lost } else { Fate::Arrives }
    });
    let expected: Vec<_> = (0..30).filter(|&n| n != 5).collect();
    assert_eq!((pair.handles(), pair.skipped.as_slice()), (expected, [5].as_slice()));
    assert_eq!(pair.released[&5], Released::Abandoned);
    let stats = pair.ends[0].stats().channels[0];
    assert_eq!((stats.resent, stats.abandoned), (1, 1));
    assert!(stats.syncs >= 1, "nothing follows that could tell");
    assert!(pair.truth.is_empty());
}

/// Behind the cipher: 14 bytes that would give up a window of packets.
#[test]
fn a_floor_asks_little() {
    let floors = |channel, give: fn(u64) -> Frame| {
        let mut pair = Pair::new(&config(vec![channel]));
        (0..1000).for_each(|n| pair.give(1, Input::Frame(give(n))));
        let stats = pair.ends[1].stats().channels[0];
        (pair.ends[1].outputs(), stats.skipped, stats.refused)
    };
    let sync = |number| Frame::Sync { channel: 0, number, floor: 1 << 31 };
    let data = |number| Frame::Data { channel: 0, number, seq: 1 << 31, behind: 0, floor: 1 << 31, len: 10 };
    let repair = |number| Frame::Repair { channel: 0, number, first: 5, count: 1, index: 0, floor: 6, len: 8 };
    for give in [sync, data] {
        assert_eq!(floors(ChannelConfig::persistent(2), give), (1000, 1000 << 16, 0), "an output for each");
    }
    let channel = ChannelConfig { fec: Some(FEC), ..ChannelConfig::reliable() };
    for give in [sync, data, repair] {
        assert_eq!(floors(channel, give), (0, 0, 0), "none is given up there");
    }
}

#[test]
fn without_treatment_nothing_is_kept() {
    let plain = ChannelConfig::unreliable();
    let mut pair = Pair::new(&config(vec![plain]));
    pair.run(&bulk(30), at(5000), nth_data_lost(&[3, 4]));
    let expected: Vec<_> = (0..30).filter(|n| ![3, 4].contains(n)).collect();
    assert_eq!(pair.handles(), expected);
    assert!(pair.delivered.iter().all(|&(time, handle)| time == at(250 + handle as u64)));
    assert_eq!(pair.ends[0].stats().channels[0].lost, 2, "but it is known");
}

#[test]
fn an_outage_is_survived_without_shouting_into_it() {
    let mut pair = Pair::new(&config(vec![ChannelConfig::reliable()]));
    let packets: Vec<_> = (0..3000).map(|n| (at(10 * n), 0, 976, 1)).collect();
    // From 5 s to 15 s nothing passes either way; judged by what has been sent, 100 frames per second.
    let log = core::cell::RefCell::new(Vec::new());
    let now = core::cell::Cell::new(0u64);
    let until = at(60_000);
    // The line has no clock; the outage is recognised by the packets' numbers and the count of probes.
    let outage = |side: usize, _: usize, frame: &Frame| {
        if let (0, Frame::Data { seq, .. }) = (side, frame) {
            now.set(now.get().max(*seq));
            log.borrow_mut().push(*seq);
        }
        let in_outage = (500..580).contains(&now.get()) && log.borrow().len() < 720;
        if in_outage { Fate::Lost } else { Fate::Arrives }
    };
    pair.run(&packets, until, outage);
    assert_eq!(pair.handles(), (0..3000).collect::<Vec<_>>());
    // While the peer is silent, one frame at a time: far fewer than repeated timeouts for every outstanding frame.
    let resent = pair.ends[0].stats().channels[0].resent;
    assert!(resent < 400, "{resent}");
}

/// A channel that cannot continue is noticed, even beside others that can.
#[test]
fn a_stuck_channel_is_noticed_among_others() {
    let channels = vec![ChannelConfig::reliable(), ChannelConfig::unreliable(), ChannelConfig::reliable()];
    let mut pair = Pair::new(&config(channels));
    let mut number = 0;
    let mut stuck_after = |from: u64, count: u64| {
        for n in from..from + count {
            for (channel, floor) in [(0, 5), (1, n), (2, 0)] {
                number += 1;
                pair.ends[1].handle(&mut Context::silent(at(n)), Input::Frame(Frame::Sync { channel, number, floor }));
            }
        }
        pair.ends[1].is_stuck()
    };
    assert!(!stuck_after(0, 999));
    assert!(stuck_after(999, 1));
}
