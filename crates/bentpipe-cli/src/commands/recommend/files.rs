//! The folder of `--write`: the scenario with the recommended system, and the files of the gateways that carry it out.

use std::path::Path;

use bentpipe_engine::gateway::UplinkSender;
use bentpipe_language::quantity::{SIZE, format_duration, format_rate};
use bentpipe_study::report::write_whole;
use bentpipe_study::scenario::{Carries, Cell, PairSpec, Scenario, SenderOf, UplinkSpec};

use crate::failure::Failure;
use crate::output::{self, Inputs};

/// True if `--write` names a file, not a folder.
pub(super) fn is_file(path: &Path) -> bool {
    path.as_os_str() == "-" || path.extension().is_some_and(|ending| ending == "toml") || path.is_file()
}

/// The names of the files in the folder.
const NAMES: [&str; 4] = ["scenario.toml", "near.toml", "far.toml", "uplink.toml"];

/// Checks before the runs that the file can be written, or that no file of the folder is an input.
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
    NAMES.iter().try_for_each(|name| inputs.refuse(&path.join(name)))
}

/// Writes the scenario, and a file for each box; `comment` comes first.
pub(super) fn write(folder: &Path, scenario: &str, with: &Scenario, comment: &str) -> Result<(), Failure> {
    output::create_folder(folder)?;
    let mut all = vec![("scenario.toml", scenario.to_owned())];
    if let Some(pair) = with.gateways.pairs.first() {
        all.extend([("near.toml", pair_file(with, pair, 0)), ("far.toml", pair_file(with, pair, 1))]);
    }
    all.extend(with.gateways.uplinks.first().map(|spec| ("uplink.toml", uplink_file(with, spec))));
    for (name, text) in all {
        let text = if name == "scenario.toml" { text } else { format!("{comment}{text}") };
        write_whole(&folder.join(name), text.as_bytes()).map_err(Failure::unwritten)?;
    }
    Ok(())
}

/// The file of the near box (0) or the far one (1). What the scenario does not know is to be filled in.
fn pair_file(scenario: &Scenario, pair: &PairSpec, side: usize) -> String {
    let satellite = pair.satellite[side];
    let name = ["near", "far"][side];
    let node = &scenario[pair.nodes[side]];
    let peer = match side {
        0 => "peer = \"198.51.100.7:4500\"   # the other box: its address and port\n",
        _ => "",
    };
    let (rate, round_trip) = (format_rate(satellite.rate), format_duration(satellite.round_trip));
    let mtu = SIZE.format(u64::from(satellite.path_mtu));
    let memory = SIZE.format(pair.memory.get());
    let shape = match pair.carries {
        Carries::Streams { max_streams } => {
            let capture = [
                "# interfaces whose hosts' connections are intercepted",
                "# interfaces of hosts on this side, if they open connections too",
            ];
            format!(
                "[split]\ncapture = [\"lan0\"]   {}\nmax_streams = {max_streams}\nmemory = \"{memory}\"\n",
                capture[side],
            )
        }
        Carries::Packets => {
            format!(
                "[link]\naddresses = [\"10.8.0.{}/24\"]   # of the TUN device; route into it what should go over the link\nmemory = \"{memory}\"\n",
                side + 1
            )
        }
    };
    format!(
        "name = \"{name}\"   # the box at `{node}`\n\n[tunnel]\nprivate_key = \"private.key\"   # written by `bentpipe gateway keygen`\n\
         peer_key = \"THE OTHER BOX'S PUBLIC KEY\"   # printed by `bentpipe gateway keygen` there\n{peer}mtu = \"{mtu}\"\n\n\
         [satellite]\nrate = \"{rate}\"\nround_trip = \"{round_trip}\"\nreordering = {}\nshared = {}\n\n{shape}",
        satellite.reordering, satellite.shared
    )
}

/// The file of the box at the uplink.
fn uplink_file(scenario: &Scenario, spec: &UplinkSpec) -> String {
    let node = &scenario[spec.at];
    let UplinkSender { rate, round_trip, mtu, window, .. } = spec.sender;
    let sender = match &spec.by {
        SenderOf::Kernel { congestion } => format!("sender = \"kernel\"\ncongestion = \"{congestion}\"\n"),
        SenderOf::Engine { variant, explicit, early_accept } => {
            let window = window.map(|window| format!("window = \"{}\"\n", SIZE.format(window))).unwrap_or_default();
            let said = match explicit.both.get("fixed_window") {
                Some(Cell::Count(segments)) => {
                    format!("tcp.fixed_window = {segments}   # one bandwidth-delay product, segments\n")
                }
                _ => String::new(),
            };
            let mtu = SIZE.format(u64::from(mtu));
            format!("variant = \"{variant}\"\nmtu = \"{mtu}\"\nearly_accept = {early_accept}\n{window}{said}")
        }
    };
    format!(
        "name = \"uplink\"   # the box at `{node}`\n\n[satellite]\nrate = \"{}\"\nround_trip = \"{}\"\n\n\
         [uplink]\nsatellite = [\"sat0\"]   # interfaces towards the clients\n{sender}",
        format_rate(rate),
        format_duration(round_trip)
    )
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
