//! The sender's parts that a recovery works on.

use crate::tcp::congestion::Congestion;
use crate::tcp::departures::Departures;
use crate::tcp::loss::scoreboard::Scoreboard;
use crate::tcp::sequence::SequenceSpace;
use crate::tcp::timer::RetransmissionTimer;

/// The parts of the sender that a recovery works on.
#[derive(Debug)]
pub(in crate::tcp) struct Parts<'a> {
    pub(in crate::tcp) seq: &'a mut SequenceSpace,
    pub(in crate::tcp) congestion: &'a mut Congestion,
    pub(in crate::tcp) scoreboard: &'a mut Scoreboard,
    pub(in crate::tcp) timer: &'a mut RetransmissionTimer,
    pub(in crate::tcp) departures: &'a Departures,
    /// Segments that may still be sent in response to the current event.
    pub(in crate::tcp) burst: &'a mut u32,
}
