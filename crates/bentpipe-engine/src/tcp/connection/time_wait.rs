//! A connection in TIME-WAIT (RFC 9293 §3.3.2), without the state that only a sender with data needs. Where connections
//! are short, most of them are in TIME-WAIT.

use alloc::sync::Arc;

use super::{Closed, Connection, Duplex, Kept, Role, State};
use crate::tcp::config::TcpConfig;
use crate::tcp::ecn::EcnMode;
use crate::tcp::receiver::Receiver;
use crate::tcp::sender::{Finished, Sender};
use crate::units::Time;

/// The remains of a connection that waits for stray segments. It has nothing to send, and nothing to tell the driver
/// until [`Resting::until`]. If a segment arrives before that, [`Resting::wake`] turns it back into a connection.
#[derive(Clone, Debug)]
pub struct Resting {
    config: Arc<TcpConfig>,
    role: Role,
    sender: Finished,
    receiver: Receiver,
    kept: Kept,
}

impl Resting {
    /// When the connection is closed.
    pub fn until(&self) -> Time {
        self.kept.time_wait
    }

    /// What remains of it after that time.
    pub fn closed(&self) -> Closed {
        Closed::new(&self.config, self.kept.echo())
    }

    /// Restores the connection. Its sender has lost its round-trip estimate, and needs none.
    pub fn wake(self) -> Connection {
        let sender = Sender::of_finished(&self.config, self.kept.sack, self.sender);
        Duplex {
            state: State::TimeWait,
            receiver: self.receiver,
            has_extras: self.kept.timestamps,
            kept: self.kept,
            ..Duplex::with_sender(sender, self.config, self.role)
        }
    }
}

impl Connection {
    /// The remains of the connection, if it is in TIME-WAIT after a transfer without losses and marks, and has nothing
    /// left to report or to send.
    pub fn resting(&self) -> Option<Resting> {
        let waits = self.state == State::TimeWait && !self.pending.any() && self.reset.is_none();
        let is_silent = self.receiver.is_silent() && self.ecn.mode == EcnMode::Off;
        if !waits || !is_silent {
            return None;
        }
        Some(Resting {
            config: self.config.clone(),
            role: self.role,
            sender: self.sender.finished()?,
            receiver: self.receiver.clone(),
            kept: self.kept,
        })
    }
}

#[cfg(test)]
#[path = "time_wait_tests.rs"]
mod tests;
