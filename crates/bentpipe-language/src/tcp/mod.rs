//! Settings of TCP connections: `[tcp]`, and the rows of `[variants.NAME]`.
//!
//! Reading order: `settings` has a row for each setting, `profile` the defaults, `resolve` applies the
//! layers in order, `variants` reads the tables.

mod keys;
pub mod profile;
mod resolve;
mod settings;
mod variants;

pub use keys::{TCP_HEAD, VARIANT};
pub use profile::{PROFILES, Profile};
pub use resolve::{
    End, Resolved, TcpOverrides, UnknownName, VariantRow, Variants, contradictions, lacks_window, resolve, resolve_tcp,
};
pub(crate) use settings::GROUPS;
pub use settings::{Cell, Kind, SETTINGS, Setting, setting};
pub use variants::{Placed, TcpTable, settings, tcp_table, variants};
