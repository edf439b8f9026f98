//! Notices when a single box keeps a queue in the link: a rate above the link's does this to a sender without congestion control,
//! if the link's buffer is so deep that nothing is lost.
//!
//! A queue is not the only reason for long round trips: the route may have become longer, or clients' uploads may delay their ACKs. So
//! if all round trips of a minute were long, the sender pauses for a moment, by less than the excess. If a queue that the
//! sender has built was the reason, the next segments arrive earlier by the pause, and the line was never idle.

use std::fmt;

use bentpipe_engine::units::{Duration, Time};

/// Round trips are compared over this interval.
const SPAN: Duration = Duration::from_secs(60);
/// The minimum number of its seconds with a round trip: a queue that drains now and then is not a standing one.
const MIN_SECONDS: u32 = 50;
/// The excess over the configured round trip that is noticed: half of that, and at least this much.
const MIN_EXCESS: Duration = Duration::from_millis(200);
/// The pause is half of the excess, and at most this.
const MAX_PAUSE: Duration = Duration::from_millis(500);
/// The time until the next pause, if the last one has shortened nothing. It doubles up to four times.
const RETRY: Duration = Duration::from_secs(10 * 60);
const MAX_DOUBLINGS: u32 = 4;
/// The queue is gone if none was found for this long.
const QUIET: Duration = Duration::from_secs(5 * 60);

/// What to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// The shortest round trip of the minute, and the configured one.
    Stands {
        shortest: Duration,
        told: Duration,
    },
    Gone,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Said::Stands { shortest, told } => write!(
                f,
                "all round trips to clients in the last minute took {:.1} s or more, and `satellite.round_trip` is {} ms: the gateway's \
                 segments wait in a queue of the link. Lower `satellite.rate` to what the link carries, or `uplink.window` if it is set, or \
                 set `sender = \"kernel\"`",
                shortest.as_secs_f64(),
                told.as_millis_f64()
            ),
            Said::Gone => f.write_str("the gateway's segments have not waited in a queue of the link for five minutes"),
        }
    }
}

/// A pause whose effect is not known yet.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// The shortest round trip of the minute before.
    shortest: Duration,
    /// Its end.
    until: Time,
    length: Duration,
    /// True if a segment sent after it was acknowledged, and if one arrived earlier.
    has_sample: bool,
    has_shortened: bool,
}

/// The round trips of one minute, and what was found.
#[derive(Debug)]
pub(super) struct Standing {
    told: Duration,
    since: Time,
    shortest: Option<Duration>,
    /// The last second with a round trip, and the number of seconds with one.
    second: Option<u64>,
    seconds: u32,
    trial: Option<Trial>,
    /// No pause before this instant, and the number of pauses in a row without effect.
    try_at: Time,
    in_vain: u32,
    /// When a queue was last found, and its length as a time.
    found: Option<(Time, Duration)>,
    is_said: bool,
    news: Option<Said>,
}

impl Standing {
    /// `told`: the configured round trip.
    pub(super) fn new(told: Duration) -> Self {
        Standing {
            told,
            since: Time::ZERO,
            shortest: None,
            second: None,
            seconds: 0,
            trial: None,
            try_at: Time::ZERO,
            in_vain: 0,
            found: None,
            is_said: false,
            news: None,
        }
    }

    /// The length of the queue, as a time; zero if there is none.
    pub(super) fn queue(&self) -> Duration {
        self.found.map_or(Duration::ZERO, |(_, queue)| queue)
    }

    /// The message to log, if there is a new one. Also forgets a queue that was not found again.
    pub(super) fn news(&mut self, now: Time) -> Option<Said> {
        if let Some((at, _)) = self.found
            && now.saturating_since(at) >= QUIET
        {
            self.found = None;
            if std::mem::take(&mut self.is_said) {
                return Some(Said::Gone);
            }
        }
        self.news.take()
    }

    /// Takes a round trip. Returns the instant until which to pause, if a pause is to show whether there is a queue.
    pub(super) fn measured(&mut self, now: Time, round_trip: Duration) -> Option<Time> {
        if let Some(trial) = self.trial {
            self.judge(now, round_trip, trial);
            return None;
        }
        if self.shortest.is_none() {
            self.since = now;
        }
        self.shortest = Some(self.shortest.map_or(round_trip, |shortest| shortest.min(round_trip)));
        let second = Some(now.as_nanos() / 1_000_000_000);
        if second != self.second {
            (self.second, self.seconds) = (second, self.seconds + 1);
        }
        if now.saturating_since(self.since) < SPAN {
            return None;
        }
        let seconds = std::mem::take(&mut self.seconds);
        let shortest = self.shortest.take()?;
        let excess = shortest - self.told;
        if seconds < MIN_SECONDS || excess < MIN_EXCESS.max(self.told.div_floor(2)) || now < self.try_at {
            return None;
        }
        let length = excess.div_floor(2).min(MAX_PAUSE);
        let until = now + length;
        self.trial = Some(Trial { shortest, until, length, has_sample: false, has_shortened: false });
        Some(until)
    }

    /// Compares a round trip with those before the pause.
    fn judge(&mut self, now: Time, round_trip: Duration, trial: Trial) {
        let Trial { shortest, until, length, .. } = trial;
        let is_over = now.saturating_since(until) >= shortest.saturating_mul(2);
        // Its segment was sent after the end of the pause, and soon: a round trip after an idle time says nothing of the pause.
        let is_sample = now.saturating_sub(round_trip) >= until && !is_over;
        let is_shorter = is_sample && round_trip + length.div_floor(2) <= shortest;
        let trial = Trial {
            has_sample: trial.has_sample || is_sample,
            has_shortened: trial.has_shortened || is_shorter,
            ..trial
        };
        if is_shorter {
            self.found = Some((now, shortest - self.told));
            if !std::mem::replace(&mut self.is_said, true) {
                self.news = Some(Said::Stands { shortest, told: self.told });
            }
        }
        // Round trips that the pause has shortened do not count towards the next minute.
        self.trial = Some(trial).filter(|_| !is_over);
        if self.trial.is_none() && trial.has_shortened {
            self.in_vain = 0;
        } else if self.trial.is_none() && trial.has_sample {
            self.try_at = now + RETRY.saturating_mul(1 << self.in_vain);
            self.in_vain = (self.in_vain + 1).min(MAX_DOUBLINGS);
        }
    }
}
