//! The simulator through its public interface, against numbers worked out by hand and against other programs.

mod analytic;
mod cells;
mod chains;
mod clean;
mod corners;
mod cross;
mod determinism;
mod ecn;
mod gateways;
mod golden;
mod l4s;
mod layers;
mod mechanisms;
mod moving;
mod outage;
mod properties;
#[cfg(feature = "quic")]
mod quic;
mod readback;
mod record;
mod seeds;
mod split;
mod spoof;
mod startup;
mod stp;
mod tcb_sharing;
mod trace;
mod tshark;
mod uplinks;
mod worlds;
