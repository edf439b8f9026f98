//! ACKs that adapt to the traffic (`ack.adapt`), as Linux's do: tcp_input.c, `tcp_event_data_recv`, `tcp_measure_rcv_mss`; tcp_output.c,
//! `tcp_send_delayed_ack`; tcp_timer.c, `tcp_delack_timer_handler`; tcp.c, `tcp_cleanup_rbuf`.

use crate::units::Duration;

/// Maximum delay in microseconds (`TCP_DELACK_MAX`).
const MAX_DELAY: u32 = 200_000;
/// Maximum wait of any ACK: a sender's minimum timeout less a tick of 4 ms (`tcp_delack_max`).
const MAX_WAIT: Duration = Duration::from_millis(196);
/// The assumed data bytes of a full segment before any has arrived (`TCP_MSS_DEFAULT`).
const FIRST_FULL: u16 = 536;
/// If two segments in a row carry the same amount of data, and at least this much, they count as full: 536 bytes, less
/// 12 of timestamps.
const MIN_FULL: u16 = 524;

/// The segments since the last ACK that end a burst of the peer: those with PSH, and those that are not full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    None,
    One,
    /// A second end, by a segment that is not full.
    Two,
}

/// What the receiver has learned about the traffic. Each flow has one, so it is small.
#[derive(Clone, Copy, Debug)]
pub(super) struct Adaptive {
    /// Current ACK delay in microseconds; zero before the first data.
    delay: u32,
    /// Data bytes of a full segment.
    full: u16,
    /// Data bytes of the last segment, if it seemed not full but may turn out to be.
    last: u16,
    ends: Ends,
}

/// A span in whole microseconds.
fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_nanos() / 1000).unwrap_or(u32::MAX)
}

impl Adaptive {
    pub(super) fn new() -> Self {
        Adaptive { delay: 0, full: FIRST_FULL, last: 0, ends: Ends::None }
    }

    /// Data bytes of a full segment.
    #[inline(always)]
    pub(super) fn full(&self) -> u32 {
        u32::from(self.full)
    }

    /// Takes a segment with `bytes` of new data; a full segment has at most `mss` bytes.
    pub(super) fn on_segment(&mut self, bytes: u32, mss: u16) {
        let last = core::mem::take(&mut self.last);
        // A joined segment consists of full ones.
        let bytes = bytes.min(u32::from(u16::MAX)) as u16;
        if bytes >= self.full {
            self.full = bytes.min(mss);
            return;
        }
        if bytes >= MIN_FULL {
            if bytes == last {
                self.full = bytes;
                return;
            }
            self.last = bytes;
        }
        self.ends = if self.ends == Ends::None { Ends::One } else { Ends::Two };
    }

    /// Records that the segment has PSH.
    pub(super) fn on_push(&mut self) {
        if self.ends == Ends::None {
            self.ends = Ends::One;
        }
    }

    /// True if the data since the last ACK is to be acknowledged once the program has read everything. If this end
    /// answers data with data, a single end waits for the answer.
    pub(super) fn ends(&self, answers: bool) -> bool {
        match self.ends {
            Ends::None => false,
            Ends::One => !answers,
            Ends::Two => true,
        }
    }

    /// Records that an ACK is sent.
    #[inline(always)]
    pub(super) fn acknowledged(&mut self) {
        self.ends = Ends::None;
    }

    /// Takes in-order data that arrives `gap` after the previous such data. `min`: the minimum delay. `timeout`: a
    /// timeout of this end. Returns true if quick ACKs are due: at the first data, and after a pause longer than a
    /// timeout.
    pub(super) fn on_next(&mut self, gap: Duration, min: Duration, timeout: Duration) -> bool {
        let min = micros(min);
        if self.delay == 0 {
            self.delay = min;
            return true;
        }
        let between = micros(gap);
        if between <= min / 2 {
            self.delay = self.delay / 2 + min / 2;
        } else if between < self.delay {
            self.delay = (self.delay / 2 + between).min(MAX_DELAY.max(min));
        } else {
            return gap > timeout;
        }
        false
    }

    /// True if data sent this long after received data counts as an answer to it.
    pub(super) fn is_soon(&self, since: Duration) -> bool {
        since < self.delay()
    }

    /// The maximum wait of an ACK, with a round trip of `rtt`.
    pub(super) fn wait(&self, min: Duration, rtt: Duration) -> Duration {
        self.delay().min(rtt).min(MAX_WAIT).max(min)
    }

    fn delay(&self) -> Duration {
        Duration::from_micros(u64::from(self.delay))
    }

    /// Doubles the delay, because an ACK has waited in vain.
    pub(super) fn on_timer(&mut self, min: Duration) {
        self.delay = self.delay.saturating_mul(2).min(MAX_DELAY.max(micros(min)));
    }

    /// Sets the delay back to the minimum.
    pub(super) fn reset(&mut self, min: Duration) {
        self.delay = micros(min);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: Duration = Duration::from_millis(40);
    const NEVER: Duration = Duration::MAX;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Gaps of 94 ms: the timer doubles the delay from 40 to 80 and 160 ms. From then on it is half of itself plus the
    /// gap: 174, 181, 184.5, towards 188. Gaps of 20 ms bring it back to 40.
    #[test]
    fn the_delay_follows_the_gaps() {
        let mut adaptive = Adaptive::new();
        assert!(adaptive.on_next(ms(0), MIN, NEVER));
        let mut waits = Vec::new();
        for gap in [94, 94, 94, 94, 94, 20, 20, 20] {
            waits.push(adaptive.wait(MIN, NEVER));
            if adaptive.wait(MIN, NEVER) < ms(gap) {
                adaptive.on_timer(MIN);
            }
            assert!(!adaptive.on_next(ms(gap), MIN, NEVER));
        }
        let micros = [40_000, 80_000, 174_000, 181_000, 184_500, 186_250, 113_125, 76_562];
        let expected = micros.map(Duration::from_micros);
        assert_eq!(waits, expected);
    }

    /// The delay grows to 200 ms; the wait is 196 ms, or one round trip but at least 40 ms.
    #[test]
    fn the_wait_is_bounded() {
        let mut adaptive = Adaptive::new();
        adaptive.on_next(ms(0), MIN, NEVER);
        for _ in 0..5 {
            adaptive.on_timer(MIN);
        }
        assert_eq!([NEVER, ms(100), ms(30)].map(|rtt| adaptive.wait(MIN, rtt)), [ms(196), ms(100), ms(40)]);
        assert!(adaptive.is_soon(ms(199)) && !adaptive.is_soon(ms(200)));
    }

    /// 536 bytes count as full until a longer segment arrives, up to the MSS. Two segments of 600 in a row also count
    /// as full.
    #[test]
    fn a_full_segment_is_measured() {
        let mut adaptive = Adaptive::new();
        let full = [100, 100, 1448, 2896, 600, 500, 600, 600].map(|bytes| {
            adaptive.on_segment(bytes, 1460);
            adaptive.full()
        });
        assert_eq!(full, [536, 536, 1448, 1460, 1460, 1460, 1460, 600]);
    }

    /// A segment that is not full is an end, and so is a full one with PSH. An end that answers acknowledges the second
    /// one that is not full.
    #[test]
    fn ends_are_counted() {
        let mut adaptive = Adaptive::new();
        adaptive.on_segment(1000, 1000);
        assert!(!adaptive.ends(false));
        adaptive.on_push();
        assert!(adaptive.ends(false) && !adaptive.ends(true));
        adaptive.on_segment(1000, 1000);
        adaptive.on_push();
        assert!(!adaptive.ends(true));
        adaptive.on_segment(10, 1000);
        assert!(adaptive.ends(true));
        adaptive.acknowledged();
        assert!(!adaptive.ends(false));
    }
}
