//! Rough transfer times, to narrow down a choice of systems before simulating them.
//!
//! Rates are in segments per second, times in seconds. The formulas hold within a factor of about two: they ignore
//! the queue and successive timeouts.

/// Round trips of slow start (Allman, Paxson and Blanton, RFC 5681 §3.1, with the growth L = 2 of RFC 3465) from an
/// initial window to a window that fills the path, if every second segment is acknowledged.
pub fn opening_rounds(initial_window: f64, window: f64) -> f64 {
    libm::log2(window / initial_window).max(0.0)
}

/// The rate of TCP under random loss, including timeouts: Padhye, Firoiu, Towsley and Kurose (1998), equation 30,
/// without a receiver limit.
///
/// `loss` is the probability of a loss event per segment, `rtt` and `rto` are in seconds, and the window grows by one
/// segment in `every` round trips. Without loss, the rate is infinite.
pub fn rate_under_loss(loss: f64, rtt: f64, rto: f64, every: f64) -> f64 {
    if loss <= 0.0 {
        return f64::INFINITY;
    }
    let growth = rtt * (2.0 * every * loss / 3.0).sqrt();
    let timeouts = rto * (3.0 * (3.0 * every * loss / 8.0).sqrt()).min(1.0) * loss * (1.0 + 32.0 * loss * loss);
    1.0 / (growth + timeouts)
}

/// The time of a TCP transfer of this many segments. The window starts at its maximum of `window` segments, is halved
/// by an outage every `gap` seconds, and grows by one segment in `every` round trips in between. The sawtooth is summed
/// tooth by tooth.
pub fn time_between_outages(segments: f64, window: f64, gap: f64, rtt: f64, every: f64) -> f64 {
    let (mut left, mut at, mut time) = (segments, window, 0.0);
    loop {
        // Rounds of growth, then rounds at the maximum.
        let grows = ((window - at) * every * rtt).clamp(0.0, gap);
        let grown = at + grows / (every * rtt);
        let growing = (at + grown) / 2.0 * grows / rtt;
        let carried = growing + grown * (gap - grows) / rtt;
        if carried >= left {
            return time + gap * left / carried;
        }
        let next = (grown / 2.0).max(1.0);
        if next == at {
            // All further teeth are alike. Where outages follow each other closely, there are billions of them.
            return time + gap * left / carried;
        }
        left -= carried;
        time += gap;
        at = next;
    }
}

/// The time of a transfer of this many segments at this rate, after an opening of this many round trips, in each of
/// which the window doubles. Segments sent during the opening are subtracted.
pub fn time(segments: f64, rate: f64, rtt: f64, initial_window: f64, rounds: f64) -> f64 {
    // 2^n - 1 windows of the initial size in n round trips.
    let opening = initial_window * (libm::exp2(rounds) - 1.0);
    if segments <= opening {
        return rtt * libm::log2(segments / initial_window + 1.0);
    }
    rtt * rounds + (segments - opening) / rate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // 10 to 1280: seven doublings.
        assert_eq!(opening_rounds(10.0, 1280.0), 7.0);
        assert_eq!(opening_rounds(10.0, 5.0), 0.0);
        // 630 segments are six rounds from 10: 10 + 20 + ... + 320.
        assert!((time(630.0, 1.0, 0.5, 10.0, 7.0) - 3.0).abs() < 1e-12);
        // 1270 in seven rounds, then 100 at 50 per second.
        assert!((time(1370.0, 50.0, 0.5, 10.0, 7.0) - 5.5).abs() < 1e-12);
    }

    #[test]
    fn small_losses_give_the_square_root_law() {
        // Mathis and others (1997): sqrt(3 / (2 b p)) segments per round trip.
        let rate = rate_under_loss(1e-6, 0.6, 1.0, 1.0);
        assert!((rate * 0.6 / (1.5f64 / 1e-6).sqrt() - 1.0).abs() < 0.01, "{rate}");
        assert_eq!(rate_under_loss(0.0, 0.6, 1.0, 2.0), f64::INFINITY);
        // 0.5 sqrt(0.2 / 3) + 3 sqrt(0.3 / 8) * 0.1 * 1.32 = 0.129 099 + 0.076 685. With half lost every loss is a timeout: 0.5 / sqrt(3) +
        // 0.5 * 9.
        assert!((rate_under_loss(0.1, 0.5, 1.0, 1.0) - 1.0 / 0.205_784).abs() < 1e-4);
        assert!((rate_under_loss(0.5, 0.5, 1.0, 1.0) - 1.0 / 4.788_675).abs() < 1e-6);
        assert!(rate_under_loss(0.1, 0.6, 1.0, 2.0) < rate_under_loss(0.01, 0.6, 1.0, 2.0));
    }

    #[test]
    fn outages_make_a_saw() {
        // 12 s are 20 round trips of 0.6 s. From 100: 100 for 12 s, then 50 to 70, 35 to 55, 27.5 to 47.5.
        let teeth = [100.0, 60.0, 45.0, 37.5].map(|mean| mean * 20.0);
        let all: f64 = teeth.iter().sum();
        assert!((time_between_outages(all, 100.0, 12.0, 0.6, 1.0) - 48.0).abs() < 1e-9);
        assert!((time_between_outages(all - teeth[3] / 2.0, 100.0, 12.0, 0.6, 1.0) - 42.0).abs() < 1e-9);
        // With outages every microsecond the window falls to one segment, which 0.6 s carry. There are 6 * 10^17 of them, and the window
        // grows by 1.7e-6 segments before each.
        assert!((time_between_outages(1e12, 100.0, 1e-6, 0.6, 1.0) / 0.6e12 - 1.0).abs() < 1e-6);
        // Growing from 5 back to 10 takes 3 s of 60, a quarter of which is lost: 1.25 %.
        let full = 1e6 * 0.6 / 10.0;
        assert!((time_between_outages(1e6, 10.0, 60.0, 0.6, 1.0) / full - 1.0 / (1.0 - 0.0125)).abs() < 0.001);
    }
}
