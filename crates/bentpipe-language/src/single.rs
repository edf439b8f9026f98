//! Quantities on the command line: one, or the values of a sweep.

use bentpipe_engine::units::{Bytes, Duration, Probability, Rate};

use super::quantity::{self, BadQuantity, Dimension};

/// The kind of quantity that a text is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A duration, "255 ms".
    Duration,
    /// A rate, "2 Mbit/s".
    Rate,
    /// An amount of data, "64 kB".
    Size,
    /// A number of packets, "50 packets".
    Packets,
    /// A probability, "1 %" or "0.01".
    Probability,
    /// A bare number, "3".
    Count,
}

/// A bare number, the only quantity without a unit.
const COUNT: Dimension = Dimension::bare("a number", "3", u32::MAX as u64);

/// The most values that a range may have. A longer one is refused: its step is probably wrong.
const MAX_VALUES: u64 = 100_000;

impl Kind {
    fn dimension(self) -> Option<Dimension> {
        match self {
            Kind::Duration => Some(quantity::DURATION),
            Kind::Rate => Some(quantity::RATE),
            Kind::Size => Some(quantity::SIZE),
            Kind::Packets => Some(quantity::PACKETS),
            Kind::Count => Some(COUNT),
            Kind::Probability => None,
        }
    }

    /// The values of a sweep, `FROM..TO:STEP` with both ends or `A,B,C`, each as text of this kind.
    ///
    /// # Errors
    /// Fails on a value of another kind, a step of zero, an end before the start, or too many values.
    pub fn sweep(self, text: &str) -> Result<Vec<String>, BadQuantity> {
        let Some((from, rest)) = text.split_once("..") else {
            return text.split(',').map(|value| self.normal(value)).collect();
        };
        let Some((to, step)) = rest.rsplit_once(':') else {
            return Err(bad(&format!("`{text}` has no step"), "write FROM..TO:STEP, or A,B,C"));
        };
        let count = |first: f64, last: f64, step: f64| {
            let steps = ((last - first) / step + 1e-9).floor();
            if step <= 0.0 {
                Err(bad(&format!("`{text}` makes no progress"), "the step must be above zero"))
            } else if steps < 0.0 {
                Err(bad(&format!("`{text}` ends before it starts"), "write FROM..TO:STEP with FROM not above TO"))
            } else if steps >= MAX_VALUES as f64 {
                Err(bad(&format!("`{text}` has more than {MAX_VALUES} values"), "use a larger step"))
            } else {
                Ok(steps as u64)
            }
        };
        match self.dimension() {
            Some(dimension) => {
                let (first, last, step) = (dimension.parse(from)?, dimension.parse(to)?, dimension.parse(step)?);
                let steps = count(first as f64, last as f64, step as f64)?;
                Ok((0..=steps).map(|n| dimension.format(first + n * step)).collect())
            }
            None => {
                let read = quantity::parse_probability;
                let (first, last, step) = (read(from)?, read(to)?, read(step)?);
                let steps = count(first, last, step)?;
                let at = |n: u64| rounded(first + n as f64 * step);
                Ok((0..=steps).map(|n| quantity::format_probability(at(n).min(1.0))).collect())
            }
        }
    }

    fn normal(self, text: &str) -> Result<String, BadQuantity> {
        match self.dimension() {
            Some(dimension) => Ok(dimension.format(dimension.parse(text)?)),
            None => Ok(quantity::format_probability(quantity::parse_probability(text)?)),
        }
    }
}

/// The value in fifteen digits, which removes the error of adding binary fractions: 0.1 + 0.05 gives 0.15.
fn rounded(value: f64) -> f64 {
    format!("{value:.14e}").parse().expect("a number in Rust's own form")
}

fn bad(message: &str, help: &str) -> BadQuantity {
    BadQuantity { message: message.to_owned(), help: Some(help.to_owned()) }
}

/// A duration.
///
/// # Errors
/// Fails without a number or unit, for another unit, or below a nanosecond.
pub fn duration(text: &str) -> Result<Duration, BadQuantity> {
    Ok(Duration::from_nanos(quantity::DURATION.parse(text)?))
}

/// The minimum of [`interval`]: faster lines are unreadable.
pub const SHORTEST: std::time::Duration = std::time::Duration::from_millis(100);

/// The interval of a table that grows, such as `1s`.
///
/// # Errors
/// Fails if the text is not a duration, or is less than 100 ms. The message says what was expected.
pub fn interval(text: &str) -> Result<std::time::Duration, String> {
    const EXPECTED: &str = "expected a time of at least 100 ms, such as 1s";
    let nanos = quantity::DURATION.parse(text).map_err(|error| format!("{error}: {EXPECTED}"))?;
    let every = std::time::Duration::from_nanos(nanos);
    if every >= SHORTEST { Ok(every) } else { Err(EXPECTED.to_owned()) }
}

/// A rate above zero.
///
/// # Errors
/// Fails without a number or unit, for another unit, or for zero.
pub fn rate(text: &str) -> Result<Rate, BadQuantity> {
    let bits = quantity::RATE.parse(text)?;
    Rate::from_bits_per_second(bits).ok_or_else(|| bad("a rate cannot be zero", "write for example \"2 Mbit/s\""))
}

/// An amount of data.
///
/// # Errors
/// Fails without a number or unit, for another unit, or for a fraction of a byte.
pub fn bytes(text: &str) -> Result<Bytes, BadQuantity> {
    Ok(Bytes::new(quantity::SIZE.parse(text)?))
}

/// A number of packets.
///
/// # Errors
/// Fails without a number or unit, for another unit, or for a fraction of a packet.
pub fn packets(text: &str) -> Result<u32, BadQuantity> {
    // The dimension limits it to below 2^32.
    Ok(quantity::PACKETS.parse(text)? as u32)
}

/// A probability.
///
/// # Errors
/// Fails without a number, or outside 0..1 or 0 %..100 %.
pub fn probability(text: &str) -> Result<Probability, BadQuantity> {
    let p = quantity::parse_probability(text)?;
    Ok(Probability::new(p).expect("the parser limits it to 0..=1"))
}

/// A bare number.
///
/// # Errors
/// Fails without a number, or if anything follows it.
pub fn count(text: &str) -> Result<u32, BadQuantity> {
    Ok(COUNT.parse(text)? as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_have_both_ends() {
        let sweep = |kind: Kind, text: &str| kind.sweep(text).expect("a sweep");
        assert_eq!(sweep(Kind::Duration, "100 ms..0.3 s:100 ms"), ["100 ms", "200 ms", "300 ms"]);
        assert_eq!(sweep(Kind::Probability, "0.1..0.3:0.05"), ["0.1", "0.15", "0.2", "0.25", "0.3"]);
        assert_eq!(sweep(Kind::Probability, "10 %, 0.5"), ["0.1", "0.5"]);
        // Bit error rates are small, and each value is its own.
        assert_eq!(sweep(Kind::Probability, "0..1e-12:2.5e-13"), ["0", "2.5e-13", "5e-13", "7.5e-13", "1e-12"]);
        assert_eq!(sweep(Kind::Packets, "10 packets..25 packets:10 packets"), ["10 packets", "20 packets"]);
        assert_eq!(sweep(Kind::Count, "1..3:1"), ["1", "2", "3"]);
        assert_eq!(sweep(Kind::Rate, "1 Mbit/s"), ["1 Mbit/s"]);
    }

    #[test]
    fn what_is_no_sweep_is_refused() {
        let message = |kind: Kind, text: &str| kind.sweep(text).expect_err("no sweep").message;
        assert_eq!(message(Kind::Duration, "100..300 ms:100 ms"), "`100` has no unit");
        assert_eq!(message(Kind::Duration, "1 s..2 s"), "`1 s..2 s` has no step");
        assert_eq!(message(Kind::Duration, "1 s..2 s:0 s"), "`1 s..2 s:0 s` makes no progress");
        assert_eq!(message(Kind::Duration, "2 s..1 s:1 s"), "`2 s..1 s:1 s` ends before it starts");
        assert!(message(Kind::Duration, "1 s..2 s:1 ns").contains("more than 100000 values"));
        assert!(message(Kind::Probability, "0.5..1.5:0.1").contains("not a probability"));
        assert_eq!(message(Kind::Count, "3 s"), "`s` is not a unit of a number");
    }

    #[test]
    fn single_quantities() {
        assert_eq!(duration("2.5 ms"), Ok(Duration::from_micros(2500)));
        assert_eq!(packets("50 packets"), Ok(50));
        assert_eq!(bytes("500 B"), Ok(Bytes::new(500)));
        assert_eq!(probability("10 %").map(Probability::get), Ok(0.1));
        assert_eq!(count("7"), Ok(7));
        assert_eq!(packets("50").expect_err("no unit").help.as_deref(), Some("write for example \"50 packets\""));
        assert!(rate("0 bit/s").is_err());
    }

    #[test]
    fn an_interval_has_a_unit_and_can_be_read() {
        assert_eq!(interval("1s"), Ok(std::time::Duration::from_secs(1)));
        for wrong in ["1", "20 ms", "x"] {
            let error = interval(wrong).expect_err(wrong);
            assert!(error.contains("at least 100 ms, such as 1s"), "{wrong}: {error}");
        }
    }
}
