//! Tells congestion controls whether losses are being repaired.

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
