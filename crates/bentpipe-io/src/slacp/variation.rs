//! The variation of the one-way delay of frames (RFC 3550 §6.4.1).

use bentpipe_engine::units::{Duration, Time};

/// The time in the form used in frames.
pub(super) fn microseconds(now: Time) -> u32 {
    (now.as_nanos() / 1000) as u32
}

//= RFC 3550 §6.4.1: J(i) = J(i-1) + (|D(i-1,i)| - J(i-1))/16
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Variation {
    /// Our clock minus the far end's at the last frame, in microseconds modulo 2^32.
    transit: Option<u32>,
    /// The variation in units of 1/16 µs.
    pub(super) scaled: u64,
}

impl Variation {
    pub(super) fn get(&self) -> Duration {
        Duration::from_micros(self.scaled / 16)
    }

    pub(super) fn note(&mut self, now: Time, sent: u32) {
        let transit = microseconds(now).wrapping_sub(sent);
        if let Some(before) = self.transit.replace(transit) {
            let difference = (transit.wrapping_sub(before) as i32).unsigned_abs();
            self.scaled = self.scaled + u64::from(difference) - (self.scaled + 8) / 16;
        }
    }
}
