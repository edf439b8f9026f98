//! Messages from the peer.

use alloc::vec::Vec;

use super::Mux;
use crate::mux::config::MuxConfig;
use crate::mux::exchange::{Output, Verdict};
use crate::mux::hosts::Host;
use crate::mux::stream::Stream;
use crate::wire::mux::{Message, Reason, Route, StreamId};

impl Mux {
    pub(super) fn on_message(&mut self, message: Message) -> Verdict {
        match message {
            Message::Hello { credit, streams } => self.on_hello(credit, streams),
            Message::Open { stream, route, credit, len } => return self.on_open(stream, route, credit, len),
            Message::Data { stream, offset, len, last } => return self.on_data(stream, offset, len, last),
            Message::Credit { stream, limit } => match self.streams.get_mut(&stream) {
                Some(known) if known.is_known() => {
                    known.limit = known.limit.max(limit);
                    self.wake(stream);
                }
                _ => return self.count_stray(),
            },
            Message::Reset { stream, reason } if self.streams.get(&stream).is_some_and(Stream::is_known) => {
                self.forget(stream);
                self.stats.reset_by_peer += 1;
                self.outputs.push_back(Output::Reset { stream, reason });
            }
            Message::Reset { stream, .. } => {
                // A stream that the peer reset needs no reset from this end.
                self.unrefuse(stream);
                return self.count_stray();
            }
        }
        Verdict::Accepted
    }

    fn on_hello(&mut self, credit: u64, streams: u32) {
        if let Some((known, max)) = &mut self.peer {
            *max = streams;
            if credit <= *known || self.raises >= MuxConfig::MAX_RAISES {
                return;
            }
        }
        self.peer = Some((credit, streams));
        self.raises += 1;
        self.widen(credit);
        // Limits only grow, so a stream that was opened earlier is not cut short.
        for stream in self.streams.values_mut().filter(|stream| !stream.foreign) {
            stream.limit = stream.limit.max(credit);
        }
        let all: Vec<_> = self.streams.keys().copied().collect();
        all.into_iter().for_each(|id| self.wake(id));
    }

    /// Widens the window. The window follows from the rate of the end that advertises it: a peer with a larger window
    /// sends faster and needs a window of the same size here. It gets at most half of the budget.
    fn widen(&mut self, peer: u64) {
        let window = peer.min(self.config.budget / 2);
        if window <= self.config.window {
            return;
        }
        self.config.window = window;
        self.hello = Some(Message::Hello { credit: window, streams: self.config.max_streams });
        for stream in self.streams.values_mut().filter(|stream| stream.foreign) {
            stream.granted = stream.granted.max(window);
        }
    }

    fn on_open(&mut self, id: StreamId, route: Route, credit: u64, len: u32) -> Verdict {
        // A peer that respects its limit never causes so many pending resets. The openings of one that does not are
        // dropped without an answer.
        let max_resets = MuxConfig::MIN_ANSWERS.max(self.config.max_streams as usize);
        let is_flood = self.resets.len() - self.own_resets as usize >= max_resets;
        let number = id.0 / 2;
        // Openings overtake each other, so there are gaps, but no more than the peer has streams.
        let max_ranges = MuxConfig::MIN_RANGES.max(self.config.max_streams as usize);
        let has_room = self.used.len() <= max_ranges || self.used.touches(number, number + 1);
        let host = Host::of(route.source.ip());
        if self.is_own(id) || is_flood || !has_room || !self.used.insert(number, number + 1, |_, _| ()) {
            return self.count_stray();
        }
        if self.draining {
            self.refuse(id, host, Reason::Draining);
        } else if self.foreign >= self.config.max_streams {
            self.refuse(id, host, Reason::NoResources);
        } else {
            // The credit that the hello promised, which may be larger than the current window.
            self.streams.insert(id, Stream::new(credit, self.config.window, host, true));
            self.hosts.queue(host).streams += 1;
            self.foreign += 1;
            self.stats.accepted += 1;
            self.outputs.push_back(Output::Opened { stream: id, route });
            if len > 0 {
                self.on_data(id, 0, len, false);
            }
        }
        Verdict::Accepted
    }

    fn on_data(&mut self, id: StreamId, offset: u64, len: u32, last: bool) -> Verdict {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.is_known()) else {
            return self.count_stray();
        };
        let end = offset + u64::from(len);
        if offset != stream.received || stream.ended || end > stream.granted.max(MuxConfig::FIRST_CREDIT) {
            self.abort(id, Reason::Protocol);
            return Verdict::Accepted;
        }
        stream.received = end;
        stream.ended = last;
        self.held += u64::from(len);
        self.stats.bytes_received += u64::from(len);
        if len > 0 {
            self.outputs.push_back(Output::Received { stream: id, len });
        }
        if last {
            self.outputs.push_back(Output::Ended { stream: id });
            self.close_if_over(id);
        }
        if self.held > self.config.budget {
            self.shed();
        }
        Verdict::Accepted
    }

    /// Resets the stream that holds the most bytes. Memory is thus bounded, and the other streams continue.
    fn shed(&mut self) {
        let max = self.streams.iter().max_by_key(|(_, stream)| stream.held());
        if let Some((&id, _)) = max {
            self.stats.out_of_memory += 1;
            self.abort(id, Reason::NoResources);
        }
    }

    /// Counts a message that changes nothing.
    fn count_stray(&mut self) -> Verdict {
        self.stats.stray += 1;
        Verdict::Stray
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Context, Machine};
    use crate::mux::config::Side;
    use crate::mux::exchange::Input;
    use crate::units::Time;

    /// A reset stream is unknown: inputs for it change nothing, whether they come from the user or from the peer.
    #[test]
    fn a_verdict_says_what_is_stray() {
        let side = Side::Initiator;
        let mut mux =
            Mux::new(MuxConfig { side, window: 100_000, max_payload: 1000, max_streams: 100, budget: 1_000_000 });
        let route = Route { source: ([192, 0, 2, 1], 40_000).into(), destination: ([198, 51, 100, 7], 80).into() };
        let stream = mux.open(route).expect("there is room");
        let mut verdict = |input| mux.handle(&mut Context::silent(Time::ZERO), input);
        assert_eq!(verdict(Input::Write { stream, bytes: 10 }), Verdict::Accepted);
        assert_eq!(verdict(Input::Reset { stream, reason: Reason::Peer }), Verdict::Accepted);
        for input in [
            Input::Write { stream, bytes: 10 },
            Input::Finish { stream },
            Input::Reset { stream, reason: Reason::Peer },
            Input::Message(Message::Credit { stream, limit: 1 << 20 }),
        ] {
            assert_eq!(verdict(input), Verdict::Stray, "{input:?}");
        }
        assert_eq!(mux.stats().stray, 1);
    }
}
