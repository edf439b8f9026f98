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
    userns_by(|name| fs::read_to_string(format!("/proc/sys/{name}")).ok())
}

/// Looks into the kernel's settings, which `setting` reads.
fn userns_by(setting: impl Fn(&str) -> Option<String>) -> Finding {
    let is = |name: &str, value: &str| setting(name).is_some_and(|text| text.trim() == value);
    let max = setting("user/max_user_namespaces").and_then(|text| text.trim().parse::<u64>().ok());
    let result = if max.unwrap_or(0) == 0 || is("kernel/unprivileged_userns_clone", "0") {
        let help = "sysctl -w user.max_user_namespaces=10000 (and kernel.unprivileged_userns_clone=1), for `shell` without root";
        Err(("not allowed".into(), help))
    } else if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        // Ubuntu's default since 23.10: they can be made, but have no capabilities.
        let help = "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, for `shell` without root";
        Err(("without capabilities, by AppArmor".into(), help))
    } else {
        Ok("allowed".into())
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_namespaces_need_three_settings() {
        let found = |max: &str, clone: &str, apparmor: &str| {
            let of = |name: &str| match name {
                "user/max_user_namespaces" => max.to_owned(),
                "kernel/unprivileged_userns_clone" => clone.to_owned(),
                "kernel/apparmor_restrict_unprivileged_userns" => apparmor.to_owned(),
                other => panic!("{other}"),
            };
            // Not every kernel has each.
            userns_by(|name| Some(of(name)).filter(|text| !text.is_empty())).result
        };
        assert_eq!((found("95000\n", "1\n", "0\n"), found("1", "", "")), (Ok("allowed".into()), Ok("allowed".into())));
        for refused in [found("0", "1", "0"), found("", "", ""), found("95000", "0\n", "0")] {
            assert!(refused.is_err_and(|(found, help)| found == "not allowed" && help.contains("max_user_namespaces")));
        }
        let restricted = found("95000", "1", "1\n").expect_err("AppArmor");
        assert!(restricted.1.contains("kernel.apparmor_restrict_unprivileged_userns=0"), "{restricted:?}");
    }
}
