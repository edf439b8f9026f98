//! Two ends and a line between them.

mod properties;
mod queueing;
mod repairing;
mod repeating;
mod world;
