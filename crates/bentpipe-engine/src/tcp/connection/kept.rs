//! State that a connection needs until its end, TIME-WAIT included, besides its two halves.

use super::NO_SCALE;
use super::challenges::Challenges;
use crate::units::Time;

/// The negotiated options, the peer's latest values, and counters. Fields used for every segment come first.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Kept {
    /// SACK was negotiated.
    pub(super) sack: bool,
    pub(super) timestamps: bool,
    /// Both SYNs had the window scale option.
    pub(super) scaled: bool,
    /// Shift of our advertised windows.
    pub(super) rcv_scale: u8,
    /// The TSval to echo, and the ACK that we had sent when it arrived (RFC 7323 §4.3).
    pub(super) ts_recent: u32,
    pub(super) last_ack_sent: u64,
    /// When TS.Recent was last updated.
    pub(super) ts_recent_at: Time,
    pub(super) pure_acks: u64,
    /// Sequence number of the peer's FIN.
    pub(super) peer_fin: Option<u64>,
    /// When TIME-WAIT ends; [`Time::NEVER`] in other states.
    pub(super) time_wait: Time,
    /// Duplicates that the peer has reported (RFC 2883).
    pub(super) dsacks: u64,
    pub(super) challenges: Challenges,
}

impl Kept {
    /// The state before anything is negotiated.
    pub(super) fn new() -> Self {
        Kept {
            sack: false,
            timestamps: false,
            scaled: false,
            rcv_scale: NO_SCALE,
            ts_recent: 0,
            last_ack_sent: 0,
            ts_recent_at: Time::ZERO,
            pure_acks: 0,
            peer_fin: None,
            time_wait: Time::NEVER,
            dsacks: 0,
            challenges: Challenges::default(),
        }
    }

    /// The TSval to echo, if timestamps are in use.
    pub(super) fn echo(&self) -> Option<u32> {
        self.timestamps.then_some(self.ts_recent)
    }
}
