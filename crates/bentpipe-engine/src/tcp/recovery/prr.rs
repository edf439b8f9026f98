//! Proportional rate reduction (RFC 9937): in recovery, the amount sent follows the amount that arrives at the
//! receiver.
//!
//! RFC 6675 halves the window at once: the sender is silent for half a round trip and then sends at the rate of ACKs.
//! PRR spreads the reduction over the round trip. If losses shrink the pipe below the target, it grows back to the
//! threshold.

use crate::tcp::config::SsthreshBase;
use crate::tcp::congestion::Window;
use crate::tcp::loss::scoreboard::Scoreboard;
use crate::tcp::sequence::SequenceSpace;

/// The state of one recovery, in bytes.
#[derive(Clone, Debug)]
pub(super) struct Prr {
    base: SsthreshBase,
    /// The window that congestion control sets for the end of the recovery.
    target: f64,
    /// The denominator of the target's share: either the bytes outstanding at the start of the recovery, without those
    /// SACKed before the ACK that started it, or the window at that time.
    recover_fs: u64,
    /// All bytes delivered before the recovery, and up to the last ACK.
    delivered_before: u64,
    delivered: u64,
    /// Bytes sent during the recovery.
    out: u64,
    /// `snd_una` and the scoreboard's losses at the last ACK.
    snd_una: u64,
    losses: u64,
}

/// All bytes delivered, by ACK or SACK; bytes delivered twice count twice if the settings say so.
fn delivered(seq: &SequenceSpace, scoreboard: &Scoreboard) -> u64 {
    seq.snd_una + scoreboard.sacked_bytes() + scoreboard.repeated_bytes()
}

impl Prr {
    /// `base` is the quantity that congestion control reduces on a loss.
    pub(super) fn new(base: SsthreshBase) -> Self {
        Prr { base, target: 0.0, recover_fs: 1, delivered_before: 0, delivered: 0, out: 0, snd_una: 0, losses: 0 }
    }

    /// Begins the recovery; `window` holds the target for its end, and was `before` until now.
    pub(super) fn enter(&mut self, before: u64, window: &mut Window, seq: &SequenceSpace, scoreboard: &Scoreboard) {
        let newly = scoreboard.newly_delivered();
        let delivered_before = delivered(seq, scoreboard).saturating_sub(newly);
        *self = Prr {
            base: self.base,
            target: window.exact(),
            //= RFC 9937 §6.1: "Bytes SACKed before entering recovery will not be marked as delivered during recovery"
            recover_fs: match self.base {
                SsthreshBase::FlightSize => {
                    let once = delivered_before.saturating_sub(scoreboard.repeated_bytes());
                    seq.snd_max.saturating_sub(once).max(1)
                }
                _ => before.max(1),
            },
            delivered_before,
            delivered: delivered_before,
            out: 0,
            snd_una: seq.snd_una,
            losses: scoreboard.losses(),
        };
        self.on_ack(window, seq, scoreboard);
    }

    /// Takes an ACK that arrives during the recovery or begins it.
    pub(super) fn on_ack(&mut self, window: &mut Window, seq: &SequenceSpace, scoreboard: &Scoreboard) {
        let now = delivered(seq, scoreboard);
        let newly = now.saturating_sub(self.delivered);
        let is_safe = seq.snd_una > self.snd_una && scoreboard.losses() == self.losses;
        (self.snd_una, self.losses) = (seq.snd_una, scoreboard.losses());
        if newly == 0 {
            return;
        }
        //= RFC 9937 §6.2: "prr_delivered += DeliveredData"
        self.delivered = now;
        let total = now - self.delivered_before;
        let pipe = scoreboard.pipe(seq.snd_una, seq.snd_max);
        let target = self.target as u64;
        let mut send = if pipe > target {
            //= RFC 9937 §6.2: "out = DIV_ROUND_UP(prr_delivered * ssthresh, RecoverFS) [...] SndCnt = out - prr_out"
            let share = (total as u128 * target as u128).div_ceil(self.recover_fs as u128) as u64;
            // Linux (`tcp_cwnd_reduction`) counts in segments, so a part of one is a whole one.
            let share =
                if self.base == SsthreshBase::FlightSize { share } else { share.next_multiple_of(window.mss()) };
            share.saturating_sub(self.out)
        } else {
            //= RFC 9937 §6.2: "SndCnt = MAX(prr_delivered - prr_out, DeliveredData) [...] SndCnt += SMSS [...] Attempt to catch up, as
            //= permitted [...] SndCnt = MIN(ssthresh - inflight, SndCnt)"
            let slow_start = if is_safe { window.mss() } else { 0 };
            (total.saturating_sub(self.out).max(newly) + slow_start).min(target - pipe)
        };
        if self.out == 0 {
            //= RFC 9937 §6.2: "Force a fast retransmit upon entering recovery"
            send = send.max(window.mss());
        }
        // With nothing outstanding, a segment may always be sent, because otherwise no ACK would arrive.
        window.set((pipe + send).max(window.mss()) as f64);
    }

    /// Records that bytes leave.
    pub(super) fn sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// Ends the recovery.
    pub(super) fn leave(&self, window: &mut Window) {
        window.set(self.target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::config::TcpConfig;

    const MSS: u64 = 1000;

    /// A flight of `count` segments, the target window in segments, and the scoreboard.
    fn flight(count: u64, target: u64) -> (SequenceSpace, Window, Scoreboard) {
        let mut seq = SequenceSpace::new(0, 1 << 30);
        seq.snd_max = count * MSS;
        let mut window = Window::new(&TcpConfig { mss: MSS as u16, ..TcpConfig::default() }, 10);
        window.set((target * MSS) as f64);
        (seq, window, Scoreboard::default())
    }

    /// Takes an ACK that SACKs segment `n`.
    fn sack(scoreboard: &mut Scoreboard, n: u64) {
        let before = scoreboard.sacked_bytes();
        scoreboard.sack(n * MSS, (n + 1) * MSS);
        scoreboard.note_delivered(scoreboard.sacked_bytes() - before);
        scoreboard.find_losses(3, 2 * MSS);
    }

    /// Sends what the window has room for. Returns the segment lengths.
    fn fill(prr: &mut Prr, seq: &mut SequenceSpace, window: &Window, scoreboard: &mut Scoreboard) -> u64 {
        let mut sent = 0;
        while window.whole() >= scoreboard.pipe(seq.snd_una, seq.snd_max) + MSS {
            match scoreboard.next_gap(seq.snd_una, true) {
                Some((start, _)) => scoreboard.retransmitted(start + MSS),
                None => seq.snd_max += MSS,
            }
            prr.sent(MSS);
            sent += 1;
        }
        sent
    }

    /// RFC 9937 §6.2 with one loss in 20 and a target of half the window: the retransmission leaves at once, and then one
    /// segment for every two that arrive. 17 ACKs after the third bring ceil(20 * 10 / 20) = 10 segments in all, never
    /// two at once.
    #[test]
    fn a_segment_leaves_for_two_that_arrive() {
        let (mut seq, mut window, mut scoreboard) = flight(20, 10);
        let mut prr = Prr::new(SsthreshBase::FlightSize);
        (1..=3).for_each(|n| sack(&mut scoreboard, n));
        prr.enter(0, &mut window, &seq, &scoreboard);
        let mut sent = vec![fill(&mut prr, &mut seq, &window, &mut scoreboard)];
        for n in 4..20 {
            sack(&mut scoreboard, n);
            prr.on_ack(&mut window, &seq, &scoreboard);
            sent.push(fill(&mut prr, &mut seq, &window, &mut scoreboard));
        }
        assert!(sent[0] == 1 && sent.iter().all(|&count| count <= 1), "{sent:?}");
        // Eighteenths of 10 segments, rounded up to a byte: with the fourth of them that is delivered they are 2.2
        // segments, with the sixth 3.3, with the eighth 4.4 and with the ninth 5.
        assert_eq!(sent[..9], [1, 0, 0, 1, 0, 1, 0, 1, 1]);
        // RecoverFS is 18: two segments were SACKed before the ACK that began the recovery. By now 17 of these are
        // delivered.
        assert_eq!(sent.iter().sum::<u64>(), (17 * 10u64).div_ceil(18));
        prr.leave(&mut window);
        assert_eq!(window.whole(), 10 * MSS);
    }

    /// Linux counts in segments: with one loss in a window of 15 and a target of 7, the shares after n segments are 7n / 15, rounded up, so
    /// a segment leaves with those that exceed a whole number.
    #[test]
    fn linux_sends_a_segment_with_the_first_part_of_it() {
        let (mut seq, mut window, mut scoreboard) = flight(15, 7);
        let mut prr = Prr::new(SsthreshBase::Window);
        (1..=3).for_each(|n| sack(&mut scoreboard, n));
        prr.enter(15 * MSS, &mut window, &seq, &scoreboard);
        let mut sent = vec![fill(&mut prr, &mut seq, &window, &mut scoreboard)];
        for n in 4..8 {
            sack(&mut scoreboard, n);
            prr.on_ack(&mut window, &seq, &scoreboard);
            sent.push(fill(&mut prr, &mut seq, &window, &mut scoreboard));
        }
        // 7/15, 14/15, 21/15, 28/15, 35/15: one, one, two, two, three.
        assert_eq!(sent, [1, 0, 1, 0, 1]);
    }

    /// RFC 9937 §6.2: when most of a flight is lost, the pipe falls below the threshold. The sender then sends as much as
    /// arrives, plus one segment for each ACK that advances without a new loss.
    #[test]
    fn after_heavy_loss_it_grows_back_to_the_threshold() {
        let (mut seq, mut window, mut scoreboard) = flight(40, 28);
        let mut prr = Prr::new(SsthreshBase::FlightSize);
        // Only the last four of 40 arrive.
        (36..39).for_each(|n| sack(&mut scoreboard, n));
        prr.enter(0, &mut window, &seq, &scoreboard);
        assert_eq!(fill(&mut prr, &mut seq, &window, &mut scoreboard), 1);
        sack(&mut scoreboard, 39);
        prr.on_ack(&mut window, &seq, &scoreboard);
        assert_eq!(fill(&mut prr, &mut seq, &window, &mut scoreboard), 1, "as much as arrived");
        for n in 1..4 {
            seq.snd_una = n * MSS;
            scoreboard.advance(n * MSS);
            prr.on_ack(&mut window, &seq, &scoreboard);
            assert_eq!(fill(&mut prr, &mut seq, &window, &mut scoreboard), 2, "one more");
        }
    }

    /// RFC 9937 §6.2, PRR-CRB: an ACK that advances but shows more losses allows as much as has arrived, without a segment more. Seven
    /// segments have arrived, and one has left.
    #[test]
    fn new_losses_are_no_good_progress() {
        let (mut seq, mut window, mut scoreboard) = flight(40, 28);
        let mut prr = Prr::new(SsthreshBase::FlightSize);
        (10..13).for_each(|n| sack(&mut scoreboard, n));
        prr.enter(0, &mut window, &seq, &scoreboard);
        // Two of the three were SACKed before, so one segment has been delivered.
        prr.sent(MSS);
        seq.snd_una = MSS;
        scoreboard.advance(MSS);
        let losses = scoreboard.losses();
        (36..39).for_each(|n| sack(&mut scoreboard, n));
        assert!(scoreboard.losses() > losses);
        prr.on_ack(&mut window, &seq, &scoreboard);
        let pipe = scoreboard.pipe(seq.snd_una, seq.snd_max);
        // Delivered: 12, then 0 and 36 to 38; one is out.
        assert!(pipe < 20 * MSS && window.whole() == pipe + 4 * MSS, "{pipe} {}", window.whole());
    }

    /// With nothing in flight, a segment may be sent, however little has arrived.
    #[test]
    fn an_empty_pipe_takes_a_segment() {
        let (seq, mut window, mut scoreboard) = flight(10, 5);
        let mut prr = Prr::new(SsthreshBase::FlightSize);
        (7..10).for_each(|n| sack(&mut scoreboard, n));
        prr.enter(0, &mut window, &seq, &scoreboard);
        prr.sent(20 * MSS);
        // A hundred bytes more arrive, and all else is lost.
        scoreboard.sack(7 * MSS - 100, 7 * MSS);
        prr.on_ack(&mut window, &seq, &scoreboard);
        assert_eq!((scoreboard.pipe(seq.snd_una, seq.snd_max), window.whole()), (0, MSS));
    }

    /// RFC 9937 §6.2: MAX(prr_delivered - prr_out, DeliveredData): with the pipe below the threshold, what has arrived without an answer is
    /// answered later. One segment counts when the recovery begins, and one leaves. Of four more that arrive, the third and the fourth are
    /// answered: with three segments, and with one.
    #[test]
    fn what_was_not_sent_is_sent_later() {
        let (mut seq, mut window, mut scoreboard) = flight(40, 28);
        let mut prr = Prr::new(SsthreshBase::FlightSize);
        (33..36).for_each(|n| sack(&mut scoreboard, n));
        prr.enter(0, &mut window, &seq, &scoreboard);
        prr.sent(MSS);
        let mut sent = Vec::new();
        for (n, sends) in [(36, false), (37, false), (38, true), (39, true)] {
            sack(&mut scoreboard, n);
            prr.on_ack(&mut window, &seq, &scoreboard);
            if sends {
                sent.push(fill(&mut prr, &mut seq, &window, &mut scoreboard));
            }
        }
        assert_eq!(sent, [3, 1]);
    }

    /// RFC 9937 §6.2: an ACK is safe if it advances. One that only SACKs allows what it delivers, also after one that has advanced.
    #[test]
    fn only_an_ack_that_advances_is_safe() {
        let (mut seq, mut window, mut scoreboard) = flight(40, 28);
        let mut prr = Prr::new(SsthreshBase::FlightSize);
        (30..33).for_each(|n| sack(&mut scoreboard, n));
        prr.enter(0, &mut window, &seq, &scoreboard);
        prr.sent(MSS);
        seq.snd_una = MSS;
        scoreboard.advance(MSS);
        prr.on_ack(&mut window, &seq, &scoreboard);
        let room = |window: &Window, scoreboard: &Scoreboard| window.whole() - scoreboard.pipe(MSS, 40 * MSS);
        assert_eq!(room(&window, &scoreboard), 2 * MSS);
        prr.sent(2 * MSS);
        sack(&mut scoreboard, 33);
        prr.on_ack(&mut window, &seq, &scoreboard);
        assert_eq!(room(&window, &scoreboard), MSS);
    }
}
