//! The grammar of the language as tables: the keys of a table, their values, and their meaning.
//!
//! One table serves three purposes: it refuses unknown keys, gives error messages their "expected", and generates
//! the JSON schema. So these always agree.

use super::quantity::{DURATION, Dimension, PACKETS, RATE, SEGMENTS, SIZE};
use super::tcp;

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The key.
    pub key: &'static str,
    /// The allowed values.
    pub shape: Shape,
    /// Its description.
    pub doc: &'static str,
    /// The key's name in the previous version. It still works, with a warning, until the next version.
    pub old_key: Option<&'static str>,
}

impl Field {
    /// Sets the key's name in the previous version.
    pub const fn renamed_from(mut self, old_key: &'static str) -> Self {
        self.old_key = Some(old_key);
        self
    }

    /// True if the field may be written as `key`.
    pub fn answers_to(&self, key: &str) -> bool {
        self.key == key || self.old_key == Some(key)
    }
}

/// The allowed values of a key.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Text.
    Text,
    /// True or false.
    Flag,
    /// A whole number; the word after it may be omitted.
    Count(Counted),
    /// A number with a unit.
    Quantity(Dimension),
    /// "1 %", "1e-6" or 0.01.
    Probability,
    /// A number above 0 and at most 1.
    Weight,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A table.
    Table(&'static [Field]),
    /// A list of equal items.
    List(&'static Shape),
    /// A list of two items.
    Pair(&'static Shape),
    /// Tables with user-defined names.
    Named(&'static Shape),
    /// Any of these.
    Any(&'static [Shape]),
    /// TCP settings, see [`tcp`].
    TcpSettings {
        /// True if `variant` and `profile` are allowed.
        head: bool,
        /// True if `base` is allowed.
        base: bool,
    },
}

/// A count of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The counted word, in the plural; empty for a bare number.
    pub what: &'static str,
    /// The minimum.
    pub min: u64,
    /// The maximum.
    pub max: u64,
}

/// A field of a table.
pub const fn field(key: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field { key, shape, doc, old_key: None }
}

impl Counted {
    /// A count of `what` from `min` to `max`.
    pub const fn new(what: &'static str, min: u64, max: u64) -> Self {
        Counted { what, min, max }
    }
}

impl Shape {
    /// The path of a key in a table of this shape, or in a table within that; `None` if there is none. Tables in lists do not
    /// count.
    pub(crate) fn key_below(&self, key: &str) -> Option<String> {
        match self {
            Shape::Table(fields) => {
                let within = |field: &Field| Some(format!("{}.{}", field.key, field.shape.key_below(key)?));
                let is_here = fields.iter().any(|field| field.key == key);
                if is_here { Some(key.to_owned()) } else { fields.iter().find_map(within) }
            }
            // A list whose entries have names, such as that of links.
            Shape::List(Shape::Table(fields)) => {
                let has = |key: &str| fields.iter().any(|field| field.key == key);
                (has("name") && has(key)).then(|| format!("NAME.{key}"))
            }
            Shape::Any(shapes) => shapes.iter().find_map(|shape| shape.key_below(key)),
            Shape::TcpSettings { head, .. } => tcp::has_key(key, *head).then(|| key.to_owned()),
            _ => None,
        }
    }

    /// A duration.
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
                // The width of an integer is not a meaningful bound.
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
            Shape::List(Shape::Table(_)) => "a list of tables".to_owned(),
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
