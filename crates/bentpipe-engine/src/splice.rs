//! A split connection: two connections back to back, each of TCP or of STP, with a bounded buffer between them (`minei`
//! §4, figure 8; a split connection of RFC 3135 §2.4).
//!
//! The near leg faces the opening host, the far leg the other host. The SYN on the near leg opens the far leg. From
//! then on, each leg recovers, grows and times out separately, by its own settings. The opening host is answered at
//! once, or only when the other host has accepted ([`Splice::asking_first`]). In-order data of one leg is written to
//! the other. It stays in the first leg's receive buffer until the other leg's peer has acknowledged it, so the near
//! leg's window is the free buffer, and a slow far leg slows the near one.
//!
//! FINs pass in each direction separately, after the data. A reset, a refusal or a silent peer breaks both legs. Data
//! that a leg has acknowledged but not passed on is then lost: acknowledgements come from the splice, not from the far
//! host (RFC 3135 §4.1).
//!
//! It handles spans, not bytes. Byte k received on one leg is byte k sent on the other: a driver with real bytes keeps
//! one ring per direction, stores the payload that the verdict names there and frees it at [`SpliceOutput::Passed`].

mod end;

pub use end::{End, EndConfig};

use core::error::Error;
use core::fmt;

use crate::machine::{Context, Machine, Step};
use crate::probe::{Probe, Who};
use crate::tcp::{Abort, FIRST_BYTE, Flags, Fresh, Input, Output, Role, Segment, State, Verdict};
use crate::units::Time;

/// One of the two connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Leg {
    /// Towards the opening host.
    Near,
    /// Towards the other host.
    Far,
}

impl Leg {
    /// Both, the near one first.
    pub const BOTH: [Leg; 2] = [Leg::Near, Leg::Far];

    /// The other leg.
    pub const fn other(self) -> Leg {
        match self {
            Leg::Near => Leg::Far,
            Leg::Far => Leg::Near,
        }
    }
}

/// Why a splice broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The leg on which it happened. The other leg is reset.
    pub leg: Leg,
    /// The reason. [`Abort::Local`] is the driver's own [`SpliceInput::Abort`].
    pub abort: Abort,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leg = match self.leg {
            Leg::Near => "near",
            Leg::Far => "far",
        };
        write!(f, "{leg} leg: {}", self.abort)
    }
}

impl Error for Broken {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.abort)
    }
}

/// An input from the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpliceInput {
    /// Listen on the near leg.
    Open,
    /// A segment arrived on this leg.
    Segment(Leg, Segment),
    /// Break both legs.
    Abort,
}

/// A request or a notice to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpliceOutput {
    /// Send this segment on this leg.
    Transmit(Leg, Segment),
    /// This many bytes received on this leg, counted from the start, are acknowledged on the other leg. The driver may
    /// release them.
    Passed(Leg, u64),
    /// Both legs are over.
    Closed(Result<(), Broken>),
}

/// The machine.
#[derive(Clone, Debug)]
pub struct Splice {
    legs: [End; 2],
    /// The names under which the legs' events are recorded.
    names: [Who; 2],
    /// Bytes received on each leg and written to the other.
    handed: [u64; 2],
    /// How many of them the other leg's peer has acknowledged.
    passed: [u64; 2],
    /// True if a FIN must follow the data on this leg once it is open.
    closing: [bool; 2],
    far_is_asked: bool,
    /// True if the opening host waits until the far one has accepted. `asking`: its latest SYN.
    asks_first: bool,
    asking: Option<Segment>,
    /// The leg on which data waits for its turn.
    in_turns: Option<Leg>,
    over: [bool; 2],
    broken: Option<Broken>,
    told: bool,
}

impl Splice {
    /// Creates a splice that is not open yet, from the settings of its near and far ends and the names of both.
    pub fn new(near: impl Into<EndConfig>, far: impl Into<EndConfig>, names: [Who; 2]) -> Self {
        Splice {
            legs: [End::new(near.into(), Role::Passive), End::new(far.into(), Role::Active)],
            names,
            handed: [0; 2],
            passed: [0; 2],
            closing: [false; 2],
            far_is_asked: false,
            asks_first: false,
            asking: None,
            in_turns: None,
            over: [false; 2],
            broken: None,
            told: false,
        }
    }

    /// Answers the opening host only when the far host has accepted. If the far host refuses, the opening host is
    /// reset; if it is silent, so is the splice.
    pub fn asking_first(mut self) -> Self {
        self.asks_first = true;
        self
    }

    /// Makes only [`Splice::poll_turn`] poll this leg while data on it is unacknowledged. For a driver that paces
    /// several splices together.
    pub fn in_turns(mut self, leg: Leg) -> Self {
        self.in_turns = Some(leg);
        self
    }

    /// True if something on the leg given to [`Splice::in_turns`] may wait for its turn.
    pub fn waits_for_turn(&self) -> bool {
        self.in_turns.is_some_and(|leg| {
            let leg = self.leg(leg);
            let is_opening = matches!(leg.state(), State::Closed | State::Listen | State::SynSent | State::SynReceived);
            !is_opening && leg.written() > leg.acknowledged()
        })
    }

    /// One of the two connections.
    pub fn leg(&self, leg: Leg) -> &End {
        &self.legs[leg as usize]
    }

    /// Bytes received in order on this leg and not yet acknowledged on the other.
    pub fn buffered(&self, leg: Leg) -> u64 {
        self.handed[leg as usize] - self.passed[leg as usize]
    }

    /// Why the splice broke, if it did.
    pub fn broken(&self) -> Option<Broken> {
        self.broken
    }

    fn give<P: Probe>(&mut self, cx: &mut Context<'_, P>, leg: Leg, input: Input) -> Verdict {
        let mut cx = Context { now: cx.now, who: self.names[leg as usize], probe: &mut *cx.probe };
        self.legs[leg as usize].handle(&mut cx, input)
    }

    /// True if the near leg has returned to LISTEN after the far one was opened for it: its handshake was reset (RFC 9293
    /// §3.10.7.4), or its SYN-ACK had no answer (Linux).
    fn listens_again(&self) -> bool {
        let is_idle = !self.over[Leg::Near as usize] && self.leg(Leg::Near).state() == State::Listen;
        self.far_is_asked && self.asking.is_none() && is_idle
    }

    /// Ends a splice that [`Self::listens_again`]: it serves one connection.
    fn end_listening<P: Probe>(&mut self, cx: &mut Context<'_, P>, abort: Abort) {
        self.broken.get_or_insert(Broken { leg: Leg::Near, abort });
        self.give(cx, Leg::Near, Input::Abort);
    }

    /// Opens the far leg as soon as the near one is opening.
    fn follow_opening<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        if self.listens_again() {
            return self.end_listening(cx, Abort::Reset);
        }
        let asked = self.asking.is_some() || !matches!(self.leg(Leg::Near).state(), State::Closed | State::Listen);
        if asked && !self.far_is_asked && !self.over[Leg::Far as usize] {
            self.far_is_asked = true;
            self.give(cx, Leg::Far, Input::Open);
        }
    }

    /// Sends a FIN on this leg. It waits until the leg is open, since CLOSE before that ends a connection (RFC 9293 §3.10.4).
    fn close<P: Probe>(&mut self, cx: &mut Context<'_, P>, leg: Leg) {
        let waits = matches!(self.leg(leg).state(), State::Closed | State::Listen | State::SynSent);
        self.closing[leg as usize] = waits;
        if !waits {
            self.shut(cx, leg);
        }
    }

    /// Sends a FIN on an open leg. Until this leg's peer has closed, too, the splice still waits for it.
    fn shut<P: Probe>(&mut self, cx: &mut Context<'_, P>, leg: Leg) {
        let is_last = self.leg(leg).state() == State::CloseWait;
        self.give(cx, leg, if is_last { Input::Close } else { Input::Shutdown });
    }

    fn on_closed<P: Probe>(&mut self, cx: &mut Context<'_, P>, leg: Leg, result: Result<(), Abort>) {
        self.over[leg as usize] = true;
        if let Err(abort) = result {
            self.broken.get_or_insert(Broken { leg, abort });
            self.reset(cx, leg.other());
            // A closed connection answers a SYN with a reset. If the far host was silent, the splice stays silent too.
            if let Some(syn) = self.asking.take().filter(|_| abort != Abort::RetriesExhausted) {
                self.give(cx, Leg::Near, Input::Segment(syn));
            }
        }
    }

    /// Takes a segment from the opening host. A SYN waits if the far host is asked first.
    fn take_near<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: Segment) -> Verdict {
        let is_syn = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK) && !segment.flags.has(Flags::RST);
        let is_open = !matches!(self.leg(Leg::Far).state(), State::Closed | State::Listen | State::SynSent);
        if self.asks_first && is_syn && !is_open && self.leg(Leg::Near).state() == State::Listen {
            self.asking = Some(segment);
            let payload = u64::from(segment.len);
            Verdict::Accepted(if payload > 0 { Fresh::Span(FIRST_BYTE, FIRST_BYTE + payload) } else { Fresh::None })
        } else {
            self.give(cx, Leg::Near, Input::Segment(segment))
        }
    }

    /// Ends a leg because of the other.
    fn reset<P: Probe>(&mut self, cx: &mut Context<'_, P>, leg: Leg) {
        if !self.over[leg as usize] {
            // A leg that was never open has no peer to notify.
            self.over[leg as usize] = matches!(self.leg(leg).state(), State::Closed);
            self.give(cx, leg, Input::Abort);
        }
    }

    /// Takes an output of a leg. Returns the driver's part of it.
    fn take<P: Probe>(&mut self, cx: &mut Context<'_, P>, leg: Leg, output: Output) -> Option<SpliceOutput> {
        let other = leg.other();
        match output {
            Output::Transmit(segment) => return Some(SpliceOutput::Transmit(leg, segment)),
            Output::Connected => {
                if let Some(syn) = self.asking.take() {
                    self.give(cx, Leg::Near, Input::Segment(syn));
                }
                if core::mem::take(&mut self.closing[leg as usize]) {
                    self.shut(cx, leg);
                }
            }
            Output::Readable(total) => {
                let fresh = total - self.handed[leg as usize];
                self.handed[leg as usize] = total;
                self.give(cx, other, Input::Write(fresh));
            }
            // Data acknowledged by this leg's peer is released from the other leg's buffer.
            Output::Acknowledged(total) => {
                let fresh = total - self.passed[other as usize];
                self.passed[other as usize] = total;
                self.give(cx, other, Input::Read(fresh));
                return (fresh > 0).then_some(SpliceOutput::Passed(other, total));
            }
            Output::PeerClosed => {
                if self.leg(leg).state() == State::Closing {
                    self.give(cx, leg, Input::Close);
                }
                self.close(cx, other);
            }
            Output::Closed(result) => self.on_closed(cx, leg, result),
        }
        None
    }
}

impl Machine for Splice {
    type Input = SpliceInput;
    type Output = SpliceOutput;
    /// The verdict of the segment's leg. A SYN that waits for the far host is accepted, and its payload is new.
    type Verdict = Verdict;

    fn handle<P: Probe>(&mut self, cx: &mut Context<'_, P>, input: SpliceInput) -> Verdict {
        let verdict = match input {
            SpliceInput::Open => self.give(cx, Leg::Near, Input::Open),
            SpliceInput::Segment(Leg::Near, segment) => self.take_near(cx, segment),
            SpliceInput::Segment(Leg::Far, segment) => self.give(cx, Leg::Far, Input::Segment(segment)),
            SpliceInput::Abort => {
                self.broken.get_or_insert(Broken { leg: Leg::Near, abort: Abort::Local });
                Leg::BOTH.into_iter().for_each(|leg| self.reset(cx, leg));
                Verdict::Accepted(Fresh::None)
            }
        };
        self.follow_opening(cx);
        verdict
    }

    fn poll<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Step<SpliceOutput> {
        self.poll_legs(cx, false)
    }
}

impl Splice {
    /// Like [`Machine::poll`], but includes the leg whose data waits for its turn.
    pub fn poll_turn<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Step<SpliceOutput> {
        self.poll_legs(cx, true)
    }

    fn poll_legs<P: Probe>(&mut self, cx: &mut Context<'_, P>, is_turn: bool) -> Step<SpliceOutput> {
        let mut waits: [Option<Time>; 2] = [None; 2];
        let mut leg = Leg::Near;
        loop {
            let mut own = Context { now: cx.now, who: self.names[leg as usize], probe: &mut *cx.probe };
            let must_wait = !is_turn && self.in_turns == Some(leg) && self.waits_for_turn();
            let step = if must_wait { Step::Wait(None) } else { self.legs[leg as usize].poll(&mut own) };
            match step {
                Step::Do(output) => {
                    if let Some(output) = self.take(cx, leg, output) {
                        return Step::Do(output);
                    }
                    // An output of one leg may cause work on the other.
                    leg = Leg::Near;
                }
                Step::Wait(_) if leg == Leg::Near && self.listens_again() => {
                    self.end_listening(cx, Abort::RetriesExhausted);
                }
                Step::Wait(until) => {
                    waits[leg as usize] = until;
                    if leg == Leg::Far {
                        break;
                    }
                    leg = Leg::Far;
                }
            }
        }
        if self.over == [true; 2] && !core::mem::replace(&mut self.told, true) {
            return Step::Do(SpliceOutput::Closed(self.broken.map_or(Ok(()), Err)));
        }
        Step::Wait(Time::earliest(waits[0], waits[1]))
    }
}
