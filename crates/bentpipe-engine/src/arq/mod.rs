//! Selective-repeat ARQ over a link: transmissions, arrivals, and delivery order.
//!
//! One implementation for `hybrid`'s link layer and for S-LACP. Every transmission has a number of its own, so a
//! repeated frame gets a new one. The receiver reports which numbers arrived. On a link that keeps the order, each
//! older number that did not arrive is lost. No transmission is ambiguous, so each is judged once, whatever the window
//! is.
//!
//! Reading order: [`Flight`] the sender's transmissions, [`History`] the receiver's record of them, [`Resequencer`]
//! order per flow. They handle numbers; frames and their bytes are the driver's.

mod flight;
mod history;
mod resequencer;

pub(crate) use crate::wire::slacp::Report;
pub(crate) use flight::{Flight, Verdict};
pub(crate) use history::History;
pub(crate) use resequencer::{Resequencer, Skip, Taken};
