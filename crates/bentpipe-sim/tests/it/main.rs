//! The simulator through its public interface, against numbers worked out by hand and against other programs.

mod cells;
mod chains;
mod clean;
mod corners;
mod determinism;
mod ecn;
mod gateways;
mod golden;
mod l4s;
/// Tests that compute for long. `make test` runs them while those in `real_time` wait.
mod long {
    mod analytic;
    mod cross;
    mod layers;
}
mod mechanisms;
mod moving;
mod outage;
mod properties;
#[cfg(feature = "quic")]
mod quic;
mod readback;
mod record;
mod responses;
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
