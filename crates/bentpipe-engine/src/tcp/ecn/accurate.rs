//! Accurate ECN (RFC 9768): three flags of every segment, together the ACE field, count the packets that arrived
//! marked.
//!
//! The receiver puts the lowest three bits of its count (r.cep) into the field, and the sender updates its own count
//! (s.cep) from them. In the handshake, the field negotiates and reports how the other SYN arrived. The byte counters
//! are in `bytes.rs`.

use super::EcnMode;
use super::bytes::HeardBytes;
use crate::tcp::segment::{Flags, Segment};
use crate::wire::ecn::Ecn;

/// Number of values of the field.
const CYCLE: u64 = 8;
/// r.cep and s.cep at the start (RFC 9768 §3.2.1).
const FIRST: u64 = 5;
/// If an ACK covers more packets than this on average, in 64ths, the field is assumed not to have cycled: ACKs are
/// joined, not lost (RFC 9768 §A.2.1 says "well below 8"; Linux uses 4).
const MAX_AVERAGE: u64 = 4 * 64;
/// The field of a SYN that asks for accurate ECN.
const ASKS: u8 = 0b111;

/// The field: AE, CWR, ECE.
fn field(flags: Flags) -> u8 {
    u8::from(flags.has(Flags::AE)) << 2 | u8::from(flags.has(Flags::CWR)) << 1 | u8::from(flags.has(Flags::ECE))
}

/// The flags of the field.
fn flags(field: u8) -> Flags {
    let bit = |at: u8, flag| if field & at != 0 { flag } else { Flags::NONE };
    bit(0b100, Flags::AE) | bit(0b010, Flags::CWR) | bit(0b001, Flags::ECE)
}

/// The field of a handshake segment that reports the ECN field with which the other SYN arrived (RFC 9768 §3.1.2, table 2, and §3.2.2.1,
/// table 3).
fn handshake(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// The form of ECN that an end with accurate ECN agrees on after the peer's SYN or SYN-ACK.
//= RFC 9768 §3.1.2, table 2; §3.1.3: a SYN or SYN-ACK with a field of no meaning yet is one of accurate ECN
pub(super) fn agreed(syn: &Segment) -> EcnMode {
    match (syn.flags.has(Flags::ACK), field(syn.flags)) {
        // In a SYN-ACK: from a peer without ECN, or from one that returns the flags of our SYN.
        (_, 0b000) | (true, ASKS) => EcnMode::Off,
        (false, 0b011) | (true, 0b001) => EcnMode::Classic,
        _ => EcnMode::Accurate,
    }
}

/// The receiver's count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    /// r.cep.
    packets: u64,
    /// The ECN field with which the peer's SYN arrived.
    syn: Ecn,
    /// The first segment after a SYN-ACK reports how the SYN-ACK arrived.
    tells: bool,
    /// The last segment was marked.
    was_marked: bool,
    /// Marks since the last segment was sent.
    untold: u32,
}

impl Default for Counted {
    fn default() -> Self {
        Counted { packets: FIRST, syn: Ecn::NotEct, tells: false, was_marked: false, untold: 0 }
    }
}

impl Counted {
    /// A count of nothing but this SYN or SYN-ACK.
    pub(super) fn since(syn: &Segment) -> Self {
        //= RFC 9768 §3.2.1: a marked SYN-ACK counts, a marked SYN does not
        let tells = syn.flags.has(Flags::ACK);
        let marked = tells && syn.ecn == Ecn::Ce;
        Counted { packets: FIRST + u64::from(marked), syn: syn.ecn, tells, ..Counted::default() }
    }

    /// Takes an acceptable segment. Returns true if it must be acknowledged at once.
    //= RFC 9768 §3.2.2.5.1: at the first mark after none, and at the second since the last ACK; at the third where there is no data
    pub(super) fn take(&mut self, segment: &Segment) -> bool {
        let marked = segment.ecn == Ecn::Ce;
        self.packets += u64::from(marked);
        self.untold += u32::from(marked);
        let changes = marked && !self.was_marked;
        self.was_marked = marked;
        if segment.len == 0 {
            return marked && self.untold >= 3;
        }
        changes || marked && self.untold >= 2
    }

    /// Takes a repetition of the peer's SYN or SYN-ACK.
    //= RFC 9768 §3.1.5: the field of the latest one to arrive is told; §3.2.2.1: the ACK of a SYN-ACK tells it again
    pub(super) fn take_syn_again(&mut self, syn: &Segment) {
        self.tells = syn.flags.has(Flags::ACK);
        self.packets += u64::from(self.tells && syn.ecn == Ecn::Ce && self.syn != Ecn::Ce);
        self.syn = syn.ecn;
    }

    pub(super) fn flags_of_syn_ack(&self) -> Flags {
        flags(handshake(self.syn))
    }

    /// The flags of a segment that is sent now.
    //= RFC 9768 §3.2.2.1: the ACK of a SYN-ACK tells how that arrived if it has neither data nor SACK blocks
    pub(super) fn flags(&mut self, bare: bool) -> Flags {
        self.untold = 0;
        if core::mem::take(&mut self.tells) && bare {
            return flags(handshake(self.syn));
        }
        flags((self.packets % CYCLE) as u8)
    }
}

/// What an ACK reports about marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkReport {
    /// Numbers of marked packets and bytes.
    Marks { packets: u64, bytes: u64 },
    /// The path changed the ECN field: packets may no longer be ECT, but marks still count.
    Mangled,
    /// The path clears the ACE field: packets may not be ECT, and marks are not reported.
    Zeroed,
}

impl MarkReport {
    /// No marks.
    const NONE: MarkReport = MarkReport::Marks { packets: 0, bytes: 0 };
}

/// The sender's count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    /// s.cep.
    packets: u64,
    /// The next ACK ends a passive opening and reports how our SYN-ACK arrived.
    handshake: bool,
    /// No segment has arrived since the handshake.
    is_first: bool,
    /// The peer's newest timestamp.
    newest: Option<u32>,
    /// Average number of packets that an ACK covers, in 64ths.
    average: Option<u64>,
    pub(super) bytes: HeardBytes,
    /// Bytes reported as marked so far, by the option or, without it, by packets.
    reported: u64,
}

impl Heard {
    pub(super) fn new(handshake: bool) -> Self {
        Heard {
            packets: FIRST,
            handshake,
            is_first: true,
            newest: None,
            average: None,
            bytes: HeardBytes::new(),
            reported: 0,
        }
    }

    /// Takes the SYN-ACK that answers our SYN, which was not ECT. Returns false if the SYN's field changed on the way.
    //= RFC 9768 §3.2.2.3: a packet without ECT may not become one
    pub(super) fn take_syn_ack(&mut self, segment: &Segment) -> bool {
        self.bytes.check(segment);
        !matches!(field(segment.flags), 0b011 | 0b100 | 0b110)
    }

    /// Takes an ACK that delivers `delivered` bytes, in segments of `mss` bytes.
    pub(super) fn take(&mut self, segment: &Segment, delivered: u64, mss: u64) -> MarkReport {
        let field = field(segment.flags);
        let is_bare = segment.len == 0 && segment.sack.is_empty();
        if core::mem::take(&mut self.handshake) && is_bare {
            self.newest = segment.timestamps.map(|stamp| stamp.value);
            self.bytes.check(segment);
            //= RFC 9768 §3.2.2.1, table 4, and §3.2.2.3: our SYN-ACK is not ECT
            self.packets += u64::from(field == 0b110);
            return match field {
                0b000 => MarkReport::Zeroed,
                0b011 | 0b100 | 0b110 => MarkReport::Mangled,
                _ => MarkReport::NONE,
            };
        }
        //= RFC 9768 §3.2.2.4: the first one after the handshake cannot be zero
        if core::mem::take(&mut self.is_first) && field == 0 {
            return MarkReport::Zeroed;
        }
        if !self.is_news(segment, delivered) {
            return MarkReport::NONE;
        }
        let bytes = self.bytes.take(segment);
        let least = (u64::from(field) + CYCLE - self.packets % CYCLE) % CYCLE;
        let covered = delivered.div_ceil(mss);
        let may_cycle = self.average(covered) <= MAX_AVERAGE && covered >= CYCLE;
        let marks = if may_cycle { covered - (covered - least) % CYCLE } else { least };
        //= RFC 9768 §A.2.2: the bytes may show that the field has not cycled
        let is_safe = bytes.is_some_and(|bytes| bytes <= mss * least && bytes < marks * mss / 2);
        //= RFC 9768 §A.2.1: where the field may have cycled since the last ACK that arrived, as many as fit
        let packets = if is_safe { least } else { marks };
        self.packets += packets;
        let total = self.bytes.told[1];
        //= RFC 9768 §3.2.3.2.5: marked bytes without a marked packet are mangled feedback
        if self.packets == FIRST && total > 0 {
            return MarkReport::Mangled;
        }
        // An ACK without room for the option tells only of packets; the next option has their bytes.
        let bytes = if bytes.is_some() { total.saturating_sub(self.reported) } else { packets * mss };
        self.reported += bytes;
        MarkReport::Marks { packets, bytes }
    }

    /// The average after an ACK that covers this number of packets, with a weight of 1/64.
    fn average(&mut self, covered: u64) -> u64 {
        if covered > 0 {
            self.average = Some(self.average.map_or(64 * covered, |average| average - average / 64 + covered));
        }
        self.average.unwrap_or(0)
    }

    /// False if another ACK has overtaken this one, as far as can be told.
    //= RFC 9768 §A.1: newlyAckedB and newlyAckedT
    fn is_news(&mut self, segment: &Segment, delivered: u64) -> bool {
        let stamp = segment.timestamps.map(|stamp| stamp.value);
        let later = stamp.is_some_and(|now| self.newest.is_none_or(|newest| (now.wrapping_sub(newest) as i32) > 0));
        if later {
            self.newest = stamp;
        }
        delivered > 0 || later
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::segment::Timestamps;
    use crate::wire::tcp::MarkedOrder;

    fn segment(flags: Flags, len: u16, ecn: Ecn) -> Segment {
        Segment { len, ecn, ..Segment::new(flags) }
    }

    fn told(packets: u64) -> MarkReport {
        MarkReport::Marks { packets, bytes: 1000 * packets }
    }

    /// An ACK with this field.
    fn ack(field: u8) -> Segment {
        segment(Flags::ACK | flags(field), 0, Ecn::NotEct)
    }

    /// RFC 9768 §3.1.2, table 2: the SYN-ACKs of peers with accurate ECN, with RFC 3168, without ECN, and of one that copies flags.
    /// §3.1.3: SYNs, and the SYN-ACK 5, which has no meaning yet.
    #[test]
    fn the_handshake_negotiates() {
        use EcnMode::{Accurate, Classic, Off};
        let answer = |field| agreed(&segment(Flags::SYN | Flags::ACK | flags(field), 0, Ecn::NotEct));
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 6, 7].map(answer),
            [Off, Classic, Accurate, Accurate, Accurate, Accurate, Accurate, Off]
        );
        let syn = |field| agreed(&segment(Flags::SYN | flags(field), 0, Ecn::NotEct));
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 6, 7].map(syn),
            [Off, Accurate, Accurate, Classic, Accurate, Accurate, Accurate, Accurate]
        );
    }

    /// The count starts with 5 and goes on over 7. The ACK of the SYN-ACK tells how that arrived, unless it has data.
    #[test]
    fn marks_are_counted() {
        let syn_ack = |ecn| segment(Flags::SYN | Flags::ACK, 0, ecn);
        let mut counted = Counted::since(&syn_ack(Ecn::Ect0));
        assert_eq!([counted.flags(true), counted.flags(true)].map(field), [0b100, 5]);
        let mut with_data = Counted::since(&syn_ack(Ecn::Ce));
        assert_eq!([with_data.flags(false), with_data.flags(true)].map(field), [6, 6], "a marked SYN-ACK counts");
        for expected in [6, 7, 0, 1] {
            counted.take(&segment(Flags::ACK, 1000, Ecn::Ce));
            counted.take(&segment(Flags::ACK, 1000, Ecn::Ect1));
            assert_eq!(field(counted.flags(true)), expected);
        }
    }

    /// RFC 9768 §3.2.2.5.1.
    #[test]
    fn marks_are_acknowledged_at_once() {
        let mut counted = Counted::default();
        let mut take = |len, ecn| counted.take(&segment(Flags::ACK, len, ecn));
        assert_eq!([Ecn::Ect1, Ecn::Ce, Ecn::Ce, Ecn::Ect1].map(|ecn| take(1000, ecn)), [false, true, true, false]);
        counted.flags(true);
        let mut take = |len, ecn| counted.take(&segment(Flags::ACK, len, ecn));
        assert_eq!([Ecn::Ce, Ecn::Ce, Ecn::Ce].map(|ecn| take(0, ecn)), [false, false, true], "bare ACKs");
    }

    /// The sender takes the differences, also over 7. An ACK of 8 packets or more may hide a cycle: 10 packets and a difference of 1
    /// are 9 marks.
    #[test]
    fn the_sender_keeps_count() {
        let mut heard = Heard::new(false);
        let marks = [5, 6, 0, 0, 7].map(|field| heard.take(&ack(field), 2000, 1000));
        assert_eq!(marks, [0, 1, 2, 0, 7].map(told));
        assert_eq!(heard.take(&ack(0), 10_000, 1000), told(9));
        assert_eq!(heard.take(&ack(1), 0, 1000), told(0), "an ACK that was overtaken");
        let mut joined = Heard::new(false);
        assert_eq!(joined.take(&ack(6), 10_000, 1000), told(1), "ACKs that always cover 10 packets");
    }

    /// RFC 9768 §3.2.2.1, table 4: a zero at the end of a passive opening means that the field is not carried; §3.2.2.4: so does a
    /// zero right after it.
    #[test]
    fn a_zeroed_field_ends_ecn() {
        assert_eq!(Heard::new(true).take(&ack(0), 0, 1000), MarkReport::Zeroed);
        assert_eq!(Heard::new(false).take(&ack(0), 1000, 1000), MarkReport::Zeroed);
        let mut heard = Heard::new(true);
        assert_eq!(
            [0b110, 7].map(|field| heard.take(&ack(field), 1000, 1000)),
            [MarkReport::Mangled, told(1)],
            "CE on the SYN-ACK makes it 6"
        );
        let mut with_data = Heard::new(true);
        assert_eq!(with_data.take(&segment(Flags::ACK | flags(5), 1000, Ecn::NotEct), 1000, 1000), told(0));
    }

    /// RFC 9768 §3.2.2.3: neither our SYN nor our SYN-ACK is ECT, so nobody may tell that it came as such.
    #[test]
    fn mangled_handshakes_are_noticed() {
        let arrived = [0b010, 0b011, 0b100, 0b110, 0b101];
        assert_eq!(arrived.map(|field| Heard::new(false).take_syn_ack(&ack(field))), [true, false, false, false, true]);
        let told = arrived.map(|field| Heard::new(true).take(&ack(field), 0, 1000) == MarkReport::Mangled);
        assert_eq!(told, [false, true, true, true, false]);
    }

    /// RFC 9768 §A.2.2's examples, with an MSS of 1460: the field tells of 0, 2 and 7 marks where 8, 10 and 15 would fit.
    #[test]
    fn bytes_tell_whether_the_field_has_cycled() {
        let marks = |field: u64, covered: u64, bytes: u32| {
            let mut heard = Heard::new(false);
            let mut ack = ack(((FIRST + field) % CYCLE) as u8);
            assert!(ack.set_marked_bytes(&MarkedOrder::Ect0First.first(2, 1, bytes, 1)));
            (heard.is_first, heard.average) = (false, Some(64));
            heard.take(&ack, covered * 1460, 1460)
        };
        let expected = |packets, bytes| MarkReport::Marks { packets, bytes };
        assert_eq!(marks(0, 8, 1460), expected(8, 1460));
        assert_eq!(marks(2, 10, 1460), expected(2, 1460));
        assert_eq!(marks(7, 15, 10_200), expected(7, 10_200));
        assert_eq!(marks(0, 1, 1460), MarkReport::Mangled, "bytes without a packet");
    }

    /// Where an ACK had no room for the option, its packets stand for their bytes; the next option does not count them again.
    #[test]
    fn bytes_are_reported_once() {
        let mut heard = Heard::new(false);
        assert_eq!(heard.take(&ack(7), 4000, 1000), told(2));
        let mut later = ack(7);
        assert!(later.set_marked_bytes(&MarkedOrder::Ect0First.first(2, 1, 1900, 1)));
        assert_eq!(heard.take(&later, 4000, 1000), told(0));
        let mut last = ack(0);
        assert!(last.set_marked_bytes(&MarkedOrder::Ect0First.first(2, 1, 2900, 1)));
        assert_eq!(heard.take(&last, 4000, 1000), MarkReport::Marks { packets: 1, bytes: 900 });
    }

    /// An ACK that acknowledges nothing new counts if its timestamp is new.
    #[test]
    fn timestamps_tell_which_ack_is_newer() {
        let stamped = |field, value| Segment { timestamps: Some(Timestamps { value, echo: 0 }), ..ack(field) };
        let mut heard = Heard::new(false);
        let marks =
            [(5, 10), (6, 11), (7, 11), (7, 12)].map(|(field, value)| heard.take(&stamped(field, value), 0, 1000));
        assert_eq!(marks, [0, 1, 0, 1].map(told));
    }

    /// RFC 9768 §3.2.1: a marked SYN-ACK counts, once, also where it is a repetition that is marked.
    #[test]
    fn a_marked_syn_ack_counts_once() {
        let syn_ack = |ecn| segment(Flags::SYN | Flags::ACK, 0, ecn);
        for (first, again, count) in [(Ecn::Ce, Ecn::Ce, 6), (Ecn::NotEct, Ecn::Ce, 6), (Ecn::NotEct, Ecn::NotEct, 5)] {
            let mut counted = Counted::since(&syn_ack(first));
            counted.take_syn_again(&syn_ack(again));
            assert_eq!(field(counted.flags(false)), count, "{first:?} {again:?}");
        }
    }

    /// RFC 9768 §A.1: an ACK that delivers nothing is new if its timestamp is later, modulo 2^32.
    #[test]
    fn a_later_timestamp_is_news() {
        let of = |value| Segment { timestamps: Some(Timestamps { value, echo: 0 }), ..ack(6) };
        for (value, marks) in [(5, 1), (u32::MAX - 5, 0), (u32::MAX - 20, 0)] {
            let mut heard = Heard::new(false);
            assert_eq!(heard.take(&Segment { ..of(u32::MAX - 5) }, 1000, 1000), told(1));
            heard.packets = FIRST;
            assert_eq!(heard.take(&of(value), 0, 1000), told(marks), "{value}");
        }
    }
}
