//! The data of an experiment: reads scenarios, writes events as tables, and computes limits and statistics. It runs
//! nothing; `bentpipe-sim` does that.
//!
//! # Example
//!
//! ```
//! use bentpipe_study::limit::flow_limit;
//! use bentpipe_study::scenario::Scenario;
//!
//! let text = r#"
//! name = "demo"
//!
//! [[links]]
//! name = "sat"
//! between = ["server", "client"]
//! rate = "10 Mbit/s"
//! delay = "275 ms"
//! forward.queue = "300 ms"
//!
//! [[flows]]
//! name = "download"
//! from = "server"
//! to = "client"
//! bytes = "2 MB"
//! "#;
//! let scenario = Scenario::parse(text, "demo.toml", &[]).expect("no mistakes");
//! let limit = flow_limit(&scenario, &scenario.flows[0]).expect("a path").expect("a connection");
//! // The handshake, 2 MB with headers at 10 Mbit/s, and the one-way delay.
//! let least = limit.time.expect("it ends").as_secs_f64();
//! assert!((2.4..2.6).contains(&least), "{least} s");
//!
//! let errors = Scenario::parse(&text.replace("delay", "dealy"), "demo.toml", &[]).expect_err("a mistake");
//! assert!(errors.render(false).contains("did you mean `delay`?"));
//! ```
//!
//! # Modules
//!
//! - [`scenario`]: the language of experiments. [`topology`], [`wiring`]: the paths and the network of a scenario.
//! - [`limit`]: physical limits. [`model`]: predictions from the literature.
//! - [`trace`]: events as rows. [`stats`]: intervals, paired differences. [`report`], [`drawing`]: tables and figures.
//! - [`table`], [`csv`], [`output`]: files. [`markup`]: text for HTML and SVG.
#![forbid(unsafe_code)]

pub mod csv;
pub mod drawing;
pub mod limit;
pub mod markup;
pub mod model;
#[cfg(feature = "files")]
pub mod output;
pub mod report;
pub mod scenario;
pub mod stats;
#[cfg(feature = "files")]
pub mod table;
pub mod topology;
#[cfg(feature = "files")]
pub mod trace;
pub mod wiring;
