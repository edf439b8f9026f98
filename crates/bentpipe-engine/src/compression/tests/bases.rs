//! Bases: when one is announced, and which of them a form refers to when some are late, lost or old.

use super::*;

#[test]
fn without_a_verdict_nothing_is_relative() {
    let mut ends = Ends::default();
    let packet = tcp(true, 4000, &plain(100));
    let mut announced = None;
    for _ in 0..3 * BEFORE_BASE {
        let announcement = ends.compressor.compress(1, &packet, &mut ends.form);
        assert_eq!(ends.form, packet);
        assert!(announcement.is_none() || announced.is_none(), "one at a time");
        announced = announced.or(announcement);
    }
    let first = announced.expect("it was announced").base;
    ends.compressor.verdict(first, false);
    let second = ends.compressor.compress(1, &packet, &mut ends.form).expect("another attempt").base;
    assert_ne!(first, second);
    ends.compressor.verdict(first, true);
    assert!(ends.compressor.compress(1, &packet, &mut ends.form).is_none());
    assert_eq!(ends.form, packet, "the verdict was on the one before");
    ends.compressor.verdict(second, true);
    ends.compressor.compress(1, &packet, &mut ends.form);
    assert!(ends.form.len() < packet.len());
    assert_eq!(ends.decompressor.expand(&ends.form, &mut [0; 2000]), Err(ExpandError::UnknownBase));
}

#[test]
fn forms_that_were_overtaken_are_understood() {
    let mut ends = Ends::default();
    let packet = |seq| tcp(true, 4000, &Segment { seq, ..plain(100) });
    ends.open(1, &packet(0));
    let mut late = Vec::new();
    // Each step needs a new base.
    for step in 1..u32::from(REMEMBERED) {
        let packet = packet(step << 23);
        let announcement = ends.compressor.compress(1, &packet, &mut ends.form).expect("far from the last");
        late.push((ends.form.clone(), packet));
        ends.decompressor.learn(&announcement.message).expect("a base");
        ends.compressor.verdict(announcement.base, true);
    }
    for (form, packet) in late {
        ends.form = form;
        ends.check(&packet);
    }
}

#[test]
fn an_old_base_does_not_come_back() {
    let mut ends = Ends::default();
    let packet = |seq| tcp(true, 4000, &Segment { seq, ..plain(100) });
    let mut bases = Vec::new();
    for step in 0..u32::from(REMEMBERED) + BEFORE_BASE + 2 {
        if let Some(announcement) = ends.compressor.compress(1, &packet(step << 23), &mut ends.form) {
            ends.decompressor.learn(&announcement.message).expect("a base");
            ends.compressor.verdict(announcement.base, true);
            bases.push(announcement.message);
        }
    }
    assert!(bases.len() > usize::from(REMEMBERED));
    let last = packet((u32::from(REMEMBERED) + BEFORE_BASE + 2) << 23 | 5);
    let older = &bases[..bases.len() - 1];
    for base in older {
        ends.decompressor.learn(base).expect("a base");
    }
    ends.carry(1, &last);
}

/// A context may keep a base for billions of packets. Then the number of the next one looks like an earlier one.
#[test]
fn a_place_that_was_not_used_for_long_takes_the_next_base() {
    let packet = tcp(true, 4000, &plain(100));
    let takes = |ahead: u32| {
        let mut ends = Ends::default();
        ends.open(1, &packet);
        // The first base had number 1 and generation 0; this one goes into its place.
        let mut next = name(kind::BASE, 0, 0, REMEMBERED).to_vec();
        next.extend_from_slice(&1u32.wrapping_add(ahead).to_be_bytes());
        next.extend_from_slice(&packet[..packet.len() - 100]);
        ends.decompressor.learn(&next).expect("a base");
        ends.decompressor.expand(&ends.form, &mut [0; 2000]) == Err(ExpandError::UnknownBase)
    };
    assert!(takes(1) && takes(1 << 20) && takes((1 << 31) + 7) && takes(3 << 30));
    assert!(!takes(0) && !takes(0u32.wrapping_sub(1)) && !takes(0u32.wrapping_sub(1 << 20)));
}

/// However many bases were lost on their way: the next one is not taken for an old one.
#[test]
fn bases_may_be_lost_for_long() {
    for lost in 0..3 * u32::from(GENERATIONS) {
        let mut ends = Ends::default();
        let packet = |seq| tcp(true, 4000, &Segment { seq, ..plain(100) });
        ends.open(1, &packet(0));
        for n in 0..lost {
            let announced = ends.compressor.compress(1, &packet((n + 1) << 23 | 1), &mut ends.form);
            announced.into_iter().for_each(|announcement| ends.compressor.verdict(announcement.base, false));
        }
        for _ in 0..=BEFORE_BASE {
            ends.carry(1, &packet(lost << 23 | 2));
        }
        assert!(ends.carry(1, &packet(lost << 23 | 3)) < 140, "{lost}");
    }
}

#[test]
fn what_opens_a_connection_is_no_base() {
    let mut ends = Ends::default();
    let syn = tcp(true, 4000, &Segment { flags: 0x02, ..plain(0) });
    for _ in 0..3 * BEFORE_BASE {
        assert!(ends.compressor.compress(1, &syn, &mut ends.form).is_none());
    }
    assert!(ends.compressor.compress(1, &tcp(true, 4000, &plain(0)), &mut ends.form).is_some());
}

/// A base is far from a number that is 2^23 (timestamps: 2^15) above it; one that is below it belongs to a retransmission.
#[test]
fn a_number_below_the_base_asks_for_no_new_one() {
    let header = |numbers: [u32; 4]| {
        let [seq, ack, value, echo] = numbers;
        let packet = tcp(true, 4000, &Segment { seq, ack, times: Some([value, echo]), ..plain(0) });
        fields::Header::of(&packet, fields::Shape::of_regular(&packet).expect("it is regular"))
    };
    for (which, far) in [1 << 23, 1 << 23, 1 << 15, 1 << 15].into_iter().enumerate() {
        let seen = [0, far - 1, far, (1 << 31) - 1, 1 << 31, u32::MAX].map(|above| {
            let mut numbers = [u32::MAX - 5; 4];
            let base = header(numbers);
            numbers[which] = numbers[which].wrapping_add(above);
            form::is_far(&header(numbers), &base)
        });
        assert_eq!(seen, [false, false, true, true, false, false], "{which}");
    }
}
