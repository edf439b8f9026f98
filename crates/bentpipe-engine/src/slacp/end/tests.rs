//! Two ends and a line between them.

mod outages;
mod properties;
mod queueing;
mod repairing;
mod repeating;
mod world;
