//! The commands, one file each.

pub(crate) mod compare;
pub(crate) mod control;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod emulate;
pub(crate) mod explain;
pub(crate) mod fit;
pub(crate) mod gateway;
mod junit;
pub(crate) mod lab;
pub(crate) mod lists;
pub(crate) mod manual;
pub(crate) mod model;
pub(crate) mod plots;
mod realtime;
pub(crate) mod recommend;
pub(crate) mod reference;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod scoreboard;
pub(crate) mod script;
pub(crate) mod shell;
pub(crate) mod sweep;
pub(crate) mod verify;
pub(crate) mod verify_hosts;
