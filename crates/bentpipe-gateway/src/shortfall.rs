//! Notices when a link carries less than its configured rate: once a minute, by the rate that the sender has found.
//!
//! The sender itself comes down within seconds and looks for more again and again
//! (`bentpipe_engine::slacp::rate_control`); a minute's mean hides what a shower or an outage of seconds does.

use std::fmt;

use bentpipe_engine::units::{Duration, Rate, Time};

use crate::log::megabits;

/// The interval of the samples.
const LOOK: Duration = Duration::from_secs(1);
/// Number of samples of a mean.
const SAMPLES: u64 = 60;
/// A mean below this share of the configured rate is a shortfall; it is over with a mean of the second one or more.
/// Packaged alerts use the first one, too.
const LESS: f64 = 0.8;
const ENOUGH: f64 = 0.9;

/// What to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Less { used: u64, told: Rate },
    Enough { told: Rate },
}

impl Said {
    /// The line about a peer with this name. `key` is the place of its rate in the settings.
    pub(crate) fn line(self, name: &impl fmt::Display, key: &str) -> String {
        match self {
            Said::Less { used, told } => format!(
                "the link to {name} carried about {} in the last minute, but `{key}` is {}: lower it to what the link carries, or set \
                 `shared = true` in `[satellite]` if others use the link, too",
                megabits(used),
                megabits(told.bits_per_second())
            ),
            Said::Enough { told } => {
                format!("the link to {name} carries `{key}` again, {}", megabits(told.bits_per_second()))
            }
        }
    }
}

/// The samples of one link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shortfall {
    sum: u64,
    count: u64,
    is_said: bool,
}

impl Shortfall {
    /// Takes the sample of a second.
    pub(crate) fn look(&mut self, told: Rate, used: Rate) -> Option<Said> {
        self.sum += used.bits_per_second().min(told.bits_per_second());
        self.count += 1;
        if self.count < SAMPLES {
            return None;
        }
        let used = std::mem::take(&mut self.sum) / std::mem::take(&mut self.count);
        let share = used as f64 / told.bits_per_second() as f64;
        match self.is_said {
            false if share < LESS => {
                self.is_said = true;
                Some(Said::Less { used, told })
            }
            true if share >= ENOUGH => {
                self.is_said = false;
                Some(Said::Enough { told })
            }
            _ => None,
        }
    }
}

/// When to take samples.
#[derive(Debug)]
pub(crate) struct Looks {
    next: Time,
}

impl Looks {
    pub(crate) fn new() -> Self {
        Looks { next: Time::ZERO }
    }

    /// True once a second.
    pub(crate) fn is_due(&mut self, now: Time) -> bool {
        let is_due = now >= self.next;
        if is_due {
            self.next = now + LOOK;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mega(bits: u64) -> Rate {
        Rate::from_bits_per_second(bits * 1_000_000).expect("not zero")
    }

    /// Said once when it begins and once when it is over, whatever a sender that looks for more does in between.
    #[test]
    fn a_shortfall_is_said_twice() {
        let mut shortfall = Shortfall::default();
        let mut said = Vec::new();
        for second in 0..600 {
            let used = match second {
                // A shower of 10 s does not count.
                20..30 => 5,
                120..400 if second % 10 == 0 => 12,
                120..400 => 9,
                _ => 20,
            };
            said.extend(shortfall.look(mega(20), mega(used)).map(|said| (second, said)));
        }
        let less = Said::Less { used: 9_300_000, told: mega(20) };
        assert_eq!(said, [(179, less), (479, Said::Enough { told: mega(20) })]);
        let line = less.line(&"peer a", "peers.rate");
        assert!(
            line.starts_with(
                "the link to peer a carried about 9.300 Mbit/s in the last minute, but `peers.rate` is 20.000"
            ),
            "{line}"
        );
    }

    /// Between the two bounds nothing changes, so that a link at one of them does not fill the log.
    #[test]
    fn a_rate_between_the_bounds_is_silent() {
        let mut shortfall = Shortfall::default();
        assert!((0..600).all(|_| shortfall.look(mega(20), mega(17)).is_none()));
    }
}
