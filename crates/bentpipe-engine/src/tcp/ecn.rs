//! Explicit congestion notification (RFC 3168 §6.1). A queue marks a packet, and the receiver echoes the mark. The
//! sender reduces its window once per window of data and announces the reduction.
//!
//! Data sent for the first time is ECT(0). SYNs, bare ACKs, retransmissions and window probes are not ECT (§6.1.1,
//! §6.1.4 to §6.1.6).
//!
//! Accurate ECN (RFC 9768) replaces the echo by counts of the marked packets (`accurate.rs`) and bytes (`bytes.rs`). It
//! is negotiated here, and falls back to RFC 3168.

mod accurate;
mod bytes;

use self::accurate::{Counted, Heard, MarkReport};
use self::bytes::Tally;
pub(in crate::tcp) use self::bytes::Wish;
use super::segment::{Flags, Segment};
use crate::wire::ecn::Ecn;
use crate::wire::tcp::MarkedBytes;

/// When an end uses ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnUse {
    /// Never.
    Off,
    /// If the peer asks for it (Linux's default).
    Accept,
    /// If the peer asks for it; accurate ECN too.
    AcceptAccurate,
    /// It asks for it, and accepts it.
    On,
    /// It asks for accurate ECN (RFC 9768) and accepts it. With a peer that knows only RFC 3168, it falls back to that.
    Accurate,
}

/// When an end that uses accurate ECN sends its option (RFC 9768 §3.2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnOption {
    /// Never.
    Off,
    /// In the handshake, and in ACKs after data that came with an ECN field (RFC 9768 §3.2.3.3).
    #[default]
    Changes,
    /// In every segment, once the peer has sent one (Linux's default).
    Always,
}

/// The form of ECN that both ends have agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnMode {
    /// None.
    #[default]
    Off,
    /// RFC 3168.
    Classic,
    /// RFC 9768.
    Accurate,
}

impl EcnUse {
    /// The ECN flags of a first SYN.
    pub(super) fn flags_of_syn(self) -> Flags {
        match self {
            EcnUse::Off | EcnUse::Accept | EcnUse::AcceptAccurate => Flags::NONE,
            EcnUse::On => Flags::ECE | Flags::CWR,
            EcnUse::Accurate => Flags::AE | Flags::ECE | Flags::CWR,
        }
    }

    /// The form of ECN in use after this SYN or SYN-ACK of the peer.
    pub(super) fn agrees(self, syn: &Segment) -> EcnMode {
        let classic = |agreed| if agreed { EcnMode::Classic } else { EcnMode::Off };
        let is_answer = syn.flags.has(Flags::ACK);
        if self == EcnUse::Accurate || self == EcnUse::AcceptAccurate && !is_answer {
            return accurate::agreed(syn);
        }
        let (echo, reduced) = (syn.flags.has(Flags::ECE), syn.flags.has(Flags::CWR));
        if is_answer {
            // A peer that returns the flags of our SYN unchanged has not understood them (§6.1.1).
            classic(self == EcnUse::On && echo && !reduced)
        } else {
            classic(self != EcnUse::Off && echo && reduced)
        }
    }
}

/// How soon a segment should be acknowledged because of its ECN field or flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// As any other.
    None,
    /// At once.
    Now,
    /// It is the first with a mark since the peer's last reduction.
    Marked,
    /// The peer has reduced its window, perhaps to a single segment.
    Reduced,
}

/// The receiver's part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EcnEcho {
    /// The form of ECN in use.
    pub(super) mode: EcnMode,
    /// RFC 3168: a mark has arrived, and the sender has not confirmed the echo yet.
    echoes: bool,
    /// RFC 9768: the counts that replace the echo.
    counted: Counted,
    tally: Tally,
    /// RFC 9768: the peer's SYN has arrived more than once.
    pub(super) has_syn_again: bool,
    /// RFC 9768: a SYN of the peer, or our SYN-ACK, had no ECN flags.
    pub(super) saw_plain_syn: bool,
    /// Marked segments: those with data or, with accurate ECN, all.
    pub(super) marks: u64,
}

impl EcnEcho {
    /// The state after the peer's SYN or SYN-ACK, from which on `mode` is used.
    pub(super) fn negotiated(mode: EcnMode, syn: &Segment, option: EcnOption) -> Self {
        let tally = Tally::since(syn, syn.flags.has(Flags::ACK), option);
        EcnEcho { mode, counted: Counted::since(syn), tally, ..EcnEcho::default() }
    }

    /// Takes a repetition of the peer's SYN or SYN-ACK.
    pub(super) fn take_syn_again(&mut self, syn: &Segment) {
        if self.mode == EcnMode::Accurate {
            self.counted.take_syn_again(syn);
            self.tally.take_syn_again(syn);
            self.has_syn_again = true;
            self.saw_plain_syn |= !syn.flags.any_of(Flags::AE | Flags::CWR | Flags::ECE);
        }
    }

    /// Records that a SYN-ACK is retransmitted, after which nothing may be ECT.
    //= RFC 9768 §3.1.5: a server may not send ECT if it has sent a SYN-ACK, or received a SYN, with none of the flags
    pub(super) fn sends_plain_syn_ack(&mut self) {
        self.saw_plain_syn |= self.mode == EcnMode::Accurate;
    }

    /// Takes an acceptable segment. Returns how soon it should be acknowledged.
    //= RFC 3168 §6.1.3: ECN-Echo is set in every ACK from a mark on, until a segment with CWR comes
    pub(super) fn take(&mut self, segment: &Segment) -> Urgency {
        if self.mode == EcnMode::Accurate {
            self.marks += u64::from(segment.ecn == Ecn::Ce);
            self.tally.take(segment);
            return if self.counted.take(segment) { Urgency::Now } else { Urgency::None };
        }
        let mut urgency = Urgency::None;
        if segment.len == 0 {
            return urgency;
        }
        if segment.flags.has(Flags::CWR) {
            self.echoes = false;
            urgency = Urgency::Reduced;
        }
        if segment.ecn == Ecn::Ce {
            if !self.echoes {
                urgency = Urgency::Marked;
            }
            self.echoes = true;
            self.marks += 1;
        }
        urgency
    }

    /// The ECN flags of a SYN-ACK.
    pub(super) fn flags_of_syn_ack(&self) -> Flags {
        match self.mode {
            EcnMode::Off => Flags::NONE,
            EcnMode::Classic => Flags::ECE,
            EcnMode::Accurate => self.counted.flags_of_syn_ack(),
        }
    }

    /// The option of a SYN-ACK.
    pub(super) fn bytes_of_syn_ack(&self) -> Option<MarkedBytes> {
        self.tally.of_syn_ack().filter(|_| self.mode == EcnMode::Accurate)
    }

    /// The counters that the option of the next segment should carry.
    #[inline(always)]
    pub(super) fn wish(&self, with_data: bool) -> Option<Wish> {
        if self.mode == EcnMode::Accurate { self.tally.wish(with_data) } else { None }
    }

    /// Takes the first `counters` counters of `wish`, which are sent now.
    pub(super) fn told(&mut self, wish: &Wish, counters: usize, with_data: bool) -> MarkedBytes {
        self.tally.told(wish, counters, with_data)
    }

    /// The ECN flags of a segment that is sent now. `bare`: it has neither data nor SACK blocks.
    pub(super) fn flags(&mut self, bare: bool) -> Flags {
        if self.mode == EcnMode::Accurate {
            return self.counted.flags(bare);
        }
        if self.echoes { Flags::ECE } else { Flags::NONE }
    }
}

/// The sender's part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EcnResponse {
    /// An ACK with one of these flags carries information about marks.
    heard_by: Flags,
    /// The ECN field of new data.
    pub(super) ect: Ecn,
    /// Echoes up to this number are ignored: they belong to the window that was already reduced.
    until: u64,
    /// The same limit for the last reduction caused by a mark.
    marked_until: u64,
    /// RFC 3168: new data announces that the window was reduced.
    announces_reductions: bool,
    /// The next new segment announces a reduction, and one of them was for a mark.
    announces: bool,
    announces_mark: bool,
    /// Bare ACKs and retransmissions are also ECT.
    marks_control: bool,
    /// RFC 9768: the marks reported so far.
    heard: Option<Heard>,
}

impl EcnResponse {
    /// Takes what a SYN-ACK reports about our SYN.
    pub(super) fn take_syn_ack(&mut self, segment: &Segment) {
        if self.heard.as_mut().is_some_and(|heard| !heard.take_syn_ack(segment)) {
            self.ect = Ecn::NotEct;
        }
    }

    /// The ECN field of a segment without new data.
    pub(super) fn ect_of_control(&self) -> Ecn {
        if self.marks_control { self.ect } else { Ecn::NotEct }
    }

    /// Sends no ECT from now on. Reported marks still count.
    pub(super) fn send_not_ect(&mut self) {
        self.ect = Ecn::NotEct;
    }

    /// The bytes that the peer has reported: ECT(0), CE, ECT(1).
    pub(super) fn bytes_told(&self) -> [u64; 3] {
        self.heard.map_or([0; 3], |heard| heard.bytes.told)
    }

    /// `scalable`: congestion control reacts to the number of marks, as ECT(1) requires (RFC 9331 §4.3). `handshake`:
    /// the next ACK ends a passive opening. `control`: with accurate ECN, all segments are ECT.
    pub(super) fn new(mode: EcnMode, scalable: bool, handshake: bool, control: bool) -> Self {
        let (heard_by, ect, heard) = match mode {
            EcnMode::Off => (Flags::NONE, Ecn::NotEct, None),
            EcnMode::Classic => (Flags::ECE, Ecn::Ect0, None),
            // Every acceptable segment carries ACK, and with it the count.
            EcnMode::Accurate if scalable => (Flags::ACK, Ecn::Ect1, Some(Heard::new(handshake))),
            EcnMode::Accurate => (Flags::ACK, Ecn::Ect0, Some(Heard::new(handshake))),
        };
        let announces_reductions = mode == EcnMode::Classic;
        let marks_control = control && mode == EcnMode::Accurate;
        EcnResponse { heard_by, ect, heard, announces_reductions, marks_control, ..EcnResponse::default() }
    }

    /// True if an ACK with these flags carries information about marks.
    #[inline(always)]
    pub(super) fn hears(&self, flags: Flags) -> bool {
        flags.any_of(self.heard_by)
    }

    /// RFC 9768: the packets and bytes that an ACK reports as marked. The ACK delivers `delivered` bytes in segments of
    /// `mss`. `None` with RFC 3168.
    pub(super) fn count(&mut self, segment: &Segment, delivered: u64, mss: u64) -> Option<(u64, u64)> {
        Some(match self.heard.as_mut()?.take(segment, delivered, mss) {
            MarkReport::Marks { packets, bytes } => (packets, bytes),
            MarkReport::Mangled => {
                self.send_not_ect();
                (0, 0)
            }
            MarkReport::Zeroed => {
                let heard = self.heard;
                *self = EcnResponse { heard, ..EcnResponse::default() };
                (0, 0)
            }
        })
    }

    /// True if an echo that acknowledges everything before `ack` calls for a reduction.
    //= RFC 3168 §6.1.2: at most once per window of data, and not for what a loss has reduced already
    pub(super) fn counts(&self, ack: u64) -> bool {
        self.heard_by != Flags::NONE && ack > self.until
    }

    /// Records a reduction for a mark or a loss, when everything before `snd_max` has been sent.
    pub(super) fn on_reduction(&mut self, snd_max: u64) {
        if self.heard_by != Flags::NONE {
            (self.until, self.announces) = (snd_max, self.announces_reductions);
        }
    }

    /// Records a reduction for a mark.
    pub(super) fn on_reduction_for_mark(&mut self, snd_max: u64) {
        self.on_reduction(snd_max);
        (self.marked_until, self.announces_mark) = (snd_max, self.announces);
    }

    /// The window is restored, because the last loss was none: its reduction is not announced any more (Linux's
    /// `tcp_ecn_withdraw_cwr`), and an echo counts unless an earlier mark has reduced the window for it.
    pub(super) fn on_restored(&mut self) {
        (self.until, self.announces) = (self.marked_until, self.announces_mark);
    }

    /// True until all data sent before the last reduction for a mark is acknowledged.
    pub(super) fn is_reducing(&self, snd_una: u64) -> bool {
        snd_una < self.marked_until
    }

    /// Everything before it was sent before the last reduction for a mark.
    pub(super) fn marked_until(&self) -> u64 {
        self.marked_until
    }

    /// True if an ACK of `ack` also acknowledges data sent after the last reduction for a mark.
    pub(super) fn is_past_mark(&self, ack: u64) -> bool {
        ack > self.marked_until
    }

    /// RFC 3168: with `all`, every ACK carries information, also those without an echo.
    pub(super) fn hear_all(&mut self, all: bool) {
        if self.announces_reductions {
            self.heard_by = if all { Flags::ACK } else { Flags::ECE };
        }
    }

    /// The CWR flag of a new segment with data. It is sent once per reduction.
    pub(super) fn flags_of_new_data(&mut self) -> Flags {
        self.announces_mark = false;
        if core::mem::take(&mut self.announces) { Flags::CWR } else { Flags::NONE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(flags: Flags, len: u16, ecn: Ecn) -> Segment {
        Segment { len, ecn, ..Segment::new(flags) }
    }

    /// RFC 3168 §6.1.1: the SYN carries both flags, the SYN-ACK only ECE.
    #[test]
    fn both_ends_must_ask() {
        let syn = |flags| segment(Flags::SYN | flags, 0, Ecn::NotEct);
        let both = Flags::ECE | Flags::CWR;
        let agrees = |ours: EcnUse, syn: &Segment| ours.agrees(syn) == EcnMode::Classic;
        let asks = [Flags::NONE, Flags::ECE, Flags::CWR, both].map(syn);
        assert_eq!(asks.map(|syn| agrees(EcnUse::On, &syn)), [false, false, false, true]);
        assert_eq!(asks.map(|syn| agrees(EcnUse::Accept, &syn)), [false, false, false, true]);
        assert_eq!(asks.map(|syn| EcnUse::Off.agrees(&syn)), [EcnMode::Off; 4]);
        let answers = [Flags::NONE, Flags::ECE, Flags::CWR, both].map(|flags| syn(flags | Flags::ACK));
        assert_eq!(answers.map(|syn| agrees(EcnUse::On, &syn)), [false, true, false, false]);
        assert_eq!(answers.map(|syn| EcnUse::Accept.agrees(&syn)), [EcnMode::Off; 4]);
        // To an end that does not know accurate ECN, a SYN that asks for it asks for RFC 3168.
        assert!(agrees(EcnUse::On, &syn(both | Flags::AE)));
    }

    /// A mark is echoed until CWR, and a segment with CWR may itself be marked.
    #[test]
    fn a_mark_is_echoed_until_the_sender_knows() {
        let mut echo = EcnEcho { mode: EcnMode::Classic, ..EcnEcho::default() };
        let mut take = |flags, len, ecn| {
            echo.take(&segment(flags, len, ecn));
            echo.flags(len == 0) == Flags::ECE
        };
        assert!(!take(Flags::ACK, 1000, Ecn::Ect0));
        assert!(take(Flags::ACK, 1000, Ecn::Ce));
        assert!(take(Flags::ACK, 1000, Ecn::Ect0));
        assert!(take(Flags::ACK | Flags::CWR, 0, Ecn::NotEct), "only data ends it");
        assert!(!take(Flags::ACK | Flags::CWR, 1000, Ecn::Ect0));
        assert!(take(Flags::ACK | Flags::CWR, 1000, Ecn::Ce));
        assert_eq!(echo.marks, 2);
    }

    /// The first mark of several asks for ACKs soon, and so does a reduction, after which a mark is again the first (Linux,
    /// `__tcp_ecn_check_ce`).
    #[test]
    fn the_first_mark_and_the_reduction_are_urgent() {
        let mut echo = EcnEcho { mode: EcnMode::Classic, ..EcnEcho::default() };
        let mut take = |flags, ecn| echo.take(&segment(Flags::ACK | flags, 1000, ecn));
        let (none, cwr) = (Flags::NONE, Flags::CWR);
        assert_eq!([take(none, Ecn::Ect0), take(none, Ecn::Ce)], [Urgency::None, Urgency::Marked]);
        assert_eq!([take(none, Ecn::Ce), take(cwr, Ecn::Ect0)], [Urgency::None, Urgency::Reduced]);
        assert_eq!([take(none, Ecn::Ce), take(cwr, Ecn::Ce)], [Urgency::Marked, Urgency::Marked]);
    }

    /// RFC 9768 §3.2.2.3: a SYN-ACK that reports another ECN field than that of our SYN, which was not ECT, forbids ECT.
    #[test]
    fn a_path_that_changes_the_syn_gets_no_ect() {
        for (flags, ect) in [(Flags::CWR, Ecn::Ect0), (Flags::AE, Ecn::NotEct)] {
            let mut response = EcnResponse::new(EcnMode::Accurate, false, false, false);
            response.take_syn_ack(&segment(Flags::SYN | Flags::ACK | flags, 0, Ecn::NotEct));
            assert_eq!(response.ect, ect, "{flags:?}");
        }
    }

    /// A reduction for a loss is taken back: echoes count again, but not those up to the last reduction for a mark.
    #[test]
    fn an_undone_reduction_is_not_announced() {
        let mut response = EcnResponse::new(EcnMode::Classic, false, false, false);
        response.on_reduction_for_mark(3000);
        for announced in [Flags::CWR, Flags::NONE] {
            response.on_reduction(5000);
            response.on_restored();
            assert_eq!([3000, 3001].map(|ack| response.counts(ack)), [false, true]);
            assert_eq!(response.flags_of_new_data(), announced, "only that of the mark");
        }
    }

    /// The window is reduced with 5000 sent: echoes up to there belong to the same window. CWR is sent once.
    #[test]
    fn a_window_is_reduced_once() {
        let mut response = EcnResponse::new(EcnMode::Classic, false, false, false);
        assert!(response.counts(1));
        response.on_reduction(5000);
        assert_eq!([1000, 5000, 5001].map(|ack| response.counts(ack)), [false, false, true]);
        assert_eq!(response.flags_of_new_data(), Flags::CWR);
        assert_eq!(response.flags_of_new_data(), Flags::NONE);
        let mut off = EcnResponse::default();
        off.on_reduction(5000);
        assert_eq!((off.counts(9000), off.flags_of_new_data()), (false, Flags::NONE));
    }
}
