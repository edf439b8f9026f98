//! Where a simulated end departs from the RFCs. [`Departs`] lists all such rules; the defaults are those of the RFCs.
//! Sender and receiver call these rules without knowing any simulator. `ns2.rs` overrides the rules for ns-2. Without
//! the feature `ns2` that file is not compiled; `Rfc` then gives the answers, which the compiler folds away.

#[cfg(feature = "ns2")]
mod ns2;

#[cfg(not(feature = "ns2"))]
pub(in crate::tcp) use self::Rfc as Departures;
#[cfg(feature = "ns2")]
pub(in crate::tcp) use self::ns2::Ns2 as Departures;

use crate::tcp::config::TcpConfig;
use crate::tcp::congestion::Window;

/// How a sender repairs losses, as far as the departures depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "ns2"), allow(dead_code, reason = "only departures tell them apart"))]
pub(in crate::tcp) enum RepairKind {
    /// Tahoe.
    Restart,
    /// Reno, and the burst estimate.
    Other,
    /// NewReno.
    NewReno,
    /// By SACK.
    Sack,
}

/// The rules from which a simulator may depart.
pub(in crate::tcp) trait Departs {
    /// The departures that the settings ask for.
    fn of(config: &TcpConfig) -> Self;

    /// A window in segments that replaces the initial one until the handshake is done.
    fn window_before_handshake(&self) -> Option<u32> {
        None
    }

    /// True if the SACK blocks of an ACK are ignored. `advances`: it acknowledges new data.
    #[inline(always)]
    fn ignores_sack(&self, _in_recovery: bool, _advances: bool) -> bool {
        false
    }

    /// True if an ACK of new data outside recovery clears the scoreboard.
    #[inline(always)]
    fn forgets_sack(&self) -> bool {
        false
    }

    /// True if a timeout leaves the count of duplicate ACKs as it is.
    fn keeps_duplicates(&self, _kind: RepairKind) -> bool {
        false
    }

    /// True if duplicate ACKs may start a fast retransmit of the segment at `snd_una`.
    fn may_retransmit(&self, _snd_una: u64) -> bool {
        true
    }

    /// True if limited transmit also works after a timeout. It then sends the next segment in order, new or not.
    #[inline(always)]
    fn limited_transmit_after_loss(&self) -> bool {
        false
    }

    /// Limits the segments that NewReno sends in response to an ACK during recovery.
    #[inline(always)]
    fn limit_newreno(&self, _kind: RepairKind, _burst: &mut u32) {}

    /// Limits the segments sent in response to a duplicate ACK outside recovery, the `count`th in a row.
    #[inline(always)]
    fn limit_duplicate(&self, _kind: RepairKind, _count: u32, _threshold: u32, _burst: &mut u32) {}

    /// Handles a duplicate ACK, the `count`th in a row, that starts neither a fast retransmit nor limited transmit.
    fn on_duplicate_without_recovery(&self, _kind: RepairKind, _count: u32, _threshold: u32, _window: &mut Window) {}

    /// True if the ACK that ends Reno's or NewReno's recovery opens the window like any other.
    fn grows_on_exit(&self) -> bool {
        false
    }

    /// True if segments are timed during recovery and a retransmission does not void the measurement (against RFC 6298
    /// §3).
    #[inline(always)]
    fn times_retransmissions(&self) -> bool {
        false
    }

    /// True if the window also grows while unused (against RFC 7661 §4.3).
    fn grows_unused(&self) -> bool {
        false
    }

    /// True if every timeout halves ssthresh, including a repeated one and that of a SYN.
    fn halves_at_every_timeout(&self) -> bool {
        false
    }

    /// True if a lost SYN does not change the timeout (against RFC 6298 §5.7).
    fn keeps_rto_of_syn(&self) -> bool {
        false
    }

    /// True if the receiver acknowledges a duplicate of the last segment like an in-order segment.
    fn takes_repetition_in_order(&self) -> bool {
        false
    }

    /// True if the ACK of a one-way SYN is delayed like an ACK of data.
    fn delays_ack_of_syn(&self) -> bool {
        false
    }

    /// Handles the expiry of the retransmission timer.
    fn on_timeout(&mut self) {}

    /// Handles an ACK of new data.
    #[inline(always)]
    fn on_new_ack(&mut self) {}
}

/// No departures.
#[cfg(not(feature = "ns2"))]
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Rfc;

#[cfg(not(feature = "ns2"))]
impl Departs for Rfc {
    fn of(_: &TcpConfig) -> Self {
        Rfc
    }
}
