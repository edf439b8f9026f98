//! The folder of `--write`: the scenario with the recommended system, and the files of the gateways that carry it out.

use std::path::Path;

use bentpipe_study::report::write_whole;
use bentpipe_study::scenario::Scenario;

use crate::commands::gateway_files::{Place, pair_file, uplink_file};
use crate::failure::Failure;
use crate::output::{self, Inputs};

/// True if `--write` names a file, not a folder.
pub(super) fn is_file(path: &Path) -> bool {
    path.as_os_str() == "-" || path.extension().is_some_and(|ending| ending == "toml") || path.is_file()
}

/// The names of the files in the folder.
const NAMES: [&str; 4] = ["scenario.toml", "near.toml", "far.toml", "uplink.toml"];

/// Checks before the runs that the file can be written; or that the folder can, which is created, and that none of its files is an input.
pub(super) fn check(path: &Path, inputs: &Inputs) -> Result<(), Failure> {
    if is_file(path) {
        return output::check_writable(path);
    }
    if let Some(ending) = path.extension().filter(|_| !path.is_dir()) {
        let ending = ending.to_string_lossy();
        let message = format!("{}: a scenario's name ends in .toml, not .{ending}", path.display());
        return Err(Failure::usage(message, Some("a folder with a dot in its name must exist already".to_owned())));
    }
    if path.exists() && !path.is_dir() {
        return Err(output::not_a_folder(path));
    }
    NAMES.iter().try_for_each(|name| inputs.refuse(&path.join(name)))?;
    output::check_folder(path)
}

/// Writes the scenario, and a file for each box; `comment` comes first. Returns the files of an earlier answer that this
/// one does not have. They are kept, because they may have been edited.
pub(super) fn write(
    folder: &Path,
    scenario: &str,
    with: &Scenario,
    comment: &str,
) -> Result<Vec<&'static str>, Failure> {
    output::create_folder(folder)?;
    let mut all = vec![("scenario.toml", scenario.to_owned())];
    if let Some(pair) = with.gateways.pairs.first() {
        let file = |side| pair_file(with, pair, side, &Place::unknown(side));
        all.extend([("near.toml", file(0)), ("far.toml", file(1))]);
    }
    let uplink = with.gateways.uplinks.first();
    all.extend(uplink.map(|spec| ("uplink.toml", uplink_file(with, spec, &Place::unknown(0)))));
    let is_old = |name: &&str| !all.iter().any(|(new, _)| new == name) && folder.join(name).exists();
    let old = NAMES.into_iter().filter(is_old).collect();
    for (name, text) in all {
        let text = if name == "scenario.toml" { text } else { format!("{comment}{text}") };
        write_whole(&folder.join(name), text.as_bytes()).map_err(Failure::unwritten)?;
    }
    Ok(old)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use bentpipe_gateway::settings::{GatewayFile, ShapeTable};
    use bentpipe_sim::recommend::{System, equipped};

    use super::*;

    fn bare() -> Scenario {
        let text = crate::shipped::text("geo").expect("it is shipped");
        Scenario::parse(text, "geo.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn read(folder: &Path, name: &str) -> GatewayFile {
        let text = std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        // What the administrator fills in.
        let text = text.replace("THE OTHER BOX'S PUBLIC KEY", "EOXVdFLr6cdSWbcCkTa1KrbiNbc5XhUgQcNZXLm1p0s=");
        GatewayFile::parse(&text, name).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
    }

    /// Files of an earlier answer are named, since the new answer does not use them.
    #[test]
    fn what_an_earlier_answer_has_left_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut old = [System::Plain, System::Split, System::Link, System::Uplink, System::Split].map(|system| {
            let with = equipped(&bare(), system).expect("it fits");
            write(folder.path(), &with.to_toml(), &with, "# why\n").expect("it can be written")
        });
        let names = ["near.toml", "far.toml"];
        assert_eq!(old, [vec![], vec![], vec![], names.to_vec(), vec!["uplink.toml"]]);
        let with = equipped(&bare(), System::Plain).expect("it fits");
        old[0] = write(folder.path(), "", &with, "").expect("it can be written");
        assert_eq!(old[0], ["near.toml", "far.toml", "uplink.toml"]);
    }

    /// The gateway reads the files, and reads what was simulated.
    #[test]
    fn the_gateway_reads_them() {
        for system in [System::Split, System::Link, System::Uplink] {
            let folder = tempfile::tempdir().expect("a folder");
            let with = equipped(&bare(), system).expect("it fits");
            write(folder.path(), &with.to_toml(), &with, "# why\n").expect("it can be written");
            let text = std::fs::read_to_string(folder.path().join("scenario.toml")).expect("it is there");
            Scenario::parse(&text, "scenario.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
            if system == System::Uplink {
                let file = read(folder.path(), "uplink.toml");
                assert!(
                    matches!(&file.shape, ShapeTable::Uplink(uplink) if uplink.variant == "constant-rack"),
                    "{file:?}"
                );
                let spec = &with.gateways.uplinks[0];
                assert!(matches!(&file.shape, ShapeTable::Uplink(uplink) if uplink.tcp == spec.sender.tcp), "{file:?}");
                assert_eq!(file.satellite.rate, spec.sender.rate);
                continue;
            }
            let pair = &with.gateways.pairs[0];
            for (side, name) in ["near.toml", "far.toml"].into_iter().enumerate() {
                let file = read(folder.path(), name);
                let (told, said) = (pair.satellite[side], file.satellite);
                assert_eq!(
                    (said.rate, said.round_trip, said.reordering, said.shared),
                    (told.rate, told.round_trip, told.reordering, told.shared)
                );
                assert_eq!(matches!(file.shape, ShapeTable::Split(_)), system == System::Split);
            }
        }
    }
}
