//! One end of a splice: a TCP or an STP connection.

use alloc::boxed::Box;

use crate::machine::{Context, Machine, Step};
use crate::probe::Probe;
use crate::stp::{self, StpConfig};
use crate::tcp::{Connection, Input, Output, Role, State, TcpConfig, TcpStats, Verdict};

/// The settings of an end, which select the protocol of its leg.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "the large one is the common one")]
pub enum EndConfig {
    /// The leg is TCP.
    Tcp(TcpConfig),
    /// The leg is STP.
    Stp(StpConfig),
}

impl From<TcpConfig> for EndConfig {
    fn from(config: TcpConfig) -> Self {
        EndConfig::Tcp(config)
    }
}

impl From<StpConfig> for EndConfig {
    fn from(config: StpConfig) -> Self {
        EndConfig::Stp(config)
    }
}

/// An end.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "the large one is the common one")]
pub enum End {
    /// A TCP leg.
    Tcp(Connection),
    /// An STP leg.
    Stp(Box<stp::Connection>),
}

/// Calls the connection of either protocol.
macro_rules! of_either {
    ($end:expr, $connection:ident => $call:expr) => {
        match $end {
            End::Tcp($connection) => $call,
            End::Stp($connection) => $call,
        }
    };
}

impl End {
    pub(super) fn new(config: EndConfig, role: Role) -> End {
        match config {
            // Data that waits for the other end stays in the receive buffer, which is the splice's memory and has its
            // full size from the start.
            EndConfig::Tcp(config) => End::Tcp(Connection::new(TcpConfig { first_window: None, ..config }, role)),
            EndConfig::Stp(config) => End::Stp(Box::new(stp::Connection::new(config, role))),
        }
    }

    /// Its state.
    pub fn state(&self) -> State {
        of_either!(self, connection => connection.state())
    }

    /// Bytes received in order, from the start.
    pub fn received(&self) -> u64 {
        of_either!(self, connection => connection.received())
    }

    /// Bytes written, from the start.
    pub fn written(&self) -> u64 {
        of_either!(self, connection => connection.written())
    }

    /// Bytes written and acknowledged, from the start.
    pub fn acknowledged(&self) -> u64 {
        of_either!(self, connection => connection.acknowledged())
    }

    /// The new bytes of the segment that was handled last, if its verdict was
    /// [`Fresh::Spans`](crate::tcp::Fresh::Spans).
    pub fn fresh_spans(&self) -> &[(u64, u64)] {
        of_either!(self, connection => connection.fresh_spans())
    }

    /// Its counters.
    pub fn stats(&self) -> TcpStats {
        of_either!(self, connection => connection.stats())
    }

    pub(super) fn handle<P: Probe>(&mut self, cx: &mut Context<'_, P>, input: Input) -> Verdict {
        of_either!(self, connection => connection.handle(cx, input))
    }

    pub(super) fn poll<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> Step<Output> {
        of_either!(self, connection => connection.poll(cx))
    }
}
