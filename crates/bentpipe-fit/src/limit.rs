//! What limited the sender, if it was not the path.
//!
//! A path can only be measured up to the amount that was sent over it. A sender in slow start sends more in each round
//! trip until something is lost. If the data in flight stays constant instead, the limit is the receiver's window, the
//! sender's buffer, or an application that writes no faster. The capture distinguishes the first from the others, since
//! the receiver announces its window.

use std::fmt;

use crate::ledger::{Fate, Ledger};
use crate::view::{Side, View};

/// If at least this share of the data packets fills the receiver's window, the window was the limit.
const WINDOW: f64 = 0.1;
/// If nothing was in flight and nothing was sent for at least this share of the time, pauses were the limit.
const PAUSED: f64 = 0.1;
/// A round trip counts as having the maximum data in flight from this share of the maximum on.
const FLAT: f64 = 0.9;
/// Number of round trips with the maximum data in flight from which the sender was limited to it: slow start would
/// double it in each. Half of the round trips in the later half are also required.
const ROUND_TRIPS: usize = 4;

/// What limited the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The receiver's window.
    Window,
    /// The application, which paused with nothing in flight.
    Pauses,
    /// The data in flight, which never exceeded this many bytes.
    Flight(u64),
    /// No visible limit, apart from losses and the end of the data.
    Unseen,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Window => f.write_str("the receiver's window was full. A larger receive buffer would show more"),
            Limit::Pauses => {
                f.write_str("the sender's application paused. One that writes without pauses would show more")
            }
            Limit::Flight(bytes) => {
                let (size, unit) = if *bytes < 1_000_000 { (1e3, "kB") } else { (1e6, "MB") };
                write!(
                    f,
                    "the sender kept {:.2} {unit} in flight and no more, by its send buffer or its application. A larger buffer, and a \
                     program that writes all it has, would show more",
                    *bytes as f64 / size
                )
            }
            Limit::Unseen => f.write_str("the sender did not send enough. A longer transfer may show more"),
        }
    }
}

/// What limited the sender, as far as the capture shows.
pub(crate) fn limit(ledger: &Ledger, view: &View) -> Limit {
    let counts = ledger.counts;
    if counts.window_full as f64 > WINDOW * counts.data as f64 {
        return Limit::Window;
    }
    // Near the receiver, everything that has passed is acknowledged.
    let (Side::Sender, [first, .., last]) = (view.side, &ledger.transmissions[..]) else { return Limit::Unseen };
    let whole = last.at - first.at;
    if counts.paused as f64 > PAUSED * whole as f64 {
        return Limit::Pauses;
    }
    // Only the later half counts: an application's first writes wait for the handshake, and slow start ends with losses
    // of its own.
    let later = &ledger.transmissions[ledger.transmissions.partition_point(|sent| sent.at < first.at + whole / 2)..];
    let max = later.iter().map(|sent| sent.flight).max().unwrap_or(0);
    let trip = view.to_receiver.unwrap_or(0).max(1);
    let with_max = later.iter().filter(|sent| sent.flight as f64 >= FLAT * max as f64);
    let mut times: Vec<i64> = with_max.map(|sent| (sent.at - first.at) / trip).collect();
    times.dedup();
    let steady = times.len() >= ROUND_TRIPS && times.len() as i64 * 4 > whole / trip;
    if steady && later.iter().all(|sent| sent.fate != Fate::Lost) { Limit::Flight(max) } else { Limit::Unseen }
}
