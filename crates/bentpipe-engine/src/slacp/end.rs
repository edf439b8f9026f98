//! One end of an S-LACP link: the machine.

mod receiving;
mod sending;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::config::{Overhead, Probing, SlacpConfig};
use super::exchange::{Input, Output, Verdict};
use super::frame::Frame;
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::rate_control::RateController;
use super::releasing::Releasing;
use super::share::UrgentShare;
use super::shortcuts::Shortcuts;
use super::stats::Stats;
use super::transmission::Sent;
use super::waiting::Waiting;
use crate::arq::{Flight, History, trim};
use crate::machine::{Context, Machine, Step};
use crate::probe::Probe;
use crate::units::{Duration, Rate, Time, TransmitClock};
use crate::wire::slacp::Near;

/// A transmission of a channel.
#[derive(Clone, Copy, Debug)]
struct Tagged {
    channel: u8,
    sent: Sent,
    /// Its bytes on the line.
    weight: u32,
}

/// One end of an S-LACP link.
#[derive(Clone, Debug)]
pub struct End {
    window: u32,
    shortcuts: Shortcuts,
    line: Option<TransmitClock>,
    line_free: Time,
    rate_control: RateController,
    /// Bytes in flight: neither acknowledged nor lost.
    in_flight: u64,
    overhead: Overhead,
    catch_up: Duration,
    outgoing: Vec<Outgoing>,
    incoming: Vec<Incoming>,
    /// Channels by priority, and whose turn it is among those of equal priority.
    classes: Vec<(Vec<u8>, usize)>,
    /// The share of the line available to all classes except the last.
    urgent_share: Option<UrgentShare>,
    flight: Flight<Tagged>,
    history: History,
    /// When the next frame may be sent while the peer is silent.
    probe_at: Time,
    /// True if frames count as transmissions even while the peer is silent.
    counts_probes: bool,
    releasing: Releasing,
    initial_rtt: Duration,
    /// Reports before this time wait for frames that are ready to be sent.
    reports_from: Time,
    /// Number of copies sent in the current span, and when the span began.
    copied: (u32, Time),
    outputs: VecDeque<Output>,
    frames: u64,
    bytes: u64,
    reports: u64,
    /// As of [`End::take_longest_arrived`].
    longest_arrived: u32,
}

/// The quantum of a channel with weight 1, bytes.
const QUANTUM: u32 = 1514;
/// Maximum number of copies per [`COPY_SPAN`]. They only use an idle line, but each costs both ends about 2 µs of CPU.
/// 4000 per second cost 1 % of a core and cover all packets of a 45 Mbit/s line.
const MAX_COPIES: u32 = 40;
/// Maximum number of outputs that may wait for the driver when a frame is accepted. All packets of a window may become
/// deliverable at once, and a driver may bring some thousand frames before it polls.
const MAX_OUTPUTS: usize = 2 * SlacpConfig::MAX_WINDOW as usize;
const COPY_SPAN: Duration = Duration::from_millis(10);
/// Reports take at most one of this many parts of the line while other frames wait.
const REPORT_SHARE: u64 = 4;

impl End {
    /// Creates an end that has sent and received nothing.
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
        let flight = Flight::new(config.initial_rtt, config.report_interval, config.reordering);
        let min_overtaken =
            config.rate.map_or(Duration::ZERO, |rate| rate.time_for_ceil(config.reordering * u64::from(QUANTUM)));
        let flight = flight.with_patience(config.patience).with_min_overtaken(min_overtaken);
        End {
            window,
            shortcuts: config.shortcuts,
            line: rate_control.rate().map(TransmitClock::new),
            line_free: Time::ZERO,
            rate_control,
            in_flight: 0,
            overhead: config.overhead,
            catch_up: config.catch_up,
            outgoing: config.channels.iter().map(|&channel| Outgoing::new(channel, config.reordering)).collect(),
            incoming: config
                .channels
                .iter()
                .map(|channel| Incoming::new(channel, window, config.repairable, may_wait))
                .collect(),
            classes: priorities.into_iter().map(|priority| (of(priority), 0)).collect(),
            urgent_share: config.urgent_share.map(UrgentShare::new),
            flight: match config.probing {
                Probing::Doubling => flight,
                Probing::Steady(from) => flight.with_pauses(from),
            },
            history: if config.patience > Duration::ZERO {
                History::new(config.report_interval).with_whole_reports()
            } else {
                History::new(config.report_interval)
            },
            probe_at: Time::ZERO,
            counts_probes: config.probing == Probing::Doubling,
            releasing,
            initial_rtt: config.initial_rtt,
            reports_from: Time::ZERO,
            copied: (0, Time::ZERO),
            outputs: VecDeque::new(),
            frames: 0,
            bytes: 0,
            reports: 0,
            longest_arrived: 0,
        }
    }

    /// The numbers near which the numbers of the peer's frames are completed
    /// ([`wire::slacp::parse`](crate::wire::slacp::parse)).
    pub fn near(&self) -> Near<impl Fn(u8) -> Option<u64>> {
        Near {
            received: self.newest_heard().unwrap_or(0),
            next: self.next_number(),
            packet: |channel| self.next_incoming(channel),
        }
    }

    /// Bytes that a frame takes on the line.
    pub fn weight(&self, frame: &Frame) -> u32 {
        self.shortcuts.weight(frame)
    }

    /// True if a packet has arrived or was given up.
    pub fn has(&self, channel: u8, seq: u64) -> bool {
        self.incoming.get(channel as usize).is_some_and(|incoming| incoming.order.has(seq))
    }

    /// True if the bytes of a delivered packet may be needed to recover others of its block.
    pub fn needs(&self, channel: u8, seq: u64) -> bool {
        self.incoming.get(channel as usize).is_some_and(|incoming| incoming.needs(seq))
    }

    /// True if the block that begins with this packet waits for more frames. The driver then keeps its repair symbols.
    /// It may drop them once this is false and [`Output::Recover`] has been answered.
    pub fn awaits(&self, channel: u8, first: u64) -> bool {
        self.incoming.get(channel as usize).is_some_and(|incoming| incoming.waits_for(first))
    }

    /// The first sent packet that a repair frame may still protect. The driver keeps the bytes of this packet and later
    /// ones.
    pub fn protects_from(&self, channel: u8) -> Option<u64> {
        self.outgoing.get(channel as usize).map(Outgoing::protects_from)
    }

    /// The counters.
    pub fn stats(&self) -> Stats {
        Stats {
            channels: self.outgoing.iter().map(|channel| channel.stats).collect(),
            frames: self.frames,
            bytes: self.bytes,
            reports: self.reports,
            srtt: self.flight.srtt(),
        }
    }

    /// True if an output other than a frame to send is ready, such as a packet to deliver.
    pub fn has_output(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// Number of such outputs. While there are more than two windows of them, frames are refused.
    pub fn outputs(&self) -> usize {
        self.outputs.len()
    }

    /// Queue length of a channel, packets.
    pub fn waiting(&self, channel: u8) -> usize {
        self.outgoing.get(channel as usize).map_or(0, |outgoing| outgoing.backlog.len())
    }

    /// Bytes that wait in a channel's queue.
    pub fn waiting_bytes(&self, channel: u8) -> u64 {
        self.outgoing.get(channel as usize).map_or(0, |outgoing| outgoing.backlog.bytes())
    }

    /// Limits the bytes that wait in a channel's queue, in addition to its own limit. Packets that already wait stay;
    /// later ones are refused or replace others, as when the queue is full.
    pub fn set_room(&mut self, channel: u8, bytes: u64) {
        if let Some(outgoing) = self.outgoing.get_mut(channel as usize) {
            outgoing.backlog.set_room(bytes);
        }
    }

    /// To be called when the path has changed. Forgets its estimated rate, and that the peer was silent.
    pub fn on_path_change(&mut self) {
        self.rate_control.restart(self.initial_rtt);
        self.flight.on_path_change();
        self.line = self.rate_control.rate().map(TransmitClock::new);
    }

    /// Bytes on the line of the longest frame of data that the peer has acknowledged since the last call, with the overhead of
    /// [`SlacpConfig::overhead`]; 0 if it acknowledged none. A driver can so know that the path carries frames of this length.
    pub fn take_longest_arrived(&mut self) -> u32 {
        core::mem::take(&mut self.longest_arrived)
    }

    /// True if the link cannot continue: the peer no longer sends a missing packet of a channel that never gives one
    /// up. The cause is that repair frames seemed to supply the packet but could not be decoded, which does not happen
    /// with a correct peer.
    pub fn is_stuck(&self) -> bool {
        self.incoming.iter().any(Incoming::is_stuck)
    }

    /// Like [`Machine::poll`], for a driver that may not send now: no output is a frame to send, and timers that only
    /// concern sending are ignored.
    pub fn poll_received(&mut self, now: Time) -> Step<Output> {
        if self.outputs.is_empty() {
            self.on_time(now);
        }
        self.outputs.pop_front().map_or_else(|| Step::Wait(self.releasing.next()), Step::Do)
    }

    /// Frees memory left behind by bursts. Forgets flows that had no packet since the last call, so it must not be
    /// called again before the peer has delivered everything received so far. Returns true if another call may free
    /// more.
    pub fn trim(&mut self) -> bool {
        self.flight.trim();
        trim(&mut self.outputs);
        // Paced deliveries may wait at the peer for any length of time.
        let forgets = !self.releasing.is_paced();
        self.outgoing.iter_mut().fold(false, |more, outgoing| outgoing.trim(forgets) | more)
    }

    /// The current sending rate.
    pub fn rate(&self) -> Option<Rate> {
        self.line.as_ref().map(TransmitClock::rate)
    }

    /// The first packet of a channel that the receiver has neither received nor given up.
    fn next_incoming(&self, channel: u8) -> Option<u64> {
        self.incoming.get(channel as usize).map(|incoming| incoming.order.next())
    }

    /// Number of the next transmission.
    fn next_number(&self) -> u64 {
        self.flight.next_number()
    }

    /// The newest transmission of the peer that was received.
    fn newest_heard(&self) -> Option<u64> {
        self.history.newest()
    }
}

impl Machine for End {
    type Input = Input;
    type Output = Output;
    type Verdict = Verdict;

    fn handle<P: Probe>(&mut self, cx: &mut Context<'_, P>, input: Input) -> Verdict {
        match input {
            Input::Packet { channel, handle, len, flow, host, acknowledges } => {
                let channel = (channel as usize).min(self.outgoing.len() - 1);
                self.outgoing[channel]
                    .push(Waiting { handle, len, flow, host, since: cx.now, acknowledges }, &mut self.outputs);
            }
            Input::Frame(frame) => return self.on_frame(cx.now, frame),
            Input::Damaged { number } => self.shortcuts.on_damaged(&mut self.history, cx.now, number),
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
mod tests;
