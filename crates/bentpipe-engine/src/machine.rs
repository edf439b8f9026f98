//! The trait that every protocol implements: `handle` for inputs, `poll` for outputs.
//!
//! A driver hands a machine one input, then polls it until it returns [`Step::Wait`]. The time in `Wait` replaces the
//! previous one; when it comes, the driver polls again. Polling early or twice does no harm, so a driver may re-arm its
//! timer lazily.

use alloc::boxed::Box;

use crate::probe::{Event, NoProbe, Probe, Who};
use crate::units::Time;

/// Everything that a machine can see: the time and an observer.
#[derive(Debug)]
pub struct Context<'a, P> {
    /// The current time, from the driver.
    pub now: Time,
    /// The name under which the machine's events are recorded.
    pub who: Who,
    /// The observer.
    pub probe: &'a mut P,
}

impl Context<'static, NoProbe> {
    /// A context without an observer, at `now`.
    pub fn silent(now: Time) -> Self {
        // A zero-sized value takes no memory, so nothing is allocated or leaked.
        Context { now, who: Who(0), probe: Box::leak(Box::new(NoProbe)) }
    }
}

impl<P: Probe> Context<'_, P> {
    /// Passes an event to the observer. Without one, the event is not constructed.
    #[inline(always)]
    pub fn emit(&mut self, event: impl FnOnce() -> Event) {
        if P::WATCHES {
            self.probe.event(self.now, self.who, &event());
        }
    }
}

/// What a machine asks of its driver next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<O> {
    /// Do this, then poll again.
    Do(O),
    /// There is nothing to do until the next input or this time, whichever comes first. `None`: until the next input.
    Wait(Option<Time>),
}

/// A state machine without clock, I/O or entropy.
pub trait Machine {
    /// An input from the driver.
    type Input;
    /// A request to the driver, or a notification.
    type Output;
    /// What the machine did with an input. The driver needs it before it acts on the input, for example by storing its
    /// bytes.
    type Verdict;

    /// Takes one input.
    fn handle<P: Probe>(&mut self, cx: &mut Context<'_, P>, input: Self::Input) -> Self::Verdict;

    /// Returns the next output at `cx.now`, or the time until which to wait. Timers that are due expire here.
    fn poll<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Step<Self::Output>;
}
