//! What the Python package shares with the command: where scenarios come from, their checks, and its messages.

pub use crate::commands::model::hybrid::json as hybrid;
pub use crate::commands::model::json as rates;
pub use crate::failure::Failure;
pub use crate::shipped::SHIPPED;
pub use crate::source::{AS_WRITTEN, open, text, transfer, with_hosts, with_variant};
