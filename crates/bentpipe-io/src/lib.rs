//! Runs the engine in real time: the same machines as in the simulator, between devices and a monotonic clock. Code that opens devices,
//! waits, or changes the computer needs Linux. [`Endpoint`], [`LinkEndpoint`] and the terminal messages compile on any system.
//!
//! - [`Clock`] gives the time, [`Waiter`] sleeps, and [`Lateness`] measures how late it wakes.
//! - [`Tun`] is a TUN device; [`TrainTun`] is one that handles several packets at a time.
//! - [`Endpoint`] is a connection of the engine with its bytes, and [`Driver`] its loop. The endpoint's address is on
//!   the far side of the TUN device, so the host is an ordinary remote peer and its kernel does not touch the
//!   connection.
//! - [`LinkEndpoint`] is one end of an S-LACP link with its bytes.
//! - [`Session`] records what was created on the machine until it is removed.
//!
//! # Example
//!
//! An endpoint takes IP packets and produces IP packets. Here two of them exchange packets in memory;
//! `examples/tun_hello.rs` puts one behind a TUN device.
//!
//! ```
//! use std::net::SocketAddr;
//!
//! use bentpipe_engine::tcp::TcpConfig;
//! use bentpipe_engine::{Context, Step};
//! use bentpipe_io::{Clock, Endpoint, Peer};
//!
//! let clock = Clock::start();
//! let addresses = ["192.0.2.1:40000", "192.0.2.2:80"].map(|text| text.parse::<SocketAddr>().expect("an address"));
//! let mut cx = Context::silent(clock.now());
//! let mut client = Endpoint::open(&mut cx, TcpConfig::default(), addresses[0], Peer::Connect(addresses[1]), 1 << 16);
//! let mut server = Endpoint::open(&mut cx, TcpConfig::default(), addresses[1], Peer::Accept, 1 << 16);
//! client.write(&mut cx, b"hello").expect("it is open");
//!
//! let mut packet = [0; 1500];
//! while server.readable() < 5 {
//!     let mut cx = Context::silent(clock.now());
//!     while let Step::Do(length) = client.poll(&mut cx, &mut packet).expect("there is room") {
//!         server.receive(&mut cx, &packet[..length]).expect("a packet");
//!     }
//!     while let Step::Do(length) = server.poll(&mut cx, &mut packet).expect("there is room") {
//!         client.receive(&mut cx, &packet[..length]).expect("a packet");
//!     }
//! }
//! let mut bytes = [0; 5];
//! assert_eq!((server.read(&mut Context::silent(clock.now()), &mut bytes), &bytes), (5, b"hello"));
//! ```
#![forbid(unsafe_code)]

mod endpoint;
mod isn;
mod lateness;
pub mod manual;
mod note;
mod ring;
mod slacp;

#[cfg(target_os = "linux")]
mod linux;

pub use endpoint::{Closing, Endpoint, Peer, Receipt};
pub use isn::isn;
pub use lateness::Lateness;
pub use note::{SIGPIPE_CODE, has_colour};
pub use ring::Ring;
pub use slacp::{Emitted, LinkEndpoint, LinkEndpointConfig, LinkEndpointStats};

#[cfg(target_os = "linux")]
pub use linux::*;
