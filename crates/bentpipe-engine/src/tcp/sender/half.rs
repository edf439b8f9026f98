//! TCP's sender as the sending half of a connection.

use super::*;

impl Sequenced for Sender {
    #[inline(always)]
    fn sequence(&self) -> &SequenceSpace {
        &self.seq
    }

    #[inline(always)]
    fn sequence_mut(&mut self) -> &mut SequenceSpace {
        &mut self.seq
    }
}

impl SendingHalf for Sender {
    const PROTOCOL: Protocol = Protocol::Tcp;

    fn mss(&self) -> u16 {
        self.mss
    }

    fn cwnd(&self) -> u64 {
        self.window.cwnd()
    }

    fn ssthresh(&self) -> u64 {
        self.window.ssthresh()
    }

    fn srtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    fn write(&mut self, bytes: u64) {
        self.seq.data_end += bytes;
        self.new_event();
    }

    fn close(&mut self) {
        self.seq.fin = true;
        self.new_event();
    }

    /// A lost SYN starts with one segment (RFC 5681 §3.1). Without SACK from the peer a row that repairs by it falls back
    /// to NewReno.
    fn established(&mut self, mss: u16, initial_window: u32, sack: bool) {
        if !sack && matches!(self.variant.recovery, Recovery::Pipe(_)) {
            self.variant.recovery =
                Recovery::Inflate { exit: Exit::Recover, deflate: true, timer: PartialAckTimer::Impatient };
        }
        if mss != self.mss {
            self.mss = mss;
            self.window.set_mss(mss);
        }
        let syn_lost = self.counters.timeouts > 0;
        self.window.set_segments(if syn_lost { 1 } else { initial_window });
        if syn_lost && !self.ns2 {
            self.rtt.after_lost_syn();
        }
        self.open = true;
        self.phase = Phase::Open;
        self.recover = None;
        self.new_event();
    }

    fn set_peer_mss(&mut self, mss: u16) {
        self.mss = mss;
        self.window.set_mss(mss);
    }

    fn resend_syn(&mut self) {
        self.seq.snd_nxt = 0;
    }

    fn relisten(&mut self) {
        self.seq.forget_peer();
        (self.rto_at, self.timed, self.retries) = (None, None, 0);
    }

    #[inline(always)]
    fn update_window(&mut self, segment: &Segment) -> bool {
        self.take_window(segment)
    }

    #[inline(always)]
    fn on_ack<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        segment: &Segment,
        window_changed: bool,
        sample: Option<Duration>,
    ) {
        self.take_ack(cx, segment, window_changed, sample);
    }

    #[inline(always)]
    fn deadline(&self) -> Option<Time> {
        Time::earliest(self.rto_at, self.persist_at)
    }

    fn on_time<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Result<(), Abort> {
        self.run_timers(cx)
    }

    #[inline(always)]
    fn next(&mut self, now: Time, reserved: u16) -> Option<Span> {
        self.reserved = reserved;
        let span = self.choose(now)?;
        Some(self.sent(now, span))
    }

    #[inline(always)]
    fn window_probe(&mut self) -> Option<Span> {
        if core::mem::take(&mut self.probe_now) { self.due_probe() } else { None }
    }

    fn memory(&self) -> usize {
        self.scoreboard.memory()
    }

    fn check(&self) {
        debug_assert!(self.window.is_sound());
        self.seq.check();
    }
}
