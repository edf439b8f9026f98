//! QUIC flows: reads the table `quic` of a flow, and writes it back to text.

use bentpipe_engine::units::{Bytes, Duration};
use bentpipe_language::error::Problems;
use bentpipe_language::quantity::{SIZE, format_duration, format_probability};
use bentpipe_language::reader::{Item, View};
use bentpipe_language::shape::Shape;
use toml::{Table, Value};

use super::grammar::{ACK_FREQUENCY, ACKED_TOGETHER, QUIC, QUIC_STREAMS};
use super::model::{AckFrequency, FlowKind, QuicControl, QuicFlow, Scenario, Workload};
use super::workloads::workload;
use crate::topology;

/// UDP payload: the minimum for every QUIC path (RFC 9000 §14), and the maximum in an IPv4 packet.
const DATAGRAM: (u64, u64) = (QuicFlow::MIN_DATAGRAM as u64, 65_507);
/// A window of less than a datagram stops the connection. One above 2^40 is of no use and might not be countable.
const WINDOW: (u64, u64) = (QuicFlow::MIN_DATAGRAM as u64, 1 << 40);
/// quinn needs room for two datagrams, which may be longer than the minimum: see [`fits`].
const INITIAL_WINDOW: (u64, u64) = (2 * QuicFlow::MIN_DATAGRAM as u64, 1 << 40);

/// Controls of the engine that quinn cannot use.
const PACED: &[&str] = &["linux-bbr", "bbr-linux", "bbr1", "bbr3"];

pub(super) fn flow(view: &View<'_>, problems: &mut Problems) -> Option<QuicFlow> {
    let table = match view.get("quic") {
        Some(item) => settings(&item, problems),
        None => Some(QuicFlow::new(Workload::Greedy { duration: None })),
    };
    // The workload is checked even if the settings are wrong.
    let greatest = table.map_or(QuicFlow::MAX_PROBED, |table| table.max_datagram());
    let payload = greatest - QuicFlow::min_overhead() as u16;
    let workload = workload(view, payload, problems)?;
    let quic = QuicFlow { workload, ..table? };
    let is_one_file = matches!(workload, Workload::Bulk(_)) && quic.streams == 1;
    if let Some(item) = view.get("quic").filter(|_| quic.repair.is_some() && !is_one_file) {
        let message = format!("`{}.repair` needs data of a known size in one stream", item.path);
        item.refuse(problems, message, Some("`bytes`, and one stream".to_owned()));
        return None;
    }
    Some(quic)
}

fn settings(item: &Item<'_>, problems: &mut Problems) -> Option<QuicFlow> {
    let view = item.table(QUIC, problems)?;
    let mut quic = QuicFlow::new(Workload::Greedy { duration: None });
    if let Some(item) = view.get("congestion_control") {
        quic.congestion_control = control(&item, problems)?;
    }
    if let Some(item) = view.get("zero_rtt") {
        quic.zero_rtt = item.flag(problems)?;
    }
    if let Some(item) = view.get("streams") {
        quic.streams = item.count(QUIC_STREAMS, problems)? as u16;
    }
    let windows = [
        ("initial_window", &mut quic.initial_window, INITIAL_WINDOW),
        ("receive_window", &mut quic.receive_window, WINDOW),
        ("send_window", &mut quic.send_window, WINDOW),
    ];
    for (key, window, bounds) in windows {
        if let Some(item) = view.get(key) {
            *window = Some(Bytes::new(bytes(&item, bounds, problems)?));
        }
    }
    if let Some(item) = view.get("initial_rtt") {
        quic.initial_rtt = Some(item.duration(problems)?);
    }
    if let Some(item) = view.get("pacing") {
        quic.pacing = item.flag(problems)?;
    }
    if let Some(item) = view.get("unordered") {
        quic.unordered = item.flag(problems)?;
    }
    if let Some(item) = view.get("repair") {
        quic.repair = Some(item.probability(problems)?).filter(|repair| repair.get() > 0.0);
    }
    if let Some(item) = view.get("datagram") {
        quic.datagram = Some(bytes(&item, DATAGRAM, problems)? as u16);
    }
    fits(&view, &quic, problems)?;
    if let Some(item) = view.get("ack_frequency") {
        quic.ack_frequency = Some(ack_frequency(&item, problems)?);
    }
    if let Some(item) = view.get("scone") {
        quic.scone = item.flag(problems)?;
    }
    if let Some(item) = view.get("idle_timeout") {
        quic.idle_timeout = item.duration(problems)?;
        if quic.idle_timeout < Duration::from_millis(1) {
            let expected = Some("at least \"1 ms\", the unit in which it is offered".to_owned());
            item.refuse(problems, format!("`{}` is too short", item.path), expected);
            return None;
        }
    }
    if let Some(item) = view.get("encryption") {
        quic.encryption = item.flag(problems)?;
    }
    Some(quic)
}

/// Refuses an initial window without room for two datagrams of the given size: nothing would be sent.
fn fits(view: &View<'_>, quic: &QuicFlow, problems: &mut Problems) -> Option<()> {
    let (Some(item), Some(window)) = (view.get("initial_window"), quic.initial_window) else { return Some(()) };
    let datagram = quic.datagram.map_or(0, u64::from);
    if window.get() >= 2 * datagram {
        return Some(());
    }
    let message =
        format!("`{}` cannot be {}: `datagram` is {}", item.path, SIZE.format(window.get()), SIZE.format(datagram));
    item.refuse(problems, message, Some(format!("at least two datagrams, {}", SIZE.format(2 * datagram))));
    None
}

fn control(item: &Item<'_>, problems: &mut Problems) -> Option<QuicControl> {
    if let Some(word) = item.as_text().filter(|word| PACED.contains(word)) {
        let message = format!(
            "`{}` cannot be \"{word}\": it sets a rate, and quinn paces by the window alone; \"bbr\" is quinn's own",
            item.path
        );
        item.refuse(problems, message, Some(Shape::Choice(QuicControl::WORDS).expected()));
        return None;
    }
    item.choice(QuicControl::WORDS, problems).and_then(QuicControl::named)
}

fn ack_frequency(item: &Item<'_>, problems: &mut Problems) -> Option<AckFrequency> {
    let view = item.table(ACK_FREQUENCY, problems)?;
    let every = view.require("every", problems)?.count(ACKED_TOGETHER, problems)? as u32;
    let delay = match view.get("delay") {
        Some(item) => Some(item.duration(problems)?),
        None => None,
    };
    let at_once = match view.get("at_once") {
        Some(item) => item.flag(problems)?,
        None => false,
    };
    Some(AckFrequency { every, delay, at_once })
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

/// The same scenario with QUIC from end to end in place of every TCP connection, whatever its splits and spoofing
/// gateways: none of them can read QUIC. QUIC flows get this control.
pub(super) fn everywhere(scenario: &Scenario, congestion_control: QuicControl) -> Scenario {
    let mut changed = scenario.clone();
    for (before, flow) in scenario.flows.iter().zip(&mut changed.flows) {
        match &mut flow.kind {
            FlowKind::Tcp(tcp) => {
                if !tcp.splits.is_empty() {
                    // An explicit route leads only to the first split.
                    flow.route = topology::forward_path(scenario, before).ok();
                    flow.return_route = topology::return_path(scenario, before).ok();
                }
                let quic = QuicFlow { congestion_control, ..QuicFlow::new(tcp.workload) };
                flow.kind = FlowKind::Quic(Box::new(quic));
            }
            FlowKind::Quic(quic) => quic.congestion_control = congestion_control,
            FlowKind::Stp(_) | FlowKind::Udp(_) => {}
        }
    }
    changed
}

/// The settings as text. Reading the text gives equal settings.
pub(super) fn written(quic: &QuicFlow) -> Value {
    let mut table = Table::new();
    let mut put = |key: &str, value: Value| table.insert(key.to_owned(), value);
    let text = |text: String| Value::String(text);
    put("congestion_control", text(quic.congestion_control.word().to_owned()));
    put("zero_rtt", Value::Boolean(quic.zero_rtt));
    put("streams", Value::Integer(quic.streams.into()));
    let windows = [
        ("initial_window", quic.initial_window),
        ("receive_window", quic.receive_window),
        ("send_window", quic.send_window),
    ];
    for (key, window) in windows {
        if let Some(window) = window {
            put(key, text(SIZE.format(window.get())));
        }
    }
    if let Some(datagram) = quic.datagram {
        put("datagram", text(SIZE.format(datagram.into())));
    }
    if let Some(round_trip) = quic.initial_rtt {
        put("initial_rtt", text(format_duration(round_trip)));
    }
    put("pacing", Value::Boolean(quic.pacing));
    put("unordered", Value::Boolean(quic.unordered));
    if let Some(repair) = quic.repair {
        put("repair", text(format_probability(repair.get())));
    }
    if let Some(AckFrequency { every, delay, at_once }) = quic.ack_frequency {
        let mut asked = Table::new();
        asked.insert("every".to_owned(), Value::Integer(every.into()));
        if let Some(delay) = delay {
            asked.insert("delay".to_owned(), text(format_duration(delay)));
        }
        asked.insert("at_once".to_owned(), Value::Boolean(at_once));
        put("ack_frequency", Value::Table(asked));
    }
    put("scone", Value::Boolean(quic.scone));
    put("idle_timeout", text(format_duration(quic.idle_timeout)));
    put("encryption", Value::Boolean(quic.encryption));
    Value::Table(table)
}
