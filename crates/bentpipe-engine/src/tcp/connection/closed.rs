//! The remains of a connection that has ended (RFC 9293 §3.10.7.1): they answer stray segments.

use super::{Connection, Duplex, State, timestamp};
use crate::tcp::config::{Handshake, TcpConfig};
use crate::tcp::segment::{Flags, Segment, Timestamps};
use crate::tcp::sending::SendingHalf;
use crate::units::Time;

/// A connection in CLOSED, as peers see it. A driver with many connections can keep this in place of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// False for the ends of simulators that have no RST.
    answers: bool,
    /// With timestamps: the TSval to echo.
    ts_recent: Option<u32>,
}

impl Closed {
    pub(super) fn new(config: &TcpConfig, ts_recent: Option<u32>) -> Closed {
        Closed { answers: config.shortcuts.handshake == Handshake::ThreeWay, ts_recent }
    }

    //= RFC 9293 §3.10.7.1: "An incoming segment not containing a RST causes a RST to be sent in response"
    /// The answer to a segment that arrives now, if there is one.
    pub fn answer(&self, now: Time, segment: &Segment) -> Option<Segment> {
        self.refuses(segment).then(|| self.reset(now, segment))
    }

    /// True if a segment gets an answer.
    pub(super) fn refuses(&self, segment: &Segment) -> bool {
        self.answers && !segment.flags.has(Flags::RST)
    }

    /// A reset that the sender of an unexpected segment accepts.
    pub(super) fn reset(&self, now: Time, segment: &Segment) -> Segment {
        let mut reset = Segment::new(Flags::RST);
        if segment.flags.has(Flags::ACK) {
            reset.seq = segment.ack;
        } else {
            reset.flags = Flags::RST | Flags::ACK;
            reset.ack = segment.end();
        }
        reset.timestamps = self.ts_recent.map(|echo| Timestamps { value: timestamp(now), echo });
        reset
    }
}

impl<S: SendingHalf> Duplex<S> {
    /// What would remain of the connection if it were closed now.
    pub(super) fn if_closed(&self) -> Closed {
        Closed::new(&self.config, self.kept.echo())
    }
}

impl Connection {
    /// What remains of the connection, if it is in CLOSED and has nothing to send or to report. Its counters no longer
    /// change.
    pub fn closed(&self) -> Option<Closed> {
        let is_over = self.state == State::Closed && self.closed.is_none() && self.reset.is_none();
        (is_over && !self.pending.any()).then(|| self.if_closed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Context, Machine, Step};
    use crate::tcp::{Input, Output, Role, TcpConfig};

    /// The remains answer stray segments as the closed connection does.
    #[test]
    fn the_rest_answers_as_the_connection_does() {
        let mut stray = vec![Segment::new(Flags::ACK), Segment::new(Flags::RST), Segment::new(Flags::SYN)];
        (stray[0].seq, stray[0].ack, stray[0].len) = (17, 4711, 1000);
        for timestamps in [false, true] {
            let mut connection = Connection::new(TcpConfig { timestamps, ..TcpConfig::default() }, Role::Passive);
            let mut cx = Context::silent(Time::from_nanos(5_000_000));
            connection.handle(&mut cx, Input::Open);
            let mut syn = Segment::new(Flags::SYN);
            syn.timestamps = timestamps.then_some(Timestamps { value: 7, echo: 0 });
            connection.handle(&mut cx, Input::Segment(syn));
            connection.handle(&mut cx, Input::Abort);
            assert_eq!(connection.closed(), None, "the reset and the end are to be told");
            while let Step::Do(_) = connection.poll(&mut cx) {}
            let closed = connection.closed().expect("all is told");
            cx.now = Time::from_nanos(9_000_000);
            for segment in &stray {
                connection.handle(&mut cx, Input::Segment(*segment));
                let answer = match connection.poll(&mut cx) {
                    Step::Do(Output::Transmit(segment)) => Some(segment),
                    _ => None,
                };
                assert_eq!(closed.answer(cx.now, segment), answer);
                assert_eq!(answer.is_some(), !segment.flags.has(Flags::RST));
                assert_eq!(
                    answer.and_then(|answer| answer.timestamps.map(|marks| marks.echo)),
                    match answer {
                        Some(_) if timestamps => Some(7),
                        _ => None,
                    }
                );
            }
        }
    }
}
