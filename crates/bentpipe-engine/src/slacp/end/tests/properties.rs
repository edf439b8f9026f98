//! Whatever the line does: everything arrives or is skipped, once and in order.

use proptest::prelude::*;

use super::world::{COPIES, FEC, Fate, MS, Pair, at, config, paced};
use crate::slacp::config::{Arq, ChannelConfig, Fec, Order, Probing, Release, Repairs, SlacpConfig};

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        6 => Just(Fate::Arrives),
        2 => Just(Fate::Lost),
        1 => Just(Fate::Twice),
        1 => (1u64..800).prop_map(Fate::Late),
    ];
    prop::collection::vec(fate, 1..400)
}

fn repairs() -> impl Strategy<Value = Option<Fec>> {
    let fec = |repairs| Some(Fec { repairs, ..FEC });
    prop_oneof![
        Just(None),
        Just(fec(Repairs::Spare)),
        Just(fec(Repairs::Prompt)),
        Just(fec(Repairs::Idle)),
        Just(fec(Repairs::Short))
    ]
}

/// The settings of a layer between gateways, where pauses are steady.
fn probed(settings: SlacpConfig, pauses: Option<u64>) -> SlacpConfig {
    match pauses {
        Some(ms) => SlacpConfig { probing: Probing::Steady(MS(ms)), patience: MS(500), ..settings },
        None => settings,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever the line does to its first frames: with ARQ everything arrives once, each flow in order; every handle
    /// is released once; nothing stays behind.
    #[test]
    fn whole_in_order_once(
        there in fates(), back in fates(), flows in 1u64..5, fec in repairs(), in_channel: bool, copies: bool,
        release in prop::sample::select(vec![Release::AtOnce, Release::Grouped, paced(12_000_000)]),
        reordering in 0u64..4, spread in 0u64..30, window in 5u32..300, pauses in prop::option::of(0u64..1500),
    ) {
        let order = if in_channel { Order::Channel } else { Order::Flow };
        let one = ChannelConfig { copies: copies.then_some(COPIES), fec, order, ..ChannelConfig::reliable() };
        let mut settings = probed(SlacpConfig { reordering, window, ..config(vec![one]) }, pauses);
        settings.release = release;
        let mut pair = Pair::new(&settings);
        let packets: Vec<_> = (0..200).map(|n| (at(n * spread), 0, 100 + n as u32, n % flows)).collect();
        pair.run(&packets, at(600_000), |side, n, _| {
            let fates = if side == 0 { &there } else { &back };
            fates.get(n).copied().unwrap_or(Fate::Arrives)
        });
        let got = pair.handles();
        let mut sorted = got.clone();
        sorted.sort_unstable();
        prop_assert_eq!(sorted, (0..200).collect::<Vec<_>>());
        for flow in 0..flows {
            let of_flow: Vec<_> = got.iter().filter(|&&n| in_channel || n as u64 % flows == flow).collect();
            prop_assert!(of_flow.is_sorted(), "{:?}", of_flow);
        }
        prop_assert_eq!(pair.released.len(), 200);
        prop_assert!(pair.truth.is_empty() && pair.skipped.is_empty());
        prop_assert_eq!(pair.ends[0].in_flight, 0);
    }

    /// With bounded persistence what arrives is in order, and what does not is skipped: nothing waits for ever.
    #[test]
    fn all_is_delivered_or_skipped(
        there in fates(), back in fates(), flows in 1u64..5, fec in repairs(), copies: bool,
        transmissions in prop::option::of(1u32..4), pauses in prop::option::of(0u64..1500),
    ) {
        let arq = transmissions.map(|n| Arq { transmissions: Some(n) });
        let copies = copies.then_some(COPIES).filter(|_| arq.is_some());
        let one = ChannelConfig { arq, copies, fec, ..ChannelConfig::reliable() };
        let mut pair = Pair::new(&probed(config(vec![one]), pauses));
        let packets: Vec<_> = (0..200).map(|n| (at(n * 5), 0, 100 + n as u32, n % flows)).collect();
        pair.run(&packets, at(600_000), |side, n, _| {
            let fates = if side == 0 { &there } else { &back };
            fates.get(n).copied().unwrap_or(Fate::Arrives)
        });
        let got = pair.handles();
        for flow in 0..flows {
            let of_flow: Vec<_> = got.iter().filter(|&&n| n as u64 % flows == flow).collect();
            let once = of_flow.windows(2).all(|w| w[0] < w[1]);
            prop_assert!(once || arq.is_none() && fec.is_none(), "{:?}", of_flow);
        }
        prop_assert_eq!(pair.released.len(), 200);
        if arq.is_some() || fec.is_some() {
            prop_assert_eq!(got.len() + pair.skipped.len(), 200);
            prop_assert!(pair.truth.is_empty());
        }
    }
}
