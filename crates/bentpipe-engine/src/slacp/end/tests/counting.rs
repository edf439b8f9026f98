//! What an end counts, tells and refuses.

use super::world::{FEC, Fate, MS, Pair, at, bulk, config};
use crate::machine::{Context, Machine};
use crate::slacp::config::{ChannelConfig, Fec, Order, Probing, RateControl, Repairs, SlacpConfig};
use crate::slacp::{End, Frame, Input, Verdict};
use crate::units::{Rate, TransmitClock};

fn end(channels: Vec<ChannelConfig>) -> End {
    End::new(&config(channels))
}

/// All frames that leave, and those of them that are reports. When all have been judged, nothing is in flight, even after an outage of 9 s.
#[test]
fn frames_are_counted() {
    let mut pair = Pair::new(&config(vec![ChannelConfig::reliable()]));
    pair.run(&bulk(2000), at(1000), |_, _, _| Fate::Arrives);
    pair.run(&[], at(10_000), |_, _, _| Fate::Lost);
    pair.run(&[], at(60_000), |_, _, _| Fate::Arrives);
    assert_eq!(pair.handles(), (0..2000).collect::<Vec<_>>());
    let [sender, receiver] = [0, 1].map(|side| pair.ends[side].stats());
    assert_eq!((sender.frames, sender.reports), (pair.line.len() as u64, 0));
    assert_eq!(sender.bytes, pair.line.iter().map(|(_, frame)| u64::from(pair.ends[0].weight(frame))).sum::<u64>());
    assert_eq!((receiver.frames, receiver.reports), (pair.sent[1] as u64, pair.sent[1] as u64));
    assert_eq!(pair.ends[0].in_flight, 0);
}

/// The longest frame that has arrived, not one that was lost.
#[test]
fn a_lost_frame_is_not_the_longest_that_arrived() {
    let mut pair = Pair::new(&config(vec![ChannelConfig::reliable()]));
    let packets = [1400, 500, 700, 600].map(|len| (at(0), 0, len, 7));
    pair.run(&packets, at(600), |side, n, _| if side == 0 && n == 0 { Fate::Lost } else { Fate::Arrives });
    // A header of 24 bytes; `config` has no overhead.
    assert_eq!(pair.ends[0].take_longest_arrived(), 700 + 24);
    assert_eq!(pair.ends[0].take_longest_arrived(), 0);
    pair.run(&[], at(5000), |_, _, _| Fate::Arrives);
    assert_eq!(pair.ends[0].take_longest_arrived(), 1400 + 24);
}

/// The longest hold is that of the packet right behind the lost one, though later ones were held for a shorter time.
#[test]
fn the_longest_hold_is_kept() {
    let mut pair = Pair::new(&config(vec![ChannelConfig::reliable()]));
    pair.run(&bulk(100), at(5000), |side, n, _| if side == 0 && n == 10 { Fate::Lost } else { Fate::Arrives });
    let stats = pair.ends[1].stats().channels[0];
    let (repaired, _) = pair.delivered[10];
    assert_eq!(stats.longest_hold, repaired - at(250 + 11));
}

/// A frame that is refused is not reported as received: its packet lies beyond the window, or its channel does not exist.
#[test]
fn a_refused_frame_has_not_arrived() {
    for (channel, seq, verdict, newest) in
        [(0, 0, Verdict::Kept, 7), (0, 1 << 40, Verdict::Refused, 0), (5, 0, Verdict::Refused, 0)]
    {
        let mut end = end(vec![ChannelConfig::reliable()]);
        let frame = Frame::Data { channel, number: 7, seq, behind: 0, floor: 0, len: 100 };
        assert_eq!(end.handle(&mut Context::silent(at(0)), Input::Frame(frame)), verdict);
        assert_eq!(end.near().received, newest, "{channel} {seq}");
    }
}

/// A frame that arrives twice is refused the second time. A packet in another frame is only accepted: its bytes are not
/// needed again. A repair frame for packets beyond the window is refused.
#[test]
fn what_comes_again_is_not_kept() {
    let mut end = end(vec![ChannelConfig { fec: Some(FEC), ..ChannelConfig::reliable() }]);
    let data = |number| Frame::Data { channel: 0, number, seq: 0, behind: 0, floor: 0, len: 100 };
    let repair = |number, first| Frame::Repair { channel: 0, number, first, count: 2, index: 0, floor: 0, len: 104 };
    let seen = [data(7), data(7), data(8), repair(9, 1 << 30), repair(10, 0)]
        .map(|frame| end.handle(&mut Context::silent(at(0)), Input::Frame(frame)));
    assert_eq!(seen, [Verdict::Kept, Verdict::Refused, Verdict::Accepted, Verdict::Refused, Verdict::Kept]);
}

/// A recovered packet that has arrived meanwhile is refused, and so is one of a channel that does not exist.
#[test]
fn a_packet_is_recovered_once() {
    let mut end = end(vec![ChannelConfig::reliable()]);
    let mut recovered = |channel| {
        let verdict =
            end.handle(&mut Context::silent(at(0)), Input::Recovered { channel, seq: 0, behind: 0, len: 100 });
        (verdict, end.stats().channels[0].recovered)
    };
    let seen = [0, 0, 1].map(&mut recovered);
    assert_eq!(seen, [(Verdict::Kept, 1), (Verdict::Refused, 1), (Verdict::Refused, 1)]);
}

/// A packet for a channel that does not exist goes to the last one. The room for bytes is that of one channel.
#[test]
fn the_last_channel_takes_the_others_packets() {
    let mut end = end(vec![ChannelConfig::reliable(); 2]);
    let give = |end: &mut End, channel, len| {
        let packet = Input::Packet { channel, handle: 0, len, flow: 1, host: 0, acknowledges: None };
        end.handle(&mut Context::silent(at(0)), packet);
    };
    give(&mut end, 9, 100);
    assert_eq!([0, 1, 9].map(|channel| end.waiting(channel)), [0, 1, 0]);
    end.set_room(1, 250);
    (0..3).for_each(|_| give(&mut end, 1, 100));
    (0..3).for_each(|_| give(&mut end, 0, 100));
    assert_eq!([0, 1].map(|channel| end.waiting_bytes(channel)), [300, 200]);
}

/// The code works on words of 16 bits: packets of 975 bytes with 4 of header make symbols of 980. The symbols of a
/// block are numbered from 0. All that are counted leave.
#[test]
fn repair_frames_have_whole_words_and_numbers_from_zero() {
    let fec = Fec {
        block: 10,
        first_block: None,
        interval: MS(40),
        max_overhead: 0.5,
        repairs: Repairs::Spare,
        worth: FEC.worth,
    };
    let mut pair = Pair::new(&config(vec![ChannelConfig { fec: Some(fec), ..ChannelConfig::unreliable() }]));
    let packets: Vec<_> = (0..1000).map(|n| (at(5 * n), 0, 975, 1)).collect();
    pair.run(&packets, at(30_000), |side, n, _| if side == 0 && n % 10 == 3 { Fate::Lost } else { Fate::Arrives });
    let repairs: Vec<_> = pair
        .line
        .iter()
        .filter_map(|(_, frame)| match frame {
            Frame::Repair { first, index, len, .. } => Some((*first, *index, *len)),
            _ => None,
        })
        .collect();
    assert!(repairs.len() > 50 && repairs.len() as u64 == pair.ends[0].stats().channels[0].repairs);
    let mut last = (u64::MAX, 0);
    for (first, index, len) in repairs {
        assert_eq!(index, if first == last.0 { last.1 + 1 } else { 0 });
        assert_eq!(len, 980);
        last = (first, index);
    }
}

/// Frames that ask a silent peer count as transmissions if pauses double: after three, a packet is given up in the outage. With steady
/// pauses they do not.
#[test]
fn probes_count_where_pauses_double() {
    for (probing, skipped) in [(Probing::Doubling, true), (Probing::Steady(MS(0)), false)] {
        let channel = ChannelConfig { order: Order::Channel, ..ChannelConfig::persistent(3) };
        let mut pair = Pair::new(&SlacpConfig { probing, ..config(vec![channel]) });
        pair.run(&bulk(1), at(40_000), |_, _, _| Fate::Lost);
        let sent = pair.line.iter().filter(|(_, frame)| matches!(frame, Frame::Data { .. })).count();
        assert_eq!(sent == 3, skipped, "{sent} {probing:?}");
    }
}

/// A changed path may carry the configured rate again.
#[test]
fn a_changed_path_is_tried_at_the_configured_rate() {
    let mut end = end(vec![ChannelConfig::reliable()]);
    end.line = Some(TransmitClock::new(Rate::from_bits_per_second(1000).expect("not zero")));
    end.on_path_change();
    assert_eq!(end.rate(), Rate::from_bits_per_second(8_000_000));
}

/// A packet that is lost again and again, while others arrive, is given up after three transmissions, however a silent peer is probed.
#[test]
fn a_packet_is_given_up_while_the_peer_is_heard() {
    for probing in [Probing::Doubling, Probing::Steady(MS(0))] {
        let mut pair = Pair::new(&SlacpConfig { probing, ..config(vec![ChannelConfig::persistent(3)]) });
        let packets: Vec<_> = (0..500).map(|n| (at(10 * n), 0, 976, 7)).collect();
        let lost = |_, _, frame: &Frame| match frame {
            Frame::Data { seq: 5, .. } => Fate::Lost,
            _ => Fate::Arrives,
        };
        pair.run(&packets, at(10_000), lost);
        let sent = pair.line.iter().filter(|(_, frame)| matches!(frame, Frame::Data { seq: 5, .. })).count();
        assert_eq!((sent, pair.skipped.as_slice(), pair.delivered.len()), (3, [5].as_slice(), 499), "{probing:?}");
    }
}

/// While as much is in flight as the rate control allows, nothing leaves but reports.
#[test]
fn what_is_in_flight_is_limited() {
    let settings = SlacpConfig { rate_control: RateControl::Shared, ..config(vec![ChannelConfig::reliable()]) };
    for (in_flight, frames) in [(1 << 40, 0), (0, 1)] {
        let mut end = End::new(&settings);
        end.handle(
            &mut Context::silent(at(0)),
            Input::Packet { channel: 0, handle: 0, len: 100, flow: 1, host: 0, acknowledges: None },
        );
        end.in_flight = in_flight;
        assert_eq!(usize::from(end.next_frame(at(0)).is_some()), frames);
    }
}

/// The lowest number is the most urgent, in whatever order the channels are given.
#[test]
fn the_lowest_priority_goes_first() {
    let channels = [2, 0, 1].map(|priority| ChannelConfig { priority, ..ChannelConfig::unreliable() });
    let mut end = end(channels.to_vec());
    for channel in [0, 1, 2] {
        let packet = Input::Packet { channel, handle: 0, len: 100, flow: 1, host: 0, acknowledges: None };
        end.handle(&mut Context::silent(at(0)), packet);
    }
    let order = [(); 3].map(|()| match end.next_frame(at(0)) {
        Some((Frame::Data { channel, .. }, _)) => channel,
        other => panic!("{other:?}"),
    });
    assert_eq!(order, [1, 2, 0]);
}

/// A peer that was silent on the old path may be heard on the new one.
#[test]
fn a_changed_path_ends_the_silence() {
    let mut pair = Pair::new(&config(vec![ChannelConfig::reliable()]));
    pair.run(&bulk(3), at(9000), |_, _, _| Fate::Lost);
    assert!(pair.ends[0].flight.is_silent());
    pair.ends[0].on_path_change();
    assert!(!pair.ends[0].flight.is_silent());
}
