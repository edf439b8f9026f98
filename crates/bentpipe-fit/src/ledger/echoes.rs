//! Trips from the tap to the sender and back: the receiver's timestamps, and the data that echoes them.
//!
//! Acknowledgements within one tick of the receiver's clock have the same timestamp. The first data that echoes it answers the
//! first of them if the sender answers each one. A sender that repairs losses sends less than it gets acknowledged, so that
//! data may answer a later one.

use std::collections::VecDeque;

/// Maximum number of receiver timestamps that wait for their echo.
const MAX_ECHOES: usize = 1 << 14;

/// A time from one end of the path to the tap and back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trip {
    /// Duration in nanoseconds.
    pub(crate) took: i64,
    /// The transmission that ended it, if it ended with data.
    pub(crate) of: Option<u32>,
    /// Bytes between it and the first data that echoed the same value: during these, the sender received no new
    /// information.
    pub(crate) behind: u64,
    /// Number of acknowledgements that data with this value may answer, and nanoseconds between the first and the last.
    pub(crate) acks: u32,
    pub(crate) apart: i64,
    /// True if earlier values since the last answered one were not echoed.
    pub(crate) skipped: bool,
}

/// Acknowledgements with the same timestamp.
#[derive(Clone, Copy, Debug)]
struct Tick {
    value: u32,
    first: i64,
    last: i64,
    acks: u32,
}

/// Timestamps that wait for their echo.
#[derive(Debug, Default)]
pub(super) struct Echoes {
    waiting: VecDeque<Tick>,
    /// The last of them that was echoed, the bytes of data before that, and whether others were skipped.
    answered: Option<(Tick, u64, bool)>,
}

impl Echoes {
    /// Takes the timestamp of an acknowledgement.
    pub(super) fn acknowledged(&mut self, at: i64, value: u32) {
        let tick = Tick { value, first: at, last: at, acks: 1 };
        match self.waiting.back_mut() {
            Some(last) if last.value == value => {
                last.last = at;
                last.acks = last.acks.saturating_add(1);
            }
            Some(last) if value.wrapping_sub(last.value) as i32 <= 0 => {}
            _ => {
                if self.waiting.len() == MAX_ECHOES {
                    self.waiting.pop_front();
                }
                self.waiting.push_back(tick);
            }
        }
    }

    /// The trip that data with this echo ends: transmission `of`, behind `bytes` of data.
    pub(super) fn answer(&mut self, at: i64, echo: u32, of: u32, bytes: u64) -> Option<Trip> {
        let mut skipped = false;
        while let Some(&tick) = self.waiting.front() {
            let late = echo.wrapping_sub(tick.value) as i32;
            if late < 0 {
                break;
            }
            self.waiting.pop_front();
            self.answered = (late == 0).then_some((tick, bytes, skipped));
            skipped = true;
        }
        let (tick, first, skipped) = self.answered.filter(|(tick, ..)| tick.value == echo)?;
        Some(Trip {
            took: at - tick.first,
            of: Some(of),
            behind: bytes - first,
            acks: tick.acks,
            apart: tick.last - tick.first,
            skipped,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trip_knows_the_acknowledgements_that_may_have_caused_it() {
        let mut echoes = Echoes::default();
        for (at, value) in [(0, 7), (300, 7), (900, 7), (1000, 8), (1100, 8), (2000, 9)] {
            echoes.acknowledged(at, value);
        }
        let first = echoes.answer(5000, 7, 0, 0).expect("a trip");
        assert_eq!((first.took, first.behind, first.acks, first.apart, first.skipped), (5000, 0, 3, 900, false));
        let second = echoes.answer(5400, 7, 1, 100).expect("a trip");
        assert_eq!((second.took, second.behind), (5400, 100));
        // Nothing echoes 8.
        let third = echoes.answer(7000, 9, 2, 200).expect("a trip");
        assert_eq!((third.took, third.acks, third.apart, third.skipped), (5000, 1, 0, true));
        assert!(echoes.answer(8000, 10, 3, 300).is_none());
    }

    /// Acknowledgements out of order: an older timestamp is not waited for.
    #[test]
    fn timestamps_only_grow() {
        let mut echoes = Echoes::default();
        for (at, value) in [(0, 7), (100, 9), (200, 8), (300, 9)] {
            echoes.acknowledged(at, value);
        }
        assert_eq!(echoes.waiting.iter().map(|tick| (tick.value, tick.acks)).collect::<Vec<_>>(), [(7, 1), (9, 2)]);
    }
}
