//! Figure 16: the windows of two connections, and the overflows of the gateway's buffer that hit one or both.

use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{DropReason, Event, Probe, Who};
use bentpipe_engine::units::Time;
use bentpipe_sim::{Observer, Packet, Passage};

use super::setting::{Scheme, Setting};
use crate::lab::Lab;
use crate::request::ReproduceError;

/// Two connections of figure 15 (H-Q12).
pub(super) fn setting() -> Setting {
    Setting { connections: 2, seconds: 150, ..Setting::new(Scheme::EndToEnd, 100, 100, 100, 0.1) }
}

/// A trace of two connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows {
    /// By connection: time in seconds, window in packets.
    pub(super) windows: [Vec<(f64, f64)>; 2],
    /// Drops: time in seconds, and the connection.
    drops: Vec<(f64, u32)>,
}

/// Drops within this time belong to one overflow, seconds: the round trip of both links (200 ms) and the full queue (100
/// packets at 225 per second).
const ONE_OVERFLOW: f64 = 0.65;

impl Windows {
    /// Overflows: start and end in seconds, and, for each connection, true if it lost packets.
    pub(super) fn overflows(&self) -> Vec<(f64, f64, [bool; 2])> {
        let mut all: Vec<(f64, f64, [bool; 2])> = Vec::new();
        for &(at, flow) in &self.drops {
            let fresh = all.last().is_none_or(|last| at > last.0 + ONE_OVERFLOW);
            if fresh {
                all.push((at, at, [false; 2]));
            }
            let last = all.last_mut().expect("just pushed");
            last.1 = at;
            last.2[flow as usize] = true;
        }
        all
    }
}

impl Probe for Windows {
    fn event(&mut self, now: Time, who: Who, event: &Event) {
        if let Event::Window { cwnd, .. } = *event
            && let 0 | 2 = who.0
        {
            self.windows[(who.0 / 2) as usize].push((now.as_secs_f64(), cwnd as f64 / 460.0));
        }
    }
}

impl Observer for Windows {
    fn packet(&mut self, now: Time, _: LinkId, passage: Passage, packet: &Packet) {
        if passage == Passage::Dropped(DropReason::QueueFull) && packet.forward {
            self.drops.push((now.as_secs_f64(), packet.connection.0));
        }
    }
}

/// A run of two connections.
pub(super) fn watch(lab: &Lab<'_>) -> Result<Windows, ReproduceError> {
    let scenario = setting().scenario().with_seed(lab.seed());
    let mut windows = Windows::default();
    lab.watched(&scenario, lab.seed(), &mut windows)?;
    Ok(windows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_one_round_trip_are_one_overflow() {
        let windows = Windows { drops: vec![(1.0, 0), (1.2, 1), (3.0, 1), (3.1, 1)], ..Windows::default() };
        assert_eq!(windows.overflows(), [(1.0, 1.2, [true, true]), (3.0, 3.1, [false, true])]);
    }
}
