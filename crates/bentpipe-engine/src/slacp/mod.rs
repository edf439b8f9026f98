//! S-LACP, the satellite link access control protocol: a layer between IP and the satellite link.
//!
//! Astuti and Kojo (`transat`, §2) outline it: logical channels with different treatments, link retransmission of
//! bounded persistence, FEC, and ordering. They simulate only its effect; this module is a real protocol. [`End`] is
//! the machine of both ends. Packets come from above, and frames go below. It handles only numbers: the driver keeps
//! the bytes, knows the packet behind each handle, and does the arithmetic of the erasure code.
//!
//! - Every frame has its own number, and so has every retransmission. Reports are bitmaps over these numbers (`arq`).
//! - A data frame names its predecessor in the same flow, so a loss in one flow does not delay another.
//! - Repair frames use spare capacity, or are sent with their block ([`Repairs`]). Their number follows the observed
//!   losses: none if nothing is lost, or if losses occur only in outages.
//! - The sender knows the line's rate and holds the queue itself, with CoDel (RFC 8289). The line below has no queue.
//!
//! `hybrid`'s link layer is the same machine with one channel, no added bytes, and a report for each frame
//! ([`Shortcuts`]).
//!
//! Not implemented: fragmentation across frames, except `hybrid`'s segments S. Header compression is in
//! [`crate::compression`].
//!
//! # Example
//!
//! A packet from one end to the other:
//!
//! ```
//! use bentpipe_engine::slacp::{ChannelConfig, End, Input, Output, SlacpConfig, Verdict};
//! use bentpipe_engine::units::{Duration, Rate, Time};
//! use bentpipe_engine::{Context, Machine, Step};
//!
//! let rate = Rate::from_bits_per_second(10_000_000);
//! let config = SlacpConfig::new(rate, Duration::from_millis(600), vec![ChannelConfig::reliable()]);
//! let (mut here, mut there) = (End::new(&config), End::new(&config));
//!
//! let sent = Time::ZERO;
//! here.handle(
//!     &mut Context::silent(sent),
//!     Input::Packet { channel: 0, handle: 7, len: 1400, flow: 1, host: 0, acknowledges: None },
//! );
//! let Step::Do(Output::Transmit { frame, handle: Some(7) }) = here.poll(&mut Context::silent(sent)) else { panic!() };
//!
//! let arrival = sent + Duration::from_millis(300);
//! assert_eq!(there.handle(&mut Context::silent(arrival), Input::Frame(frame)), Verdict::Kept);
//! assert_eq!(there.poll(&mut Context::silent(arrival)), Step::Do(Output::Deliver { channel: 0, seq: 0 }));
//! // A report is due 20 ms later.
//! assert_eq!(there.poll(&mut Context::silent(arrival)), Step::Wait(Some(arrival + Duration::from_millis(20))));
//! ```
//!
//! Reading order: [`SlacpConfig`], [`Frame`], [`classify`]; then `backlog` (the queues; `fair` has one per flow),
//! `outgoing` (a channel's sender), `incoming` (its receiver), `fec`, `rate_control`, and `releasing` (packets that
//! waited behind a gap); finally [`End`].

mod backlog;
pub mod classify;
mod codel;
mod config;
mod end;
mod exchange;
mod fair;
mod fec;
mod fq_codel;
mod incoming;
mod outgoing;
mod predecessors;
mod rate_control;
mod releasing;
mod resends;
mod share;
mod shortcuts;
mod stats;
mod transmission;
mod waiting;

use crate::wire::slacp as frame;
pub use crate::wire::slacp::{DATA_HEADER, Frame, PROTECTED_HEADER, Report};
pub(crate) use backlog::Backlog;
pub use config::{
    Arq, ChannelConfig, Codel, Copies, Fec, Order, Overhead, Probing, Queueing, RateControl, Release, Repairs,
    SlacpConfig,
};
pub use end::End;
pub use exchange::{Input, Output, Released, Verdict};
pub use shortcuts::Shortcuts;
pub use stats::{ChannelStats, Stats};
pub(crate) use waiting::{Pushed, Waiting};
