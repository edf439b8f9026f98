//! Settings of TCP connections: `[tcp]`, and the rows of `[variants.NAME]`.
//!
//! Reading order: `settings` has a row for each setting, `profile` the defaults, `resolve` applies the
//! layers in order, `variants` reads the tables.

mod keys;
pub mod profile;
mod resolve;
mod settings;
mod variants;

pub use keys::VARIANT;
pub(crate) use keys::{TCP_HEAD, has_key};
pub(crate) use profile::PROFILES;
pub use profile::Profile;
pub use resolve::{
    End, Resolved, TcpOverrides, UnknownName, VariantRow, Variants, contradictions, lacks_rack, lacks_window, resolve,
    resolve_tcp,
};
pub(crate) use settings::GROUPS;
pub(crate) use settings::SETTINGS;
pub use settings::{Cell, Kind, Setting, setting};
pub use variants::{Placed, TcpTable, read_buffer, settings, tcp_table, variants};
