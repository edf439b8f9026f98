//! Repair frames.

use super::world::{FEC, Fate, MS, Pair, at, bulk, config};
use crate::slacp::Frame;
use crate::slacp::config::{ChannelConfig, Fec, Repairs};
use crate::units::{Duration, Time};

/// Voice: 200 B every 20 ms, every tenth frame lost.
#[test]
fn repairs_spare_the_round_trip() {
    let slow = Fec { interval: MS(200), ..FEC };
    let voice = ChannelConfig { fec: Some(slow), ..ChannelConfig::unreliable() };
    let mut pair = Pair::new(&config(vec![voice]));
    let packets: Vec<_> = (0..1000).map(|n| (at(20 * n), 0, 200, 1)).collect();
    pair.run(&packets, at(30_000), |side, _, frame| match frame {
        Frame::Data { seq, .. } if side == 0 && seq % 10 == 3 => Fate::Lost,
        _ => Fate::Arrives,
    });
    let late: Vec<_> =
        pair.delivered.iter().map(|&(time, handle)| time - at(20 * handle as u64)).filter(|&d| d > MS(250)).collect();
    let stats = pair.ends[1].stats().channels[0];
    // The first reports take a round trip, and a block or two passes before its successor is protected.
    assert!(stats.recovered >= 94 && stats.skipped <= 6, "{stats:?}");
    // A block lasts 200 ms: a packet waits for its repair frame no longer than that and the line.
    assert!(late.len() as u64 == stats.recovered && late.iter().all(|&delay| delay < MS(250 + 200)), "{late:?}");
    let sent = pair.ends[0].stats().channels[0];
    // One of ten is lost, and might be by chance: four of the ten and their repairs are in two of a hundred blocks, five in four of a
    // thousand.
    assert_eq!(sent.repairs, 4 * 100, "{sent:?}");
}

/// A tenth of the frames there is lost, chosen by their number and a seed.
fn tenth(seed: u64) -> impl Fn(usize, usize, &Frame) -> Fate {
    let noise = crate::stream::TimeNoise::named(seed, "tenth");
    move |side, n, _| if side == 0 && noise.at(n as u64, 0) < 0.1 { Fate::Lost } else { Fate::Arrives }
}

#[test]
fn repairs_take_only_what_is_left_of_the_line() {
    let both = ChannelConfig { fec: Some(FEC), ..ChannelConfig::reliable() };
    let end = |channel, seed| {
        let mut pair = Pair::new(&config(vec![channel]));
        pair.run(&bulk(2000), at(60_000), tenth(seed));
        assert_eq!(pair.handles(), (0..2000).collect::<Vec<_>>());
        let repair = pair.line.iter().find(|(_, frame)| matches!(frame, Frame::Repair { .. })).map(|(time, _)| *time);
        // As long as data fills the line there are none.
        assert!(repair.is_none_or(|time| time >= at(1900)), "{repair:?}");
        pair.delivered.last().expect("all").0.as_secs_f64()
    };
    let (with, without): (Vec<_>, Vec<_>) =
        (0..40).map(|seed| (end(both, seed), end(ChannelConfig::reliable(), seed))).unzip();
    let gains: Vec<f64> = with.iter().zip(&without).map(|(with, without)| without - with).collect();
    let mean = gains.iter().sum::<f64>() / 40.0;
    let variance = gains.iter().map(|gain| (gain - mean) * (gain - mean)).sum::<f64>() / 39.0;
    // The last losses are repaired without a round trip; at two standard errors it never costs time.
    assert!(mean > -2.0 * (variance / 40.0).sqrt(), "{mean} {gains:?}");
}

/// A flow that fills the line and waits for its losses: prompt repairs spare it most of the round trips.
#[test]
fn prompt_repairs_shorten_the_hold() {
    let prompt = Fec {
        block: 100,
        first_block: None,
        interval: MS(200),
        max_overhead: 0.5,
        repairs: Repairs::Prompt,
        worth: Fec::WORTH,
    };
    let hold = |fec| {
        let mut pair = Pair::new(&config(vec![ChannelConfig { fec, ..ChannelConfig::reliable() }]));
        let noise = crate::stream::TimeNoise::named(3, "hundredth");
        pair.run(&bulk(8000), at(60_000), |side, n, _| {
            if side == 0 && noise.at(n as u64, 0) < 0.01 { Fate::Lost } else { Fate::Arrives }
        });
        assert_eq!(pair.handles(), (0..8000).collect::<Vec<_>>());
        let stats = pair.ends[1].stats().channels[0];
        (stats.held.as_secs_f64() / 8000.0, pair.ends[0].stats().channels[0].repairs)
    };
    let ((with, repairs), (without, _)) = (hold(Some(prompt)), hold(None));
    // Without them some frame of the last round trip is always missing. With them a packet waits for the end of its
    // block, half of 100 ms on average, and one block in a hundred for a round trip; the first half second is bare.
    assert!(without > 0.4 && with < 0.15, "{with} {without}");
    // 99 of 100 blocks lose at most four frames: no more than five repair frames for a block of a hundred.
    assert!(repairs <= 80 * 5, "{repairs}");
}

/// A long queue keeps the line busy during a repetition, so repair frames wait for its end; a shorter one gets them at
/// once.
#[test]
fn repairs_of_a_long_queue_wait_and_those_of_a_short_one_do_not() {
    let repairs_before = |packets: &[(Time, u8, u32, u64)], repairs, until| {
        let fec =
            Fec { block: 50, first_block: None, interval: MS(200), max_overhead: 0.5, repairs, worth: Fec::WORTH };
        let mut pair = Pair::new(&config(vec![ChannelConfig { fec: Some(fec), ..ChannelConfig::reliable() }]));
        pair.run(packets, at(60_000), |_, _, _| Fate::Arrives);
        assert_eq!(pair.delivered.len(), packets.len());
        pair.line.iter().filter(|(time, frame)| *time < until && matches!(frame, Frame::Repair { .. })).count()
    };
    // Two seconds of data at once: the round trip is known after 500 ms, and the queue is longer than a quarter of one until
    // 1875 ms. Blocks end every 50 ms.
    let long = bulk(2000);
    let between = |repairs| repairs_before(&long, repairs, at(1450)) - repairs_before(&long, repairs, at(700));
    assert_eq!(between(Repairs::Short), 0);
    assert_eq!(between(Repairs::Idle), 0);
    assert!(between(Repairs::Prompt) >= 14);
    // The same at nine tenths of the line's rate: nothing waits.
    let short: Vec<_> = (0..2000).map(|n| (Time::ZERO + Duration::from_micros(1111 * n), 0, 976, 1)).collect();
    assert!(repairs_before(&short, Repairs::Short, at(1450)) >= 20);
}

/// At the rate of the line, repairs make packets wait up to a quarter of a round trip.
#[test]
fn repairs_make_a_queue_of_a_quarter_of_a_round_trip() {
    let fec = Fec {
        block: 50,
        first_block: None,
        interval: MS(200),
        max_overhead: 0.5,
        repairs: Repairs::Short,
        worth: Fec::WORTH,
    };
    let mut pair = Pair::new(&config(vec![ChannelConfig { fec: Some(fec), ..ChannelConfig::reliable() }]));
    let packets: Vec<_> = (0..8000).map(|n| (at(n), 0, 976, 1)).collect();
    pair.run(&packets, at(60_000), |_, _, _| Fate::Arrives);
    let wait = pair.delivered.last().expect("all arrive").0 - at(7999 + 250);
    assert!(wait >= MS(125) && wait <= MS(130), "{wait:?}");
}

#[test]
fn repairs_protect_the_end_of_a_transfer_for_a_round_trip() {
    let run =
        |repairs| {
            let fec = Fec { block: 50, first_block: None, interval: MS(100), repairs, ..FEC };
            let mut pair = Pair::new(&config(vec![ChannelConfig { fec: Some(fec), ..ChannelConfig::reliable() }]));
            // A second of data at once. One frame of its first half is lost, and one of the last.
            pair.run(&bulk(1000), at(5000), |side, n, _| {
                if side == 0 && (n == 100 || n == 800) { Fate::Lost } else { Fate::Arrives }
            });
            assert_eq!(pair.handles(), (0..1000).collect::<Vec<_>>());
            (pair.delivered.last().expect("all came").0, pair.ends[0].stats().channels[0])
        };
    let (end, stats) = run(Repairs::Idle);
    // The first is retransmitted as soon as its loss is known; repairs of the second's block follow the last frame.
    assert_eq!((stats.resent, stats.repaired), (1, 1));
    assert!(end < at(1000 + 250 + 50), "{end:?}");
    let (late, stats) = run(Repairs::Spare);
    assert_eq!((stats.resent, stats.repaired), (2, 0));
    assert!(late > at(1500), "{late:?}");
}

/// Frames of 8 ms fill a block in 800 ms, longer than a round trip. With repairs for an idle line, the packet is sent again as soon as its
/// loss is known, though its block is still open.
#[test]
fn a_loss_in_an_open_block_is_not_waited_for() {
    let fec = Fec { block: 100, first_block: None, interval: MS(5000), repairs: Repairs::Idle, ..FEC };
    let mut pair = Pair::new(&config(vec![ChannelConfig { fec: Some(fec), ..ChannelConfig::reliable() }]));
    let packets = vec![(Time::ZERO, 0, 7976, 1); 200];
    pair.run(&packets, at(60_000), |side, n, _| if side == 0 && n == 5 { Fate::Lost } else { Fate::Arrives });
    assert_eq!(pair.handles().len(), 200);
    let is_lost = |frame: &Frame| matches!(frame, Frame::Data { seq: 5, .. });
    let sent: Vec<_> = pair.line.iter().filter(|(_, frame)| is_lost(frame)).map(|&(time, _)| time).collect();
    // The next one is sent at 48 ms, arrives 250 ms later, and is reported within 20 ms. The report takes 250 ms, and the line is busy for
    // up to 8 ms.
    assert!(sent.len() == 2 && sent[1] <= at(48 + 250 + 20 + 250 + 8), "{sent:?}");
}
