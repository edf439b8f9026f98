//! TCP's sender as the sending half of a connection.

use super::*;

impl SendingHalf for Sender {
    const PROTOCOL: Protocol = Protocol::Tcp;

    #[inline(always)]
    fn snd_una(&self) -> u64 {
        self.snd_una
    }

    #[inline(always)]
    fn snd_nxt(&self) -> u64 {
        self.snd_nxt
    }

    #[inline(always)]
    fn snd_max(&self) -> u64 {
        self.snd_max
    }

    /// SND.NXT, but what the peer expects while its window is shut, since a probe lies beyond that window, and no segment
    /// that starts there is acceptable (RFC 9293 §3.10.7.4).
    fn seq_of_bare_ack(&self) -> u64 {
        if self.peer.now == 0 { self.snd_una.max(FIRST_BYTE) } else { self.snd_max }
    }

    fn oldest_acceptable_ack(&self) -> u64 {
        self.snd_una.saturating_sub(self.peer.max)
    }

    fn written(&self) -> u64 {
        self.data_end - FIRST_BYTE
    }

    fn acknowledged(&self) -> u64 {
        self.snd_una.clamp(FIRST_BYTE, self.data_end) - FIRST_BYTE
    }

    fn is_closed(&self) -> bool {
        self.fin
    }

    fn fin_acknowledged(&self) -> bool {
        self.fin && self.snd_una > self.data_end
    }

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
        self.data_end += bytes;
        self.new_event();
    }

    fn close(&mut self) {
        self.fin = true;
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

    fn skip_syn(&mut self) {
        (self.snd_una, self.snd_nxt, self.snd_max) = (FIRST_BYTE, FIRST_BYTE, FIRST_BYTE);
    }

    fn resend_syn(&mut self) {
        self.snd_nxt = 0;
    }

    fn relisten(&mut self) {
        (self.snd_una, self.snd_nxt, self.snd_max) = (0, 0, 0);
        (self.rto_at, self.timed, self.retries) = (None, None, 0);
        self.peer = PeerWindow::open(0);
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
        debug_assert!(self.snd_una <= self.snd_nxt && self.snd_nxt <= self.snd_max.max(self.snd_nxt));
        debug_assert!(self.snd_max <= self.end().max(FIRST_BYTE));
    }
}
