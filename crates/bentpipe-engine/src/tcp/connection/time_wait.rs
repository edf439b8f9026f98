//! A connection in TIME-WAIT (RFC 9293 §3.3.2) without what only a sender with data needs: where connections are short, most of them wait.

use std::sync::Arc;

use super::{Challenges, Closed, Connection, Duplex, Role, State};
use crate::tcp::config::TcpConfig;
use crate::tcp::ecn::EcnMode;
use crate::tcp::receiver::Receiver;
use crate::tcp::sender::{Finished, Sender};
use crate::units::Time;

/// What is left of a connection that waits for stray segments. It has nothing to send, and nothing to tell the driver until
/// [`Resting::until`]. For a segment that comes before, [`Resting::wake`] makes a connection of it again.
#[derive(Clone, Debug)]
pub struct Resting {
    config: Arc<TcpConfig>,
    role: Role,
    sender: Finished,
    receiver: Receiver,
    sack: bool,
    timestamps: bool,
    scaled: bool,
    rcv_scale: u8,
    ts_recent: u32,
    ts_recent_at: Time,
    last_ack_sent: u64,
    peer_fin: Option<u64>,
    time_wait: Time,
    pure_acks: u64,
    dsacks: u64,
    challenges: Challenges,
}

impl Resting {
    /// When the connection is closed.
    pub fn until(&self) -> Time {
        self.time_wait
    }

    /// What is left of it then.
    pub fn closed(&self) -> Closed {
        Closed::new(&self.config, self.timestamps.then_some(self.ts_recent))
    }

    /// The connection again. Its sender knows no round trip any more, and needs none.
    pub fn wake(self) -> Connection {
        let sender = Sender::of_finished(&self.config, self.sack, self.sender);
        Duplex {
            state: State::TimeWait,
            receiver: self.receiver,
            sack: self.sack,
            timestamps: self.timestamps,
            has_extras: self.timestamps,
            scaled: self.scaled,
            rcv_scale: self.rcv_scale,
            ts_recent: self.ts_recent,
            ts_recent_at: self.ts_recent_at,
            last_ack_sent: self.last_ack_sent,
            peer_fin: self.peer_fin,
            time_wait: self.time_wait,
            pure_acks: self.pure_acks,
            dsacks: self.dsacks,
            challenges: self.challenges,
            ..Duplex::with_sender(sender, self.config, self.role)
        }
    }
}

impl Connection {
    /// What is left of it, if it is in TIME-WAIT after a transfer without losses and marks, with everything told and sent.
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
            sack: self.sack,
            timestamps: self.timestamps,
            scaled: self.scaled,
            rcv_scale: self.rcv_scale,
            ts_recent: self.ts_recent,
            ts_recent_at: self.ts_recent_at,
            last_ack_sent: self.last_ack_sent,
            peer_fin: self.peer_fin,
            time_wait: self.time_wait,
            pure_acks: self.pure_acks,
            dsacks: self.dsacks,
            challenges: self.challenges,
        })
    }
}

#[cfg(test)]
#[path = "time_wait_tests.rs"]
mod tests;
