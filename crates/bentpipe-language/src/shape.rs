//! The grammar of the language as tables: which keys a table has, what stands behind each, and what it means.
//!
//! One table serves three readers: unknown keys are refused by it, error messages say from it what was expected, and
//! the JSON schema is written from it. They cannot drift apart.

use super::quantity::{DURATION, Dimension, PACKETS, RATE, SEGMENTS, SIZE};

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The key.
    pub key: &'static str,
    /// What may stand behind it.
    pub shape: Shape,
    /// What it means, for people.
    pub doc: &'static str,
    /// The key's name in the last version. It still works, with a warning, until the next one.
    pub old_key: Option<&'static str>,
}

impl Field {
    /// The key was called `old_key` in the last version.
    pub const fn renamed_from(mut self, old_key: &'static str) -> Self {
        self.old_key = Some(old_key);
        self
    }

    /// True if the field may be written as `key`.
    pub fn answers_to(&self, key: &str) -> bool {
        self.key == key || self.old_key == Some(key)
    }
}

/// What may stand behind a key.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Text.
    Text,
    /// True or false.
    Flag,
    /// A whole number; the word after the number may be left out.
    Count(Counted),
    /// A number with a unit.
    Quantity(Dimension),
    /// "1 %", "1e-6" or 0.01.
    Probability,
    /// A number above zero and at most one.
    Weight,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A table.
    Table(&'static [Field]),
    /// A list of things alike.
    List(&'static Shape),
    /// Two things, one after the other.
    Pair(&'static Shape),
    /// Tables under names of the user's choice.
    Named(&'static Shape),
    /// Any of these.
    Any(&'static [Shape]),
    /// The cells of the TCP table, see [`tcp`](crate::tcp).
    TcpSettings {
        /// Whether `variant` and `profile` may stand there.
        head: bool,
        /// Whether `base` may stand there.
        base: bool,
    },
}

/// A count of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Of what, in the plural; empty for a bare number.
    pub what: &'static str,
    /// Least.
    pub min: u64,
    /// Most.
    pub max: u64,
}

/// A field of a table.
pub const fn field(key: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field { key, shape, doc, old_key: None }
}

impl Counted {
    /// From `min` to `max` of `what`.
    pub const fn new(what: &'static str, min: u64, max: u64) -> Self {
        Counted { what, min, max }
    }
}

impl Shape {
    /// A span of time.
    pub const DURATION: Shape = Shape::Quantity(DURATION);
    /// A rate.
    pub const RATE: Shape = Shape::Quantity(RATE);
    /// An amount of data.
    pub const SIZE: Shape = Shape::Quantity(SIZE);
    /// A number of packets.
    pub const PACKETS: Shape = Shape::Quantity(PACKETS);
    /// A number of segments.
    pub const SEGMENTS: Shape = Shape::Quantity(SEGMENTS);

    /// What was expected, in words.
    pub fn expected(&self) -> String {
        match self {
            Shape::Text => "text".to_owned(),
            Shape::Flag => "true or false".to_owned(),
            Shape::Count(Counted { what, min, max }) => {
                // The width of an integer is no bound that means anything.
                let bounds = if *max >= u32::MAX as u64 - 1 { format!("{min} up") } else { format!("{min} to {max}") };
                let example = (*min).max(4).min(*max);
                match *what {
                    "" => format!("a whole number from {bounds}"),
                    what => format!("a number of {what} from {bounds} such as {example} or \"{example} {what}\""),
                }
            }
            Shape::Quantity(dimension) => format!("{} such as \"{}\"", dimension.name, dimension.example),
            Shape::Probability => "a probability such as \"1 %\" or \"1e-6\"".to_owned(),
            Shape::Weight => "a number above 0 and at most 1".to_owned(),
            Shape::Choice(words) => {
                let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
                match quoted.len() {
                    1 => quoted[0].clone(),
                    _ => format!("one of {}", quoted.join(", ")),
                }
            }
            Shape::Table(fields) => {
                let keys: Vec<_> = fields.iter().map(|field| field.key).collect();
                format!("a table of {}", keys.join(", "))
            }
            Shape::List(inner) => format!("a list, each entry {}", inner.expected()),
            Shape::Pair(inner) => format!("a list of two, each {}", inner.expected()),
            Shape::Named(_) => "a table of tables".to_owned(),
            Shape::Any(shapes) => {
                let all: Vec<_> = shapes.iter().map(Shape::expected).collect();
                all.join(", or ")
            }
            Shape::TcpSettings { .. } => "a table of TCP settings".to_owned(),
        }
    }
}
