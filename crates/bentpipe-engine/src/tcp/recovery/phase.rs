//! Whether losses are being repaired: what congestion controls know of recovery.

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
