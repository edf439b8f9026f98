//! The readings of a gateway that listens for hosts' connections.

use super::{Readings, Value, total};

/// SYNs that the kernel turned away, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unqueued {
    /// Answered by a SYN cookie. TPROXY does not match the client's ACK, so the connection is reset.
    pub(crate) cookies: u64,
    /// Dropped because the queue of half-open connections was full, or that of connections not yet accepted by the gateway.
    pub(crate) full: u64,
    /// Dropped for other reasons.
    pub(crate) other: u64,
}

impl Readings {
    /// Adds the SYNs that never reached the gateway.
    pub(crate) fn add_unqueued(&mut self, counted: Unqueued) {
        let (metric, help) = (
            total!("syns_turned_away"),
            "SYNs that the kernel turned away in this network namespace: answered by a cookie, which ends in a reset; dropped because the \
             queue of half-open or of accepted connections was full; dropped for other reasons, such as no route back.",
        );
        let Unqueued { cookies, full, other } = counted;
        for (reason, count) in [("cookie", cookies), ("full", full), ("other", other)] {
            let value = Value::Total(count);
            self.add_labelled("listener", ("syns_turned_away", metric, help), ("reason", reason), value);
        }
    }
}
