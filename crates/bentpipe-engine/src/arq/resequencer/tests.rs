mod literal;

use super::*;
use crate::units::Duration;
use literal::Literal;
use proptest::prelude::*;

#[test]
fn a_gap_holds_up_its_own_flow_only() {
    let mut order = Resequencer::new(100);
    // Flow A: 0, 2, 4. Flow B: 1, 3. Frame 2 is lost at first.
    assert_eq!(order.on_frame(Time::ZERO, 0, 0, 100), Taken::Passes);
    assert_eq!(order.passed(0), None);
    assert_eq!(order.on_frame(Time::ZERO, 1, 0, 100), Taken::Passes);
    assert_eq!(order.passed(1), None);
    assert_eq!(order.on_frame(Time::ZERO, 3, 2, 100), Taken::Passes);
    assert_eq!(order.on_frame(Time::ZERO, 4, 2, 100), Taken::Waits);
    assert_eq!(order.passed(3), None);
    assert_eq!(order.on_frame(Time::ZERO, 3, 2, 100), Taken::Refused, "a duplicate");
    assert_eq!(order.on_frame(Time::ZERO, 2, 2, 100), Taken::Passes);
    assert_eq!(order.passed(2), Some(4));
    assert_eq!(order.passed(4), None);
    assert_eq!((order.next(), order.waiting()), (5, 0));
}

#[test]
fn what_never_comes_is_skipped() {
    let mut order = Resequencer::new(100);
    assert_eq!(order.on_frame(Time::ZERO, 2, 1, 100), Taken::Waits);
    let mut heard = Vec::new();
    order.skip_to(2, |skip| heard.push(skip));
    assert_eq!(heard, [Skip::Skipped(0..2), Skip::Freed(2)]);
    assert_eq!(order.on_frame(Time::ZERO, 1, 1, 100), Taken::Refused, "too late");
    assert_eq!(order.passed(2), None);
    assert_eq!(order.next(), 3);
    assert_eq!(order.on_frame(Time::ZERO, 103, 0, 100), Taken::Refused, "beyond the window");
}

#[test]
fn what_is_skipped_among_paced_frames_keeps_their_order() {
    let mut order = Resequencer::paced(100);
    // One flow: 0, 1, 2, 3. Frame 0 waits for its release, 2 is lost.
    assert_eq!(order.on_frame(Time::ZERO, 0, 0, 100), Taken::Passes);
    assert_eq!(order.on_frame(Time::ZERO, 1, 1, 100), Taken::Waits);
    let mut heard = Vec::new();
    assert!(order.skip_to(3, |skip| heard.push(skip)));
    assert_eq!(heard, [Skip::Skipped(2..3)]);
    assert_eq!(order.on_frame(Time::ZERO, 3, 1, 100), Taken::Waits, "0 and 1 go first");
    assert_eq!((order.passed(0), order.freed()), (Some(1), None));
    assert_eq!((order.passed(1), order.freed()), (None, Some(3)));
    assert_eq!((order.passed(3), order.next()), (None, 4));
}

#[test]
fn a_floor_far_ahead_is_one_step() {
    for mut order in [Resequencer::new(65_535), Resequencer::paced(65_535)] {
        assert_eq!(order.on_frame(Time::ZERO, 3, 1, 100), Taken::Waits);
        let mut heard = Vec::new();
        for _ in 0..100 {
            assert!(!order.skip_to(1 << 40, |skip| heard.push(skip)));
            assert_eq!(order.ring.chunks(), 1);
        }
        let all = [Skip::Skipped(0..3), Skip::Skipped(4..65_536), Skip::Freed(3), Skip::Skipped(65_536..65_538)];
        assert_eq!(heard, all, "the window does not move beyond what is here");
        assert!(order.has(65_537) && !order.has(65_538));
        assert_eq!(order.on_frame(Time::ZERO, 65_537, 1, 100), Taken::Refused);
        assert_eq!((order.passed(3), order.next()), (None, 65_538));
        assert!(!order.skip_to(1 << 40, |skip| heard.push(skip)));
        assert_eq!(heard[4..], [Skip::Skipped(65_538..131_074)]);
    }
}

#[test]
fn where_none_is_given_up_the_floor_waits_for_all() {
    let mut order = Resequencer::new(100);
    assert_eq!(order.on_frame(Time::ZERO, 0, 0, 100), Taken::Passes);
    assert_eq!(order.on_frame(Time::ZERO, 2, 1, 100), Taken::Waits);
    assert!(order.rise_to(1) && !order.rise_to(3) && !order.has(1));
    assert_eq!(order.on_frame(Time::ZERO, 1, 1, 100), Taken::Waits);
    assert!(order.rise_to(3) && !order.rise_to(4));
    assert_eq!((order.passed(0), order.passed(1), order.passed(2), order.next()), (Some(1), Some(2), None, 3));
}

fn one_by_one(heard: &[Skip]) -> Vec<Skip> {
    let each = |skip: &Skip| match skip {
        Skip::Skipped(seqs) => seqs.clone().map(|seq| Skip::Skipped(seq..seq + 1)).collect(),
        Skip::Freed(_) => vec![skip.clone()],
    };
    heard.iter().flat_map(each).collect()
}

proptest! {
    /// Floors, arrivals and releases in any order do the same as one number after the other.
    #[test]
    fn ranges_are_what_numbers_give(steps in prop::collection::vec((0u8..5, prop_oneof![0u64..60, 0u64..600], prop_oneof![0u32..5, 0u32..300]), 1..200), paced: bool, window in prop_oneof![1u32..40, 1u32..500]) {
        let new = if paced { Resequencer::paced } else { Resequencer::new };
        let (mut order, mut twin) = (new(window), Literal::new(window, paced));
        let mut ready: Vec<u64> = Vec::new();
        for (step, ahead, behind) in steps {
            let seq = order.next() + ahead;
            if step < 2 {
                let taken = order.on_frame(Time::ZERO + Duration::from_millis(seq), seq, behind, behind);
                prop_assert_eq!(taken, twin.on_frame(Time::ZERO + Duration::from_millis(seq), seq, behind, behind));
                ready.extend((taken == Taken::Passes).then_some(seq));
            } else if step == 2 {
                let (mut heard, mut each) = (Vec::new(), Vec::new());
                prop_assert_eq!(order.skip_to(seq, |skip| heard.push(skip)), twin.skip_to(seq, &mut each));
                prop_assert_eq!(one_by_one(&heard), each);
                ready.extend(heard.iter().filter_map(|skip| if let Skip::Freed(seq) = skip { Some(*seq) } else { None }));
            } else if step == 4 {
                prop_assert_eq!(order.rise_to(seq), twin.rise_to(seq));
            } else if !ready.is_empty() {
                let seq = ready.swap_remove(ahead as usize % ready.len());
                prop_assert_eq!(order.frame(seq), twin.frame(seq));
                let freed = order.passed(seq);
                prop_assert_eq!(freed, twin.passed(seq));
                ready.extend(freed);
                while let Some(freed) = order.freed() {
                    prop_assert_eq!(Some(freed), twin.freed());
                    ready.push(freed);
                }
                prop_assert_eq!(twin.freed(), None);
            }
            prop_assert_eq!((order.next(), order.floor, order.waiting()), (twin.next, twin.floor, twin.waiting()));
            for seq in order.next()..order.next() + 700 {
                prop_assert_eq!((order.has(seq), order.reaches(seq)), (twin.has(seq), twin.reaches(seq)));
            }
        }
    }

    /// Whatever arrives in whatever order, each flow comes out in its order, each frame once, and all that
    /// arrived comes out.
    #[test]
    fn flows_keep_their_order(flows in prop::collection::vec(0u8..4, 1..200), keys in prop::collection::vec(any::<u16>(), 200), lost in prop::collection::vec(prop::bool::weighted(0.1), 200)) {
        let mut last = [None; 4];
        let frames: Vec<(u64, u8, u32)> = flows.iter().enumerate().map(|(seq, &flow)| {
            let behind = last[flow as usize].replace(seq as u64).map_or(0, |before: u64| (seq as u64 - before) as u32);
            (seq as u64, flow, behind)
        }).collect();
        let mut arrivals: Vec<_> = frames.iter().filter(|(seq, ..)| !lost[*seq as usize]).collect();
        arrivals.sort_by_key(|(seq, ..)| keys[*seq as usize]);
        let mut order = Resequencer::new(1000);
        let mut out = Vec::new();
        let drain = |order: &mut Resequencer, first: u64, out: &mut Vec<u64>| {
            let mut at = Some(first);
            while let Some(seq) = at {
                out.push(seq);
                at = order.passed(seq);
            }
        };
        for &&(seq, _, behind) in &arrivals {
            if order.on_frame(Time::ZERO + Duration::from_millis(seq), seq, behind, behind) == Taken::Passes {
                drain(&mut order, seq, &mut out);
            }
        }
        let mut freed = Vec::new();
        order.skip_to(frames.len() as u64, |skip| if let Skip::Freed(seq) = skip { freed.push(seq) });
        for seq in freed {
            drain(&mut order, seq, &mut out);
        }
        prop_assert_eq!(out.len(), arrivals.len());
        for flow in 0..4 {
            let of_flow: Vec<_> = out.iter().filter(|&&seq| flows[seq as usize] == flow).collect();
            prop_assert!(of_flow.is_sorted());
        }
        prop_assert_eq!((order.next(), order.waiting()), (frames.len() as u64, 0));
    }
}
