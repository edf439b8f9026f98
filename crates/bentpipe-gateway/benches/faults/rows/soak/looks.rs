//! What a transfer that waits looks like from both its hosts and both boxes.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::pair::{Hosts, bentpipe};

/// A wait of this long is looked at, half of what fails a soak: Linux doubles its timeouts, so one that ends the wait after 60 s is
/// shown with the timeout that it waits for now.
pub(super) const LOOK_AFTER: Duration = Duration::from_secs(30);
/// An hour prints so many at most.
const MAX_LOOKS: usize = 12;

/// Prints a few lines about each of the first transfers that wait for long.
pub(super) struct Looks {
    /// Those from the client to the server, and the names of their namespaces.
    hosts: Vec<(&'static str, String)>,
    gateways: &'static [&'static str],
    folder: PathBuf,
    start: Instant,
    count: AtomicUsize,
}

impl Looks {
    pub(super) fn new(
        hosts: &Hosts,
        sides: &[&'static str],
        namespaces: &[&str],
        gateways: &'static [&'static str],
    ) -> Looks {
        let folder = hosts.folder.path().to_owned();
        let hosts = sides.iter().copied().zip(namespaces.iter().map(|&name| name.to_owned())).collect();
        Looks { hosts, gateways, folder, start: Instant::now(), count: AtomicUsize::new(0) }
    }

    /// Looks at the transfer whose client has this port, and of which there is this to say.
    pub(super) fn take(&self, port: u16, what: &str) {
        if self.count.fetch_add(1, Ordering::Relaxed) >= MAX_LOOKS {
            return;
        }
        let minutes = self.start.elapsed().as_secs_f64() / 60.0;
        let mut text = format!("  {minutes:.1} min, port {port} {what}\n");
        for (side, host) in &self.hosts {
            let port = format!(":{port}");
            let words = ["netns", "exec", host, "ss", "-Hatinmo", "sport", "=", &port, "or", "dport", "=", &port];
            let shown = Command::new("ip").args(words).output().map(|output| output.stdout).unwrap_or_default();
            let words: Vec<_> = String::from_utf8_lossy(&shown).split_whitespace().map(str::to_owned).collect();
            // No line: this host has no such connection any more.
            text += &format!("    {side}: {}\n", words.join(" "));
        }
        for name in self.gateways {
            let output = bentpipe(&self.folder, &["status", &format!("{name}.toml")]);
            let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            text += &format!("    {name}: up {}, satellite {}\n", status["up"], status["satellite"]);
        }
        print!("{text}");
    }
}
