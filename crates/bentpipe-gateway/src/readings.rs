//! The measured values of a gateway: one list, rendered as JSON for `status` and as text for Prometheus.
//!
//! The loop builds the list. Other threads render it.

pub(crate) mod listener;
mod one_box;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bentpipe_engine::units::Duration;

/// The name of a counter.
macro_rules! total {
    ($what:literal) => {
        concat!("bentpipe_gateway_", $what, "_total")
    };
}
pub(crate) use total;

/// A value with its unit.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A count that only grows.
    Total(u64),
    /// A value that rises and falls.
    Level(u64),
    /// True or false.
    Flag(bool),
    /// A time, in milliseconds in the status and in seconds for Prometheus; `None` while it is unknown.
    Millis(Option<Duration>),
    /// A time, in microseconds in the status.
    Micros(Duration),
    /// A time that only grows, in milliseconds in the status.
    Spent(Duration),
    /// A text. For Prometheus, it is a label with this key.
    Text(Option<String>),
}

impl Value {
    /// Its type for Prometheus.
    pub(crate) fn kind(&self) -> &'static str {
        if matches!(self, Value::Total(_) | Value::Spent(_)) { "counter" } else { "gauge" }
    }
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Its table in the status; if empty, the top level.
    pub table: &'static str,
    /// Its key in that table. If several values have the same key, the status shows their sum.
    pub key: &'static str,
    /// The peer that it belongs to, if peers have names: a table with that name in `peers`, and a label.
    pub peer: Option<Arc<str>>,
    /// Its name for Prometheus.
    pub metric: &'static str,
    /// What it means.
    pub help: &'static str,
    /// The label that distinguishes several values.
    pub label: Option<(&'static str, String)>,
    /// The value.
    pub value: Value,
}

/// All values of a gateway at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readings {
    name: String,
    shape: &'static str,
    list: Vec<Reading>,
    /// The peer whose values are being added.
    peer: Option<Arc<str>>,
    /// When the loop began the list.
    begun: Option<Instant>,
    /// Values of the loop that come first, shared with other threads.
    shared: Option<Arc<Readings>>,
}

/// The latest readings. The loop stores them, and other threads read them.
pub type Published = Arc<Mutex<Arc<Readings>>>;

impl Readings {
    /// An empty list for the gateway with this name and shape.
    pub fn new(name: &str, shape: &'static str) -> Self {
        let begun = Some(Instant::now());
        Readings { name: name.to_owned(), shape, list: Vec::new(), peer: None, begun, shared: None }
    }

    /// The loop's readings, to which a thread can add its own. They are not copied: those of 30 000 peers take 0.7 GB.
    pub(crate) fn over(shared: Arc<Readings>) -> Self {
        let (name, list) = (shared.name.clone(), Vec::new());
        Readings { name, shape: shared.shape, list, peer: None, begun: shared.begun, shared: Some(shared) }
    }

    /// The gateway's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The gateway's shape.
    pub fn shape(&self) -> &'static str {
        self.shape
    }

    /// Makes room for as many values as `other` has. Growing would copy them.
    pub(crate) fn reserve_as(&mut self, other: &Readings) {
        self.list.reserve(other.list.len());
    }

    /// Drops at most `max` values, from the end. Returns true if some remain.
    pub(crate) fn drop_some(&mut self, max: usize) -> bool {
        self.list.truncate(self.list.len().saturating_sub(max));
        !self.list.is_empty()
    }

    /// Adds the values of a peer; `None`: the only peer, which has no name.
    pub(crate) fn of_peer(&mut self, name: Option<Arc<str>>, add: impl FnOnce(&mut Self)) {
        self.peer = name;
        add(self);
        self.peer = None;
    }

    /// True while the values of a named peer are being added.
    pub(crate) fn has_peer(&self) -> bool {
        self.peer.is_some()
    }

    /// The values added to this list. Those of one metric of a peer are adjacent, and so are all of a peer.
    pub fn list(&self) -> &[Reading] {
        &self.list
    }

    /// The values: the shared ones, then those of this list.
    pub(crate) fn parts(&self) -> [&[Reading]; 2] {
        [self.shared.as_ref().map_or(&[], |shared| &shared.list), &self.list]
    }

    /// Adds a value.
    pub fn add(
        &mut self,
        table: &'static str,
        key: &'static str,
        metric: &'static str,
        help: &'static str,
        value: Value,
    ) {
        self.list.push(Reading { table, key, peer: self.peer.clone(), metric, help, label: None, value });
    }

    /// Adds one of several values of a metric, distinguished by a label.
    pub(super) fn add_labelled(
        &mut self,
        table: &'static str,
        (key, metric, help): (&'static str, &'static str, &'static str),
        (label, of): (&'static str, &str),
        value: Value,
    ) {
        let (peer, label) = (self.peer.clone(), Some((label, of.to_owned())));
        self.list.push(Reading { table, key, peer, metric, help, label, value });
    }

    /// Adds a value for each channel.
    pub(super) fn add_by_channel(
        &mut self,
        key: &'static str,
        metric: &'static str,
        help: &'static str,
        values: impl Iterator<Item = Value>,
    ) {
        let peer = &self.peer;
        self.list.extend(values.enumerate().map(|(channel, value)| {
            let label = Some(("channel", channel.to_string()));
            Reading { table: "satellite", key, peer: peer.clone(), metric, help, label, value }
        }));
    }

    /// Adds the number of requests that the policy refused, in the shape's table.
    pub(crate) fn add_forbidden(&mut self, table: &'static str, count: u64) {
        let help = "Connections refused, or packets of the peer dropped, by `allow`, `deny`, `peer_prefixes` or their defaults.";
        self.add(table, "forbidden", "bentpipe_gateway_forbidden_total", help, Value::Total(count));
    }

    /// Adds the packets of hosts that the kernel dropped before the shape's TUN device; `None` if the device is gone.
    pub(crate) fn add_overruns(&mut self, table: &'static str, overruns: Option<u64>) {
        let Some(overruns) = overruns else { return };
        let help =
            "Sends of hosts (packets or GSO trains) that the kernel dropped because the TUN device's queue was full.";
        self.add(table, "overruns", "bentpipe_gateway_device_overruns_total", help, Value::Total(overruns));
    }

    /// Adds whether the gateway is ready, which means that its link is up and none of its interfaces is `absent`.
    pub(crate) fn add_interfaces(&mut self, absent: &[String]) {
        let link_is_up = |reading: &Reading| reading.key == "link_up" && reading.value == Value::Flag(true);
        let is_up = absent.is_empty() && self.list.iter().any(link_is_up);
        let help = "1 while the gateway is ready: the link is up, and all interfaces of the settings exist and are up.";
        self.add("", "up", "bentpipe_gateway_up", help, Value::Flag(is_up));
        let help = "Interfaces of the settings that are absent or down, as a label.";
        let names = Value::Text((!absent.is_empty()).then(|| absent.join(", ")));
        self.add("", "absent", "bentpipe_gateway_interfaces_absent_info", help, names);
    }

    /// Adds how old the values are: whoever shows them does not see that the loop has stopped.
    pub(crate) fn add_age(&mut self) {
        let age = self.begun.map(|begun| Duration::from_nanos(begun.elapsed().as_nanos() as u64));
        let help =
            "Age of the gateway's values, up to 9 s with many peers; above 10 s, the gateway's event loop is stuck.";
        self.add("", "age_ms", "bentpipe_gateway_age_seconds", help, Value::Millis(age));
    }

    /// Adds the kernel's values for this process.
    ///
    /// # Errors
    /// Fails if `/proc` cannot be read.
    pub(crate) fn add_process(&mut self) -> std::io::Result<()> {
        use Value::{Level, Spent};
        use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
        // Reading the folder takes a descriptor, which is also listed.
        let open = std::fs::read_dir("/proc/self/fd")?.count().saturating_sub(1) as u64;
        let statm = std::fs::read_to_string("/proc/self/statm")?;
        let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
        let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)?.unwrap_or(4096) as u64;
        let usage = getrusage(UsageWho::RUSAGE_SELF)?;
        let spent = [usage.user_time(), usage.system_time()].map(|span| span.tv_sec() * 1_000_000 + span.tv_usec());
        let spent = Duration::from_micros(spent.iter().sum::<i64>() as u64);
        let table = "process";
        self.add(table, "open_fds", "process_open_fds", "Open file descriptors.", Level(open));
        let max = getrlimit(Resource::RLIMIT_NOFILE)?.0;
        self.add(table, "max_fds", "process_max_fds", "Maximum number of open file descriptors.", Level(max));
        let help = "Resident memory.";
        self.add(table, "resident_bytes", "process_resident_memory_bytes", help, Level(pages * page));
        self.add(table, "cpu_ms", "process_cpu_seconds_total", "CPU time used.", Spent(spent));
        Ok(())
    }

    /// The values by metric, in the order in which metrics first appear.
    fn by_metric(&self) -> Vec<&Reading> {
        let (mut place, mut groups) = (HashMap::new(), Vec::<Vec<&Reading>>::new());
        for reading in self.parts().into_iter().flatten() {
            let at = *place.entry(reading.metric).or_insert(groups.len());
            if at == groups.len() {
                groups.push(Vec::new());
            }
            groups[at].push(reading);
        }
        groups.concat()
    }

    /// The text exposition format of Prometheus, version 0.0.4. No crate is used: `prometheus-client` writes
    /// OpenMetrics, and `prometheus` would store each value a second time.
    pub(crate) fn exposition(&self) -> String {
        use std::fmt::Write;
        let mut text = String::new();
        let mut before = "";
        let whole = format!("gateway=\"{}\",shape=\"{}\"", escaped(&self.name), self.shape);
        for Reading { key, peer, metric, help, label, value, .. } in self.by_metric() {
            if *metric != before {
                let kind = value.kind();
                let _ = write!(text, "# HELP {metric} {help}\n# TYPE {metric} {kind}\n");
                before = metric;
            }
            // Unknown values are omitted: a zero would be wrong.
            if matches!(value, Value::Millis(None) | Value::Text(None)) {
                continue;
            }
            let _ = write!(text, "{metric}{{{whole}");
            if let Some(peer) = peer {
                let _ = write!(text, ",peer=\"{}\"", escaped(peer));
            }
            if let Some((name, value)) = label {
                let _ = write!(text, ",{name}=\"{}\"", escaped(value));
            }
            let _ = match value {
                Value::Total(count) | Value::Level(count) => writeln!(text, "}} {count}"),
                Value::Flag(flag) => writeln!(text, "}} {}", u8::from(*flag)),
                Value::Millis(Some(span)) | Value::Micros(span) | Value::Spent(span) => {
                    writeln!(text, "}} {}", span.as_secs_f64())
                }
                Value::Text(Some(value)) => writeln!(text, ",{key}=\"{}\"}} 1", escaped(value)),
                Value::Millis(None) | Value::Text(None) => Ok(()),
            };
        }
        text
    }
}

fn escaped(text: &str) -> Cow<'_, str> {
    if text.contains(['\\', '"', '\n']) {
        text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests;
