//! The commands, one file each.

pub(crate) mod compare;
pub(crate) mod demo;
pub(crate) mod explain;
pub(crate) mod fit;
mod gateway_files;
mod junit;
pub(crate) mod lab;
#[cfg(target_os = "linux")]
pub(crate) mod linux;
pub(crate) mod lists;
pub(crate) mod manual;
pub(crate) mod model;
pub(crate) mod plots;
pub(crate) mod recommend;
pub(crate) mod reference;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod scoreboard;
pub(crate) mod script;
pub(crate) mod sweep;

#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
pub(crate) mod linux;
