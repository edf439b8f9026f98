//! Two ends and a line between them.

mod counting;
mod line;
mod outages;
mod properties;
mod queueing;
mod repairing;
mod repeating;
mod world;
