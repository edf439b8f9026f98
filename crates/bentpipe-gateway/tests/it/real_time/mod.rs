//! Tests that mostly wait for a link in real time. `make test` runs more of them at once than there are processors.

#[cfg(feature = "command")]
mod command;
mod gigabyte;
mod link;
mod mtu;
mod relay;
mod split;
mod starving;
mod uplink;
