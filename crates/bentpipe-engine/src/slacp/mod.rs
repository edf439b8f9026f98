//! S-LACP, the satellite link access control protocol: a layer between IP and the satellite link.
//!
//! Astuti and Kojo (`transat`, §2) sketch it: logical channels with a treatment each, link retransmission of bounded
//! persistence, FEC, and order that is kept. They simulate its effect only; this is the protocol. Packets come from
//! above, frames go below, and both ends are one machine. It deals in numbers: the driver holds the bytes, knows the
//! packet behind each handle, and does the arithmetic of the erasure code.
//!
//! - Every frame has a number of its own, repetitions too; reports are bitmaps over these numbers (`arq`).
//! - A data frame names its predecessor of the same flow: one flow's loss does not hold up another.
//! - Repair frames take what data leaves of the line, or go out with their block ([`Repairs`]). How many there are
//!   follows the losses that were seen: none where nothing is lost, or where only outages are.
//! - The sender knows the line's rate and keeps the queue itself, with CoDel (RFC 8289): the line below has none.
//!
//! The same machine is `hybrid`'s link layer: one channel, no bytes added, a report for each frame.
//!
//! Not here: fragmentation across frames but for `hybrid`'s S; header compression ([`crate::compression`]); encryption (the
//! gateway's).
//!
//! Reading order: [`config`], [`Frame`], [`classify`], `backlog` what waits (`fair` by flow), `outgoing` a channel's sender and
//! `incoming` its receiver, `fec`, `rate_control`, `releasing` for packets that waited behind a gap, [`End`] the machine.

mod backlog;
pub mod classify;
pub mod config;
mod end;
mod exchange;
mod fair;
mod fec;
mod incoming;
mod outgoing;
mod rate_control;
mod releasing;
mod shortcuts;
mod stats;
mod transmission;

use crate::wire::slacp as frame;
pub use crate::wire::slacp::{DATA_HEADER, Frame, PROTECTED_HEADER, Report};
pub use config::{
    Arq, ChannelConfig, Codel, Copies, Fec, Order, Overhead, Queueing, RateControl, Release, Repairs, SlacpConfig,
};
pub use end::End;
pub use exchange::{Input, Output, Released, Verdict};
pub use shortcuts::Shortcuts;
pub use stats::{ChannelStats, Stats};
