//! Times of responses: how long a program that asks has to wait.

use bentpipe_engine::units::{Duration, Time};

/// The time of each response of a flow with requests, in order: from the request until the last byte of the response has
/// arrived. The first request is made when the flow starts, so its time includes the opening of the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Responses {
    times: Vec<Duration>,
    /// When the request without a response was made, if there is one.
    asked_at: Option<Time>,
}

impl Responses {
    /// A request is made at `now`.
    pub(crate) fn ask(&mut self, now: Time) {
        self.asked_at = Some(now);
    }

    /// The response to the last request has arrived completely at `now`.
    pub(crate) fn arrived(&mut self, now: Time) {
        self.times.extend(self.asked_at.take().map(|asked_at| now.saturating_since(asked_at)));
    }

    /// True if the last request has no response.
    pub fn is_waiting(&self) -> bool {
        self.asked_at.is_some()
    }

    /// The times, in the order of the requests.
    pub fn times(&self) -> &[Duration] {
        &self.times
    }
}
