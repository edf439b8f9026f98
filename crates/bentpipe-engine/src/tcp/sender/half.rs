//! TCP's sender as the sending half of a connection.

use super::Sender;
use crate::machine::Context;
use crate::probe::Probe;
use crate::tcp::abort::Abort;
use crate::tcp::departures::{Departs, RepairKind};
use crate::tcp::ecn::{EcnMode, EcnResponse};
use crate::tcp::recovery::Phase;
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::sending::{Half, Protocol, SenderCounters};
use crate::tcp::sequence::SequenceSpace;
use crate::tcp::span::Span;
use crate::tcp::startup;
use crate::units::{Duration, Time};
use crate::wire::ecn::Ecn;

impl Half for Sender {
    const PROTOCOL: Protocol = Protocol::Tcp;

    #[inline(always)]
    fn sequence(&self) -> &SequenceSpace {
        &self.seq
    }

    #[inline(always)]
    fn sequence_mut(&mut self) -> &mut SequenceSpace {
        &mut self.seq
    }

    fn mss(&self) -> u16 {
        self.mss
    }

    fn cwnd(&self) -> u64 {
        self.congestion.window.cwnd()
    }

    fn ssthresh(&self) -> u64 {
        self.congestion.window.ssthresh()
    }

    fn srtt(&self) -> Option<Duration> {
        self.timer.rtt.srtt()
    }

    fn latest_rtt(&self) -> Option<Duration> {
        self.loss.scoreboard.latest_rtt().or_else(|| self.srtt())
    }

    fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    fn room(&self) -> u64 {
        self.send_buffer.as_ref().map_or(u64::MAX, |buffer| buffer.room(&self.seq, self.full().into()))
    }

    fn room_in_piece(&self) -> u64 {
        let buffer = self.send_buffer.as_ref();
        buffer.map_or(u64::MAX, |buffer| buffer.room_in_piece(&self.seq, self.full().into()))
    }

    fn wait_for_room(&mut self) {
        if let Some(buffer) = &mut self.send_buffer {
            buffer.wait(self.seq.data_end);
        }
    }

    #[inline(always)]
    fn look_for_room(&mut self, now: Time) {
        if self.send_buffer.as_ref().is_some_and(|buffer| buffer.may_grow()) {
            self.grow_send_buffer(now);
        }
    }

    fn write(&mut self, bytes: u64) {
        self.seq.data_end += bytes;
        let full = self.full();
        if let Some(buffer) = &mut self.send_buffer {
            buffer.on_write(&self.seq, bytes, full.into());
        }
        self.new_event();
    }

    fn close(&mut self) {
        self.seq.fin = true;
        self.new_event();
    }

    /// If the peer offers no SACK, a SACK variant falls back to NewReno.
    fn established(&mut self, mss: u16, initial_window: u32, sack: bool) {
        if !sack && self.recovery.kind() == RepairKind::Sack {
            self.recovery.without_sack();
            self.loss.without_sack();
            self.timer.without_sack();
        }
        if mss != self.mss {
            self.set_peer_mss(mss);
        }
        let syn_lost = self.counters.timeouts > 0;
        let is_reduced = self.counters.timeouts > u64::from(self.syn_losses);
        self.congestion.restart(startup::initial_window(initial_window, is_reduced));
        if syn_lost && !self.departures.keeps_rto_of_syn() {
            self.timer.rtt.after_lost_syn();
        }
        self.timer.rtt.after_handshake(Duration::from_micros(self.expected_rtt.into()));
        self.is_open = true;
        if let Some(buffer) = &mut self.send_buffer {
            // `bbr_sndbuf_expand`
            buffer.begin(mss, if self.congestion.properties().sets_rate { 3 } else { 2 });
        }
        self.congestion.note_round_trip(0, || self.timer.rtt.srtt());
        self.recovery.open();
        self.timer.end_repair();
        self.new_event();
        self.is_simple = self.has_no_extra_parts();
    }

    fn use_ecn(&mut self, mode: EcnMode, handshake: bool, control: bool) {
        self.ecn = EcnResponse::new(mode, self.congestion.properties().is_scalable, handshake, control);
    }

    fn take_syn_ack(&mut self, segment: &Segment) {
        self.ecn.take_syn_ack(segment);
    }

    fn send_not_ect(&mut self) {
        self.ecn.send_not_ect();
    }

    fn ect_of_control(&self) -> Ecn {
        self.ecn.ect_of_control()
    }

    fn marks_of(&mut self, span: &Span) -> (Ecn, Flags) {
        Sender::marks_of(self, span)
    }

    fn set_peer_mss(&mut self, mss: u16) {
        self.mss = mss;
        self.congestion.window.set_mss(mss);
        if let Some(rack) = self.loss.scoreboard.rack() {
            rack.set_full(mss);
        }
    }

    fn resend_syn(&mut self) {
        self.seq.snd_nxt = 0;
    }

    fn relisten(&mut self) {
        self.seq.forget_peer();
        self.timer.reset();
        self.timer.rtt.reset_backoff();
        // A later SYN opens another connection, whose SYN-ACK repairs nothing.
        self.recovery.open();
        self.counters.timeouts = 0;
    }

    #[inline(always)]
    fn update_window(&mut self, segment: &Segment) -> bool {
        let Some(changed) = self.seq.peer.update(self.seq.snd_una, segment) else { return false };
        if self.seq.peer.now > 0 && self.persist.stop() {
            // The probe's byte is retransmitted as part of a full segment.
            self.seq.snd_nxt = self.seq.snd_una;
        }
        changed
    }

    #[inline(always)]
    fn on_ack<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        segment: &Segment,
        window_changed: bool,
        sample: Option<Duration>,
    ) {
        if self.ecn.hears(segment.flags) {
            return self.take_echo(cx, segment, window_changed, sample);
        }
        self.take_ack(cx, segment, window_changed, sample);
    }

    #[inline(always)]
    fn take_ordinary_ack<P: Probe>(
        &mut self,
        cx: &mut Context<'_, P>,
        segment: &Segment,
        sample: Option<Duration>,
    ) -> bool {
        let is_simple = self.is_simple && !self.ecn.hears(segment.flags) && !self.congestion.window.in_slow_start();
        if is_simple {
            self.take_simple_ack(cx, segment.ack, sample);
        }
        is_simple
    }

    fn on_overtaken_ack<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) {
        self.take_overtaken(cx, segment);
    }

    #[inline(always)]
    fn is_calm(&self) -> bool {
        self.recovery.phase() == Phase::Open
    }

    /// The part of [`Sender::take_ack`] that applies here.
    #[inline(always)]
    fn on_ack_beside_data(&mut self, rests: bool) {
        self.counters.acks += 1;
        if !rests {
            self.new_event();
        }
        if let Some(rack) = self.loss.scoreboard.rack() {
            rack.begin_ack();
        }
    }

    #[inline(always)]
    fn deadline(&self) -> Time {
        let by_time = self.tail.deadline().min(self.loss.scoreboard.deadline());
        let timers = self.timer.deadline().min(self.persist.deadline()).min(by_time);
        if self.congestion.pacing_rate().is_some() { timers.min(self.pacer.deadline()) } else { timers }
    }

    fn on_time<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Result<(), Abort> {
        if self.pacer.on_time(cx.now) {
            self.new_event();
        }
        if self.persist.deadline() <= cx.now {
            self.on_probe_time(cx.now)?;
        }
        self.on_time_by_rack(cx);
        if self.timer.deadline() <= cx.now {
            self.on_timeout(cx)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn next(&mut self, now: Time, reserved: u16) -> Option<Span> {
        self.reserved = reserved;
        let rate = self.congestion.pacing_rate();
        if rate.is_some() && !self.pacer.may_send(now) {
            return None;
        }
        let span = if self.is_ordinary() { self.next_ordinary(now) } else { self.next_in_need(now) };
        if span.is_none() && rate.is_some() {
            self.note_application_limit();
        }
        let span = span?;
        // The segment may have changed the rate if it is the first after a pause.
        if let Some(rate) = self.congestion.pacing_rate() {
            self.pacer.sent(now, span.len, rate);
        }
        Some(span)
    }

    #[inline(always)]
    fn window_probe(&mut self) -> Option<Span> {
        if self.persist.take_due() { self.due_probe() } else { None }
    }

    fn memory(&self) -> usize {
        self.loss.scoreboard.memory() + self.send_buffer.as_ref().map_or(0, |buffer| buffer.heap())
    }

    fn check(&self) {
        debug_assert!(
            self.congestion.window.is_sound(),
            "the congestion control left no segment: {:?}",
            self.congestion.window
        );
        self.seq.check();
    }
}
