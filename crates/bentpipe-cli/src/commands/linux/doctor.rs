//! `bentpipe doctor`: what the machine lacks, and how to provide it.

use std::fs;

use bentpipe_gateway::command::doctor::{Finding, doctor as check, findings};
use serde::Serialize;

use crate::args::List;
use crate::failure::{End, Failure};
use crate::output;

#[derive(Serialize)]
struct Found {
    what: &'static str,
    ok: bool,
    /// Whether gateways cannot run without it.
    needed: bool,
    found: String,
    help: Option<&'static str>,
}

pub(crate) fn doctor(args: &List) -> Result<End, Failure> {
    if !args.json {
        return Ok(check(&[userns(), pasta()])?.into());
    }
    let found = |Finding { what, is_needed, result }| {
        let (ok, found, help) = match result {
            Ok(found) => (true, found, None),
            Err((found, help)) => (false, found, Some(help)),
        };
        Found { what, ok, needed: is_needed, found, help }
    };
    let all: Vec<Found> = findings(&[userns(), pasta()]).into_iter().map(found).collect();
    output::print_json(&all)?;
    Ok(if all.iter().any(|found| found.needed && !found.ok) { End::Failed } else { End::Done })
}

fn userns() -> Finding {
    let max = fs::read_to_string("/proc/sys/user/max_user_namespaces").unwrap_or_default();
    let forbidden =
        fs::read_to_string("/proc/sys/kernel/unprivileged_userns_clone").is_ok_and(|text| text.trim() == "0");
    let may = max.trim().parse().is_ok_and(|max: u64| max > 0) && !forbidden;
    let help =
        "sysctl -w user.max_user_namespaces=10000 (and kernel.unprivileged_userns_clone=1), for `shell` without root";
    let result = if may { Ok("allowed".into()) } else { Err(("not allowed".into(), help)) };
    Finding { what: "user namespaces", is_needed: false, result }
}

/// Looks for `pasta` in the search path.
fn pasta() -> Finding {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let result = match std::env::split_paths(&paths).any(|folder| folder.join("pasta").is_file()) {
        true => Ok("installed".into()),
        false => {
            let help = "install the package passt, so that `shell` without root reaches the outside";
            Err(("not installed".into(), help))
        }
    };
    Finding { what: "pasta", is_needed: false, result }
}
