//! The links in real time, between the network stacks of namespaces. Needs root.

#[path = "../../../bentpipe-io/tests/it/real_time/namespace.rs"]
#[allow(dead_code)]
mod namespace;
#[path = "../../../bentpipe-io/tests/it/real_time/talk.rs"]
#[allow(dead_code)]
mod talk;
mod trains;
