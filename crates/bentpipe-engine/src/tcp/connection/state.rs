//! The states of a connection, and which side opens it.

/// Connection states (RFC 9293 §3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// No connection.
    Closed,
    /// Waits for a SYN.
    Listen,
    /// Has sent a SYN.
    SynSent,
    /// Has received and sent a SYN.
    SynReceived,
    /// Data flows.
    Established,
    /// Has sent a FIN.
    FinWait1,
    /// Its FIN is acknowledged; the other direction is open.
    FinWait2,
    /// Has received a FIN; its own direction is open.
    CloseWait,
    /// Both ends have sent FINs; its own is not acknowledged yet.
    Closing,
    /// Has received a FIN, then sent its own.
    LastAck,
    /// Waits until stray segments have expired.
    TimeWait,
}

impl State {
    /// True in a state in which data or a FIN may be sent.
    #[inline(always)]
    pub(super) fn sends_data(self) -> bool {
        matches!(self, State::Established | State::FinWait1 | State::CloseWait | State::Closing | State::LastAck)
    }
}

/// Which side opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends the SYN when it is opened.
    Active,
    /// Waits for a SYN.
    Passive,
}
