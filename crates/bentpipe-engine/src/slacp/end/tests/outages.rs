//! Outages longer than the layer's patience.

use super::world::{Fate, MS, Pair, at, bulk, config};
use crate::slacp::Released;
use crate::slacp::config::{ChannelConfig, Probing, SlacpConfig};

/// Passes 3000 packets, which take the line for 3 s. From 1 s on, nothing passes for `length`; `both`: not even reports.
fn through_an_outage(probing: Probing, channel: ChannelConfig, length: u64, both: bool) -> Pair {
    let channel = ChannelConfig { resends_oldest_first: true, ..channel };
    let mut pair = Pair::new(&SlacpConfig { probing, ..config(vec![channel]) });
    pair.run(&bulk(3000), at(1000), |_, _, _| Fate::Arrives);
    pair.run(&[], at(1000 + length), |side, _, _| if side == 0 || both { Fate::Lost } else { Fate::Arrives });
    pair.run(&[], at(60_000), |_, _, _| Fate::Arrives);
    pair
}

/// The first packet without an acknowledgement is sent once per timeout, so it passes at most a timeout after the end of the outage.
/// Before the outage the round trip was constant, so the timeout is hardly longer. If the reports of 250 ms were lost too, it is another
/// packet for which the peer waits: it follows a round trip later, behind those that had arrived.
#[test]
fn an_outage_ends_within_a_timeout() {
    for (length, both) in
        [1500, 2000, 2500, 3000, 4000, 5000, 9000].into_iter().flat_map(|length| [(length, false), (length, true)])
    {
        let pair = through_an_outage(Probing::Steady(MS(0)), ChannelConfig::reliable(), length, both);
        let first = pair.delivered.iter().map(|&(time, _)| time).find(|&time| time > at(1250)).expect("all arrive");
        let (late, bound) = (first - at(1000 + length), if both { 510 + 500 + 20 + 270 + 250 } else { 510 + 250 });
        assert!(late <= MS(bound), "{late:?} after an outage of {length} ms, both: {both}");
        assert_eq!(pair.handles(), (0..3000).collect::<Vec<_>>());
        // While the peer was silent, a frame per timeout.
        let sent = pair.line.iter().filter(|(time, _)| *time > at(2100) && *time < at(1000 + length)).count() as u64;
        assert!(sent <= (length - 1100) / 500 + 1, "{sent} frames in an outage of {length} ms");
    }
}

/// If an outage took only reports, hardly anything is sent again: the first report that passes tells what had arrived.
#[test]
fn what_arrived_in_an_outage_is_not_sent_again() {
    let channel = ChannelConfig { resends_oldest_first: true, ..ChannelConfig::reliable() };
    let mut pair =
        Pair::new(&SlacpConfig { probing: Probing::Steady(MS(0)), patience: MS(500), ..config(vec![channel]) });
    pair.run(&bulk(3000), at(1000), |_, _, _| Fate::Arrives);
    pair.run(&[], at(3500), |side, _, _| if side == 1 { Fate::Lost } else { Fate::Arrives });
    pair.run(&[], at(60_000), |_, _, _| Fate::Arrives);
    assert_eq!(pair.handles(), (0..3000).collect::<Vec<_>>());
    let stats = pair.ends[0].stats().channels[0];
    // A probe per timeout of half a second, and what is sent until the report's bits have been read.
    assert!(stats.resent <= 6, "{stats:?}");
    assert!(pair.delivered[2999].0 <= at(3500 + 510 + 510 + 1500), "{:?}", pair.delivered[2999]);
    assert!(pair.released.values().all(|&how| how == Released::Acknowledged) && pair.released.len() == 3000);
}

/// On a shared link pauses double up to the given time.
#[test]
fn pauses_double_to_a_bound() {
    let pair = through_an_outage(Probing::Steady(MS(1500)), ChannelConfig::reliable(), 20_000, true);
    let times = pair.line.iter().map(|&(time, _)| time).filter(|&time| time > at(6000) && time < at(20_900));
    let times: Vec<_> = times.collect();
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.len() > 4 && gaps.iter().all(|&gap| gap > MS(1500) && gap < MS(3000)), "{gaps:?}");
}

/// Frames that ask whether the peer can be heard again do not use up the transmissions of their packets.
#[test]
fn an_outage_gives_up_no_packet() {
    let pair = through_an_outage(Probing::Steady(MS(0)), ChannelConfig::persistent(3), 9000, false);
    assert_eq!((pair.handles(), pair.skipped.as_slice()), ((0..3000).collect(), [].as_slice()));
}
