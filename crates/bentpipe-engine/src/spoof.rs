//! A gateway that acknowledges TCP for the destination (the `hybrid` paper §IV; RFC 3135 §2.4, §3.1.2): a connection
//! ends here, and its data continues over another transport, such as a link with ARQ.
//!
//! Data stays in the gateway's buffer until the far end of that transport has acknowledged it; the free space is the
//! advertised window. Connections may share a buffer: each is offered all the free space, and segments that find no
//! room are dropped. The driver owns the buffer and reports its free space in each turn.
//!
//! A window is sent with the ACKs that answer data, and once when it reopens after being (nearly) closed. This is the
//! normal behaviour of a receiver (RFC 9293 §3.8.6.2.2) and of the model (H-Q05). Other changes of the window are not
//! reported. With [`Spoofer::with_acks_only`], windows are sent only in ACKs, so a stopped source waits for its persist
//! timer.

use crate::machine::{Context, Machine, Step};
use crate::probe::Probe;
use crate::tcp::{Connection, Input as TcpInput, Output as TcpOutput, Role, Segment, TcpConfig, TcpStats};

/// An input from the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Listen for the connection.
    Open,
    /// A segment from the source.
    Segment(Segment),
    /// This many bytes of the buffer are free.
    Free(u64),
    /// The far end has acknowledged this many forwarded bytes, or they were abandoned: their copies are no longer
    /// stored.
    Released(u64),
}

/// What an input did to the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This connection takes this many more bytes of the buffer; 0 if nothing changed.
    Held(u64),
    /// This connection takes this many fewer bytes.
    Freed(u64),
    /// The segment was dropped: the buffer is full.
    Dropped,
}

/// A request to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this segment to the source.
    Transmit(Segment),
    /// Forward this many bytes, following the previous ones.
    Forward(u32),
}

/// One connection at the gateway.
#[derive(Clone, Debug)]
pub struct Spoofer {
    connection: Connection,
    mss: u32,
    /// Free bytes of the buffer that all connections share.
    free: u64,
    /// Byte counts from the start: received in order, forwarded, released.
    received: u64,
    forwarded: u64,
    released: u64,
    drops: u64,
    /// Windows are sent only in ACKs that answer segments.
    acks_only: bool,
    /// Released bytes not yet reported to the connection.
    untold: u64,
}

impl Spoofer {
    /// Creates a gateway's end, which listens once it is opened. The receive buffer in `config` is the size of the
    /// whole buffer and determines window scaling; [`Input::Free`] reports its free space.
    pub fn new(config: TcpConfig) -> Self {
        Spoofer {
            mss: u32::from(config.mss),
            connection: Connection::new(config, Role::Passive),
            free: 0,
            received: 0,
            forwarded: 0,
            released: 0,
            drops: 0,
            acks_only: false,
            untold: 0,
        }
    }

    /// Omits the segment that reopens a closed window.
    pub fn with_acks_only(self) -> Self {
        Spoofer { acks_only: true, ..self }
    }

    /// Bytes of this connection in the buffer: out of order, waiting, or forwarded and not released.
    pub fn held(&self) -> u64 {
        self.received - self.released + self.connection.beyond_gaps()
    }

    /// Segments dropped because the buffer was full.
    pub fn drops(&self) -> u64 {
        self.drops
    }

    /// Counters of the connection.
    pub fn stats(&self) -> TcpStats {
        self.connection.stats()
    }

    fn offer<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.connection.handle(cx, TcpInput::Buffer(self.held() + self.free));
    }
}

impl Machine for Spoofer {
    type Input = Input;
    type Output = Output;
    type Verdict = Verdict;

    fn handle<P: Probe>(&mut self, cx: &mut Context<'_, P>, input: Input) -> Verdict {
        let before = self.held();
        match input {
            Input::Open => {
                self.offer(cx);
                self.connection.handle(cx, TcpInput::Open);
            }
            Input::Free(bytes) => {
                self.free = bytes;
                if !self.acks_only {
                    self.offer(cx);
                }
            }
            Input::Segment(segment) => {
                // A retransmission takes no room, so it is answered even if the buffer is full.
                let fresh = segment.len > 0 && segment.end() > self.connection.rcv_nxt();
                if fresh && u64::from(segment.len) > self.free {
                    self.drops += 1;
                    return Verdict::Dropped;
                }
                if self.acks_only {
                    self.connection.handle(cx, TcpInput::Read(core::mem::take(&mut self.untold)));
                    self.offer(cx);
                }
                self.connection.handle(cx, TcpInput::Segment(segment));
                self.received = self.connection.received();
                // The ACK advertises the space that is left after this segment. A FIN may free what lay beyond it.
                self.free = (self.free + before).saturating_sub(self.held());
                self.offer(cx);
            }
            Input::Released(bytes) => {
                let bytes = bytes.min(self.forwarded - self.released);
                self.released += bytes;
                self.free += bytes;
                if self.acks_only {
                    self.untold += bytes;
                } else {
                    self.connection.handle(cx, TcpInput::Read(bytes));
                }
            }
        }
        let held = self.held();
        if held >= before { Verdict::Held(held - before) } else { Verdict::Freed(before - held) }
    }

    fn poll<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Step<Output> {
        loop {
            if self.forwarded < self.received {
                let bytes = (self.received - self.forwarded).min(u64::from(self.mss)) as u32;
                self.forwarded += u64::from(bytes);
                return Step::Do(Output::Forward(bytes));
            }
            match self.connection.poll(cx) {
                Step::Do(TcpOutput::Transmit(segment)) => return Step::Do(Output::Transmit(segment)),
                // The gateway sends no data itself, and closes after the source.
                Step::Do(TcpOutput::PeerClosed) => {
                    self.connection.handle(cx, TcpInput::Close);
                }
                Step::Do(_) => {}
                Step::Wait(until) => return Step::Wait(until),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{NoProbe, Who};
    use crate::tcp::{FIRST_BYTE, Flags, Handshake, Shortcuts};
    use crate::units::Time;

    const MSS: u64 = 100;

    struct Bench {
        gateway: Spoofer,
        now: u64,
        verdict: Verdict,
    }

    impl Bench {
        /// A gateway with room for this number of segments.
        fn new(segments: u64) -> Bench {
            let shortcuts = Shortcuts { handshake: Handshake::None, ..Shortcuts::NONE };
            let ack = crate::tcp::AckPolicy::IMMEDIATE;
            let mut bench = Bench {
                gateway: Spoofer::new(TcpConfig { mss: MSS as u16, ack, shortcuts, ..TcpConfig::default() }),
                now: 0,
                verdict: Verdict::Held(0),
            };
            bench.step(Input::Free(segments * MSS));
            bench.step(Input::Open);
            bench
        }

        fn step(&mut self, input: Input) -> Vec<Output> {
            let mut probe = NoProbe;
            let mut cx = Context { now: Time::from_nanos(self.now), who: Who(0), probe: &mut probe };
            self.verdict = self.gateway.handle(&mut cx, input);
            let mut outputs = Vec::new();
            while let Step::Do(output) = self.gateway.poll(&mut cx) {
                outputs.push(output);
            }
            outputs
        }

        /// Hands in the n-th data segment.
        fn data(&mut self, n: u64) -> Vec<Output> {
            let mut segment = Segment::new(Flags::ACK);
            (segment.seq, segment.ack, segment.len) = (FIRST_BYTE + n * MSS, FIRST_BYTE, MSS as u16);
            self.step(Input::Segment(segment))
        }
    }

    /// The ACK among the outputs: its acknowledgement and its window, in segments.
    fn ack(outputs: &[Output]) -> Option<(u64, u64)> {
        let transmit = |output: &Output| match output {
            Output::Transmit(segment) => Some(((segment.ack - FIRST_BYTE) / MSS, u64::from(segment.window) / MSS)),
            _ => None,
        };
        outputs.iter().filter_map(transmit).next_back()
    }

    fn forwarded(outputs: &[Output]) -> u32 {
        outputs.iter().map(|output| if let Output::Forward(bytes) = output { *bytes } else { 0 }).sum()
    }

    #[test]
    fn the_window_is_what_the_copies_leave() {
        let mut bench = Bench::new(3);
        for n in 0..3 {
            let outputs = bench.data(n);
            assert_eq!((ack(&outputs), forwarded(&outputs)), (Some((n + 1, 2 - n)), MSS as u32), "{outputs:?}");
            assert_eq!(bench.verdict, Verdict::Held(MSS));
        }
        // Forwarded data is still held: a copy stays until it is released. The first release opens the closed window,
        // which is reported; the second is not.
        assert_eq!(bench.gateway.held(), 3 * MSS);
        assert_eq!(ack(&bench.step(Input::Released(MSS))), Some((3, 1)));
        assert_eq!(bench.verdict, Verdict::Freed(MSS));
        assert_eq!(bench.step(Input::Released(MSS)), []);
        assert_eq!(ack(&bench.data(3)), Some((4, 1)));
    }

    #[test]
    fn what_comes_out_of_order_takes_room_and_waits() {
        let mut bench = Bench::new(3);
        let outputs = bench.data(1);
        assert_eq!((ack(&outputs), forwarded(&outputs), bench.gateway.held()), (Some((0, 3)), 0, MSS));
        let outputs = bench.data(0);
        assert_eq!((ack(&outputs), forwarded(&outputs)), (Some((2, 1)), 2 * MSS as u32));
    }

    #[test]
    fn a_shared_buffer_may_be_full_in_spite_of_the_window() {
        let mut bench = Bench::new(3);
        bench.data(0);
        // Another connection has taken the rest: the window stays, but the room is gone.
        assert_eq!(bench.step(Input::Free(0)), []);
        assert_eq!((bench.data(1), bench.verdict), (vec![], Verdict::Dropped));
        assert_eq!((bench.gateway.drops(), bench.gateway.held()), (1, MSS));
        // A repetition is still answered, and no window is withdrawn.
        assert_eq!(ack(&bench.data(0)), Some((1, 2)));
    }

    /// A FIN in order contradicts bytes beyond it, which are given up: their room is free again.
    #[test]
    fn what_a_fin_contradicts_takes_no_room() {
        let mut bench = Bench::new(3);
        bench.data(1);
        assert_eq!(bench.gateway.held(), MSS);
        let mut fin = Segment::new(Flags::ACK | Flags::FIN);
        (fin.seq, fin.ack) = (FIRST_BYTE, FIRST_BYTE);
        bench.step(Input::Segment(fin));
        assert_eq!((bench.gateway.held(), bench.verdict), (0, Verdict::Freed(MSS)));
        assert_eq!(bench.gateway.free, 3 * MSS);
    }
}
