//! The keys beside the settings in tables of TCP settings.

use super::settings::SETTINGS;
use crate::shape::{Field, Shape, field};

/// The first keys of a `[variants]` row; the others are TCP settings.
pub const VARIANT: &[Field] = &[
    field(
        "base",
        Shape::Text,
        "The variant that this one starts from. A variant that names itself starts from the built-in one of that name. Required.",
    ),
    field("description", Shape::Text, "Description, one line."),
];

#[cfg(feature = "ns2")]
const PROFILE: &str = "Set of defaults: \"rfc\", \"linux\", \"macos\", \"windows\", \"bsd-reno\", \"ns2\" or \"ns2-2003\". Default: \"rfc\".";
#[cfg(not(feature = "ns2"))]
const PROFILE: &str = "Set of defaults: \"rfc\", \"linux\", \"macos\", \"windows\" or \"bsd-reno\". Default: \"rfc\".";

/// The first keys of a table of TCP settings.
pub(crate) const TCP_HEAD: &[Field] = &[
    field("profile", Shape::Text, PROFILE),
    field("variant", Shape::Text, "TCP variant, from `bentpipe variants` or `[variants]`. Default: the profile's."),
];

/// True if a table of settings has this key, or a group of this name; with `head`, `variant` and `profile` are keys, too.
pub(crate) fn has_key(key: &str, head: bool) -> bool {
    let is_head = head && TCP_HEAD.iter().any(|field| field.key == key);
    is_head || SETTINGS.iter().any(|setting| setting.key.split('.').next() == Some(key))
}
