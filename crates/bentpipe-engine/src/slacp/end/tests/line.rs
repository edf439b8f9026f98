//! When an end is to be polled, and how it uses its line.

use super::world::{FEC, Fate, MS, Pair, at, bulk, config};
use crate::machine::{Context, Machine, Step};
use crate::slacp::config::{ChannelConfig, Order, Probing, RateControl, Release, SlacpConfig};
use crate::slacp::{End, Frame, Input, Output, Verdict};
use crate::units::Time;

fn give(end: &mut End, channel: u8, len: u32) {
    let packet = Input::Packet { channel, handle: 0, len, flow: 1, host: 0, acknowledges: None };
    end.handle(&mut Context::silent(Time::ZERO), packet);
}

/// The frames that an end sends at an instant, and when it wants to be polled again.
fn poll(end: &mut End, now: Time) -> (Vec<Frame>, Option<Time>) {
    let mut frames = Vec::new();
    loop {
        match end.poll(&mut Context::silent(now)) {
            Step::Do(Output::Transmit { frame, .. }) => frames.push(frame),
            Step::Do(_) => {}
            Step::Wait(until) => return (frames, until),
        }
    }
}

#[test]
fn a_block_and_a_probe_have_their_instants() {
    let mut end = End::new(&config(vec![ChannelConfig { fec: Some(FEC), ..ChannelConfig::reliable() }]));
    give(&mut end, 0, 976);
    assert_eq!(poll(&mut end, at(0)).1, Some(at(0) + FEC.interval));
    let mut end = End::new(&config(vec![ChannelConfig::reliable()]));
    give(&mut end, 0, 976);
    let (_, deadline) = poll(&mut end, at(0));
    let deadline = deadline.expect("a timeout");
    // The first probe is sent at once. A second one may follow after twice the timeout of two initial round trips.
    let (frames, next) = poll(&mut end, deadline);
    assert_eq!((frames.len(), next), (1, Some(deadline + MS(2000))));
}

/// Up to the given time, what a late driver has missed is made up for.
#[test]
fn a_late_driver_catches_up() {
    for (catch_up, expected) in [(0, [1, 1, 1]), (5, [1, 4, 6])] {
        let mut end = End::new(&SlacpConfig { catch_up: MS(catch_up), ..config(vec![ChannelConfig::unreliable()]) });
        (0..100).for_each(|_| give(&mut end, 0, 976));
        // A frame takes a millisecond.
        assert_eq!([0, 4, 40].map(|ms| poll(&mut end, at(ms)).0.len()), expected);
    }
}

/// What is left of a turn is not kept while nothing waits (Shreedhar and Varghese 1995).
#[test]
fn an_idle_channel_saves_up_nothing() {
    let [heavy, light] = [3, 1].map(|weight| ChannelConfig { weight, ..ChannelConfig::unreliable() });
    let mut end = End::new(&SlacpConfig { rate: None, ..config(vec![heavy, light]) });
    give(&mut end, 0, 14);
    assert_eq!(poll(&mut end, at(0)).0.len(), 1);
    for channel in [0, 1].repeat(6) {
        give(&mut end, channel, 1514);
    }
    let (frames, _) = poll(&mut end, at(1));
    let channels: Vec<_> = frames
        .iter()
        .map(|frame| match frame {
            Frame::Data { channel, .. } => *channel,
            other => panic!("{other:?}"),
        })
        .collect();
    // The turn had passed to the light one.
    assert_eq!(channels, [1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1]);
}

/// The spare capacity of a shared link belongs to others.
#[test]
fn a_shared_link_carries_no_copies() {
    for (rate_control, copies) in [(RateControl::Fixed, 30), (RateControl::Shared, 0)] {
        let channel = ChannelConfig { copies: Some(super::world::COPIES), ..ChannelConfig::reliable() };
        let mut pair = Pair::new(&SlacpConfig { rate_control, ..config(vec![channel]) });
        pair.run(&bulk(10), at(499), |_, _, _| Fate::Arrives);
        assert_eq!(pair.ends[0].stats().channels[0].copies, copies, "{rate_control:?}");
    }
}

/// A second outage soon after the first is noticed as early: the pauses of the first do not last into it.
#[test]
fn each_outage_has_its_own_pauses() {
    let settings = SlacpConfig {
        probing: Probing::Steady(MS(5000)),
        patience: MS(500),
        ..config(vec![ChannelConfig::reliable()])
    };
    let mut pair = Pair::new(&settings);
    pair.run(&bulk(3000), at(1000), |_, _, _| Fate::Arrives);
    pair.run(&[], at(12_000), |_, _, _| Fate::Lost);
    // The next probe follows the last one of 8.471 s after 5 s, and its answer arrives at 13.971 s.
    pair.run(&[], at(14_500), |_, _, _| Fate::Arrives);
    pair.run(&[], at(25_000), |_, _, _| Fate::Lost);
    // The peer is silent after a timeout. A pause of 5 s after the probe would last until 18.471 s.
    let probes = pair.line.iter().filter(|(time, _)| *time > at(16_300) && *time < at(18_400)).count();
    assert!((1..4).contains(&probes), "{probes}");
}

fn data(channel: u8, number: u64, seq: u64, floor: u64) -> Input {
    Input::Frame(Frame::Data { channel, number, seq, behind: 0, floor, len: 100 })
}

/// After many losses, packets that pass wait for their group, but not those of a channel that sends nothing again.
#[test]
fn only_what_is_sent_again_waits_for_its_group() {
    let channels =
        vec![ChannelConfig { order: Order::Channel, ..ChannelConfig::reliable() }, ChannelConfig::unreliable()];
    let mut end = End::new(&SlacpConfig { release: Release::Grouped, ..config(channels) });
    let mut take = |ms, number, channel| {
        end.handle(&mut Context::silent(at(ms)), data(channel, number, number / 100, 0));
        end.poll_received(at(ms)) == Step::Do(Output::Deliver { channel, seq: number / 100 })
    };
    assert!(take(0, 0, 0) && take(1, 1, 1));
    assert!(take(500, 100, 1));
    assert!(!take(501, 101, 0));
}

/// A frame that says that its own packet will not arrive is not believed.
#[test]
fn a_packet_that_arrives_is_not_skipped() {
    let mut end = End::new(&config(vec![ChannelConfig::unreliable()]));
    assert_eq!(end.handle(&mut Context::silent(at(0)), data(0, 0, 3, 9)), Verdict::Kept);
    let outputs: Vec<_> = core::iter::from_fn(|| end.outputs.pop_front()).collect();
    assert_eq!(outputs, [Output::Skip { channel: 0, seqs: 0..3 }, Output::Deliver { channel: 0, seq: 3 }]);
}

/// A driver that does not poll is given no more than two windows of packets.
#[test]
fn a_driver_that_does_not_poll_gets_two_windows() {
    let mut end =
        End::new(&SlacpConfig { window: SlacpConfig::MAX_WINDOW, ..config(vec![ChannelConfig::unreliable()]) });
    let taken = (0..200_000).take_while(|&n| {
        let frame = data(0, n, n, n);
        end.handle(&mut Context::silent(at(0)), frame) == Verdict::Kept
    });
    assert_eq!(taken.count(), 2 * 65_535 + 1);
    assert_eq!(end.poll_received(at(0)), Step::Do(Output::Deliver { channel: 0, seq: 0 }));
    assert_eq!(end.handle(&mut Context::silent(at(0)), data(0, 200_000, 131_071, 0)), Verdict::Kept);
}

/// A receiver that paces deliveries may hold the last packet of a flow for any time, so the next one names it.
#[test]
fn flows_of_a_paced_receiver_are_not_forgotten() {
    for (release, expected) in [(super::world::paced(8_000_000), 1), (Release::AtOnce, 0)] {
        let channel = ChannelConfig { order: Order::Flow, ..ChannelConfig::reliable() };
        let mut pair = Pair::new(&SlacpConfig { release, ..config(vec![channel]) });
        let packets = bulk(1);
        let flow = packets[0].3;
        pair.run(&packets, at(2000), |_, _, _| Fate::Arrives);
        for _ in 0..3 {
            pair.ends[0].trim();
        }
        let next = Input::Packet { channel: 0, handle: 1, len: 976, flow, host: 0, acknowledges: None };
        pair.give(0, next);
        pair.run(&[], at(4000), |_, _, _| Fate::Arrives);
        let behind = pair.known.values().map(|(_, behind, _)| *behind).max();
        assert_eq!((pair.delivered.len(), behind), (2, Some(expected)), "{release:?}");
    }
}
