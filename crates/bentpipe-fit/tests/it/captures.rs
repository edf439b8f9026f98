//! Captures made by the simulator.

use std::path::Path;

use bentpipe_fit::{Fit, Transfer, fit};
use bentpipe_sim::record::{Pcap, Snap, Tap};
use bentpipe_sim::run;
use bentpipe_study::scenario::Scenario;

/// A download over a satellite; `link` has more keys of the link, `data` is its size.
pub(crate) fn satellite(link: &str, data: &str) -> String {
    format!(
        "name = \"truth\"\ntime_limit = \"3000 s\"\n[tcp]\nprofile = \"linux\"\nvariant = \"cubic\"\nsend_buffer = \"off\"\n\
         [[links]]\nname = \"net\"\nbetween = [\"server\", \"gateway\"]\nrate = \"1 Gbit/s\"\ndelay = \"10 ms\"\n\
         [[links]]\nname = \"sat\"\nbetween = [\"gateway\", \"client\"]\nrate = \"20 Mbit/s\"\ndelay = \"240 ms\"\n{link}\n\
         [[flows]]\nname = \"data\"\nfrom = \"server\"\nto = \"client\"\nbytes = \"{data}\"\n"
    )
}

/// Runs the scenario and captures at the host.
pub(crate) fn capture(text: &str, seed: u64, host: &str, path: &Path) {
    let scenario = Scenario::parse(text, "truth.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let taps = Tap::find(&scenario, host).expect("a host");
    let mut pcap = Pcap::create(path, &scenario, &taps, Snap::Headers, "").expect("writable");
    run(&scenario, seed, &mut pcap).expect("a run");
    pcap.finish().expect("written");
}

/// The estimates of a run's capture.
pub(crate) fn estimates(text: &str, seed: u64, host: &str) -> Transfer {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.pcapng");
    capture(text, seed, host, &path);
    match fit(&path) {
        Ok(Fit::Transfer(transfer)) => transfer,
        other => panic!("{other:?}"),
    }
}
