//! A serial server: it serves one packet at a time, each for a time that does not depend on its length. It models a
//! host's processor, which handles the packets that the host sends and receives.

use alloc::collections::VecDeque;

use super::config::Distribution;
use crate::stream::Stream;
use crate::units::Time;

/// A first-in first-out server.
#[derive(Clone, Debug)]
pub struct Server<P> {
    time: Distribution,
    stream: Stream,
    busy_until: Time,
    /// Finish time, start time and content of each packet.
    held: VecDeque<(Time, Time, P)>,
}

impl<P> Server<P> {
    /// The server of the component `name` under `seed`. The service time of each packet is drawn from `time`.
    pub fn new(time: Distribution, seed: u64, name: &str) -> Self {
        Server {
            time,
            stream: Stream::named(seed, format_args!("{name}/server")),
            busy_until: Time::ZERO,
            held: VecDeque::new(),
        }
    }

    /// Adds a packet at `now`.
    pub fn offer(&mut self, now: Time, packet: P) {
        let begun = self.busy_until.max(now);
        self.busy_until = begun + self.time.draw(&mut self.stream);
        self.held.push_back((self.busy_until, begun, packet));
    }

    /// When the first packet will be done, and when its service started.
    pub fn head(&self) -> Option<(Time, Time)> {
        self.held.front().map(|&(done, begun, _)| (done, begun))
    }

    /// The next packet, if it is done by `now`.
    pub fn take(&mut self, now: Time) -> Option<P> {
        if self.held.front()?.0 > now {
            return None;
        }
        self.held.pop_front().map(|(.., packet)| packet)
    }

    /// Number of packets not done yet.
    pub fn in_flight(&self) -> usize {
        self.held.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Duration;

    #[test]
    fn one_after_the_other() {
        let at = |micros: u64| Time::from_nanos(micros * 1000);
        let mut server = Server::new(Distribution::Fixed(Duration::from_micros(62)), 1, "host");
        server.offer(at(0), 'a');
        server.offer(at(10), 'b');
        server.offer(at(200), 'c');
        assert_eq!(server.head(), Some((at(62), at(0))));
        assert_eq!((server.take(at(61)), server.take(at(62)), server.take(at(100))), (None, Some('a'), None));
        assert_eq!(server.head(), Some((at(124), at(62))));
        assert_eq!((server.take(at(124)), server.head(), server.in_flight()), (Some('b'), Some((at(262), at(200))), 1));
    }
}
