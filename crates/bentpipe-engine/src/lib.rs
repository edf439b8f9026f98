//! Protocols and links as state machines that have no clock, sockets or randomness of their own.
//!
//! The engine implements TCP in many variants, ESA's STP, the link layer S-LACP, split connections, header compression,
//! a stream multiplexer, and links with queues, fading channels and ATM cells. A *driver* supplies time and packets.
//! The same machines run in `bentpipe-sim`'s virtual time and in `bentpipe-io`'s real time, so the protocol that was
//! simulated is the one that moves real bytes.
//!
//! # The run loop
//!
//! Every protocol is a [`Machine`]:
//!
//! 1. [`Machine::handle`] takes one input, such as an arriving segment, and returns what was done with it.
//! 2. [`Machine::poll`] returns [`Step::Do`] for each output, such as a segment to send, until there are no more.
//! 3. It then returns [`Step::Wait`] with the time of the next timer. Poll again at that time, or after the next input.
//!
//! Polling too early does no harm. The time in `Wait` replaces the previous one, so a driver needs one timer per
//! machine. Machines handle only byte counts: the driver keeps the bytes themselves.
//!
//! # Example
//!
//! Two TCP connections, 300 ms apart, in virtual time. `examples/two_peers.rs` adds links that lose packets, and
//! `bentpipe-io`'s `examples/tun_hello.rs` is a server behind a TUN device.
//!
//! ```
//! use std::collections::VecDeque;
//!
//! use bentpipe_engine::tcp::{Connection, Input, Output, Role, TcpConfig};
//! use bentpipe_engine::units::{Duration, Time};
//! use bentpipe_engine::{Context, Machine, Step};
//!
//! let delay = Duration::from_millis(300);
//! let mut ends = [Role::Active, Role::Passive].map(|role| Connection::new(TcpConfig::default(), role));
//! let mut now = Time::ZERO;
//! ends[1].handle(&mut Context::silent(now), Input::Open);
//! ends[0].handle(&mut Context::silent(now), Input::Open);
//! ends[0].handle(&mut Context::silent(now), Input::Write(100_000));
//!
//! let mut line = VecDeque::new();
//! let mut timers = [None; 2];
//! let mut received = 0;
//! while received < 100_000 {
//!     for n in [0, 1] {
//!         let mut cx = Context::silent(now);
//!         timers[n] = loop {
//!             match ends[n].poll(&mut cx) {
//!                 Step::Do(Output::Transmit(segment)) => line.push_back((now + delay, 1 - n, segment)),
//!                 Step::Do(Output::Readable(total)) => {
//!                     ends[n].handle(&mut cx, Input::Read(total - received));
//!                     received = total;
//!                 }
//!                 Step::Do(_) => {}
//!                 Step::Wait(until) => break until,
//!             }
//!         };
//!     }
//!     // The next event: an arrival or a timer.
//!     let arrival = line.front().map(|&(at, ..)| at);
//!     now = [arrival, timers[0], timers[1]].into_iter().flatten().min().expect("something is under way");
//!     while line.front().is_some_and(|&(at, ..)| at <= now) {
//!         let (_, to, segment) = line.pop_front().expect("there is one");
//!         ends[to].handle(&mut Context::silent(now), Input::Segment(segment));
//!     }
//! }
//! // SYN, SYN-ACK and the first data took one delay each; slow start took the rest.
//! assert!(now > Time::ZERO + delay.saturating_mul(3));
//! ```
//!
//! # Controls, losses, and other transports
//!
//! [`TcpConfig::variant`](tcp::TcpConfig::variant) configures a sender. [`Variant::named`](tcp::Variant::named) returns a row of the
//! [table](tcp::variant::VARIANTS), and each of its fields can be replaced. A [`Probe`] observes events inside machines, such as losses.
//! [`WindowControl`](tcp::WindowControl) makes a congestion control available to another transport.
//!
//! ```
//! use bentpipe_engine::probe::{Event, Who};
//! use bentpipe_engine::tcp::variant::CongestionControl;
//! use bentpipe_engine::tcp::{TcpConfig, Variant, WindowControl};
//! use bentpipe_engine::units::Time;
//! use bentpipe_engine::{Context, Probe};
//!
//! // A row of the table, and the same with another control.
//! let cubic = Variant::named("cubic").expect("a row of the table");
//! let hybla = Variant { congestion: CongestionControl::Hybla, ..cubic };
//! let config = TcpConfig { variant: hybla, ..TcpConfig::default() };
//! assert!(config.is_wire_true());
//!
//! // Prints the losses that senders find and that links cause. Pass this context to `handle`, `poll`, `offer` and `take`.
//! struct Losses;
//!
//! impl Probe for Losses {
//!     fn event(&mut self, now: Time, who: Who, event: &Event) {
//!         if let Event::RecoveryEntered { .. } | Event::Timeout { .. } | Event::Dropped { .. } = event {
//!             println!("{now:?} {who:?} {event:?}");
//!         }
//!     }
//! }
//!
//! let mut cx = Context { now: Time::ZERO, who: Who(0), probe: &mut Losses };
//! # cx.emit(|| Event::RecoveryLeft);
//!
//! // The window of a transport with packets of 1200 bytes, which starts with ten of them.
//! let mut control = WindowControl::new(&cubic, 1200, 10, true).expect("CUBIC sets a window");
//! control.on_loss(12_000, false);
//! assert_eq!(control.window(), 8_400); // RFC 9438 §4.6: 0.7 of it
//! ```
//!
//! # Features and targets
//!
//! The crate is `no_std`: it needs an allocator, but no operating system. Besides the systems that have the standard
//! library, it compiles for `wasm32-unknown-unknown` and, without the feature `std`, for microcontrollers such as
//! `thumbv7em-none-eabihf`. The target needs atomic pointers, for `Arc`. Two features are on by default:
//!
//! - `std` lets S-LACP's checksum detect the processor's instructions at run time. Without it, the checksum uses the instructions that the
//!   compiler may assume. Results do not differ: floating-point functions come from the crate `libm` with or without `std`.
//! - `ns2` adds ns-2's departures from the RFCs. A program for real traffic does not need it.
//!
//! # Modules
//!
//! - [`units`]: time, rates, probabilities. [`stream`]: named random streams. [`probe`]: observers.
//! - [`link`]: a link as a queue, a line, a propagation delay and a channel; [`atm`]: links with ATM cells. [`network`]: paths over many
//!   links.
//! - [`tcp`], [`stp`]: connections. [`splice`] joins two back to back; [`spoof`] ends one on behalf of the destination.
//! - [`slacp`]: the link layer below IP, with retransmission and repair frames. [`mux`]: many streams over one link.
//!   [`compression`]: header compression.
//! - [`gateway`]: the parts of two gateways over a satellite link. [`slots`]: packets by handle.
//! - [`wire`]: converts bytes to values and back.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(clippy::alloc_instead_of_core, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]

#[macro_use]
extern crate alloc;

mod arq;
pub mod atm;
pub mod compression;
pub mod gateway;
pub mod link;
mod machine;
pub mod mux;
pub mod network;
pub mod probe;
mod rtt;
pub mod slacp;
pub mod slots;
pub mod splice;
pub mod spoof;
pub mod stp;
pub mod stream;
pub mod tcp;
mod turns;
pub mod units;
pub mod wire;

pub use machine::{Context, Machine, Step};
pub use probe::{NoProbe, Probe};
