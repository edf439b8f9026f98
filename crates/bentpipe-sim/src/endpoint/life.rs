//! Makes the end of a connection from a model, and keeps what remains of the end.

use bentpipe_engine::network::EndId;
use bentpipe_engine::tcp::{Connection, State};
use bentpipe_engine::units::Time;

use super::TcpEnd;
use crate::ended::{Ended, Outcome, Rest};
use crate::transport::Transport;

impl TcpEnd {
    /// Makes this end the model with this number: its clones become ends by [`TcpEnd::begin`].
    pub(crate) fn set_model(&mut self, number: u32) {
        self.model = Some(number);
    }

    /// Turns a clone of the model into the end `end`. The one that opens the connection does so `now`.
    pub(crate) fn begin(&mut self, end: EndId, now: Time) {
        (self.end, self.start) = (end, now);
        if !self.opened {
            self.plan(self.first_action());
        }
    }

    /// True if its connection is closed or in TIME-WAIT.
    #[inline(always)]
    pub(crate) fn is_over(&self) -> bool {
        matches!(&self.connection, Transport::Tcp(tcp) if matches!(tcp.state(), State::Closed | State::TimeWait))
    }

    /// Restores the end of a connection in TIME-WAIT from this model. It is not reduced again.
    pub(crate) fn woken(&self, end: EndId, outcome: &Outcome, connection: Connection) -> TcpEnd {
        let &Outcome { connected_at, acked_at, received_at, aborted, received, .. } = outcome;
        TcpEnd {
            connection: Transport::Tcp(connection),
            end,
            opened: true,
            read: received,
            next_action: Time::NEVER,
            requests_left: 0,
            connected_at,
            acked_at,
            received_at,
            aborted,
            model: None,
            ..self.clone()
        }
    }

    /// When data last arrived, at the receiver of a source that stops.
    pub(crate) fn read_at(&self) -> Option<Time> {
        self.extra.as_ref()?.read_at
    }

    /// Its results so far.
    pub(crate) fn outcome(&self) -> Outcome {
        Outcome {
            connected_at: self.connected_at,
            acked_at: self.acked_at,
            received_at: self.received_at,
            aborted: self.aborted,
            received: self.connection.received(),
            stats: self.connection.stats(),
        }
    }

    /// What remains of it, if its connection is closed or in TIME-WAIT and it has nothing more to do. The end of a source
    /// that stops is kept, because its last arrival is a result.
    pub(crate) fn ended(&self) -> Option<Ended> {
        let Transport::Tcp(connection) = &self.connection else { return None };
        if !self.is_done() || self.planned() != Time::NEVER || self.read_at().is_some() {
            return None;
        }
        let (rest, model) = match (connection.closed(), self.model) {
            (Some(closed), _) => (Rest::Closed(closed), 0),
            (None, Some(model)) => (Rest::Waits(Box::new(connection.resting()?)), model),
            (None, None) => return None,
        };
        Some(Ended { outcome: self.outcome(), rest, ns2_lengths: self.ns2_lengths, model })
    }
}
