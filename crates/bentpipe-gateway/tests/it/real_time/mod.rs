//! Tests that wait for a link in real time most of the while: `make test` runs more of them at once than there are processors.

#[cfg(feature = "command")]
mod command;
mod gigabyte;
mod link;
mod mtu;
mod relay;
mod split;
mod starving;
mod uplink;
