//! Ranges of any quantity: the values between two ends.

use bentpipe_language::quantity::{
    self, CELLS, DECIBELS, DURATION, Dimension, PACKETS, RATE, SEGMENTS, SIZE, format_probability, parse_probability,
};

/// Everything with a unit. No unit is in two of them.
const DIMENSIONS: [Dimension; 7] = [DURATION, RATE, SIZE, PACKETS, SEGMENTS, CELLS, DECIBELS];

/// Steps of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences.
    Linear,
    /// Equal ratios.
    Log,
}

/// A range with both ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    kind: Kind,
    scale: Scale,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// In the engine's unit: ns, bit/s, bytes, packets, segments, cells, mdB.
    Quantity(Dimension, u64, u64),
    /// Written with a percent sign or in 0..1.
    Probability(f64, f64),
    Whole(f64, f64),
    Real(f64, f64),
}

impl Range {
    /// The range between two values of one kind, as a scenario has them; the second may be the smaller one.
    ///
    /// # Errors
    /// Fails if the two values are of different kinds, or if a logarithmic range has an end that is not above zero.
    pub fn new(from: &str, to: &str, scale: Scale) -> Result<Range, String> {
        let kind = Kind::of(from, to)?;
        let (low, high) = kind.ends();
        if scale == Scale::Log && (low <= 0.0 || high <= 0.0) {
            return Err("a logarithmic range needs both ends above zero".to_owned());
        }
        Ok(Range { kind, scale })
    }

    /// The value at `part` (0..=1) of the way from the first to the last, as text for `--set`. The ends are exact; a quantity
    /// between them is rounded to the engine's unit, a number to twelve digits.
    pub fn at(&self, part: f64) -> String {
        let (low, high) = self.kind.ends();
        let value = match (part, self.scale) {
            (0.0, _) => low,
            (1.0, _) => high,
            (_, Scale::Linear) => low + (high - low) * part,
            (_, Scale::Log) => libm::exp(libm::log(low) + (libm::log(high) - libm::log(low)) * part),
        };
        match self.kind {
            // Whole numbers below 2^53 are exact as doubles; the largest value, 10^17 ns, is rounded to 16 ns.
            Kind::Quantity(dimension, from, _) if part == 0.0 => dimension.format(from),
            Kind::Quantity(dimension, _, to) if part == 1.0 => dimension.format(to),
            Kind::Quantity(dimension, ..) => dimension.format(value.round() as u64),
            // A scenario refuses a bare 1, which could mean 1 %.
            Kind::Probability(..) if twelve_digits(value) == 1.0 => "100 %".to_owned(),
            Kind::Probability(..) => format_probability(twelve_digits(value)),
            Kind::Whole(..) => format!("{value:.0}"),
            Kind::Real(..) => format!("{:?}", twelve_digits(value)),
        }
    }

    /// The value of a draw, `part` (0..1) of the way: as [`Range::at`], but each of whole numbers has a share of the way, so that the ends
    /// are not drawn half as often as the others.
    pub fn drawn(&self, part: f64) -> String {
        let format = |value: f64| match self.kind {
            Kind::Quantity(dimension, ..) => dimension.format(value as u64),
            _ => format!("{value:.0}"),
        };
        if !self.kind.counts() {
            return self.at(part);
        }
        let (one, other) = self.kind.ends();
        let (low, end) = (one.min(other), one.max(other) + 1.0);
        let value = match self.scale {
            Scale::Linear => low + (end - low) * part,
            Scale::Log => libm::exp(libm::log(low) + (libm::log(end) - libm::log(low)) * part),
        };
        // Rounding may reach beyond either end.
        format(libm::floor(value).clamp(low, end - 1.0))
    }
}

impl Kind {
    /// True for whole numbers and numbers of things, which nobody divides.
    fn counts(&self) -> bool {
        match self {
            Kind::Whole(..) => true,
            Kind::Quantity(dimension, ..) => [PACKETS, SEGMENTS, CELLS].contains(dimension),
            Kind::Probability(..) | Kind::Real(..) => false,
        }
    }

    fn of(from: &str, to: &str) -> Result<Kind, String> {
        let (number, unit) = quantity::split(from);
        if unit.is_empty() {
            let whole = |text: &str| text.trim().parse::<u32>().ok().map(f64::from);
            if let (Some(low), Some(high)) = (whole(from), whole(to)) {
                return Ok(Kind::Whole(low, high));
            }
            let real = |text: &str| text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
            return match (real(number), real(to)) {
                (Some(low), Some(high)) => Ok(Kind::Real(low, high)),
                _ => Err(format!("`{from}` and `{to}` are not two numbers")),
            };
        }
        if unit == "%" {
            let low = parse_probability(from).map_err(|bad| bad.message)?;
            return Ok(Kind::Probability(low, parse_probability(to).map_err(|bad| bad.message)?));
        }
        let dimension = DIMENSIONS.iter().find(|dimension| dimension.parse(from).is_ok());
        let dimension = dimension.ok_or_else(|| format!("`{from}` is not a quantity with a unit"))?;
        let low = dimension.parse(from).map_err(|bad| bad.message)?;
        Ok(Kind::Quantity(*dimension, low, dimension.parse(to).map_err(|bad| bad.message)?))
    }

    fn ends(&self) -> (f64, f64) {
        match *self {
            Kind::Quantity(_, low, high) => (low as f64, high as f64),
            Kind::Probability(low, high) | Kind::Whole(low, high) | Kind::Real(low, high) => (low, high),
        }
    }
}

/// The number rounded to twelve digits, which removes rounding errors: 0.1 + 0.2 is 0.3.
fn twelve_digits(value: f64) -> f64 {
    format!("{value:.11e}").parse().expect("a number")
}

/// The number behind a value, and its unit; `None` for words and tables.
pub(crate) fn number(value: &str) -> Option<(f64, &'static str)> {
    // A number that a file has as text keeps its quotes.
    let value = value.trim().trim_matches('"');
    let (_, unit) = quantity::split(value);
    if unit.is_empty() {
        return value.trim().parse().ok().filter(|number: &f64| number.is_finite()).map(|number| (number, "number"));
    }
    if unit == "%" {
        return parse_probability(value).ok().map(|number| (number, "number"));
    }
    let units = ["seconds", "bits per second", "bytes", "packets", "segments", "cells", "decibels"];
    let sizes = [1e9, 1.0, 1.0, 1.0, 1.0, 1.0, 1e3];
    let each = DIMENSIONS.iter().zip(units).zip(sizes);
    each.into_iter().find_map(|((dimension, unit), size)| Some((dimension.parse(value).ok()? as f64 / size, unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(from: &str, to: &str, scale: Scale) -> Vec<String> {
        let range = Range::new(from, to, scale).expect("a range");
        (0..=4).map(|n| range.at(f64::from(n) / 4.0)).collect()
    }

    #[test]
    fn values_between_two_ends() {
        use Scale::{Linear, Log};
        assert_eq!(steps("100 ms", "0.5 s", Linear), ["100 ms", "200 ms", "300 ms", "400 ms", "500 ms"]);
        assert_eq!(steps("1 MB", "16 MB", Log), ["1 MB", "2 MB", "4 MB", "8 MB", "16 MB"]);
        assert_eq!(steps("0 %", "1 %", Linear), ["0", "0.0025", "0.005", "0.0075", "0.01"]);
        assert_eq!(steps("0.01 %", "100 %", Log), ["1e-4", "0.001", "0.01", "0.1", "100 %"]);
        assert_eq!(steps("1", "5", Linear), ["1", "2", "3", "4", "5"]);
        assert_eq!(steps("0.1", "0.3", Linear), ["0.1", "0.15", "0.2", "0.25", "0.3"]);
        // Also downwards.
        assert_eq!(steps("40 packets", "0 packets", Linear)[1], "30 packets");
        // The ends are exact above 2^53 as well: 10^16 + 1 ns.
        let long = steps("10000000000000001 ns", "10000000000000003 ns", Linear);
        assert_eq!([&long[0], &long[4]], ["10000000000000001 ns", "10000000000000003 ns"]);
    }

    /// Of 40 draws in equal parts, each of four numbers has ten; on a logarithmic scale those of 1, 2 and 3 end at 40 log 2 / log 4 = 20
    /// and 40 log 3 / log 4 = 31.7.
    #[test]
    fn whole_numbers_are_drawn_alike() {
        let counts = |from: &str, to: &str, scale, values: &[&str]| {
            let range = Range::new(from, to, scale).expect("a range");
            let drawn: Vec<_> = (0..40).map(|n| range.drawn((f64::from(n) + 0.5) / 40.0)).collect();
            let each = values.iter().map(|value| drawn.iter().filter(|drawn| drawn == value).count());
            each.collect::<Vec<_>>()
        };
        assert_eq!(counts("1", "4", Scale::Linear, &["1", "2", "3", "4"]), [10; 4]);
        assert_eq!(counts("4", "1", Scale::Linear, &["1", "2", "3", "4"]), [10; 4]);
        let packets = ["0 packets", "1 packets", "2 packets", "3 packets"];
        assert_eq!(counts("0 packets", "3 packets", Scale::Linear, &packets), [10; 4]);
        assert_eq!(counts("1", "3", Scale::Log, &["1", "2", "3"]), [20, 12, 8]);
        // What can be divided is where it is on the way.
        let range = Range::new("1 s", "2 s", Scale::Linear).expect("a range");
        assert_eq!((range.drawn(0.25), range.drawn(1.0)), ("1250 ms".to_owned(), "2 s".to_owned()));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        let refused = |from, to, scale| Range::new(from, to, scale).expect_err("no range");
        assert_eq!(refused("0 ms", "1 s", Scale::Log), "a logarithmic range needs both ends above zero");
        assert_eq!(refused("1 s", "0 ms", Scale::Log), "a logarithmic range needs both ends above zero");
        assert_eq!(refused("1 ms", "1 MB", Scale::Linear), "`MB` is not a unit of time");
        assert_eq!(refused("red", "blue", Scale::Linear), "`red` is not a quantity with a unit");
        assert_eq!(refused("1", "2 s", Scale::Linear), "`1` and `2 s` are not two numbers");
        assert!(refused("50 %", "101 %", Scale::Linear).contains("from 0 to 1"));
    }

    #[test]
    fn numbers_in_base_units() {
        assert_eq!(number("250 ms"), Some((0.25, "seconds")));
        assert_eq!(number("2 Mbit/s"), Some((2e6, "bits per second")));
        assert_eq!((number("1 %"), number("0.01")), (Some((0.01, "number")), Some((0.01, "number"))));
        assert_eq!(number("\"1e-4\""), Some((1e-4, "number")));
        assert_eq!((number("cubic"), number("{ a = 1 }")), (None, None));
    }
}
