//! The one trait: two doors, `handle` and `poll`.
//!
//! A driver hands a machine one input, then polls it until it says [`Step::Wait`]. The instant it then names replaces
//! the one named before; when it comes, the driver polls again. Polling early or twice does no harm, so a driver may
//! re-arm its timers as lazily as it likes.

use crate::probe::{Event, NoProbe, Probe, Who};
use crate::units::Time;

/// The whole visible world of a machine: the time, and someone who watches.
#[derive(Debug)]
pub struct Context<'a, P> {
    /// The present, from the driver.
    pub now: Time,
    /// Under which name the machine's events are recorded.
    pub who: Who,
    /// The watcher.
    pub probe: &'a mut P,
}

impl Context<'static, NoProbe> {
    /// A context without an observer, at `now`.
    pub fn silent(now: Time) -> Self {
        // A value without size takes no memory: nothing is allocated or leaked.
        Context { now, who: Who(0), probe: Box::leak(Box::new(NoProbe)) }
    }
}

impl<P: Probe> Context<'_, P> {
    /// Tells the probe; costs nothing with one that does not watch.
    #[inline(always)]
    pub fn emit(&mut self, event: impl FnOnce() -> Event) {
        if P::WATCHES {
            self.probe.event(self.now, self.who, &event());
        }
    }
}

/// What a machine wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<O> {
    /// Do this, then poll again.
    Do(O),
    /// Nothing to do until an input comes or this instant does.
    Wait(Option<Time>),
}

/// A state machine without clock, I/O or entropy.
pub trait Machine {
    /// What the driver brings.
    type Input;
    /// What the driver is asked to do.
    type Output;
    /// What the machine did with an input: what the driver must know before it acts on the input itself.
    type Verdict;

    /// Takes one input.
    fn handle<P: Probe>(&mut self, cx: &mut Context<'_, P>, input: Self::Input) -> Self::Verdict;

    /// The next thing to do at `cx.now`; timers that are due act here.
    fn poll<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Step<Self::Output>;
}
