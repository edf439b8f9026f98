//! What an ACK reports to congestion control and slow start.

use crate::tcp::delivery::{LostSample, RateSample};
use crate::tcp::recovery::Phase;
use crate::units::{Duration, Time};

/// An ACK of new data.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct AckSample {
    /// Bytes acknowledged.
    pub(in crate::tcp) acked: u64,
    /// Bytes outstanding before it.
    pub(in crate::tcp) flight: u64,
    /// True while pacing alone holds a segment back.
    pub(in crate::tcp) is_held: bool,
    /// True while the sender repairs losses after a timeout.
    pub(in crate::tcp) after_timeout: bool,
    /// Its arrival time.
    pub(in crate::tcp) now: Time,
    /// Its round-trip sample.
    pub(in crate::tcp) rtt: Option<Duration>,
    /// The round trip of the newest segment delivered, measured from the time at which it was sent. Needs RACK.
    pub(in crate::tcp) latest_rtt: Option<Duration>,
    /// The smoothed round trip.
    pub(in crate::tcp) srtt: Option<Duration>,
    /// `snd_una` after the ACK, and `snd_max`.
    pub(in crate::tcp) snd_una: u64,
    pub(in crate::tcp) snd_max: u64,
}

/// What an ACK has delivered, for controls that measure the rate; in bytes.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Delivered {
    /// Its arrival time.
    pub(in crate::tcp) now: Time,
    /// The round trip of the newest segment delivered, if the ACK delivers one that was sent only once.
    pub(in crate::tcp) rtt: Option<Duration>,
    /// The smoothed round trip.
    pub(in crate::tcp) srtt: Option<Duration>,
    /// The delivery rate.
    pub(in crate::tcp) sample: Option<RateSample>,
    /// The first segment with too many losses among those that the ACK shows to be lost ([`LostSample::is_too_high`]).
    pub(in crate::tcp) too_high: Option<LostSample>,
    /// Delivered by this ACK, and by all ACKs so far.
    pub(in crate::tcp) newly: u64,
    pub(in crate::tcp) delivered: u64,
    /// Found lost by this ACK.
    pub(in crate::tcp) lost: u64,
    /// In flight after the ACK, and before it.
    pub(in crate::tcp) pipe: u64,
    pub(in crate::tcp) pipe_before: u64,
    /// When the next packet may leave, not before the arrival of the ACK.
    pub(in crate::tcp) departure: Time,
    /// The recovery phase after the ACK.
    pub(in crate::tcp) phase: Phase,
}

/// Losses found by a timer between ACKs, for controls that measure the rate.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct FoundLost {
    pub(in crate::tcp) now: Time,
    /// Bytes delivered by all ACKs so far.
    pub(in crate::tcp) delivered: u64,
    /// The first segment with too many losses among those found lost ([`LostSample::is_too_high`]).
    pub(in crate::tcp) too_high: Option<LostSample>,
}

/// What an ACK reports about marks with accurate ECN (RFC 9768), for controls that react to their number.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Marks {
    /// Its arrival time.
    pub(in crate::tcp) now: Time,
    /// The window before it, bytes.
    pub(in crate::tcp) before: f64,
    /// Bytes that it delivers, in order or not, and how many of them were marked.
    pub(in crate::tcp) bytes: u64,
    pub(in crate::tcp) marked: u64,
    /// True if some were marked and everything outstanding at the last reduction is acknowledged.
    pub(in crate::tcp) counts: bool,
    /// `snd_una` after the ACK, and `snd_max`.
    pub(in crate::tcp) snd_una: u64,
    pub(in crate::tcp) snd_max: u64,
    /// The smoothed round trip.
    pub(in crate::tcp) srtt: Option<Duration>,
}
