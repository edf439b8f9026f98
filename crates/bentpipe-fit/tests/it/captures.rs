//! Captures made by the simulator.

use std::path::Path;

use bentpipe_fit::{Fit, Transfer, fit};
use bentpipe_sim::record::{Drops, Pcap, Snap, Summary, Tap};
use bentpipe_sim::run;
use bentpipe_study::scenario::Scenario;

/// A download over a satellite of 20 Mbit/s; `link` has more keys of the link, `data` is its size.
pub(crate) fn satellite(link: &str, data: &str) -> String {
    path((20.0, 240), "", link, data)
}

/// A download over a satellite of these Mbit/s and ms; `tcp` and `link` have more keys, `data` is its size.
pub(crate) fn path((rate, delay): (f64, u32), tcp: &str, link: &str, data: &str) -> String {
    format!(
        "name = \"truth\"\ntime_limit = \"3000 s\"\n[tcp]\nprofile = \"linux\"\nvariant = \"cubic\"\n{tcp}\n\
         [[links]]\nname = \"net\"\nbetween = [\"server\", \"gateway\"]\nrate = \"1 Gbit/s\"\ndelay = \"10 ms\"\n\
         [[links]]\nname = \"sat\"\nbetween = [\"gateway\", \"client\"]\nrate = \"{rate} Mbit/s\"\ndelay = \"{delay} ms\"\n{link}\n\
         [[flows]]\nname = \"data\"\nfrom = \"server\"\nto = \"client\"\nbytes = \"{data}\"\n"
    )
}

/// Runs the scenario and captures at the host. Returns the number of drops on all links.
pub(crate) fn capture(text: &str, seed: u64, host: &str, path: &Path) -> Vec<Drops> {
    let scenario = Scenario::parse(text, "truth.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let taps = Tap::find(&scenario, host).expect("a host");
    let mut pcap = Pcap::create(path, &scenario, &taps, Snap::Headers, "").expect("writable");
    let result = run(&scenario, seed, &mut pcap).expect("a run");
    pcap.finish().expect("written");
    Summary::new(&scenario, &result).links.into_iter().map(|link| link.dropped).collect()
}

/// The estimates of a run's capture.
pub(crate) fn estimates(text: &str, seed: u64, host: &str) -> Transfer {
    with_drops(text, seed, host).0
}

/// The same, and what the links dropped.
pub(crate) fn with_drops(text: &str, seed: u64, host: &str) -> (Transfer, Vec<Drops>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.pcapng");
    let drops = capture(text, seed, host, &path);
    match fit(&path) {
        Ok(Fit::Transfer(transfer)) => (transfer, drops),
        other => panic!("{other:?}"),
    }
}
