//! Sending times of a source with a rate, either constant or on and off.

use bentpipe_engine::stream::Stream;
use bentpipe_engine::units::{Rate, Time, TransmitClock};
use bentpipe_study::scenario::UdpPattern;

/// The times at which pieces of data are sent to give a rate.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    interval: TransmitClock,
    next: Time,
    /// End of the current sending period.
    on_until: Time,
    pattern: UdpPattern,
    stream: Stream,
    /// For video: the number of the current frame, when it was due, and its unsent bytes.
    frame: (u64, Time, u32),
}

impl Pacer {
    /// A source that starts at `start`. Sending periods and pauses are drawn for the flow `name` under `seed`.
    pub(crate) fn new(rate: Rate, pattern: UdpPattern, start: Time, seed: u64, name: &str) -> Self {
        let mut stream = Stream::named(seed, format_args!("flow/{name}/on-off"));
        let on_until = match pattern {
            UdpPattern::OnOff { on, .. } => start + on.draw(&mut stream),
            UdpPattern::Cbr | UdpPattern::Mpeg(_) => Time::NEVER,
        };
        let first = if let UdpPattern::Mpeg(mpeg) = pattern { mpeg.bytes(0) } else { 0 };
        Pacer { interval: TransmitClock::new(rate), next: start, on_until, pattern, stream, frame: (0, start, first) }
    }

    /// When the next piece is due.
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// Records that a piece of `bytes` has been sent.
    pub(crate) fn sent(&mut self, bytes: u32) {
        self.next += self.interval.transmit(bytes);
        if let UdpPattern::Mpeg(mpeg) = self.pattern {
            let (number, due, left) = self.frame;
            self.frame.2 = left.saturating_sub(bytes);
            if self.frame.2 == 0 {
                self.frame = (number + 1, due + mpeg.interval, mpeg.bytes(number + 1));
                self.next = self.next.max(self.frame.1);
            }
        }
        if let UdpPattern::OnOff { on, off } = self.pattern {
            while self.next >= self.on_until {
                self.next = self.on_until + off.draw(&mut self.stream);
                self.on_until = self.next + on.draw(&mut self.stream);
            }
        }
    }
}
