//! A stream over a fast, lossy link in virtual time: two ends with the layer of `split`.

use std::collections::BTreeMap;

use bentpipe_engine::stream::TimeNoise;
use bentpipe_engine::units::{Duration, Rate, Time};
use bentpipe_engine::{Context, Step};
use bentpipe_io::{Emitted, LinkEndpoint};

use super::{Satellite, for_streams};

const ONE_WAY: Duration = Duration::from_millis(325);
const PACKET: usize = 1400;

/// Bit/s.
const FAT: u64 = 248_750_000;

/// The time of a transfer of `bytes` in one flow, with this loss in both directions, to an end with the configured rate `back`; and the
/// repair frames and retransmissions sent.
fn transfer(bytes: usize, back: u64, loss: f64, seed: u64) -> (f64, u64, u64) {
    let satellite = |rate| Satellite {
        rate: Rate::from_bits_per_second(rate).expect("not zero"),
        round_trip: ONE_WAY.saturating_mul(2),
        path_mtu: 1500,
        over_ipv6: false,
        reordering: 3,
        shared: false,
    };
    let mut ports = [FAT, back].map(|rate| LinkEndpoint::new(&for_streams(&satellite(rate))));
    let noise = TimeNoise::named(seed, "fat");
    let mut flying: BTreeMap<(Time, u64), (usize, Vec<u8>)> = BTreeMap::new();
    let (mut now, mut ticket, mut left, mut got) = (Time::ZERO, 0, bytes, 0);
    let mut out = vec![0; 1 << 16];
    loop {
        while let Some(entry) = flying.first_entry().filter(|entry| entry.key().0 <= now) {
            let (side, frame) = entry.remove();
            ports[side].receive(&mut Context::silent(now), &frame).expect("what is sent is whole");
        }
        let mut wake = flying.keys().next().map(|&(at, _)| at);
        for side in [0, 1] {
            loop {
                while side == 0 && left > 0 && ports[0].end().waiting(0) < 8 {
                    let len = left.min(PACKET);
                    ports[0].send_on(&mut Context::silent(now), 0, 2, &vec![7; len]).expect("it fits");
                    left -= len;
                }
                match ports[side].poll(&mut Context::silent(now), &mut out).expect("there is room") {
                    Step::Do(Emitted::Packet(len)) => got += len,
                    Step::Do(Emitted::Frame(len)) => {
                        ticket += 1;
                        if noise.at(ticket, side as u32) >= loss {
                            flying.insert((now + ONE_WAY, ticket), (1 - side, out[..len].to_vec()));
                        }
                    }
                    Step::Wait(until) => {
                        wake = Time::earliest(wake, until);
                        break;
                    }
                }
            }
        }
        if got == bytes {
            let stats = ports[0].layer_stats().channels[0];
            return (now.saturating_since(Time::ZERO).as_secs_f64(), stats.repairs, stats.resent);
        }
        wake = Time::earliest(wake, flying.keys().next().map(|&(at, _)| at));
        now = wake.expect("something is under way").max(now);
    }
}

/// 250 Mbit/s and 650 ms: a loss of 1 % costs the time of some repair frames, not a round trip. (When the receiver kept 1024 packets only,
/// and nothing protected retransmissions, 10 MB took 1.35 to 2.02 s and 100 MB 4.42 to 5.09 s.)
#[test]
fn losses_cost_no_round_trip_on_a_fat_link() {
    for (bytes, seeds) in [(10_000_000, 8), (100_000_000, 1)] {
        let (clean, _, _) = transfer(bytes, FAT, 0.0, 0);
        // The transmission time, headers included, and one way.
        let limit = bytes as f64 * 8.0 / 248.75e6 * 1.08 + ONE_WAY.as_secs_f64();
        assert!(clean < 1.02 * limit, "{bytes}: {clean} s, {limit} s at the least");
        for seed in 0..seeds {
            let (took, repairs, resent) = transfer(bytes, FAT, 0.01, seed);
            // A hundredth of the packets is retransmitted, repair frames take 50 ms, and a lost one of these a few milliseconds.
            assert!(
                took < 1.01 * clean + 0.15,
                "{bytes}, seed {seed}: {took} s, {clean} s without loss; {repairs} {resent}"
            );
        }
    }
}

/// A terminal that sends 3 Mbit/s keeps as many packets for repair frames as one that sends 250: its peer's rate counts. (When its own
/// rate counted, the same seeds took a round trip longer.)
#[test]
fn a_narrow_return_costs_no_round_trip() {
    for seed in 0..4 {
        let times = [FAT, 2_985_000].map(|back| transfer(10_000_000, back, 0.01, seed).0);
        // Reports of up to 276 bytes take 0.7 ms each on the narrow line, and delay those of a loss.
        assert!(times[1] < times[0] + 0.1, "seed {seed}: {times:?}");
    }
}
