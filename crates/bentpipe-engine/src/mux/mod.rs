//! Many byte streams over one link: the machine of the `split` gateway.
//!
//! Below lies a carrier that brings each message once, whole, and those of one stream in order: S-LACP with unbounded
//! retransmission and order per flow. So nothing is retransmitted here, and a stream that waits for a lost packet holds
//! up no other. What is here: streams open without a round trip (data follows at once), each has its own credit, both
//! directions end by themselves, a reset says why, and streams take turns.
//!
//! It deals in spans: the driver holds the bytes. A sender's bytes are the carrier's once they are sent; a receiver's
//! stay with the driver until its user takes them, a window of them per stream at most, and a budget in all.
//!
//! - Turns are those of FQ-CoDel (RFC 8290 §4): a stream that has been quiet goes before those with a backlog.
//! - Credit follows RFC 9000 §4.1: a limit that only grows, told when a quarter of the window has been taken.
//! - Beyond half the budget windows shrink; beyond the whole of it the stream that holds most is reset, aloud.
//!
//! Not here: priorities among streams, and congestion (the carrier's).
//!
//! Reading order: [`Message`], [`MuxConfig`], `stream` one of them, `turns` who is next, [`Mux`] the machine.

mod config;
mod machine;
mod message;
mod stats;
mod stream;
mod turns;

pub use config::{MuxConfig, Side};
pub use machine::{Input, Mux, Output};
pub use message::{Message, Reason, Route, StreamId};
pub use stats::MuxStats;
