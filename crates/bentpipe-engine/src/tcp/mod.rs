//! TCP (RFC 9293).
//!
//! [`Connection`] joins one [`Sender`] and one receiver under the states of RFC 9293. [`Duplex`] does the same for any
//! [`SendingHalf`], because STP has its own sender.
//!
//! Reading order: [`Segment`], then [`variant`] (the table of variants), then [`TcpConfig`]. The sender's parts follow,
//! each a module that knows only those before it: `sequence`, `loss`, `congestion`, `recovery`, and `sender`, which
//! joins them. `receiver` reassembles. `departures` lists where simulators differ from the RFCs.

mod abort;
mod config;
mod congestion;
mod connection;
mod delivery;
mod departures;
mod ecn;
mod loss;
mod offload;
mod pacing;
mod peer_window;
mod persist;
pub(crate) mod ranges;
mod receiver;
mod recovery;
mod send_buffer;
mod sender;
pub(crate) mod sending;
pub(crate) mod sequence;
mod sharing;
mod span;
mod startup;
mod timer;
pub mod variant;
mod window_control;
mod windowed;

use crate::wire::tcp::segment;

pub use crate::rtt::{GiveUp, RtoConfig, RtoFloor, RtoTiming, RttClock, RttEstimator};
pub use crate::wire::tcp::{FIRST_BYTE, Flags, MAX_SACK_BLOCKS, SackBlocks, Segment, SynOptions, Timestamps};
pub use abort::Abort;
pub use config::{ASSUMED_MSS_IPV6, Handshake, Resume, Shortcuts, SsthreshBase, TcbSharing, TcpConfig, WindowUnit};
pub use connection::{Closed, Connection, Duplex, Input, Ordinary, Output, Resting, Role, State, TcpStats, Verdict};
pub use ecn::{EcnMode, EcnOption, EcnUse};
pub use loss::Outstanding;
pub use pacing::Pacing;
pub use receiver::Fresh;
pub use recovery::Phase;
pub use sender::Sender;
pub use sending::SendingHalf;
pub use sharing::TcbCache;
pub(crate) use span::Span;
pub use variant::{AckPolicy, Compress, Daass, Variant};
pub use window_control::{Acked, WindowControl};
