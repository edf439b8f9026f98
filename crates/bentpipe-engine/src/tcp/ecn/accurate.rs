//! Accurate ECN (RFC 9768): three flags of every segment, together the field ACE, count the packets that came marked.
//!
//! The receiver puts the lowest three bits of its count (r.cep) into the field; the sender keeps its own (s.cep) up to date by
//! them. In the handshake the field negotiates, and tells how the other SYN arrived. The options with counts of bytes are not
//! sent, and skipped when they come: RFC 9768 §3.2.3 leaves them out where a sender does not need them.

use super::EcnMode;
use crate::tcp::segment::{Flags, Segment};
use crate::wire::ecn::Ecn;

/// Values of the field.
const CYCLE: u64 = 8;
/// r.cep and s.cep at the start (RFC 9768 §3.2.1).
const FIRST: u64 = 5;
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

/// How the field tells in the handshake what another SYN arrived with (RFC 9768 §3.1.1, table 2, and §3.2.2.1, table 3).
fn handshake(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// What an end that knows accurate ECN agrees on by the peer's SYN or SYN-ACK.
//= RFC 9768 §3.1.1, table 2; §3.1.3: a SYN or SYN-ACK with a field of no meaning yet is one of accurate ECN
pub(super) fn agreed(syn: &Segment) -> EcnMode {
    match (syn.flags.has(Flags::ACK), field(syn.flags)) {
        // In a SYN-ACK: of a peer without ECN, and of one that sends the flags of our SYN back.
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
    /// The field that the peer's SYN arrived with.
    syn: Ecn,
    /// The first segment after a SYN-ACK tells how that arrived.
    tells: bool,
    /// The last segment with data was marked.
    was_marked: bool,
    /// Marks since the last segment sent.
    untold: u32,
}

impl Default for Counted {
    fn default() -> Self {
        Counted { packets: FIRST, syn: Ecn::NotEct, tells: false, was_marked: false, untold: 0 }
    }
}

impl Counted {
    /// Nothing counted yet but this SYN or SYN-ACK.
    pub(super) fn since(syn: &Segment) -> Self {
        //= RFC 9768 §3.2.1: a marked SYN-ACK counts, a marked SYN does not
        let tells = syn.flags.has(Flags::ACK);
        let marked = tells && syn.ecn == Ecn::Ce;
        Counted { packets: FIRST + u64::from(marked), syn: syn.ecn, tells, ..Counted::default() }
    }

    /// Takes an acceptable segment. Returns true if it is to be acknowledged at once.
    //= RFC 9768 §3.2.2.5.1: at the first mark after none, and at the second since the last ACK; at the third where there is no data
    pub(super) fn take(&mut self, segment: &Segment) -> bool {
        let marked = segment.ecn == Ecn::Ce;
        self.packets += u64::from(marked);
        self.untold += u32::from(marked);
        if segment.len == 0 {
            return marked && self.untold >= 3;
        }
        let changes = marked && !self.was_marked;
        self.was_marked = marked;
        changes || marked && self.untold >= 2
    }

    pub(super) fn flags_of_syn_ack(&self) -> Flags {
        flags(handshake(self.syn))
    }

    /// The flags of a segment that is sent now.
    //= RFC 9768 §3.2.2.1: the ACK of a SYN-ACK tells how that arrived if it has neither data nor SACK blocks
    pub(super) fn flags(&mut self, bare: bool) -> Flags {
        self.untold = 0;
        if std::mem::take(&mut self.tells) && bare {
            return flags(handshake(self.syn));
        }
        flags((self.packets % CYCLE) as u8)
    }
}

/// The sender's count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    /// s.cep.
    packets: u64,
    /// The next ACK ends a passive opening: it tells how our SYN-ACK arrived.
    handshake: bool,
}

impl Heard {
    pub(super) fn new(handshake: bool) -> Self {
        Heard { packets: FIRST, handshake }
    }

    /// The marks that an ACK tells of besides those known; it acknowledges `packets` more. `None`: the field does not arrive, and
    /// nothing may be ECT from now on.
    pub(super) fn count(&mut self, segment: &Segment, packets: u64) -> Option<u64> {
        let field = field(segment.flags);
        if std::mem::take(&mut self.handshake) && segment.len == 0 && segment.sack.is_empty() {
            //= RFC 9768 §3.2.2.1, table 4
            match field {
                0b000 => return None,
                0b110 => self.packets += 1,
                _ => {}
            }
            // Our SYN-ACK is not ECT: a mark of it says nothing about the window for data.
            return Some(0);
        }
        let least = (u64::from(field) + CYCLE - self.packets % CYCLE) % CYCLE;
        //= RFC 9768 §A.2.1: where the field may have cycled since the last ACK that arrived, as many as fit
        let marks = if packets < CYCLE { least } else { packets - (packets - least) % CYCLE };
        self.packets += marks;
        Some(marks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(flags: Flags, len: u16, ecn: Ecn) -> Segment {
        Segment { len, ecn, ..Segment::new(flags) }
    }

    /// An ACK with this field.
    fn ack(field: u8) -> Segment {
        segment(Flags::ACK | flags(field), 0, Ecn::NotEct)
    }

    /// RFC 9768 §3.1.1, table 2: the SYN-ACKs of peers with accurate ECN, with RFC 3168, without ECN, and of one that copies flags.
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
        let marks = [5, 6, 0, 0, 7].map(|field| heard.count(&ack(field), 2));
        assert_eq!(marks, [0, 1, 2, 0, 7].map(Some));
        assert_eq!(heard.count(&ack(0), 10), Some(9));
    }

    /// RFC 9768 §3.2.2.1, table 4: a zero at the end of a passive opening means that the field is not carried.
    #[test]
    fn a_zeroed_field_ends_ecn() {
        assert_eq!(Heard::new(true).count(&ack(0), 0), None);
        let mut heard = Heard::new(true);
        assert_eq!(
            [0b110, 7].map(|field| heard.count(&ack(field), 1)),
            [Some(0), Some(1)],
            "CE on the SYN-ACK makes it 6"
        );
        let mut with_data = Heard::new(true);
        assert_eq!(with_data.count(&segment(Flags::ACK | flags(5), 1000, Ecn::NotEct), 0), Some(0));
    }
}
