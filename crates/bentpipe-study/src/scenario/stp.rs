//! STP flows (ESA's): reads the table `stp` of a flow, and writes it back to text.

use bentpipe_engine::stp::{Arming, StpConfig};
use bentpipe_engine::units::{Bytes, Duration};
use bentpipe_language::error::Problems;
use bentpipe_language::quantity::{SIZE, format_duration, format_rate};
use bentpipe_language::reader::{Item, View};
use bentpipe_language::shape::Counted;
use toml::{Table, Value};

use super::grammar::{STP, TIMERS};
use super::model::StpFlow;
use super::workloads::{amount, workload};

/// Payload bytes of a segment: at most what fits an IP packet, at least what fits one of 68 bytes, which is never fragmented (RFC 791
/// §3.2).
const MSS: (u64, u64) = (28, 65_000);

/// Shorter intervals fill the line with polls. The sender remembers 1024 polls: at a thousandth of the round trip, their answers come in
/// time.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(1);

pub(super) fn flow(view: &View<'_>, problems: &mut Problems) -> Option<StpFlow> {
    let Some(item) = view.get("stp") else {
        view.missing("stp", problems);
        return None;
    };
    let config = config(&item, problems);
    // The workload is checked even if the settings are wrong.
    let mss = config.map_or(1000, |config| config.mss);
    let workload = workload(view, mss, problems);
    Some(StpFlow { config: config?, workload: workload? })
}

/// The STP settings of a leg, if it is STP. `view` is that of a flow or a split, `buffer` that of the gateway at its
/// end. `None` after a mistake.
pub(super) fn leg(view: &View<'_>, buffer: Option<Bytes>, problems: &mut Problems) -> Option<Option<StpConfig>> {
    let Some(item) = view.get("stp") else { return Some(None) };
    if let Some(tcp) = view.get("tcp") {
        let message = format!("`{}` and `{}` exclude each other: a leg has one protocol", tcp.path, item.path);
        tcp.refuse(problems, message, Some("one of the two".to_owned()));
        return None;
    }
    let mut config = config(&item, problems)?;
    let gives_buffer = item.table(STP, problems)?.get("receive_buffer").is_some();
    if let Some(buffer) = buffer.filter(|_| !gives_buffer) {
        let max = u64::from(StpConfig::MAX_BUFFER);
        config.receive_buffer = buffer.get().clamp(u64::from(config.mss), max) as u32;
    }
    Some(Some(config))
}

fn config(item: &Item<'_>, problems: &mut Problems) -> Option<StpConfig> {
    let view = item.table(STP, problems)?;
    let rate = view.require("rate", problems).and_then(|item| item.rate(problems));
    let rtt = view.require("rtt", problems).and_then(|item| item.duration(problems));
    let mut config = StpConfig::for_path(rate?, rtt?);
    if let Some(item) = view.get("mss") {
        config.mss = bytes(&item, MSS, problems)? as u16;
    }
    if let Some(item) = view.get("overhead") {
        config.overhead = bytes(&item, (0, 65_535), problems)? as u32;
    }
    if let Some(item) = view.get("window") {
        config.window = Some(amount(&item, config.mss, problems)?);
    }
    if let Some(item) = view.get("rto") {
        config.rto = item.duration(problems)?;
        if config.rto.as_nanos() == 0 {
            item.refuse(problems, format!("`{}` cannot be 0 s", item.path), Some("a span such as \"550 ms\"".into()));
            return None;
        }
    }
    if let Some(item) = view.get("poll_interval") {
        let interval = item.duration(problems)?;
        let least = MIN_POLL_INTERVAL.max(config.rtt.div_floor(1000));
        if interval < least {
            let expected = format!("at least {}, such as \"100 ms\"", format_duration(least));
            item.refuse(problems, format!("`{}` is too short", item.path), Some(expected));
            return None;
        }
        config.polls = Some(interval);
    }
    if let Some(item) = view.get("timer") {
        let departure = item.choice(TIMERS, problems)? == "departure";
        config.arming = if departure { Arming::Departure } else { Arming::HandOver };
    }
    if let Some(item) = view.get("max_retransmissions") {
        config.max_retransmissions = item.count(Counted::new("retransmissions", 0, 255), problems)? as u8;
    }
    if let Some(item) = view.get("receive_buffer") {
        let min = config.mss as u64;
        config.receive_buffer = bytes(&item, (min, StpConfig::MAX_BUFFER as u64), problems)? as u32;
    }
    Some(config)
}

fn bytes(item: &Item<'_>, (min, max): (u64, u64), problems: &mut Problems) -> Option<u64> {
    let bytes = item.size(problems)?.get();
    if !(min..=max).contains(&bytes) {
        let expected = format!("from {} to {}", SIZE.format(min), SIZE.format(max));
        item.refuse(problems, format!("`{}` cannot be {}", item.path, SIZE.format(bytes)), Some(expected));
        return None;
    }
    Some(bytes)
}

/// The settings as text. Reading the text gives equal settings.
pub(super) fn written(config: &StpConfig) -> Value {
    let mut table = Table::new();
    let mut put = |key: &str, value: String| table.insert(key.to_owned(), Value::String(value));
    put("rate", format_rate(config.rate));
    put("rtt", format_duration(config.rtt));
    put("mss", SIZE.format(config.mss as u64));
    put("overhead", SIZE.format(config.overhead as u64));
    if let Some(window) = config.window.map(Bytes::get) {
        put("window", SIZE.format(window));
    }
    put("rto", format_duration(config.rto));
    put("timer", TIMERS[usize::from(config.arming == Arming::HandOver)].to_owned());
    if let Some(interval) = config.polls {
        put("poll_interval", format_duration(interval));
    }
    put("max_retransmissions", format!("{} retransmissions", config.max_retransmissions));
    put("receive_buffer", SIZE.format(config.receive_buffer as u64));
    Value::Table(table)
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;

    /// The sender remembers 1024 polls: their answers must come before it forgets them.
    #[test]
    fn polls_are_not_too_frequent() {
        let said = |rtt: &str, interval: &str| {
            let text = format!(
                "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"2 Mbit/s\"\ndelay = \"9 ms\"\n\
                 [[flows]]\nfrom = \"A\"\nto = \"B\"\ntype = \"stp\"\nbytes = \"1 MB\"\n\
                 stp = {{ rate = \"2 Mbit/s\", rtt = \"{rtt}\", poll_interval = \"{interval}\" }}\n"
            );
            Scenario::parse(&text, "t.toml", &[]).map(|_| ()).map_err(|errors| errors.to_string())
        };
        for (rtt, interval, least) in
            [("520 ms", "1 ns", "1 ms"), ("520 ms", "0 s", "1 ms"), ("2600 ms", "2 ms", "2600 us")]
        {
            let said = said(rtt, interval).expect_err("too short");
            assert!(said.contains("poll_interval` is too short") && said.contains(least), "{said}");
        }
        assert_eq!(said("520 ms", "1 ms"), Ok(()));
        assert_eq!(said("2600 ms", "2600 us"), Ok(()));
    }
}
