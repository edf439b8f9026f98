//! Links that do not exist, between network stacks that do: the scenario's links in real time.
//!
//! Reading order: [`Network`] is the links, and the layers over them, and knows no clock; [`Plan`] says which nodes are hosts and what their
//! addresses are; [`Emulator`] moves packets between devices and the network by the clock; [`Lab`] gives each host a
//! namespace, [`Behind`] puts one namespace behind the links and the machine before
//! them, by way of `nat`; [`rootless`] is for users who are not root. [`transfers`] and [`sockets`] run a scenario's flows over them, by the engine's TCP and by the kernel's. Linux only.
#![forbid(unsafe_code)]

mod behind;
mod lab;
mod layer;
mod nat;
mod network;
mod plan;
pub mod rootless;
mod running;
pub mod sockets;
pub mod transfers;
mod wakeups;

use std::io;

pub use behind::Behind;
pub use lab::{Host, Lab};
pub use nat::Outside;
pub use network::{Exit, Network};
pub use plan::{Addressing, Plan};
pub use running::{Emulator, Tap, Traffic};

/// What of a scenario has no place in real time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: {what}; expected {expected}")]
pub struct Unsupported {
    /// Where it stands in the scenario.
    pub key: String,
    /// What is wrong with it.
    pub what: String,
    /// What can be.
    pub expected: &'static str,
}

/// Why there is no emulation.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// The scenario.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The machine or the user lacks something.
    #[error("{what}")]
    Lacking {
        /// What.
        what: String,
        /// How to give it.
        help: String,
    },
    /// The system.
    #[error("{doing}: {cause}")]
    System {
        /// What was tried.
        doing: String,
        /// What the system said.
        cause: io::Error,
    },
}

impl EmulateError {
    /// What the system said when we tried something.
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |cause| EmulateError::System { doing, cause }
    }
}
