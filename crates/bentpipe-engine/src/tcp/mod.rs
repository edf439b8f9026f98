//! TCP, complete and wire-true (RFC 9293), in parts that are named by their documents.
//!
//! Reading order: [`Segment`] what travels; [`variant`] the table of what a sender is made of; [`TcpConfig`];
//! `rtt` (RFC 6298); `scoreboard` (RFC 6675); `sender` the ACK pipeline; `receiver` reassembly and SACK blocks;
//! [`Connection`] joins one sender and one receiver under the states of RFC 9293; [`SendingHalf`] is what it asks of the
//! sender, for STP has another.

mod abort;
mod config;
mod connection;
mod frto;
pub(crate) mod peer_window;
pub(crate) mod ranges;
mod receiver;
mod rtt;
mod scoreboard;
mod sender;
mod sending;
pub mod variant;
mod window;

use crate::wire::tcp::segment;

pub use crate::wire::tcp::{FIRST_BYTE, Flags, MAX_SACK_BLOCKS, SackBlocks, Segment, SynOptions, Timestamps};
pub use config::{Handshake, Shortcuts, SsthreshBase, TcbSharing, TcpConfig, WindowUnit};
pub use connection::{Abort, Connection, Duplex, Input, Output, Role, State, TcpStats, Verdict};
pub use receiver::Fresh;
pub use rtt::{RtoConfig, RttClock, RttEstimator};
pub use sender::{Sender, TcbCache};
pub use sending::{Protocol, SenderCounters, SendingHalf, Span};
pub use variant::{AckPolicy, Daass, Variant};
