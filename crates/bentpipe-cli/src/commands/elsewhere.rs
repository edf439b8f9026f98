//! Replacements for the commands of `linux` on other systems: each ends with exit code 2 and one sentence.

use std::ffi::OsString;

use bentpipe_language::Schema;
use bentpipe_language::reference::Table;
use clap::Subcommand;

use crate::args::{Emulate, Link, List, Shell, Verify, VerifyHosts};
use crate::failure::{End, Failure};

/// A command below `bentpipe gateway`, and whatever follows.
#[derive(Debug, Subcommand)]
pub(crate) enum Gateway {
    #[command(external_subcommand)]
    Any(Vec<OsString>),
}

/// True if this build has the commands of `linux`.
pub(crate) const IS_HERE: bool = false;

fn needs_linux<T>(command: &str, what: &str) -> Result<T, Failure> {
    Err(Failure::usage(format!("`bentpipe {command}` needs Linux: {what}"), None))
}

pub(crate) fn emulate(_: &Emulate) -> Result<End, Failure> {
    needs_linux("emulate", "network namespaces and TUN devices")
}

pub(crate) fn shell(_: &Shell) -> Result<End, Failure> {
    needs_linux("shell", "network namespaces and TUN devices")
}

pub(crate) fn link(_: &Link) -> Result<End, Failure> {
    needs_linux("link", "it changes the links of `emulate` and `shell`")
}

pub(crate) fn verify(_: &Verify) -> Result<End, Failure> {
    needs_linux("verify", "its clock and its TCP")
}

pub(crate) fn verify_hosts(_: &VerifyHosts) -> Result<End, Failure> {
    needs_linux("verify-hosts", "its TCP and network namespaces")
}

pub(crate) fn gateway(Gateway::Any(words): &Gateway) -> Result<End, Failure> {
    let command = words.first().map_or(String::new(), |word| word.to_string_lossy().into_owned());
    needs_linux(&format!("gateway {command}"), "rules of its kernel, TUN devices and sockets")
}

pub(crate) fn doctor(_: &List) -> Result<End, Failure> {
    needs_linux("doctor", "it checks what gateways and emulation need there")
}

pub(crate) fn gateway_schema() -> Result<Schema, Failure> {
    needs_linux("schema gateway", "the gateway is not part of this build")
}

pub(crate) fn gateway_keys() -> Result<Vec<Table>, Failure> {
    needs_linux("reference gateway", "the gateway is not part of this build")
}

pub(crate) fn gateway_metrics() -> Result<Vec<Vec<String>>, Failure> {
    needs_linux("reference metrics", "the gateway is not part of this build")
}
