//! The fate of a packet on a link.

use super::motion::Altered;

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It reaches the other end.
    Delivered,
    /// The channel lost it.
    Lost,
    /// It reaches the other end, but altered.
    Altered(Altered),
}

impl Outcome {
    #[inline(always)]
    pub(super) fn of(lost: bool, altered: Altered) -> Self {
        match altered {
            _ if lost => Outcome::Lost,
            Altered::NOT => Outcome::Delivered,
            altered => Outcome::Altered(altered),
        }
    }

    /// The same, but lost or not.
    pub(super) fn with_loss(self, lost: bool) -> Self {
        match self {
            _ if lost => Outcome::Lost,
            Outcome::Lost => Outcome::Delivered,
            other => other,
        }
    }

    /// True if the packet was marked by the queue.
    pub(super) fn is_marked(self) -> bool {
        matches!(self, Outcome::Altered(Altered { marked: true, .. }))
    }
}
