//! Whether losses are being repaired, and what then chooses the next segment.

/// The sender's recovery phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No loss is known.
    Open,
    /// Fast recovery.
    Recovery,
    /// After a timeout or Tahoe's restart, until `recover` is acknowledged.
    Loss,
}

/// What chooses the next segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum Chooser {
    /// The window.
    Window,
    /// The pipe.
    Pipe,
    /// The run of the burst estimate.
    Run,
}
