//! ESA's Satellite Transport Protocol: a transport for the satellite segment only.
//!
//! As described by Durante and Listanti (2001) and by Canhoto and Anzaloni, "Study of a New Transport Protocol for
//! Satellite Links" (the `stp` paper), §II: a constant window of the provisioned bandwidth times the round trip, no
//! slow start, no congestion avoidance, SACK, and one timer of fixed length per segment.
//!
//! For comparison, [`StpConfig::polls`] selects the protocol of the same name by Henderson and Katz (1997; 1999), which
//! follows SSCOP (ITU-T Q.2110), as far as the `stp` paper describes it in its section I. The sender has no timers for
//! data and polls the receiver's state at an interval. The receiver answers polls, and reports data beyond a gap at
//! once. It is implemented in `polls`.
//!
//! It opens, closes and resets "as TCP" (ibid.), and its receiver resequences and acknowledges as TCP's does, so both
//! parts are TCP's: [`Connection`] is [`Duplex`] with its own [`Sender`]. Its segments are TCP's [`Segment`]s with
//! fewer fields; [`wire::stp`](crate::wire::stp) has their wire format. `docs/specs/stp.md` lists the decisions where
//! the papers leave something open.

mod config;
mod flight;
mod line;
mod polls;
mod sender;

pub use config::{Arming, StpConfig};
pub use sender::Sender;

use crate::tcp::{Duplex, Role};

pub use crate::tcp::{Abort, Input, Output, Segment, State};

/// One end of an STP connection.
pub type Connection = Duplex<Sender>;

impl Connection {
    /// A connection that is not open yet.
    pub fn new(config: StpConfig, role: Role) -> Self {
        Duplex::with_sender(Sender::new(config), config.shared().into(), role)
    }
}

#[cfg(test)]
mod tests;
