//! Explicit congestion notification (RFC 3168 §6.1): a queue marks a packet, the receiver echoes the mark, the sender reduces its
//! window once per window of data and says so.
//!
//! Data that is sent for the first time is ECT(0). SYNs, bare ACKs, retransmissions and probes of a closed window are not
//! (§6.1.1, §6.1.4 to §6.1.6).

use super::segment::{Flags, Segment};
use crate::wire::ecn::Ecn;

/// Whether an end uses ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnUse {
    /// Not at all.
    Off,
    /// If the peer asks for it (Linux's default).
    Accept,
    /// It asks for it, and accepts it.
    On,
}

impl EcnUse {
    /// The flags of a first SYN.
    pub(super) fn flags_of_syn(self) -> Flags {
        if self == EcnUse::On { Flags::ECE | Flags::CWR } else { Flags::NONE }
    }

    /// True if ECN is used after this SYN or SYN-ACK of the peer.
    pub(super) fn agrees(self, syn: &Segment) -> bool {
        let (echo, reduced) = (syn.flags.has(Flags::ECE), syn.flags.has(Flags::CWR));
        if syn.flags.has(Flags::ACK) {
            // A peer that sends the flags of our SYN back has not understood them (§6.1.1).
            self == EcnUse::On && echo && !reduced
        } else {
            self != EcnUse::Off && echo && reduced
        }
    }
}

/// The receiver's part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EcnEcho {
    /// Both ends use ECN.
    pub(super) is_on: bool,
    /// A mark has come, and the sender has not said that it knows.
    echoes: bool,
    /// Segments with data that were marked.
    pub(super) marks: u64,
}

impl EcnEcho {
    /// Takes an acceptable segment.
    //= RFC 3168 §6.1.3: ECN-Echo is set in every ACK from a mark on, until a segment with CWR comes
    pub(super) fn take(&mut self, segment: &Segment) {
        if segment.len == 0 {
            return;
        }
        if segment.flags.has(Flags::CWR) {
            self.echoes = false;
        }
        if segment.ecn == Ecn::Ce {
            self.echoes = true;
            self.marks += 1;
        }
    }

    /// The flags of ECN in an ACK.
    pub(super) fn flags(&self) -> Flags {
        if self.echoes { Flags::ECE } else { Flags::NONE }
    }
}

/// The sender's part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EcnResponse {
    pub(super) is_on: bool,
    /// Echoes count again beyond this number: what was outstanding at the last reduction is acknowledged.
    until: u64,
    /// The next new segment says that the window was reduced.
    announces: bool,
}

impl EcnResponse {
    pub(super) fn new(is_on: bool) -> Self {
        EcnResponse { is_on, ..EcnResponse::default() }
    }

    /// True if an echo that acknowledges everything before `ack` asks for a reduction.
    //= RFC 3168 §6.1.2: at most once per window of data, and not for what a loss has reduced already
    pub(super) fn counts(&self, ack: u64) -> bool {
        self.is_on && ack > self.until
    }

    /// The window was reduced, for a mark or a loss, with everything before `snd_max` sent.
    pub(super) fn on_reduction(&mut self, snd_max: u64) {
        if self.is_on {
            (self.until, self.announces) = (snd_max, true);
        }
    }

    /// The CWR flag of a new segment with data, which it is sent with once.
    pub(super) fn flags_of_new_data(&mut self) -> Flags {
        if std::mem::take(&mut self.announces) { Flags::CWR } else { Flags::NONE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(flags: Flags, len: u16, ecn: Ecn) -> Segment {
        Segment { len, ecn, ..Segment::new(flags) }
    }

    /// RFC 3168 §6.1.1: the SYN has both flags, the SYN-ACK only ECE.
    #[test]
    fn both_ends_must_ask() {
        let syn = |flags| segment(Flags::SYN | flags, 0, Ecn::NotEct);
        let both = Flags::ECE | Flags::CWR;
        let asks = [Flags::NONE, Flags::ECE, Flags::CWR, both].map(syn);
        assert_eq!(asks.map(|syn| EcnUse::On.agrees(&syn)), [false, false, false, true]);
        assert_eq!(asks.map(|syn| EcnUse::Accept.agrees(&syn)), [false, false, false, true]);
        assert_eq!(asks.map(|syn| EcnUse::Off.agrees(&syn)), [false; 4]);
        let answers = [Flags::NONE, Flags::ECE, Flags::CWR, both].map(|flags| syn(flags | Flags::ACK));
        assert_eq!(answers.map(|syn| EcnUse::On.agrees(&syn)), [false, true, false, false]);
        assert_eq!(answers.map(|syn| EcnUse::Accept.agrees(&syn)), [false; 4]);
    }

    /// A mark is echoed until CWR, and a segment with CWR may itself be marked.
    #[test]
    fn a_mark_is_echoed_until_the_sender_knows() {
        let mut echo = EcnEcho { is_on: true, ..EcnEcho::default() };
        let mut take = |flags, len, ecn| {
            echo.take(&segment(flags, len, ecn));
            echo.flags() == Flags::ECE
        };
        assert!(!take(Flags::ACK, 1000, Ecn::Ect0));
        assert!(take(Flags::ACK, 1000, Ecn::Ce));
        assert!(take(Flags::ACK, 1000, Ecn::Ect0));
        assert!(take(Flags::ACK | Flags::CWR, 0, Ecn::NotEct), "only data ends it");
        assert!(!take(Flags::ACK | Flags::CWR, 1000, Ecn::Ect0));
        assert!(take(Flags::ACK | Flags::CWR, 1000, Ecn::Ce));
        assert_eq!(echo.marks, 2);
    }

    /// A reduction with 5000 sent: echoes up to there are of the same window. CWR goes out once.
    #[test]
    fn a_window_is_reduced_once() {
        let mut response = EcnResponse::new(true);
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
