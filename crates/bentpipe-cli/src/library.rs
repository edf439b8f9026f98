//! What the Python package shares with the command: where scenarios come from, their checks, its messages, and
//! answers that need no run.

pub use crate::commands::fit::measured;
pub use crate::commands::model::hybrid::json as hybrid;
pub use crate::commands::model::json as rates;
pub use crate::failure::Failure;
pub use crate::shipped::SHIPPED;
pub use crate::source::{AS_WRITTEN, open, text, transfer, with_hosts, with_variant};
