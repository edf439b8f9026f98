//! F-RTO: was a retransmission timeout spurious? (RFC 5682 §2.1, the basic algorithm.)
//!
//! After the timeout's retransmission, an ACK that advances is answered with new data instead of more retransmissions.
//! If the next ACK also advances, the segments were late, not lost.

/// The verdict on an ACK after the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum FrtoVerdict {
    /// No test is running, or it is decided: recover as usual.
    Conventional,
    /// Send up to two new segments and no retransmission.
    SendNew,
    /// The timeout was spurious: restore these values.
    Spurious {
        /// Threshold before the timeout.
        ssthresh: u64,
        /// Bytes outstanding before the timeout.
        flight: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Off,
    /// The timeout's retransmission was sent; no ACK yet.
    First,
    /// New segments were sent.
    Second,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Frto {
    enabled: bool,
    stage: Stage,
    ssthresh: u64,
    flight: u64,
    /// Bytes retransmitted before the first ACK, from the first one not acknowledged.
    resent: u32,
    /// Number of new segments that may still be sent regardless of the congestion window, to see whether they are
    /// acknowledged before the retransmissions.
    probes: u8,
}

/// Number of new segments after the first ACK.
const PROBES: u8 = 2;

impl Frto {
    pub(in crate::tcp) fn new(enabled: bool) -> Self {
        Frto { enabled, stage: Stage::Off, ssthresh: 0, flight: 0, resent: 0, probes: 0 }
    }

    /// Starts the test at a timeout. `is_new`: the timeout is neither during a recovery nor repeated (RFC 5682 §2.1
    /// step 1).
    pub(in crate::tcp) fn on_timeout(&mut self, is_new: bool, cwnd: u64, ssthresh: u64, flight: u64) {
        self.stage = Stage::Off;
        self.probes = 0;
        if self.enabled && is_new {
            self.stage = Stage::First;
            // The maximum of window and threshold, so that the old operating point is restored (RFC 4015 §3).
            self.ssthresh = ssthresh.max(cwnd);
            (self.flight, self.resent) = (flight, 0);
        }
    }

    /// Records a retransmission that ends `bytes` after `snd_una`.
    pub(in crate::tcp) fn on_retransmitted(&mut self, bytes: u64) {
        if self.stage == Stage::First {
            self.resent = self.resent.max(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
    }

    /// True if the timeout is being tested.
    #[inline(always)]
    pub(in crate::tcp) fn is_testing(&self) -> bool {
        self.stage != Stage::Off
    }

    /// Ends the test.
    pub(in crate::tcp) fn end(&mut self) {
        (self.stage, self.probes) = (Stage::Off, 0);
    }

    /// Takes an ACK that advances from `una` to `ack`; `more`: there is data that was never sent.
    pub(in crate::tcp) fn on_new_ack(
        &mut self,
        (una, ack): (u64, u64),
        recover: Option<u64>,
        more: bool,
    ) -> FrtoVerdict {
        match self.stage {
            Stage::Off => FrtoVerdict::Conventional,
            Stage::First => {
                //= RFC 5682 §2.1 step 2a: "the acknowledgment does not acknowledge all of the data that was retransmitted in step 1"
                // The next ACK may then be of the retransmission, too.
                let is_part = ack - una < self.resent.into();
                // The retransmission filled the whole hole, or there is nothing new to test with.
                if recover.is_some_and(|recover| ack >= recover) || !more || is_part {
                    self.stage = Stage::Off;
                    return FrtoVerdict::Conventional;
                }
                self.stage = Stage::Second;
                self.probes = PROBES;
                FrtoVerdict::SendNew
            }
            Stage::Second => {
                self.stage = Stage::Off;
                FrtoVerdict::Spurious { ssthresh: self.ssthresh, flight: self.flight }
            }
        }
    }

    /// Takes a duplicate ACK: the timeout was real. Returns true if new segments were sent, so that retransmission must
    /// be resumed; otherwise it continues anyway.
    pub(in crate::tcp) fn on_duplicate_ack(&mut self) -> bool {
        core::mem::replace(&mut self.stage, Stage::Off) == Stage::Second
    }

    /// True if a new segment may be sent.
    #[inline(always)]
    pub(in crate::tcp) fn has_probe(&self) -> bool {
        self.probes > 0
    }

    /// Uses up one new segment. Returns true if one may be sent now.
    #[inline(always)]
    pub(in crate::tcp) fn take_probe(&mut self) -> bool {
        let may = self.probes > 0;
        self.probes -= may as u8;
        may
    }

    /// Cancels the new segments, because there is nothing new to send.
    pub(in crate::tcp) fn cancel_probes(&mut self) {
        self.probes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5682 §2.1, step 2: nor does an ACK of a part of what was retransmitted at the timeout, here two short segments as one.
    #[test]
    fn an_ack_of_a_part_decides_nothing() {
        for (ack, verdict) in [(19, FrtoVerdict::Conventional), (20, FrtoVerdict::SendNew)] {
            let mut frto = Frto::new(true);
            frto.on_timeout(true, 10, 20, 30);
            frto.on_retransmitted(20);
            assert_eq!(frto.on_new_ack((0, ack), Some(100), true), verdict);
            // What is sent again afterwards does not count.
            frto.on_retransmitted(90);
            assert_eq!(frto.is_testing(), verdict == FrtoVerdict::SendNew);
        }
    }

    /// RFC 5682 §2.1, step 2: an ACK of everything that was outstanding at the timeout says nothing. One that stops short of it
    /// lets two new segments leave, and the next ACK that advances shows that the timeout was spurious.
    #[test]
    fn an_ack_of_everything_decides_nothing() {
        for (ack, verdict) in [(100, FrtoVerdict::Conventional), (99, FrtoVerdict::SendNew)] {
            let mut frto = Frto::new(true);
            frto.on_timeout(true, 10, 20, 30);
            assert_eq!(frto.on_new_ack((0, ack), Some(100), true), verdict);
            let probes = [(); 3].map(|()| frto.take_probe());
            let tests = verdict == FrtoVerdict::SendNew;
            assert_eq!((probes, frto.is_testing()), ([tests, tests, false], tests));
            let spurious = FrtoVerdict::Spurious { ssthresh: 20, flight: 30 };
            let next = if tests { spurious } else { FrtoVerdict::Conventional };
            assert_eq!(frto.on_new_ack((ack, 101), Some(100), true), next);
            assert!(!frto.is_testing());
        }
    }

    /// RFC 5682 §2.1: a duplicate ACK ends the test. Only in step 3 have new segments been sent instead of retransmissions.
    #[test]
    fn a_duplicate_ack_ends_the_test() {
        for acks in [0, 1] {
            let mut frto = Frto::new(true);
            frto.on_timeout(true, 10, 20, 30);
            for _ in 0..acks {
                assert_eq!(frto.on_new_ack((0, 10), Some(100), true), FrtoVerdict::SendNew);
            }
            assert_eq!(frto.on_duplicate_ack(), acks == 1);
            assert!(!frto.is_testing());
            assert!(!frto.on_duplicate_ack());
        }
    }

    /// RFC 4015 §3: the threshold becomes the window of before the timeout if that is larger. A test that is not
    /// enabled does not run, and one without new data sends none.
    #[test]
    fn the_larger_of_window_and_threshold_is_restored() {
        let mut frto = Frto::new(true);
        frto.on_timeout(true, 40, 20, 30);
        assert_eq!(frto.on_new_ack((0, 10), Some(100), true), FrtoVerdict::SendNew);
        frto.cancel_probes();
        assert!(!frto.has_probe() && frto.is_testing());
        assert_eq!(frto.on_new_ack((10, 20), Some(100), true), FrtoVerdict::Spurious { ssthresh: 40, flight: 30 });
        let mut off = Frto::new(false);
        off.on_timeout(true, 40, 20, 30);
        assert!(!off.is_testing());
    }

    /// What an earlier timeout retransmitted does not count: the ACK of one segment is enough. A timeout in a recovery is not tested.
    #[test]
    fn each_timeout_is_its_own_test() {
        let mut frto = Frto::new(true);
        for bytes in [50, 20] {
            frto.on_timeout(true, 10, 20, 30);
            frto.on_retransmitted(bytes);
        }
        assert_eq!(frto.on_new_ack((0, 20), Some(100), true), FrtoVerdict::SendNew);
        frto.on_timeout(false, 10, 20, 30);
        assert!(!frto.is_testing() && !frto.has_probe());
    }
}
