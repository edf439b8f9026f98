//! Emulates a scenario's links between real network stacks, in real time.
//!
//! - [`Network`] has the links and the layers over them, without a clock. [`Plan`] selects the hosts and their
//!   addresses.
//! - [`Emulator`] moves packets between devices and the network by the clock. [`Tap`] captures them, and [`Control`]
//!   changes links while they run.
//! - [`Lab`] gives each host a namespace. [`Behind`] puts one namespace behind the links, with this machine at the other end; [`rootless`]
//!   does so for users without root. [`Boxes`] are the gateways' boxes; the caller starts the gateways in them.
//! - [`transfers`] runs a scenario's flows with the engine's TCP, [`sockets`] with the kernel's. The states of the
//!   kernel's senders are [`Snapshot`]s.
//!
//! Linux only.
#![forbid(unsafe_code)]

mod behind;
mod boxes;
mod control;
mod covered;
pub mod grid;
mod host;
mod lab;
mod layer;
mod nat;
mod network;
mod plan;
pub mod rootless;
mod running;
mod snapshot;
pub mod sockets;
mod tap;
pub mod transfers;
mod wakeups;

use std::io;

pub use behind::Behind;
pub use boxes::{Boxes, Side, Site};
pub use control::{Control, MAX_LINE, Request, ask};
pub use lab::{Host, Lab};
pub use nat::Outside;
pub use network::{Exit, Network, PortId};
pub use plan::{Addressing, HostId, Plan};
pub use running::{Emulator, Traffic};
pub use snapshot::Snapshot;
pub use tap::Tap;

/// A part of a scenario that is unsupported in real time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: {what}; expected {expected}")]
pub struct Unsupported {
    /// The position of the part in the scenario.
    pub key: String,
    /// What is wrong with the part.
    pub what: String,
    /// What is supported.
    pub expected: &'static str,
}

/// Why an emulation cannot start.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// The scenario is unsupported.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The machine or the user lacks something.
    #[error("{what}")]
    Lacking {
        /// What is lacking.
        what: String,
        /// How to provide it.
        help: String,
    },
    /// A system call failed.
    #[error("{doing}: {cause}")]
    System {
        /// The attempted action.
        doing: String,
        /// The system's error.
        cause: io::Error,
    },
}

/// What root needs where it has not all rights.
pub(crate) const OF_CONTAINERS: &str = "this root has not all rights; in a container: --cap-add NET_ADMIN --cap-add SYS_ADMIN, or `shell` as \
                                        an ordinary user";

impl EmulateError {
    /// Wraps a system error with the attempted action.
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |cause| EmulateError::System { doing, cause }
    }

    /// The same for an action that root in a container may not take.
    pub(crate) fn of_root(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| match cause.kind() {
            io::ErrorKind::PermissionDenied => {
                EmulateError::Lacking { what: format!("{doing}: {cause}"), help: OF_CONTAINERS.to_owned() }
            }
            _ => EmulateError::System { doing: doing.to_owned(), cause },
        }
    }
}
