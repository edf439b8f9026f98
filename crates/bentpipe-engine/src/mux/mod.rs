//! Many byte streams over one link: the machine of the `split` gateway.
//!
//! The carrier below delivers each message exactly once and complete, and the messages of a stream in order: S-LACP
//! with unlimited retransmission and order per flow. So nothing is retransmitted here, and a stream that waits for a
//! lost packet does not delay any other. Streams open without a round trip (data follows at once). Each has its own
//! credit, both directions end separately, a reset carries its reason, and streams take turns.
//!
//! It handles only byte counts: the driver keeps the bytes. Sent bytes belong to the carrier. Received bytes stay with
//! the driver until the stream's user takes them: at most a window per stream, and a budget for all streams.
//!
//! - Hosts take turns, and so do the streams of a host. The order is that of FQ-CoDel (RFC 8290 §4): a host or stream
//!   that was idle goes ahead of one with a backlog. Openings, credit and resets count as well, so a host that only
//!   opens and resets streams cannot delay others.
//! - An opening that is cancelled before it is sent leaves nothing behind.
//! - Credit follows RFC 9000 §4.1: a limit that only grows, announced when a quarter of the window has been taken.
//! - When more than half the budget is used, windows shrink. When more than all of it is used, the stream that holds
//!   the most is reset.
//!
//! Not implemented: priorities among streams, and congestion control (which is left to the carrier).
//!
//! # Example
//!
//! ```
//! use bentpipe_engine::mux::{Input, Mux, MuxConfig, Output, Route, Side};
//! use bentpipe_engine::units::Time;
//! use bentpipe_engine::{Context, Machine, Step};
//!
//! let config = |side| MuxConfig { side, window: 1 << 20, max_payload: 1200, max_streams: 100, budget: 8 << 20 };
//! let mut client = Mux::new(config(Side::Initiator));
//! let mut server = Mux::new(config(Side::Responder));
//! let route = Route { source: ([192, 0, 2, 1], 40_000).into(), destination: ([198, 51, 100, 7], 80).into() };
//!
//! let cx = || Context::silent(Time::ZERO);
//! let stream = client.open(route).expect("fewer than 100 are open");
//! client.handle(&mut cx(), Input::Write { stream, bytes: 500 });
//! client.handle(&mut cx(), Input::Room(10));
//! while let Step::Do(Output::Send(message)) = client.poll(&mut cx()) {
//!     server.handle(&mut cx(), Input::Message(message));
//! }
//! assert_eq!(server.poll(&mut cx()), Step::Do(Output::Opened { stream, route }));
//! assert_eq!(server.poll(&mut cx()), Step::Do(Output::Received { stream, len: 500 }));
//! ```
//!
//! Reading order: [`Message`], [`MuxConfig`], `stream` (a single stream), `hosts` (whose turn it is), [`Mux`].

mod config;
mod exchange;
mod hosts;
mod machine;
mod stats;
mod stream;

pub use crate::wire::mux::{Message, Reason, Route, StreamId};
pub use config::{MuxConfig, Side};
pub use exchange::{Input, Output, Verdict};
pub use hosts::Host;
pub use machine::Mux;
pub use stats::MuxStats;
