//! One end of an S-LACP link: the machine.

use std::collections::VecDeque;

use super::backlog::Waiting;
use super::config::{Order, Overhead, Repairs, SlacpConfig};
use super::exchange::{Input, Output, Verdict};
use super::frame::{DATA_HEADER, Frame, PROTECTED_HEADER, REPAIR_HEADER, SYNC_LEN};
use super::incoming::{Incoming, Recovery};
use super::outgoing::{NextPacket, Outgoing, Sent};
use super::rate_control::{RateController, RateSample};
use super::releasing::{Ready, Releasing};
use super::stats::Stats;
use crate::arq::{self, Flight, History, Report, Skip, Taken};
use crate::machine::{Context, Machine, Step};
use crate::probe::Probe;
use crate::units::{Duration, Rate, Time, TransmitClock};

/// A transmission of a channel.
#[derive(Clone, Copy, Debug)]
struct Tagged {
    channel: u8,
    sent: Sent,
    /// Bytes that it took on the line.
    weight: u32,
}

/// One end.
#[derive(Clone, Debug)]
pub struct End {
    window: u32,
    weightless: bool,
    hears_damage: bool,
    line: Option<TransmitClock>,
    line_free: Time,
    rate_control: RateController,
    /// Bytes on the line without a verdict.
    in_flight: u64,
    overhead: Overhead,
    catch_up: Duration,
    outgoing: Vec<Outgoing>,
    incoming: Vec<Incoming>,
    /// Channels by priority, and whose turn it is among equals.
    classes: Vec<(Vec<u8>, usize)>,
    flight: Flight<Tagged>,
    history: History,
    /// When the next frame may go into the silence of the peer.
    probe_at: Time,
    releasing: Releasing,
    initial_rtt: Duration,
    /// Copies of the last span, and when it began.
    copied: (u32, Time),
    outputs: VecDeque<Output>,
    frames: u64,
    bytes: u64,
    reports: u64,
}

/// What a channel with weight 1 may send in its turn.
const QUANTUM: u32 = 1514;
/// Copies in a span of so much time, at most. They cost the line nothing, but each costs both ends the 2 µs of a
/// processor's time that a frame takes. 4000 a second are a hundredth of a processor, and all packets of a line of 45
/// Mbit/s.
const MAX_COPIES: u32 = 40;
const COPY_SPAN: Duration = Duration::from_millis(10);

impl End {
    /// An end that has sent and heard nothing.
    pub fn new(config: &SlacpConfig) -> Self {
        let window = config.window.min(SlacpConfig::MAX_WINDOW);
        let releasing = Releasing::new(config.release);
        let may_wait = releasing.may_wait();
        let mut priorities: Vec<u8> = config.channels.iter().map(|channel| channel.priority).collect();
        priorities.sort_unstable();
        priorities.dedup();
        let of = |priority| {
            let numbered = config.channels.iter().enumerate();
            numbered.filter(move |(_, channel)| channel.priority == priority).map(|(n, _)| n as u8).collect()
        };
        let rate_control = RateController::new(config);
        End {
            window,
            weightless: config.weightless,
            hears_damage: config.hears_damage,
            line: rate_control.rate().map(TransmitClock::new),
            line_free: Time::ZERO,
            rate_control,
            in_flight: 0,
            overhead: config.overhead,
            catch_up: config.catch_up,
            outgoing: config.channels.iter().map(|&channel| Outgoing::new(channel)).collect(),
            incoming: config.channels.iter().map(|channel| Incoming::new(channel, window, may_wait)).collect(),
            classes: priorities.into_iter().map(|priority| (of(priority), 0)).collect(),
            flight: Flight::new(config.initial_rtt, config.report_interval, config.reordering)
                .with_patience(config.patience),
            history: if config.patience > Duration::ZERO {
                History::new(config.report_interval).with_whole_reports()
            } else {
                History::new(config.report_interval)
            },
            probe_at: Time::ZERO,
            releasing,
            initial_rtt: config.initial_rtt,
            copied: (0, Time::ZERO),
            outputs: VecDeque::new(),
            frames: 0,
            bytes: 0,
            reports: 0,
        }
    }

    /// Whether a packet is here, or done.
    pub fn has(&self, channel: u8, seq: u64) -> bool {
        self.incoming.get(channel as usize).is_some_and(|incoming| incoming.order.has(seq))
    }

    /// Whether the bytes of a packet that was delivered may have to serve in computing others of its block.
    pub fn needs(&self, channel: u8, seq: u64) -> bool {
        self.incoming.get(channel as usize).is_some_and(|incoming| incoming.needs(seq))
    }

    /// Whether the block that begins with this packet waits for more frames: its symbols are to be kept. Once it does
    /// not, and [`Output::Recover`] has been answered, they are not.
    pub fn awaits(&self, channel: u8, first: u64) -> bool {
        self.incoming.get(channel as usize).is_some_and(|incoming| incoming.waits_for(first))
    }

    /// The first packet of ours that a repair frame may yet protect: its bytes and those of later ones are to be kept.
    pub fn protects_from(&self, channel: u8) -> Option<u64> {
        self.outgoing.get(channel as usize).map(Outgoing::protects_from)
    }

    /// What has been counted so far.
    pub fn stats(&self) -> Stats {
        Stats {
            channels: self.outgoing.iter().map(|channel| channel.stats).collect(),
            frames: self.frames,
            bytes: self.bytes,
            reports: self.reports,
            srtt: self.flight.srtt(),
        }
    }

    /// Packets of a channel that wait for their first transmission.
    pub fn waiting(&self, channel: u8) -> usize {
        self.outgoing.get(channel as usize).map_or(0, |outgoing| outgoing.backlog.len())
    }

    /// The rate at which frames are sent now: what the end was told, or what it came down to.
    pub fn rate(&self) -> Option<Rate> {
        self.line.as_ref().map(TransmitClock::rate)
    }

    /// Number of the next packet of a channel: with [`End::next_incoming`] the near points that 32-bit numbers of the
    /// wire are completed by.
    pub fn next_outgoing(&self, channel: u8) -> Option<u64> {
        self.outgoing.get(channel as usize).map(Outgoing::next_seq)
    }

    /// The first packet of a channel that is not done at the receiver.
    pub fn next_incoming(&self, channel: u8) -> Option<u64> {
        self.incoming.get(channel as usize).map(|incoming| incoming.order.next())
    }

    /// Number of the next transmission.
    pub fn next_number(&self) -> u64 {
        self.flight.next_number()
    }

    /// The highest number of a transmission that was heard of.
    pub fn newest_heard(&self) -> Option<u64> {
        self.history.newest()
    }

    fn on_frame(&mut self, now: Time, frame: Frame) -> Verdict {
        if let Frame::Report(report) = frame {
            self.on_report(now, &report);
            return Verdict::Accepted;
        }
        let number = frame.number().expect("all but reports have one");
        if self.history.has(number) {
            return Verdict::Refused;
        }
        // Before the frame is judged: whether what comes after a silence is grouped counts for this frame too.
        let missing = self.history.newest().map_or(0, |newest| number.saturating_sub(newest + 1));
        self.releasing.heard(now, missing, self.round_trip());
        // What arrives too early, while packets before it wait for their release, or too late for its block, is not
        // noted and so counts as lost: its sender must not think that it is done.
        let (verdict, whole) = self.take(now, &frame);
        if whole {
            self.history.on_frame(now, number);
        }
        verdict
    }

    /// Takes a frame from the line, if it is of use. Whether all of it has been noted, so that it may be reported.
    fn take(&mut self, now: Time, frame: &Frame) -> (Verdict, bool) {
        const REFUSED: (Verdict, bool) = (Verdict::Refused, false);
        match *frame {
            Frame::Data { channel, seq, behind, floor, len, .. } => {
                // First who waits for what will not come: they go before this one.
                self.skip_to(now, channel, floor.min(seq));
                let reaches = self.incoming.get(channel as usize).is_some_and(|incoming| incoming.order.reaches(seq));
                if reaches { (self.on_data(now, channel, seq, behind, len), true) } else { REFUSED }
            }
            Frame::Repair { channel, first, count, index, floor, .. } => {
                let Some(incoming) = self.incoming.get_mut(channel as usize) else { return REFUSED };
                if !incoming.takes_repair(first, count) {
                    return REFUSED;
                }
                let recovery = incoming.on_repair(first, count, index);
                let kept = recovery.is_some();
                self.recover(channel, recovery.flatten());
                let whole = self.skip_to(now, channel, floor);
                (if kept { Verdict::Kept } else { Verdict::Accepted }, whole)
            }
            Frame::Sync { channel, floor, .. } => (Verdict::Accepted, self.skip_to(now, channel, floor)),
            Frame::Report(_) => REFUSED,
        }
    }

    fn on_data(&mut self, now: Time, channel: u8, seq: u64, behind: u32, len: u32) -> Verdict {
        let Some(incoming) = self.incoming.get_mut(channel as usize) else { return Verdict::Refused };
        let (taken, recovery) = incoming.on_data(now, seq, behind, len);
        match taken {
            Taken::Passes if self.repeats(channel) && self.releasing.groups(now) => {
                self.releasing.wait(now, (channel, seq), self.round_trip());
            }
            Taken::Passes => self.pass(now, channel, seq),
            Taken::Waits => {}
            Taken::Refused => self.outgoing[channel as usize].stats.refused += 1,
        }
        self.recover(channel, recovery);
        if taken == Taken::Refused { Verdict::Accepted } else { Verdict::Kept }
    }

    fn recover(&mut self, channel: u8, recovery: Option<Recovery>) {
        let Some((first, count, missing)) = recovery else { return };
        self.outputs.extend(missing.into_iter().map(|seq| Output::Recover { channel, seq, first, count }));
    }

    /// Nothing below the floor comes any more; answers whether all of it is noted.
    fn skip_to(&mut self, now: Time, channel: u8, floor: u64) -> bool {
        let Some(incoming) = self.incoming.get_mut(channel as usize) else { return false };
        let mut freed = Vec::new();
        let (outputs, stats) = (&mut self.outputs, &mut self.outgoing[channel as usize].stats);
        let whole = incoming.skip_to(floor, |skip| match skip {
            Skip::Skipped(seq) => {
                stats.skipped += 1;
                outputs.push_back(Output::Skip { channel, seq });
            }
            Skip::Freed(seq) => freed.push(seq),
        });
        for seq in freed {
            self.release(now, channel, seq);
        }
        whole
    }

    /// A packet's turn has come as it arrived: it passes, and those behind it follow.
    fn pass(&mut self, now: Time, channel: u8, seq: u64) {
        if let Some(follower) = self.deliver(now, channel, seq) {
            self.release(now, channel, follower);
        }
    }

    /// The round trip, as far as it is known.
    fn round_trip(&self) -> Duration {
        self.flight.srtt().unwrap_or(self.initial_rtt)
    }

    /// Whether what is lost of a channel comes again, and what is behind it waits.
    fn repeats(&self, channel: u8) -> bool {
        let config = &self.outgoing[channel as usize].config;
        config.arq.is_some() && config.order != Order::None
    }

    /// A packet that has waited may pass: at its time, or at once.
    fn release(&mut self, now: Time, channel: u8, seq: u64) {
        if self.releasing.holds(now) {
            self.releasing.wait(now, (channel, seq), self.round_trip());
            return;
        }
        let mut next = Some(seq);
        while let Some(seq) = next {
            next = self.deliver(now, channel, seq);
        }
    }

    fn deliver(&mut self, now: Time, channel: u8, seq: u64) -> Option<u64> {
        let order = &mut self.incoming[channel as usize].order;
        let held = now.saturating_since(order.frame(seq).1);
        let follower = order.passed(seq);
        while let Some(freed) = order.freed() {
            self.releasing.follow((channel, freed));
        }
        let stats = &mut self.outgoing[channel as usize].stats;
        stats.delivered += 1;
        stats.held += held;
        stats.longest_hold = stats.longest_hold.max(held);
        self.outputs.push_back(Output::Deliver { channel, seq });
        follower
    }

    //= transat §5: the burst of packets after a repair should be spread
    fn release_due(&mut self, now: Time) {
        let incoming = &self.incoming;
        let length = |(channel, seq): Ready| incoming[channel as usize].order.frame(seq).0;
        if let Some((channel, seq)) = self.releasing.pop(now, length)
            && let Some(follower) = self.deliver(now, channel, seq)
        {
            self.releasing.follow((channel, follower));
        }
    }

    fn on_report(&mut self, now: Time, report: &Report) {
        let (outgoing, outputs) = (&mut self.outgoing, &mut self.outputs);
        let (mut arrived, mut lost) = (0, 0);
        self.flight.on_report(now, report, |Tagged { channel, sent, weight }, verdict| {
            *(if verdict == arq::Verdict::Lost { &mut lost } else { &mut arrived }) += u64::from(weight);
            outgoing[channel as usize].judge(sent, verdict, outputs);
        });
        self.in_flight -= arrived + lost;
        let rtt = self.flight.take_sample();
        let (newest, next, in_flight) = (report.newest, self.flight.next_number(), self.in_flight);
        let sample = RateSample { arrived, lost, rtt, newest, next, in_flight };
        if let Some(rate) = self.rate_control.on_report(now, sample) {
            self.line = Some(TransmitClock::new(rate));
        }
    }

    fn on_time(&mut self, now: Time) {
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

    /// Whether a frame that waits for an acknowledgement may go out: into silence only now and then.
    fn may_ask(&self, now: Time) -> bool {
        !self.flight.is_silent() || self.probe_at <= now
    }

    fn next_frame(&mut self, now: Time) -> Option<(Frame, Option<u32>)> {
        if let Some(report) = self.history.report(now) {
            self.reports += 1;
            return Some((Frame::Report(report), None));
        }
        if !self.rate_control.has_room(self.in_flight) {
            return None;
        }
        let may_ask = self.may_ask(now);
        for class in 0..self.classes.len() {
            let found = self.next_of_class(now, class, may_ask);
            if found.is_some() {
                return found;
            }
        }
        self.rate_control.on_idle(self.flight.next_number());
        if may_ask && self.rate_control.owns_spare_capacity() { self.next_copy(now) } else { None }
    }

    /// The line is idle: a packet without an answer goes out again, the most urgent channel's first.
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

    /// When there may be copies again.
    fn copies_from(&self) -> Time {
        let (count, since) = self.copied;
        if count < MAX_COPIES { Time::ZERO } else { since + COPY_SPAN }
    }

    fn next_of_class(&mut self, now: Time, class: usize, may_ask: bool) -> Option<(Frame, Option<u32>)> {
        let (ref channels, turn) = self.classes[class];
        let count = channels.len();
        // What the peer waits for goes first: word of a floor, then what was lost.
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
                && let Some(packet) = outgoing.next_resend()
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
        // New packets in turns (deficit round robin, Shreedhar and Varghese 1995).
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
        // What is left of the line.
        let spare = self.next_repair(now, class, |_, repairs| repairs == Repairs::Spare);
        if spare.is_some() { spare } else { self.next_repair(now, class, |_, _| true) }
    }

    /// The next repair frame of a class, among the channels whose `turn` it is.
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
                // The code's words have 16 bits.
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

    /// Bytes that a frame takes on the line: those of its wire format, or none but the packet's.
    pub fn weight(&self, frame: &Frame) -> u32 {
        match (self.weightless, frame) {
            (false, _) => frame.wire_len(),
            (true, Frame::Data { len, .. } | Frame::Repair { len, .. }) => *len,
            (true, Frame::Sync { .. } | Frame::Report(_)) => 0,
        }
    }

    fn occupy(&mut self, now: Time, frame: &Frame) {
        let weight = self.weight(frame);
        self.frames += 1;
        self.bytes += weight as u64;
        if let Some(line) = &mut self.line {
            let earliest = now.saturating_sub(self.catch_up);
            self.line_free = self.line_free.max(earliest) + line.transmit(self.overhead.on_line(weight));
        }
    }

    /// Whether anything is to be sent as soon as the line is free.
    fn has_something(&self, now: Time) -> bool {
        let may_ask = self.may_ask(now);
        self.history.due().is_some_and(|at| at <= now)
            || self.outgoing.iter().any(|channel| {
                let new = channel.has_new(self.window) && (may_ask || channel.config.arq.is_none());
                new || channel.has_repair() || may_ask && (channel.has_resend() || channel.needs_sync())
            })
    }

    fn next_instant(&self, now: Time) -> Option<Time> {
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

impl Machine for End {
    type Input = Input;
    type Output = Output;
    type Verdict = Verdict;

    fn handle<P: Probe>(&mut self, cx: &mut Context<'_, P>, input: Input) -> Verdict {
        match input {
            Input::Packet { channel, handle, len, flow, acknowledges } => {
                let channel = (channel as usize).min(self.outgoing.len() - 1);
                self.outgoing[channel]
                    .push(Waiting { handle, len, flow, since: cx.now, acknowledges }, &mut self.outputs);
            }
            Input::Frame(frame) => return self.on_frame(cx.now, frame),
            Input::Damaged { number } if self.hears_damage => self.history.on_damaged(cx.now, number),
            Input::Damaged { .. } => {}
            Input::Recovered { channel, seq, behind, len } => {
                if (channel as usize) < self.incoming.len() && !self.has(channel, seq) {
                    self.outgoing[channel as usize].stats.recovered += 1;
                    return self.on_data(cx.now, channel, seq, behind, len);
                }
                return Verdict::Refused;
            }
        }
        Verdict::Accepted
    }

    fn poll<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Step<Output> {
        if let Some(output) = self.outputs.pop_front() {
            return Step::Do(output);
        }
        self.on_time(cx.now);
        if let Some(output) = self.outputs.pop_front() {
            return Step::Do(output);
        }
        if self.line_free <= cx.now
            && let Some((frame, handle)) = self.next_frame(cx.now)
        {
            self.occupy(cx.now, &frame);
            return Step::Do(Output::Transmit { frame, handle });
        }
        match self.outputs.pop_front() {
            Some(output) => Step::Do(output),
            None => Step::Wait(self.next_instant(cx.now)),
        }
    }
}

#[cfg(test)]
#[path = "end/tests.rs"]
mod tests;
