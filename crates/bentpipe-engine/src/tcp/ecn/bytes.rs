//! The byte counters of accurate ECN (RFC 9768 §3.2.3): in an option, the receiver reports how many bytes of data
//! arrived with each ECN field. They stay correct if many ACKs are lost or joined; the three bits of the ACE field do
//! not.

use super::EcnOption;
use crate::tcp::segment::{Flags, Segment};
use crate::wire::ecn::Ecn;
use crate::wire::tcp::{MARKED_CYCLE, MarkedBytes, MarkedOrder, marked_option_len};

/// Bits of the counters.
const ECT0: u8 = 0b001;
const CE: u8 = 0b010;
const ECT1: u8 = 0b100;

/// The part of an option that must be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) struct Wish {
    order: MarkedOrder,
    /// The number of counters that may not be omitted, and the number of all counters.
    min: usize,
    max: usize,
}

impl Wish {
    /// Length of the full option in bytes.
    pub(in crate::tcp) fn len(&self) -> u32 {
        marked_option_len(self.max)
    }

    /// The numbers of counters and of SACK blocks that fit into `room` bytes. `None`: the option is left out.
    //= RFC 9768 §3.2.3.3: two SACK blocks come first, and counters that have not changed are omitted before all of it is
    pub(in crate::tcp) fn share(&self, room: u32, blocks: usize) -> Option<(usize, usize)> {
        (self.min..=self.max).rev().find_map(|counters| {
            let left = room.checked_sub(marked_option_len(counters))?;
            let fit = (left.saturating_sub(4) / 8) as usize;
            (fit >= blocks.min(2)).then_some((counters, fit.min(blocks)))
        })
    }
}

/// The receiver's counters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tally {
    /// r.e0b, r.ceb, r.e1b: as in [`MarkedBytes`].
    ect0: u32,
    ce: u32,
    ect1: u32,
    /// The counters that have grown since the last option, and those that have ever grown.
    grown: u8,
    ever: u8,
    /// When options are sent.
    option: EcnOption,
    /// The peer has sent an option.
    has_heard: bool,
    /// After an active opening, the first ACK and the first segment with data show that options get through.
    greets: bool,
    greets_with_data: bool,
}

impl Default for Tally {
    fn default() -> Self {
        //= RFC 9768 §3.2.1: r.e0b = r.e1b = 1 and r.ceb = 0
        Tally {
            ect0: 1,
            ce: 0,
            ect1: 1,
            grown: 0,
            ever: 0,
            option: EcnOption::Off,
            has_heard: false,
            greets: false,
            greets_with_data: false,
        }
    }
}

impl Tally {
    /// The counters after this SYN or SYN-ACK of the peer.
    pub(super) fn since(syn: &Segment, is_answer: bool, option: EcnOption) -> Self {
        let has_heard = syn.marked_bytes().is_some();
        Tally { option, has_heard, greets: is_answer, greets_with_data: is_answer, ..Tally::default() }
    }

    /// Takes a repetition of the peer's SYN or SYN-ACK: the answer to a SYN-ACK shows again that options get through.
    pub(super) fn take_syn_again(&mut self, syn: &Segment) {
        self.greets = syn.flags.has(Flags::ACK);
        self.has_heard |= syn.sack.has_marked_bytes();
    }

    /// Takes an acceptable segment.
    pub(super) fn take(&mut self, segment: &Segment) {
        self.has_heard |= segment.sack.has_marked_bytes();
        let (counter, bit) = match segment.ecn {
            Ecn::NotEct => return,
            Ecn::Ect0 => (&mut self.ect0, ECT0),
            Ecn::Ce => (&mut self.ce, CE),
            Ecn::Ect1 => (&mut self.ect1, ECT1),
        };
        if segment.len > 0 {
            *counter = counter.wrapping_add(u32::from(segment.len)) % MARKED_CYCLE;
            (self.grown, self.ever) = (self.grown | bit, self.ever | bit);
        }
    }

    /// What the next segment, with or without data, should report.
    pub(super) fn wish(&self, with_data: bool) -> Option<Wish> {
        let greets = self.greets || with_data && self.greets_with_data;
        let (is_due, all) = match self.option {
            EcnOption::Off => return None,
            EcnOption::Changes => (self.grown != 0 || greets, greets),
            EcnOption::Always => (self.has_heard, true),
        };
        let with_ect0_first = !all && self.ever & ECT1 == 0 && self.ever & ECT0 != 0;
        let (order, places) = match with_ect0_first {
            true => (MarkedOrder::Ect0First, [ECT0, CE, ECT1]),
            false => (MarkedOrder::Ect1First, [ECT1, CE, ECT0]),
        };
        let end = |bits: u8| places.iter().rposition(|bit| bits & bit != 0).map_or(0, |last| last + 1);
        is_due.then(|| Wish { order, min: end(self.grown).max(1), max: if all { 3 } else { end(self.ever) } })
    }

    /// Takes the first `counters` counters of `wish`, which are sent now.
    pub(super) fn told(&mut self, wish: &Wish, counters: usize, with_data: bool) -> MarkedBytes {
        (self.grown, self.greets) = (0, false);
        self.greets_with_data &= !with_data;
        wish.order.first(counters, self.ect0, self.ce, self.ect1)
    }

    /// The option of a SYN-ACK.
    //= RFC 9768 §3.2.3.2.1: a SYN-ACK should have one, to test the path
    pub(super) fn of_syn_ack(&self) -> Option<MarkedBytes> {
        let all = MarkedOrder::Ect1First.first(3, self.ect0, self.ce, self.ect1);
        (self.option != EcnOption::Off).then_some(all)
    }
}

/// The sender's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeardBytes {
    /// s.e0b, s.ceb, s.e1b.
    known: [u32; 3],
    /// An initial option was zeroed on the way, so options are ignored.
    is_zeroed: bool,
    /// The first option has arrived.
    has_begun: bool,
    /// Bytes reported so far: ECT(0), CE, ECT(1).
    pub(super) told: [u64; 3],
}

impl HeardBytes {
    pub(super) fn new() -> Self {
        HeardBytes { known: [1, 0, 1], is_zeroed: false, has_begun: false, told: [0; 3] }
    }

    /// Checks the first option, whatever it acknowledges.
    //= RFC 9768 §3.2.3.2.4: an initial counter of zero means that options are ignored from now on
    pub(super) fn check(&mut self, segment: &Segment) {
        let Some(bytes) = segment.marked_bytes().filter(|_| !self.has_begun) else { return };
        self.has_begun = true;
        self.is_zeroed = bytes.ect0 == Some(0) || bytes.ect1 == Some(0);
    }

    /// Takes the option of an ACK that was not overtaken. Returns the bytes newly marked CE, if it reports them.
    pub(super) fn take(&mut self, segment: &Segment) -> Option<u64> {
        self.check(segment);
        let bytes = segment.marked_bytes().filter(|_| !self.is_zeroed)?;
        let mut grown = [None; 3];
        for (at, field) in [bytes.ect0, bytes.ce, bytes.ect1].into_iter().enumerate() {
            let Some(field) = field else { continue };
            //= RFC 9768 §A.1: d.ceb = (ECEB + DIVOPT - (s.ceb % DIVOPT)) % DIVOPT
            let more = u64::from(field.wrapping_sub(self.known[at]) % MARKED_CYCLE);
            self.known[at] = field;
            self.told[at] += more;
            grown[at] = Some(more);
        }
        grown[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(ecn: Ecn) -> Segment {
        Segment { len: 1000, ecn, ..Segment::new(Flags::ACK) }
    }

    fn tally(option: EcnOption) -> Tally {
        Tally::since(&data(Ecn::NotEct), false, option)
    }

    /// The examples of RFC 9768 §3.2.3.3: one field while only ECT(0) arrives, two with the first mark.
    #[test]
    fn fields_that_never_changed_are_omitted() {
        let mut tally = tally(EcnOption::Changes);
        assert_eq!(tally.wish(false), None);
        tally.take(&data(Ecn::Ect0));
        let wish = tally.wish(false).expect("a counter has grown");
        assert_eq!(wish, Wish { order: MarkedOrder::Ect0First, min: 1, max: 1 });
        assert_eq!(tally.told(&wish, 1, false), MarkedBytes { ect0: Some(1001), ..MarkedBytes::default() });
        assert_eq!(tally.wish(false), None, "nothing has changed since");
        tally.take(&data(Ecn::Ce));
        let wish = tally.wish(false).expect("a counter has grown");
        assert_eq!(wish, Wish { order: MarkedOrder::Ect0First, min: 2, max: 2 });
        tally.take(&data(Ecn::Ect1));
        let wish = tally.wish(false).expect("a counter has grown");
        assert_eq!((wish.order, wish.max), (MarkedOrder::Ect1First, 3));
        let told = tally.told(&wish, 3, false);
        assert_eq!(told, MarkedBytes { ect0: Some(1001), ce: Some(1000), ect1: Some(1001) });
    }

    /// As in Linux: always, once the peer has sent an option.
    #[test]
    fn always_begins_with_the_peer() {
        let mut tally = tally(EcnOption::Always);
        assert_eq!(tally.wish(true), None);
        let mut ack = data(Ecn::NotEct);
        assert!(ack.set_marked_bytes(&MarkedBytes::default()));
        tally.take(&ack);
        assert_eq!(tally.wish(true), Some(Wish { order: MarkedOrder::Ect1First, min: 1, max: 3 }));
    }

    /// RFC 9768 §3.2.3.3: with timestamps 28 bytes are left. Two SACK blocks take 20 of them.
    #[test]
    fn blocks_and_counters_share_the_room() {
        let wish = |min| Wish { order: MarkedOrder::Ect1First, min, max: 3 };
        assert_eq!(
            [0, 1, 2, 3].map(|blocks| wish(1).share(28, blocks)),
            [Some((3, 0)), Some((3, 1)), Some((2, 2)), Some((2, 2))]
        );
        assert_eq!(wish(3).share(28, 2), None, "it may not be cut");
        assert_eq!(wish(3).share(40, 4), Some((3, 3)));
        assert_eq!((wish(1).share(8, 0), wish(1).share(7, 0)), (Some((2, 0)), None));
    }

    /// Differences are modulo 2^24, also across the wrap.
    #[test]
    fn the_sender_takes_differences() {
        let told = |ect0, ce, ect1| {
            let mut ack = Segment::new(Flags::ACK);
            assert!(ack.set_marked_bytes(&MarkedOrder::Ect1First.first(3, ect0, ce, ect1)));
            ack
        };
        let mut heard = HeardBytes::new();
        assert_eq!(heard.take(&told(1, 0, 1)), Some(0));
        assert_eq!(heard.take(&told(1001, MARKED_CYCLE - 1000, 1)), Some(u64::from(MARKED_CYCLE) - 1000));
        assert_eq!(heard.take(&told(1001, 460, 1)), Some(1460));
        assert_eq!(heard.told, [1000, u64::from(MARKED_CYCLE) + 460, 0]);
        let mut zeroed = HeardBytes::new();
        assert_eq!([zeroed.take(&told(1001, 0, 0)), zeroed.take(&told(2001, 1000, 1))], [None, None]);
    }

    /// The receiver's counters have 24 bits (RFC 9768 §3.2.3).
    #[test]
    fn the_counters_wrap() {
        let mut tally = Tally { ce: MARKED_CYCLE - 400, ..tally(EcnOption::Changes) };
        tally.take(&data(Ecn::Ce));
        assert_eq!(tally.ce, 600);
    }
}
