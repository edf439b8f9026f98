//! The commands that need Linux: its network namespaces, TUN devices and sockets. Elsewhere `elsewhere.rs` stands in for them.

mod beside;
mod boxes;
mod compared;
mod control;
mod doctor;
mod emulate;
mod gateway;
mod intervals;
mod program;
mod prompt;
mod realtime;
mod shell;
mod status;
mod verify;
mod verify_gateways;
mod verify_hosts;

use bentpipe_gateway::{Metric, settings};
use bentpipe_language::Schema;
use bentpipe_language::reference::Table;

use crate::args::Link;
use crate::failure::{End, Failure};

pub(crate) use bentpipe_gateway::command::Gateway;
pub(crate) use doctor::doctor;
pub(crate) use emulate::emulate;
pub(crate) use gateway::gateway;
pub(crate) use shell::shell;
pub(crate) use verify::verify;
pub(crate) use verify_hosts::verify_hosts;

/// True if this build has these commands.
pub(crate) const IS_HERE: bool = true;

pub(crate) fn link(link: &Link) -> Result<End, Failure> {
    match link {
        Link::Set(set) => control::set(set),
        Link::Fade(fade) => control::fade(fade),
    }
}

/// A JSON schema of gateway files.
pub(crate) fn gateway_schema() -> Result<Schema, Failure> {
    Ok(settings::schema())
}

/// The keys of gateway files.
pub(crate) fn gateway_keys() -> Result<Vec<Table>, Failure> {
    Ok(settings::reference())
}

/// The metrics of gateways: name, type, meaning, key in status, shapes.
pub(crate) fn gateway_metrics() -> Result<Vec<Vec<String>>, Failure> {
    let all = bentpipe_gateway::metrics().map_err(Failure::broken)?;
    let row = |metric: Metric| {
        let label = metric.label.map_or(String::new(), |label| format!(" Label: `{label}`."));
        let shapes = metric.shapes.iter().map(|shape| if *shape == "uplink-kernel" { "kernel" } else { *shape });
        let shapes = if metric.shapes.len() == 4 { "all".to_owned() } else { shapes.collect::<Vec<_>>().join(", ") };
        vec![
            format!("`{}`", metric.name),
            metric.kind.to_owned(),
            format!("{}{label}", metric.help),
            format!("`{}`", metric.status),
            shapes,
        ]
    };
    Ok(all.into_iter().map(row).collect())
}
