//! What waits: priorities, turns, limits.

use super::world::{FEC, Fate, MS, Pair, at, config, nth_data_lost};
use crate::link::QueueLimit;
use crate::machine::{Context, Machine, Step};
use crate::slacp::config::{ChannelConfig, Codel, Fec, Queueing, Repairs, SlacpConfig};
use crate::slacp::{End, Frame, Input, Output, Released};
use crate::units::{Duration, Rate, Time};

#[test]
fn acknowledgements_take_the_place_of_those_that_wait() {
    let acks = ChannelConfig { filters_acks: true, ..ChannelConfig::unreliable() };
    let mut pair = Pair::new(&config(vec![acks]));
    // One of 976 bytes takes the line for a millisecond, and all others wait then.
    for n in 0..100 {
        let acknowledges = Some(1000 * n);
        pair.give(0, Input::Packet { channel: 0, handle: n, len: 976, flow: u64::from(n) % 2, host: 0, acknowledges });
    }
    pair.run(&[], at(1000), |_, _, _| Fate::Arrives);
    assert_eq!(pair.handles(), [98, 99]);
    assert_eq!(pair.ends[0].stats().channels[0].superseded, 98);
    assert_eq!((pair.released[&97], pair.released[&98]), (Released::Superseded, Released::Sent));
}

#[test]
fn a_higher_priority_waits_for_one_frame_at_most() {
    let voice = ChannelConfig::unreliable();
    let bulky = ChannelConfig { priority: 1, ..ChannelConfig::reliable() };
    let mut pair = Pair::new(&config(vec![voice, bulky]));
    let mut packets: Vec<_> = (0..2000).map(|_| (Time::ZERO, 1, 976, 1)).collect();
    packets.extend((0..50).map(|n| (Time::ZERO + Duration::from_micros(500) + MS(20 * n), 0, 200, 2)));
    pair.run(&packets, at(10_000), |_, _, _| Fate::Arrives);
    for &(time, handle) in pair.delivered.iter().filter(|(_, handle)| *handle >= 2000) {
        let delay = time - packets[handle as usize].0;
        assert!(delay <= MS(251), "{delay:?}");
    }
    assert_eq!(pair.delivered.len(), 2050);
}

#[test]
fn equals_share_by_weight() {
    let light = ChannelConfig { weight: 1, ..ChannelConfig::reliable() };
    let heavy = ChannelConfig { weight: 3, ..ChannelConfig::reliable() };
    let mut pair = Pair::new(&config(vec![light, heavy]));
    let packets: Vec<_> = (0..8000).map(|n| (Time::ZERO, (n % 2) as u8, 976, n)).collect();
    pair.run(&packets, at(2000), |_, _, _| Fate::Arrives);
    let of = |channel: u32| pair.handles().iter().filter(|&&handle| handle % 2 == channel).count() as f64;
    let ratio = of(1) / of(0);
    assert!((2.9..3.1).contains(&ratio), "{ratio}");
}

#[test]
fn the_standing_queue_stays_at_its_target() {
    // A source of 1.2 times the line's rate: CoDel keeps the wait near its target, a bare limit does not.
    let codel = Codel { target: MS(50), interval: MS(600) };
    let managed = ChannelConfig { codel: Some(codel), ..ChannelConfig::reliable() };
    let mut pair = Pair::new(&config(vec![managed]));
    let packets: Vec<_> = (0..72_000).map(|n| (Time::ZERO + Duration::from_micros(833 * n), 0, 976, 1)).collect();
    pair.run(&packets, at(60_000), |_, _, _| Fate::Arrives);
    let last: Vec<_> = pair.delivered.iter().filter(|(time, _)| *time > at(50_000)).collect();
    let waits: Vec<_> =
        last.iter().map(|&&(time, n)| time - (Time::ZERO + Duration::from_micros(833 * n as u64))).collect();
    let mean = waits.iter().map(|wait| wait.as_secs_f64()).sum::<f64>() / waits.len() as f64 - 0.25;
    // An unresponsive source is CoDel's worst case (RFC 8289 §4.2 aims at responsive ones): drops per second grow as
    // the square root of time steps, and reach the surplus of 200 per second after (200 * 0.6)^2 drops in theory; the
    // bare queue would stand at 10 s by now.
    assert!(mean < 9.0, "{mean}");
    assert!(pair.ends[0].stats().channels[0].dropped_early > 100);
}

/// A packet in four frames is cut evenly, released once, when the last of its frames is acknowledged, and takes the room of
/// one packet until then.
#[test]
fn a_packet_in_frames_takes_room_until_the_last_is_acknowledged() {
    let cut = ChannelConfig {
        segments: 4,
        limit: QueueLimit::Packets(2),
        limit_counts_copies: true,
        ..ChannelConfig::reliable()
    };
    let mut pair = Pair::new(&config(vec![cut]));
    // Two fit, the third finds no room. The third frame of the first packet is lost once.
    let packets = [(Time::ZERO, 0, 1001, 7), (Time::ZERO, 0, 1001, 7), (at(1), 0, 1001, 7), (at(530), 0, 1001, 7)];
    pair.run(&packets, at(5000), nth_data_lost(&[2]));
    let lengths: Vec<_> = pair.known.values().map(|&(_, _, len)| len).collect();
    assert_eq!(lengths[..4], [251, 250, 250, 250]);
    assert_eq!(pair.released.get(&2), Some(&Released::DroppedFull), "both places are taken");
    // At 530 ms the second packet is acknowledged, and of the first three frames of four.
    assert_eq!(pair.released.get(&3), Some(&Released::Acknowledged), "one place is free");
    assert_eq!(pair.delivered.len(), 12, "three packets of four frames");
    assert_eq!(pair.handles()[..4], [0; 4]);
    assert!([0, 1, 3].iter().all(|handle| pair.released[handle] == Released::Acknowledged));
    assert_eq!(pair.ends[0].stats().channels[0].resent, 1);
}

/// Two flows, one with four times as much to send: they take turns, and the long one loses the packets for which there is no room.
#[test]
fn flows_take_turns_and_the_longest_gives_way() {
    let fair = ChannelConfig { queueing: Queueing::Fair, limit: QueueLimit::Packets(10), ..ChannelConfig::reliable() };
    let mut packets: Vec<_> = (0..16).map(|_| (Time::ZERO, 0, 1490, 1)).collect();
    packets.extend((0..4).map(|_| (Time::ZERO, 0, 1490, 2)));
    let mut pair = Pair::new(&config(vec![fair]));
    pair.run(&packets, at(5000), |_, _, _| Fate::Arrives);
    let of = |flow: u64| pair.handles().iter().filter(|&&handle| packets[handle as usize].3 == flow).count();
    // Of the ten that find room four are the short flow's.
    assert_eq!((of(1), of(2)), (6, 4));
    let turns: Vec<_> = pair.handles().iter().map(|&handle| packets[handle as usize].3).collect();
    assert_eq!(turns[..8].iter().filter(|&&flow| flow == 2).count(), 4, "{turns:?}");
}

/// Urgent packets at twice the rate of the line: the others keep half of it. Alone, or below their share, urgent packets wait for at
/// most one frame.
#[test]
fn urgent_packets_leave_the_others_their_part() {
    let urgent = ChannelConfig { limit: QueueLimit::Packets(20), ..ChannelConfig::unreliable() };
    let bulky = ChannelConfig { priority: 1, ..ChannelConfig::reliable() };
    for share in [None, Some(50)] {
        let mut pair = Pair::new(&SlacpConfig { urgent_share: share, ..config(vec![urgent, bulky]) });
        let mut packets: Vec<_> = (0..6000).map(|_| (Time::ZERO, 1, 976, 1)).collect();
        packets.extend((0..10_000).map(|n| (Time::ZERO + Duration::from_micros(500 * n), 0, 976, 2)));
        packets.sort_by_key(|packet| packet.0);
        pair.run(&packets, at(5000), |_, _, _| Fate::Arrives);
        let bulk = pair.handles().iter().filter(|&&handle| packets[handle as usize].1 == 1).count();
        // One packet of 976 bytes takes a millisecond; the first come after 250 ms.
        let range = if share.is_some() { 2300..2450 } else { 0..50 };
        assert!(range.contains(&bulk), "{share:?}: {bulk}");
    }
    let mut pair = Pair::new(&SlacpConfig { urgent_share: Some(50), ..config(vec![urgent, bulky]) });
    // A second alone does not count against them.
    let mut packets: Vec<_> = (0..100).map(|n| (at(10 * n), 0, 976, 2)).collect();
    packets.extend((0..2000).map(|_| (at(1000), 1, 976, 1)));
    packets.extend((0..50).map(|n| (at(1000) + Duration::from_micros(500) + MS(20 * n), 0, 200, 2)));
    packets.sort_by_key(|packet| packet.0);
    pair.run(&packets, at(10_000), |_, _, _| Fate::Arrives);
    for &(time, handle) in &pair.delivered {
        let (since, channel, ..) = packets[handle as usize];
        assert!(channel == 1 || time - since <= MS(251), "{since:?} {time:?}");
    }
}

/// On a return line of 5 kbit/s, a report of 28 bytes takes 45 ms, and one is due 20 ms after each arrival. While packets wait, reports may
/// take a quarter of the line: after one, two packets of 64 bytes go first, so reports take 28 of 156 bytes. On an idle line they go at
/// once.
#[test]
fn reports_leave_room_on_a_slow_line() {
    let rate = Rate::from_bits_per_second(5000);
    let slow = SlacpConfig::new(rate, MS(500), vec![ChannelConfig::unreliable()]);
    for (waiting, expected) in [(2000, 0.17..0.19), (0, 0.98..1.0)] {
        let mut end = End::new(&slow);
        for handle in 0..waiting {
            let packet = Input::Packet { channel: 0, handle, len: 40, flow: 1, host: 0, acknowledges: None };
            end.handle(&mut Context::silent(Time::ZERO), packet);
        }
        let (mut reports, mut next) = (0, 0);
        for ms in 0..60_000 {
            if ms % 20 == 0 {
                let frame = Frame::Data { channel: 0, number: next, seq: next, behind: 0, floor: 0, len: 1000 };
                end.handle(&mut Context::silent(at(ms)), Input::Frame(frame));
                next += 1;
            }
            while let Step::Do(output) = end.poll(&mut Context::silent(at(ms))) {
                if let Output::Transmit { frame: Frame::Report(report), .. } = output {
                    reports += u64::from(end.weight(&Frame::Report(report)));
                }
            }
        }
        // 37 500 bytes fit in a minute.
        let share = reports as f64 / 37_500.0;
        assert!(expected.contains(&share), "{waiting}: {share}");
    }
}

/// Without retransmission and without order, a frame that others have overtaken passes all the same, as on a bare link. The tolerance of
/// the link is three frames; each tenth is overtaken by two.
#[test]
fn overtaken_frames_of_an_unordered_channel_pass() {
    let fec = Some(Fec { block: 4, repairs: Repairs::Prompt, ..FEC });
    for channel in [ChannelConfig::unreliable(), ChannelConfig { fec, ..ChannelConfig::unreliable() }] {
        let mut pair = Pair::new(&SlacpConfig { reordering: 3, ..config(vec![channel]) });
        let packets: Vec<_> = (0..100).map(|n| (at(2 * n), 0, 476, 1)).collect();
        pair.run(&packets, at(3000), |side, n, _| if side == 0 && n % 10 == 5 { Fate::Late(5) } else { Fate::Arrives });
        let mut handles = pair.handles();
        handles.sort_unstable();
        assert_eq!(handles, (0..100).collect::<Vec<_>>());
    }
}
