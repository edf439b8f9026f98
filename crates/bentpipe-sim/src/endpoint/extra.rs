//! State that few ends have.

use bentpipe_engine::units::Time;

use crate::pacer::Pacer;
use crate::responses::Responses;

/// It is made when it is first needed.
#[derive(Clone, Debug)]
pub(super) struct Extra {
    /// When the next write is due, for an application that writes at a rate.
    pub(super) pacer: Option<Pacer>,
    /// The times of the responses to its requests, if it has made any.
    pub(super) responses: Option<Responses>,
    /// When its stack learns that the path has changed.
    pub(super) path_change: Time,
    /// Time of the application's next action while the path has not changed.
    pub(super) action: Time,
    /// When data last arrived, at the receiver of a source that stops.
    pub(super) read_at: Option<Time>,
}

impl Default for Extra {
    fn default() -> Self {
        let never = Time::NEVER;
        Extra { pacer: None, responses: None, path_change: never, action: never, read_at: None }
    }
}
