//! The sender's end of a channel, without a line.

use super::*;
use crate::link::QueueLimit;
use crate::slacp::config::{Arq, Copies};
use crate::units::{Bytes, Duration};

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// A channel in which `count` packets wait.
fn channel(config: ChannelConfig, count: u32) -> Outgoing {
    let mut outgoing = Outgoing::new(config, 0);
    for handle in 0..count {
        let packet = Waiting { handle, len: 100, flow: 0, host: 0, since: at(0), acknowledges: None };
        outgoing.push(packet, &mut VecDeque::new());
    }
    outgoing
}

fn send(outgoing: &mut Outgoing) -> Sent {
    outgoing.next_new(at(0), &mut VecDeque::new()).expect("a packet waits").sent
}

fn lose(outgoing: &mut Outgoing, sent: Sent) {
    outgoing.judge(sent, Verdict::Lost, &mut VecDeque::new());
}

#[test]
fn no_more_than_the_window_is_unacknowledged() {
    let mut outgoing = channel(ChannelConfig::reliable(), 9);
    let first = send(&mut outgoing);
    let sent: Vec<_> = core::iter::from_fn(|| outgoing.has_new(4).then(|| send(&mut outgoing))).collect();
    assert_eq!(sent.len(), 3);
    // The window moves with the first packet that is not done.
    outgoing.judge(sent[0], Verdict::Arrived, &mut VecDeque::new());
    assert!(!outgoing.has_new(4));
    outgoing.judge(first, Verdict::Arrived, &mut VecDeque::new());
    assert!(outgoing.has_new(3));
}

/// The verdict on the last copy decides.
#[test]
fn a_lost_packet_waits_for_its_copy() {
    let copies = Copies { interval: Duration::from_millis(10), max: 1, only_resent: false };
    let mut outgoing = channel(ChannelConfig { copies: Some(copies), ..ChannelConfig::reliable() }, 1);
    let first = send(&mut outgoing);
    assert!(outgoing.next_copy(at(9)).is_none());
    let copy = outgoing.next_copy(at(10)).expect("one copy").sent;
    assert!(outgoing.next_copy(at(99)).is_none());
    lose(&mut outgoing, first);
    assert!(!outgoing.has_resend());
    lose(&mut outgoing, copy);
    assert!(outgoing.has_resend());
}

/// The maximum of copies holds for a packet, however often it is retransmitted.
#[test]
fn a_packet_has_no_more_copies_than_allowed() {
    let copies = Copies { interval: Duration::from_millis(10), max: 1, only_resent: true };
    let mut outgoing = channel(ChannelConfig { copies: Some(copies), ..ChannelConfig::reliable() }, 1);
    let first = send(&mut outgoing);
    assert!(outgoing.next_copy(at(99)).is_none());
    lose(&mut outgoing, first);
    let again = outgoing.next_resend(at(100), true).expect("it was lost").sent;
    let copy = outgoing.next_copy(at(110)).expect("one copy").sent;
    [again, copy].into_iter().for_each(|sent| lose(&mut outgoing, sent));
    assert!(outgoing.next_resend(at(200), true).is_some());
    assert!(outgoing.next_copy(at(210)).is_none());
}

/// The peer learns from a sync that a packet was given up, unless another frame is there to tell it.
#[test]
fn a_sync_only_goes_alone() {
    let arq = Some(Arq { transmissions: Some(2) });
    let mut outgoing = channel(ChannelConfig { arq, ..ChannelConfig::reliable() }, 2);
    let (first, second) = (send(&mut outgoing), send(&mut outgoing));
    lose(&mut outgoing, first);
    let again = outgoing.next_resend(at(0), true).expect("once more").sent;
    assert!(!outgoing.needs_sync());
    lose(&mut outgoing, again);
    assert!(outgoing.needs_sync() && !outgoing.has_resend());
    lose(&mut outgoing, second);
    assert!(outgoing.has_resend() && !outgoing.needs_sync());
    assert_eq!(outgoing.next_resend(at(0), true).map(|packet| packet.floor), Some(1));
    assert_eq!((outgoing.needs_sync(), outgoing.sync(), outgoing.needs_sync()), (true, 1, false));
    lose(&mut outgoing, Sent::Sync { floor: 1 });
    assert!(outgoing.needs_sync());
    outgoing.sync();
    outgoing.judge(Sent::Sync { floor: 1 }, Verdict::Arrived, &mut VecDeque::new());
    assert!(!outgoing.needs_sync());
}

/// With a limit of 200 bytes that counts what is unacknowledged, the third packet of 100 bytes finds room once the first has arrived.
#[test]
fn what_has_arrived_takes_no_room() {
    let config = ChannelConfig {
        limit: QueueLimit::Bytes(Bytes::new(200)),
        limit_counts_copies: true,
        ..ChannelConfig::reliable()
    };
    let mut outgoing = channel(config, 2);
    let dropped = |outgoing: &mut Outgoing| {
        let packet = Waiting { handle: 9, len: 100, flow: 0, host: 0, since: at(0), acknowledges: None };
        let mut outputs = VecDeque::new();
        outgoing.push(packet, &mut outputs);
        !outputs.is_empty()
    };
    let first = send(&mut outgoing);
    assert!(dropped(&mut outgoing));
    outgoing.judge(first, Verdict::Arrived, &mut VecDeque::new());
    assert_eq!([dropped(&mut outgoing), dropped(&mut outgoing)], [false, true]);
}
