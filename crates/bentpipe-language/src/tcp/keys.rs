//! The keys that stand beside the cells in tables of TCP settings.

use crate::shape::{Field, Shape, field};

/// The head of a row of variants; its cells are TCP settings.
pub const VARIANT: &[Field] = &[
    field("base", Shape::Text, "The variant it is built on; its own name means the built-in one."),
    field("description", Shape::Text, "What it is, for people."),
];

/// The head of a table of TCP settings.
pub const TCP_HEAD: &[Field] = &[
    field("profile", Shape::Text, "Defaults: \"rfc\", \"bsd-reno\", \"ns2\" or \"ns2-2003\"."),
    field("variant", Shape::Text, "Row of the table of variants; the profile's own choice if not given."),
];
