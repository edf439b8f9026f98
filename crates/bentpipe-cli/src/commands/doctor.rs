//! `bentpipe doctor`: what the machine lacks, and how to provide it.

use std::fs;

use bentpipe_gateway::command::doctor::{Finding, doctor as check};

use crate::failure::{End, Failure};

pub(crate) fn doctor() -> Result<End, Failure> {
    Ok(check(&[userns()])?.into())
}

fn userns() -> Finding {
    let max = fs::read_to_string("/proc/sys/user/max_user_namespaces").unwrap_or_default();
    let forbidden =
        fs::read_to_string("/proc/sys/kernel/unprivileged_userns_clone").is_ok_and(|text| text.trim() == "0");
    let may = max.trim().parse().is_ok_and(|max: u64| max > 0) && !forbidden;
    let help =
        "sysctl -w user.max_user_namespaces=10000 (and kernel.unprivileged_userns_clone=1), to emulate without root";
    let result = if may { Ok("allowed".into()) } else { Err(("not allowed".into(), help)) };
    Finding { what: "user namespaces", is_needed: false, result }
}
