//! Quantities: a number and its unit.
//!
//! Decimal prefixes are powers of ten (1 kB = 1000 B), binary ones have their own names (1 KiB = 1024 B). Numbers
//! are read as exact decimals: "0.1 ms" is 100 000 ns. A value that is not whole in the engine's unit is refused,
//! not rounded.

use bentpipe_engine::units::{Bytes, Duration, Rate};

/// A family of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Name of the quantity.
    pub name: &'static str,
    /// The measured thing.
    pub(crate) noun: &'static str,
    /// An example.
    pub example: &'static str,
    /// Units and their sizes in the engine's unit, by ascending size, the preferred spelling of each size first.
    pub(crate) units: &'static [(&'static str, u64)],
    /// Max value in the engine's unit.
    max: u64,
}

/// Durations, in nanoseconds; up to 10^8 s, three years; the engine's clock holds nine.
pub const DURATION: Dimension = Dimension {
    name: "a duration",
    noun: "time",
    example: "255 ms",
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("usec", 1_000),
        ("ms", 1_000_000),
        ("msec", 1_000_000),
        ("s", 1_000_000_000),
        ("sec", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
    max: 100_000_000_000_000_000,
};

/// Rates, in bits per second.
pub const RATE: Dimension = Dimension {
    name: "a rate",
    noun: "rate",
    example: "2 Mbit/s",
    units: &[
        ("bit/s", 1),
        ("b/s", 1),
        ("bps", 1),
        ("bit", 1),
        ("B/s", 8),
        ("kbit/s", 1_000),
        ("kb/s", 1_000),
        ("kbps", 1_000),
        ("kbit", 1_000),
        ("kB/s", 8_000),
        ("Mbit/s", 1_000_000),
        ("Mb/s", 1_000_000),
        ("Mbps", 1_000_000),
        ("Mbit", 1_000_000),
        ("MB/s", 8_000_000),
        ("Gbit/s", 1_000_000_000),
        ("Gb/s", 1_000_000_000),
        ("Gbps", 1_000_000_000),
        ("Gbit", 1_000_000_000),
        ("GB/s", 8_000_000_000),
        ("Tbit/s", 1_000_000_000_000),
        ("Tb/s", 1_000_000_000_000),
        ("Tbps", 1_000_000_000_000),
        ("Tbit", 1_000_000_000_000),
    ],
    max: 1_000_000_000_000_000,
};

/// Amounts of data, in bytes.
pub const SIZE: Dimension = Dimension {
    name: "an amount of data",
    noun: "data",
    example: "64 kB",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("KiB", 1 << 10),
        ("MB", 1_000_000),
        ("MiB", 1 << 20),
        ("GB", 1_000_000_000),
        ("GiB", 1 << 30),
        ("TB", 1_000_000_000_000),
        ("TiB", 1 << 40),
    ],
    max: 1_000_000_000_000_000,
};

/// Ratios in decibels, in units of 0.001 dB.
pub const DECIBELS: Dimension = Dimension {
    name: "a ratio in decibels",
    noun: "decibels",
    example: "0.7 dB",
    units: &[("mdB", 1), ("dB", 1000)],
    max: 100_000,
};

/// Numbers of packets.
pub const PACKETS: Dimension = Dimension {
    name: "a number of packets",
    noun: "packets",
    example: "50 packets",
    units: &[("packets", 1), ("packet", 1)],
    max: u32::MAX as u64,
};

/// Numbers of cells.
pub const CELLS: Dimension = Dimension {
    name: "a number of cells",
    noun: "cells",
    example: "8192 cells",
    units: &[("cells", 1), ("cell", 1)],
    max: u32::MAX as u64,
};

/// Numbers of segments.
pub const SEGMENTS: Dimension = Dimension {
    name: "a number of segments",
    noun: "segments",
    example: "10 segments",
    units: &[("segments", 1), ("segment", 1)],
    max: u32::MAX as u64,
};

/// An amount of data outside a scenario, such as "9180 B".
///
/// # Errors
/// Fails if the text is not a number with a unit of data. The message says what is wrong and what was expected.
pub fn size(text: &str) -> Result<Bytes, String> {
    SIZE.parse(text)
        .map(Bytes::new)
        .map_err(|bad| format!("{}, expected {} such as \"{}\"", bad.message, SIZE.name, SIZE.example))
}

/// An error in a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BadQuantity {
    /// What is wrong.
    pub message: String,
    /// A hint: "write for example \"255 ms\"".
    pub help: Option<String>,
}

fn bad(message: impl Into<String>) -> BadQuantity {
    BadQuantity { message: message.into(), help: None }
}

/// A number as it may be written, as a regular expression for the JSON schema.
pub(crate) const NUMBER: &str = r"\+?([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9][0-9_]*)([eE][+-]?[0-9]+)?";

/// An unsigned decimal: `digits` times ten to the power of `-scale`.
struct Decimal {
    digits: u128,
    scale: u32,
}

/// Splits "2.5 Mbit/s" into the number and the unit.
pub fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let is_number = |(at, c): (usize, char)| {
        c.is_ascii_digit()
            || matches!(c, '.' | '_' | '+' | '-')
            // An exponent, not the first letter of a unit.
            || (matches!(c, 'e' | 'E') && text[at + 1..].trim_start_matches(['+', '-']).starts_with(|d: char| d.is_ascii_digit()))
    };
    let end = text.char_indices().find(|&at| !is_number(at)).map_or(text.len(), |(at, _)| at);
    (&text[..end], text[end..].trim())
}

fn decimal(number: &str) -> Result<Decimal, BadQuantity> {
    if number.starts_with('-') {
        return Err(bad(format!("`{number}` is negative")));
    }
    let clean = number.strip_prefix('+').unwrap_or(number).replace('_', "");
    let (mantissa, exponent) = match clean.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            (mantissa, exponent.parse::<i32>().map_err(|_| bad(format!("`{number}` is not a number")))?)
        }
        None => (clean.as_str(), 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad(format!("`{number}` is not a number")));
    }
    let far = || bad(format!("`{number}` has too many digits"));
    if digits.len() > 24 || exponent.unsigned_abs() > 24 {
        return Err(far());
    }
    let mut digits: u128 = digits.parse().map_err(|_| far())?;
    let mut scale = fraction.len() as i32 - exponent;
    if scale < 0 {
        digits = digits.checked_mul(10u128.pow(scale.unsigned_abs().min(30))).ok_or_else(far)?;
        scale = 0;
    }
    Ok(Decimal { digits, scale: scale as u32 })
}

impl Dimension {
    /// Numbers without a unit.
    pub const fn bare(name: &'static str, example: &'static str, max: u64) -> Dimension {
        Dimension { name, noun: name, example, units: &[("", 1)], max }
    }

    /// The largest quantity, in the engine's unit.
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// Reads a quantity in the engine's unit.
    pub fn parse(&self, text: &str) -> Result<u64, BadQuantity> {
        let (number, unit) = split(text);
        if number.is_empty() {
            return Err(bad(format!("`{}` does not begin with a number", text.trim())));
        }
        let number = decimal(number)?;
        let Some(&(_, size)) = self.units.iter().find(|(name, _)| *name == unit) else {
            return Err(self.unknown_unit(text.trim(), unit));
        };
        let scaled = number.digits.checked_mul(size as u128).ok_or_else(|| self.too_much(text))?;
        let divisor = 10u128.checked_pow(number.scale).ok_or_else(|| bad("too many digits"))?;
        if !scaled.is_multiple_of(divisor) {
            let (smallest, _) = self.units[0];
            return Err(bad(format!("`{}` is not a whole number of {smallest}", text.trim())));
        }
        match u64::try_from(scaled / divisor) {
            Ok(value) if value <= self.max => Ok(value),
            _ => Err(self.too_much(text)),
        }
    }

    fn too_much(&self, text: &str) -> BadQuantity {
        bad(format!("`{}` is more than {}, the maximum", text.trim(), self.format(self.max)))
    }

    fn unknown_unit(&self, text: &str, unit: &str) -> BadQuantity {
        if unit.is_empty() {
            return BadQuantity {
                message: format!("`{text}` has no unit"),
                help: Some(format!("write for example \"{text} {}\"", split(self.example).1)),
            };
        }
        let help = match unit {
            "KB" => Some("write kB (1000 bytes) or KiB (1024 bytes)".to_owned()),
            _ if unit.strip_prefix(',').is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit())) => {
                Some("the decimal separator is a point, and thousands may be separated by `_`".to_owned())
            }
            _ => self.near_unit(unit).map(|near| format!("did you mean `{near}`?")),
        };
        // Without other spellings.
        let known: Vec<_> = self.units.iter().filter(|unit| self.is_preferred(unit)).map(|(name, _)| *name).collect();
        let known = match known[..] {
            [one] => format!("the unit is {one}"),
            _ => format!("the units are {}", known.join(", ")),
        };
        BadQuantity { message: format!("`{unit}` is not a unit of {}", self.noun), help: Some(help.unwrap_or(known)) }
    }

    fn is_preferred(&self, unit: &(&'static str, u64)) -> bool {
        self.units.iter().find(|(_, size)| *size == unit.1) == Some(unit)
    }

    /// The unit nearest to this word, unless units of other sizes are as near.
    fn near_unit(&self, word: &str) -> Option<&'static str> {
        let near = super::suggest::all_nearest(word, self.units.iter().map(|(name, _)| *name));
        let size = |name: &str| self.units.iter().find(|(unit, _)| *unit == name).map(|(_, size)| *size);
        near.first().copied().filter(|first| near.iter().all(|other| size(other) == size(first)))
    }

    /// Formats the quantity in the largest unit in which it is whole.
    pub fn format(&self, value: u64) -> String {
        if value == 0 {
            // "0 s" and "0 B", not "0 h": the usual unit.
            return format!("0 {}", split(self.example).1.trim_start_matches(['m', 'M', 'k'])).trim_end().to_owned();
        }
        let best = |value: u64| {
            let mut best = self.units[0];
            for &(name, size) in self.units {
                // "90 s" is easier to read than "1.5 min"; binary sizes only if nothing else fits.
                if value.is_multiple_of(size)
                    && size > best.1
                    && !matches!(name, "min" | "h" | "B/s" | "kB/s" | "MB/s" | "GB/s")
                {
                    best = (name, size);
                }
            }
            best
        };
        let (name, size) = best(value);
        format!("{} {name}", value / size).trim_end().to_owned()
    }

    /// A regular expression for the JSON schema.
    pub fn pattern(&self) -> String {
        let units: Vec<_> = self.units.iter().map(|(name, _)| *name).collect();
        format!(r"^\s*{NUMBER}\s*({})\s*$", units.join("|"))
    }
}

/// A probability: "1 %" or "1e-6".
pub fn parse_probability(text: &str) -> Result<f64, BadQuantity> {
    let (number, unit) = split(text);
    let exponent = match unit {
        "%" => -2,
        "" => 0,
        _ if number.is_empty() => return Err(bad(format!("`{}` does not begin with a number", text.trim()))),
        other => {
            return Err(BadQuantity {
                message: format!("`{other}` is not a unit of probability"),
                help: Some("write \"1 %\" or \"0.01\"".to_owned()),
            });
        }
    };
    let number = number.replace('_', "");
    // The shift changes the exponent, so that "1 %" is the same number as "0.01".
    let (mantissa, given) = number.split_once(['e', 'E']).unwrap_or((number.as_str(), "0"));
    let not_a_number = || bad(format!("`{}` is not a probability", text.trim()));
    let given: i32 = given.parse().map_err(|_| not_a_number())?;
    let shifted = format!("{mantissa}e{}", given.saturating_add(exponent));
    let value: f64 = shifted.parse().map_err(|_| not_a_number())?;
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(bad(format!("`{}` is not a probability: it must be from 0 to 1, or 0 % to 100 %", text.trim())))
    }
}

/// A probability as text that reads back as the same number.
pub fn format_probability(p: f64) -> String {
    if p != 0.0 && p < 1e-3 { format!("{p:e}") } else { format!("{p}") }
}

/// A duration as text that reads back as the same duration.
pub fn format_duration(span: Duration) -> String {
    DURATION.format(span.as_nanos())
}

/// A rate as text that reads back as the same rate.
pub fn format_rate(rate: Rate) -> String {
    RATE.format(rate.bits_per_second())
}

#[cfg(test)]
#[path = "quantity_tests.rs"]
mod tests;
