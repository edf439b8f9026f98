//! Frames to the peer: which one is next, and how the peer's reports are handled.

use super::{COPY_SPAN, End, MAX_COPIES, QUANTUM, REPORT_SHARE, Tagged};
use crate::arq::{self, Report};
use crate::slacp::config::Repairs;
use crate::slacp::frame::{DATA_HEADER, Frame, PROTECTED_HEADER, REPAIR_HEADER, SYNC_LEN};
use crate::slacp::outgoing::Outgoing;
use crate::slacp::rate_control::RateSample;
use crate::slacp::transmission::{NextPacket, Sent};
use crate::units::{Time, TransmitClock};

impl End {
    pub(super) fn on_report(&mut self, now: Time, report: &Report) {
        let (outgoing, outputs) = (&mut self.outgoing, &mut self.outputs);
        let (mut arrived, mut lost) = (0, 0);
        let longest = &mut self.longest_arrived;
        self.flight.on_report(now, report, |Tagged { channel, sent, weight }, verdict| {
            let outgoing = &mut outgoing[channel as usize];
            if verdict != arq::Verdict::Lost {
                *longest = weight.max(*longest);
            }
            match verdict {
                arq::Verdict::Arrived => arrived += u64::from(weight),
                arq::Verdict::Lost => lost += u64::from(weight),
                arq::Verdict::Late => return outgoing.on_late(sent, outputs),
            }
            outgoing.judge(sent, verdict, outputs);
        });
        self.in_flight -= arrived + lost;
        let rtt = self.flight.take_sample();
        let (newest, next, in_flight) = (report.newest, self.flight.next_number(), self.in_flight);
        let sample = RateSample { arrived, lost, rtt, newest, next, in_flight };
        if let Some(rate) = self.rate_control.on_report(now, sample) {
            self.line = Some(TransmitClock::new(rate));
        }
    }

    pub(super) fn on_time(&mut self, now: Time) {
        if self.flight.deadline().is_some_and(|at| at <= now) {
            let (outgoing, outputs) = (&mut self.outgoing, &mut self.outputs);
            let heard = !self.flight.is_silent();
            let in_flight = &mut self.in_flight;
            self.flight.on_time(now, |Tagged { channel, sent, weight }, verdict| {
                debug_assert_eq!(verdict, arq::Verdict::Lost);
                *in_flight -= u64::from(weight);
                outgoing[channel as usize].judge(sent, verdict, outputs);
            });
            if heard {
                self.probe_at = now;
            }
        }
        for channel in &mut self.outgoing {
            channel.on_time(now, &mut self.outputs);
        }
        self.release_due(now);
    }

    /// True if a frame that needs an acknowledgement may be sent. While the peer is silent, only one such frame per
    /// interval may.
    fn may_ask(&self, now: Time) -> bool {
        !self.flight.is_silent() || self.probe_at <= now
    }

    pub(super) fn next_frame(&mut self, now: Time) -> Option<(Frame, Option<u32>)> {
        // On a slow line, reports could leave no room for anything else.
        if self.reports_from <= now
            && let Some(report) = self.report(now)
        {
            return Some(report);
        }
        if !self.rate_control.has_room(self.in_flight) {
            return self.report(now);
        }
        let may_ask = self.may_ask(now);
        let found = self.next_by_class(now, may_ask).or_else(|| self.report(now));
        if found.is_some() {
            return found;
        }
        self.rate_control.on_idle(self.flight.next_number());
        if may_ask && self.rate_control.owns_spare_capacity() { self.next_copy(now) } else { None }
    }

    fn report(&mut self, now: Time) -> Option<(Frame, Option<u32>)> {
        let report = self.history.report(now)?;
        self.reports += 1;
        Some((Frame::Report(report), None))
    }

    /// The next frame of the first class that has one. Once the other classes have used up their share, the last class
    /// goes first.
    fn next_by_class(&mut self, now: Time, may_ask: bool) -> Option<(Frame, Option<u32>)> {
        let last = self.classes.len() - 1;
        let others_wait = self.urgent_share.is_some() && last > 0 && self.waits(last, may_ask);
        if others_wait && self.urgent_share.is_some_and(|share| !share.is_first()) {
            let found = self.next_of_class(now, last, may_ask);
            if let (Some((frame, _)), Some(share)) = (&found, &mut self.urgent_share) {
                share.sent_other(self.overhead.on_line(self.shortcuts.weight(frame)));
                return found;
            }
        }
        for class in 0..=last {
            let found = self.next_of_class(now, class, may_ask);
            if let (Some((frame, _)), Some(share)) = (&found, &mut self.urgent_share) {
                let bytes = self.overhead.on_line(self.shortcuts.weight(frame));
                match class == last {
                    true => share.sent_other(bytes),
                    false if others_wait => share.sent_urgent(bytes),
                    false => {}
                }
            }
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// True if a class has packets to transmit or to retransmit.
    fn waits(&self, class: usize, may_ask: bool) -> bool {
        self.classes[class].0.iter().map(|&channel| &self.outgoing[channel as usize]).any(|outgoing| {
            let may_go = may_ask || outgoing.config.arq.is_none();
            may_go && outgoing.has_new(self.window) || may_ask && outgoing.has_resend()
        })
    }

    /// On an idle line, sends a copy of an unacknowledged packet, from the most urgent channel first.
    fn next_copy(&mut self, now: Time) -> Option<(Frame, Option<u32>)> {
        if self.copies_from() > now {
            return None;
        }
        for class in 0..self.classes.len() {
            for n in 0..self.classes[class].0.len() {
                let channel = self.classes[class].0[n];
                if let Some(packet) = self.outgoing[channel as usize].next_copy(now) {
                    let (count, since) = self.copied;
                    self.copied = if now < since + COPY_SPAN { (count + 1, since) } else { (1, now) };
                    return Some(self.data(now, channel, packet));
                }
            }
        }
        None
    }

    /// When copies are allowed again.
    fn copies_from(&self) -> Time {
        let (count, since) = self.copied;
        if count < MAX_COPIES { Time::ZERO } else { since + COPY_SPAN }
    }

    fn next_of_class(&mut self, now: Time, class: usize, may_ask: bool) -> Option<(Frame, Option<u32>)> {
        let (ref channels, turn) = self.classes[class];
        let count = channels.len();
        let counts = self.counts_probes || !self.flight.is_silent();
        // Frames that the peer waits for go first: a new floor, then lost packets.
        for n in 0..count {
            let channel = self.classes[class].0[n];
            let outgoing = &mut self.outgoing[channel as usize];
            if may_ask && outgoing.needs_sync() {
                let floor = outgoing.sync();
                let number = self.send(now, channel, Sent::Sync { floor }, SYNC_LEN);
                return Some((Frame::Sync { channel, number, floor }, None));
            }
            if may_ask
                && outgoing.has_resend()
                && let Some(packet) = outgoing.next_resend(now, counts)
            {
                return Some(self.data(now, channel, packet));
            }
        }
        let round_trip = self.flight.srtt();
        let is_prompt = |outgoing: &Outgoing, repairs| match repairs {
            Repairs::Prompt => true,
            Repairs::Short => round_trip.is_none_or(|span| outgoing.backlog.wait(now) < span.div_floor(4)),
            Repairs::Spare | Repairs::Idle => false,
        };
        if let Some(repair) = self.next_repair(now, class, is_prompt) {
            return Some(repair);
        }
        // New packets take turns (deficit round robin, Shreedhar and Varghese 1995).
        for step in 0..count {
            let at = (turn + step) % count;
            let channel = self.classes[class].0[at];
            let outgoing = &mut self.outgoing[channel as usize];
            let asks = outgoing.config.arq.is_some();
            if !outgoing.has_new(self.window) || asks && !may_ask {
                outgoing.deficit = 0;
                continue;
            }
            let len = outgoing.backlog.front_len().unwrap_or(0);
            while outgoing.deficit < len {
                outgoing.deficit += QUANTUM * outgoing.config.weight.max(1);
            }
            let Some(packet) = outgoing.next_new(now, &mut self.outputs) else { continue };
            outgoing.deficit = outgoing.deficit.saturating_sub(packet.len);
            let more = outgoing.backlog.front_len().is_some_and(|len| len <= outgoing.deficit);
            self.classes[class].1 = if more { at } else { (at + 1) % count };
            return Some(self.data(now, channel, packet));
        }
        // The remaining capacity of the line.
        let spare = self.next_repair(now, class, |_, repairs| repairs == Repairs::Spare);
        if spare.is_some() { spare } else { self.next_repair(now, class, |_, _| true) }
    }

    /// The next repair frame of a class, from the channels for which `turn` returns true.
    fn next_repair(
        &mut self,
        now: Time,
        class: usize,
        turn: impl Fn(&Outgoing, Repairs) -> bool,
    ) -> Option<(Frame, Option<u32>)> {
        for n in 0..self.classes[class].0.len() {
            let channel = self.classes[class].0[n];
            let outgoing = &mut self.outgoing[channel as usize];
            if outgoing.has_repair()
                && outgoing.config.fec.is_some_and(|fec| turn(outgoing, fec.repairs))
                && let Some((block, floor, sent)) = outgoing.next_repair(&mut self.outputs)
            {
                // The code works on words of 16 bits.
                let len = (block.longest + PROTECTED_HEADER).next_multiple_of(2);
                let number = self.send(now, channel, sent, REPAIR_HEADER + len);
                let (first, count, index) = (block.first, block.count, block.sent - 1);
                return Some((Frame::Repair { channel, number, first, count, index, floor, len }, None));
            }
        }
        None
    }

    fn data(&mut self, now: Time, channel: u8, packet: NextPacket) -> (Frame, Option<u32>) {
        let NextPacket { seq, behind, len, handle, floor, sent } = packet;
        let number = self.send(now, channel, sent, DATA_HEADER + len);
        (Frame::Data { channel, number, seq, behind, floor, len }, Some(handle))
    }

    fn send(&mut self, now: Time, channel: u8, sent: Sent, len: u32) -> u64 {
        if self.flight.is_silent() && self.probe_at <= now {
            self.probe_at = self.flight.probe(now);
        }
        let weight = self.overhead.on_line(len);
        self.in_flight += u64::from(weight);
        self.flight.send(now, Tagged { channel, sent, weight })
    }

    pub(super) fn occupy(&mut self, now: Time, frame: &Frame) {
        let weight = self.weight(frame);
        self.frames += 1;
        self.bytes += weight as u64;
        if let Some(line) = &mut self.line {
            let earliest = now.saturating_sub(self.catch_up);
            let begins = self.line_free.max(earliest);
            self.line_free = begins + line.transmit(self.overhead.on_line(weight));
            if let Frame::Report(_) = frame {
                self.reports_from = begins + (self.line_free - begins).saturating_mul(REPORT_SHARE);
            }
        }
    }

    /// True if something can be sent as soon as the line is free.
    fn has_something(&self, now: Time) -> bool {
        let may_ask = self.may_ask(now);
        self.history.due().is_some_and(|at| at <= now)
            || self.outgoing.iter().any(|channel| {
                let new = channel.has_new(self.window) && (may_ask || channel.config.arq.is_none());
                new || channel.has_repair() || may_ask && (channel.has_resend() || channel.needs_sync())
            })
    }

    pub(super) fn next_instant(&self, now: Time) -> Option<Time> {
        let line = (self.line_free > now && self.has_something(now)).then_some(self.line_free);
        let report = self.history.due().map(|at| at.max(self.line_free)).filter(|&at| at > now);
        let probe = (self.flight.is_silent() && self.probe_at > now).then_some(self.probe_at);
        let blocks = self.outgoing.iter().filter_map(Outgoing::deadline).min();
        let copies = self.outgoing.iter().filter_map(Outgoing::copy_at).min();
        let copies = copies.map(|at| at.max(self.line_free).max(self.copies_from()));
        let copies = copies.filter(|&at| at > now && !self.flight.is_silent());
        [line, report, self.releasing.next(), probe, blocks, copies, self.flight.deadline()].into_iter().flatten().min()
    }
}
