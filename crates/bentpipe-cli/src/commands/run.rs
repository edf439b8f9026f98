//! `bentpipe run`: one run, its summary, and its outputs.

use std::cell::{Cell, LazyCell};
use std::io;
use std::path::Path;
use std::rc::Rc;

use bentpipe_engine::NoProbe;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::{Event, Probe, Who};
use bentpipe_engine::units::Time;
use bentpipe_io::note;
use bentpipe_sim::record::{
    ChannelSummary, Columns, Drops, EntrySummary, FlowSummary, LinkSummary, Outlook, Pcap, ResponseSummary, Sequence,
    Snap, Summary, Tap, asking,
};
use bentpipe_sim::{Observer, Packet, Passage, RunResult, Timers, run_with};
use bentpipe_study::output::is_stream;
use bentpipe_study::scenario::{FlowKind, FlowSpec, Scenario, Workload};
use bentpipe_study::trace::Format;
use serde::Serialize;

use super::plots;
use crate::args::Run;
use crate::fail_if::{self, Reading};
use crate::failure::{End, Failure, longer_limit};
use crate::output::{self, Grid, Inputs, Remake};
use crate::{interrupt, progress, source};

/// The recorders of a run.
#[derive(Default)]
struct Recorders {
    columns: Option<Columns>,
    pcap: Option<Pcap>,
    sequence: Option<Sequence>,
    /// Set when the reader of a file has closed it, as `head` does: then the run has no purpose.
    closed: Rc<Cell<bool>>,
}

fn is_closed(error: Option<&io::Error>) -> bool {
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

impl Probe for Recorders {
    fn event(&mut self, now: Time, who: Who, event: &Event) {
        if let Some(columns) = &mut self.columns {
            columns.event(now, who, event);
            if is_closed(columns.error()) {
                self.closed.set(true);
            }
        }
        if let Some(sequence) = &mut self.sequence {
            sequence.event(now, who, event);
        }
    }
}

impl Observer for Recorders {
    fn packet(&mut self, now: Time, link: LinkId, passage: Passage, packet: &Packet) {
        if let Some(pcap) = &mut self.pcap {
            pcap.packet(now, link, passage, packet);
            if is_closed(pcap.error()) {
                self.closed.set(true);
            }
        }
        if let Some(sequence) = &mut self.sequence {
            sequence.packet(now, link, passage, packet);
        }
    }
}

impl Recorders {
    fn new(args: &Run, scenario: &Scenario, remake: &Remake) -> Result<Self, Failure> {
        // Only for files: the text of 50 000 flows takes longer than their run.
        let comment = || format!("{}\n{}", remake.line(), scenario.to_toml());
        let mut recorders = Recorders::default();
        // Errors in the arguments come before errors of the disk.
        let taps = taps(args, scenario)?;
        let format = args.trace.as_deref().map(format_of).transpose()?;
        if let Some(path) = &args.plot {
            plots::check(path)?;
            match args.kind.plot() {
                Some(_) => plots::check_panels(scenario)?,
                None => plots::check_distribution(scenario)?,
            }
            recorders.sequence = args.kind.plot().is_some().then(|| Sequence::at_bottleneck(scenario));
        }
        if let Some((path, format)) = args.trace.as_deref().zip(format) {
            let columns = Columns::create(path, format, scenario, &comment());
            recorders.columns = Some(columns.map_err(Failure::unwritten)?);
        }
        if let Some(path) = &args.pcap {
            let snap = if args.headers_only { Snap::Headers } else { Snap::Whole };
            let pcap = Pcap::create(path, scenario, &taps, snap, &comment());
            recorders.pcap = Some(pcap.map_err(Failure::unwritten)?);
        }
        Ok(recorders)
    }

    fn watch(&self) -> bool {
        self.columns.is_some() || self.pcap.is_some() || self.sequence.is_some()
    }

    fn finish(self, args: &Run, scenario: &Scenario, summary: &Summary, remake: &Remake) -> Result<(), Failure> {
        if let Some(columns) = self.columns {
            columns.finish().map_err(Failure::unwritten)?;
        }
        if let Some(pcap) = self.pcap {
            pcap.finish().map_err(Failure::unwritten)?;
        }
        if let Some(path) = &args.plot {
            let figure = match (args.kind.plot(), &self.sequence) {
                (Some(plot), Some(sequence)) => plots::figure(scenario, sequence, plot),
                _ => plots::completions(scenario, summary),
            };
            plots::write(path, &figure, remake)?;
        }
        Ok(())
    }
}

/// The format by the file's name; what has no name, as standard output, gets CSV.
fn format_of(path: &Path) -> Result<Format, Failure> {
    if is_stream(path) {
        return Ok(Format::Csv);
    }
    Format::of(path)
        .ok_or_else(|| Failure::usage(format!("{}: a trace's name must end in .csv or .parquet", path.display()), None))
}

fn taps(args: &Run, scenario: &Scenario) -> Result<Vec<Tap>, Failure> {
    if args.taps.is_empty() {
        return Ok(Tap::first_sender(scenario));
    }
    let mut taps = Vec::new();
    for name in &args.taps {
        taps.extend(Tap::find(scenario, name).map_err(|unknown| {
            let help = bentpipe_language::suggest::did_you_mean(name, unknown.known.iter().map(String::as_str));
            Failure::usage(&unknown, help)
        })?);
    }
    taps.sort_unstable();
    taps.dedup();
    Ok(taps)
}

/// Runs the scenario until its end, the signal, or until `goes_on` is false.
pub(super) fn drive<O: Observer>(
    scenario: &Scenario,
    observer: &mut O,
    goes_on: impl Fn() -> bool,
) -> Result<RunResult, Failure> {
    let bar = progress::spinner();
    bar.set_message("running");
    interrupt::heed();
    let result = run_with(scenario, scenario.seed, observer, Timers::Lazy, |now| {
        bar.set_message(format!("{:.1} s simulated", now.as_secs_f64()));
        !interrupt::asked() && goes_on()
    });
    bar.finish_and_clear();
    result.map_err(Failure::broken)
}

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    remake: &'a Remake,
    interrupted: bool,
    #[serde(flatten)]
    summary: &'a Summary,
    scenario: String,
}

pub(crate) fn run(args: &Run) -> Result<End, Failure> {
    let mut inputs = Inputs::default();
    let scenario = source::load_with_variant(&args.world, args.variant.as_deref(), &mut inputs)?;
    fail_if::check(&args.fail_if, &readings(&scenario, None))?;
    let remake = Remake::new(scenario.seed);
    let print = output::beside(&inputs, &[args.trace.as_deref(), args.pcap.as_deref(), args.plot.as_deref()])?;
    let mut recorders = Recorders::new(args, &scenario, &remake)?;
    let closed = recorders.closed.clone();
    let result = match recorders.watch() {
        true => drive(&scenario, &mut recorders, || !closed.get())?,
        false => drive(&scenario, &mut NoProbe, || true)?,
    };
    if closed.get() {
        return Err(Failure::Pipe);
    }
    let summary = Summary::new(&scenario, &result);
    let interrupted = interrupt::asked();
    let written = recorders.finish(args, &scenario, &summary, &remake);
    if args.json {
        let scenario = scenario.to_toml();
        print(&output::json(&Json { remake: &remake, interrupted, summary: &summary, scenario })?)?;
    } else {
        let explain = ["explain", "--resolved"].map(str::to_owned).into_iter();
        let world = source::arguments(&args.world, args.variant.as_deref(), scenario.seed);
        let resolve = output::shell("bentpipe", explain.chain(world));
        print(&text(&scenario, &summary, &remake, &resolve))?;
    }
    written?;
    let kept = fail_if::kept(&args.fail_if, &readings(&scenario, Some(&summary)))?;
    let end = end(&scenario, &summary, interrupted);
    Ok(if kept || end != End::Done { end } else { End::Failed })
}

/// What `--fail-if` can be about; without values before the run.
fn readings<'a>(scenario: &'a Scenario, summary: Option<&Summary>) -> Vec<Reading<'a>> {
    let flows = scenario.flows.iter().enumerate().flat_map(|(n, spec)| {
        let flow = summary.map(|summary| &summary.flows[n]);
        let count = |of: fn(&FlowSummary) -> u64| flow.map(|flow| of(flow) as f64);
        let all = [
            ("time", flow.and_then(|flow| flow.time_s)),
            ("goodput", flow.and_then(|flow| flow.goodput_bit_s)),
            ("x_limit", flow.and_then(|flow| flow.x_limit)),
            ("bytes", count(|flow| flow.bytes)),
            ("retransmissions", count(|flow| flow.retransmissions)),
            ("timeouts", count(|flow| flow.timeouts)),
        ];
        // Datagrams have neither time nor limit, and an endless flow has no time.
        let workload = spec.kind.workload();
        let lacks = [("time", !workload.is_some_and(Workload::ends)), ("x_limit", workload.is_none())];
        let has = move |(figure, _): &(&str, _)| !lacks.contains(&(*figure, true));
        all.into_iter().filter(has).map(|(figure, value)| Reading { scope: &spec.name, figure, value })
    });
    let responses = asking(scenario).into_iter().flat_map(|(name, _)| {
        let entry = summary.and_then(|summary| summary.responses.iter().find(|entry| entry.name == name));
        let time = |of: fn(&ResponseSummary) -> Option<f64>| entry.and_then(|entry| of(&entry.response));
        [
            ("response_median", time(|response| response.median_s)),
            ("response_p95", time(|response| response.p95_s)),
            ("response_p99", time(|response| response.p99_s)),
        ]
        .map(|(figure, value)| Reading { scope: name, figure, value })
    });
    flows.chain(responses).collect()
}

/// Reports on standard error why a run is incomplete.
fn end(scenario: &Scenario, summary: &Summary, interrupted: bool) -> End {
    if interrupted {
        note!("interrupted at {:.3} s of simulated time", summary.end_s);
        return End::Interrupted;
    }
    let faults = faults(scenario, summary);
    for fault in &faults {
        note!("{fault}");
    }
    if faults.is_empty() { End::Done } else { End::Failed }
}

/// Why transfers of a run did not finish; empty if all did.
pub(super) fn faults(scenario: &Scenario, summary: &Summary) -> Vec<String> {
    // Of all flows at once, if it is needed.
    let outlook = LazyCell::new(|| Outlook::new(scenario).ok());
    let flows = scenario.flows.iter().zip(&summary.flows).enumerate();
    let aborted = flows.filter_map(|(n, (spec, flow))| {
        let why = flow.aborted?;
        let rtt_ms = || Some(outlook.as_ref()?.flows.get(n)?.rtt_ms);
        Some(format!("the flow `{}` was aborted: {why}{}", flow.name, idle(spec, why, rtt_ms)))
    });
    aborted.chain(summary.timed_out.then(|| timed_out(summary))).collect()
}

/// After an idle timeout of QUIC, a line with the two times that may explain it; otherwise nothing.
fn idle(spec: &FlowSpec, why: &str, rtt_ms: impl FnOnce() -> Option<f64>) -> String {
    let (FlowKind::Quic(quic), "idle timeout") = (&spec.kind, why) else { return String::new() };
    let timeout = quic.idle_timeout.as_secs_f64();
    let path = rtt_ms().map_or(String::new(), |ms| format!("; the path's round trip is {} s", ms / 1e3));
    format!("\n  help: one end received nothing for {timeout} s (`quic.idle_timeout`){path}")
}

/// What the time limit ended or kept from beginning, and how to allow more.
fn timed_out(summary: &Summary) -> String {
    let limit = summary.end_s;
    let late: Vec<_> = summary.flows.iter().filter(|flow| flow.start_s >= limit).collect();
    let what = match late.first() {
        Some(flow) => {
            format!("the flow `{}` begins at {} s, after the time limit of {limit} s", flow.name, flow.start_s)
        }
        None => format!("a transfer did not finish within the time limit of {limit} s"),
    };
    // What the links allow at best, and as much again.
    let needs = summary.flows.iter().map(|flow| flow.start_s + flow.limit_time_s.unwrap_or(0.0)).fold(limit, f64::max);
    longer_limit(2.0 * needs, needs).map_or(what.clone(), |help| format!("{what}\n  help: {help}"))
}

/// What "x limit" means for these flows.
pub(super) fn x_limit(summary: &Summary) -> &'static str {
    match summary.flows.iter().any(|flow| flow.time_s.is_none() && flow.x_limit.is_some()) {
        false => "x limit: time over the minimum time that the links allow.",
        true => {
            "x limit: time over the minimum time that the links allow; without a time, the goodput that they allow over the flow's."
        }
    }
}

/// The flows and their legs.
pub(super) fn flows(summary: &Summary) -> Grid {
    let rows = summary.flows.iter().flat_map(|flow| {
        let whole = vec![
            flow.name.clone(),
            flow.variant.clone().unwrap_or_else(|| "udp".to_owned()),
            output::bytes(flow.bytes),
            output::number(flow.time_s, 3),
            flow.goodput_bit_s.map_or("–".to_owned(), output::rate),
            flow.retransmissions.to_string(),
            flow.timeouts.to_string(),
            output::number(flow.x_limit, 2),
        ];
        let legs = flow.legs.iter().map(|leg| {
            let blank = "–".to_owned();
            vec![
                format!("  {} → {}", leg.from, leg.to),
                leg.variant.clone(),
                blank.clone(),
                blank.clone(),
                blank.clone(),
                leg.retransmissions.to_string(),
                leg.timeouts.to_string(),
                blank,
            ]
        });
        std::iter::once(whole).chain(legs).collect::<Vec<_>>()
    });
    let header = vec!["flow", "variant", "data", "time (s)", "goodput", "retransmits", "timeouts", "x limit"];
    Grid { header, numbers: 2, rows: rows.collect() }
}

/// What the columns of [`links`] count.
pub(super) const LINK_UNITS: &str = "delivered, dropped, max queue: packets.";

pub(super) fn links(summary: &Summary) -> Grid {
    let rows = summary.links.iter().map(|link| {
        let mean = if link.rate_changes { "mean " } else { "" };
        vec![
            link.name.clone(),
            link.rate_bit_s.map_or("–".to_owned(), |rate| format!("{mean}{}", output::rate(rate as f64))),
            link.utilisation.map_or("–".to_owned(), |part| format!("{:.1} %", part * 100.0)),
            link.delivered_packets.to_string(),
            drops(link),
            link.max_queue_packets.to_string(),
        ]
    });
    // Marked packets are delivered.
    let is_marked = summary.links.iter().any(|link| link.marked_packets > 0);
    let dropped = if is_marked { "dropped, marked" } else { "dropped" };
    let header = vec!["link", "rate", "used", "delivered", dropped, "max queue"];
    Grid { header, numbers: 1, rows: rows.collect() }
}

fn text(scenario: &Scenario, summary: &Summary, remake: &Remake, resolve: &str) -> String {
    let (flows, links) = (flows(summary).text(), links(summary).text());
    let more: String = more(summary).into_iter().map(|grid| format!("\n\n{}", grid.text())).collect();
    let channels = match summary.channels.is_empty() {
        true => String::new(),
        false => format!("\n\n{}", channels(&summary.channels)),
    };
    format!(
        "{}\n{flows}{more}\n\n{links}{channels}\n\n{}\n{}\n{}\nscenario in full: {resolve}\n",
        output::prose(&format!("{}\n", scenario.headline())),
        output::prose(x_limit(summary)),
        output::prose(LINK_UNITS),
        remake.line()
    )
}

/// What datagrams and requests waited for, if there are any.
pub(super) fn more(summary: &Summary) -> Vec<Grid> {
    [delays(&summary.flows), responses(&summary.responses)].into_iter().filter(|grid| !grid.rows.is_empty()).collect()
}

/// One-way delays of UDP flows.
fn delays(flows: &[FlowSummary]) -> Grid {
    let ms = |seconds: f64| format!("{:.1}", seconds * 1000.0);
    let rows = flows.iter().filter_map(|flow| {
        let delay = flow.delay?;
        let arrived = format!("{} of {}", delay.packets, flow.segments);
        let times = [delay.mean_s, delay.median_s, delay.p99_s, delay.longest_s].map(ms);
        Some([flow.name.clone(), arrived].into_iter().chain(times).collect())
    });
    let header = vec!["datagrams", "arrived", "delay: mean (ms)", "median", "99 %", "longest"];
    Grid { header, numbers: 1, rows: rows.collect() }
}

/// Times of responses, by entry.
fn responses(entries: &[EntrySummary]) -> Grid {
    let rows = entries.iter().map(|entry| {
        let ResponseSummary { requests, answered, mean_s, median_s, p95_s, p99_s, longest_s } = entry.response;
        let times = [mean_s, median_s, p95_s, p99_s, longest_s].map(|time| output::number(time, 3));
        [entry.name.clone(), format!("{answered} of {requests}")].into_iter().chain(times).collect()
    });
    let header = vec!["responses", "arrived", "time: mean (s)", "median", "95 %", "99 %", "longest"];
    Grid { header, numbers: 1, rows: rows.collect() }
}

/// The channels of link layers: waits before the line, holds after it.
pub(super) fn channels(channels: &[ChannelSummary]) -> String {
    let ms = |seconds: f64| format!("{:.0}", seconds * 1000.0);
    let rows = channels.iter().map(|channel| {
        let lost = channel.dropped_full + channel.dropped_early;
        vec![
            format!("{}/{}", channel.layer, channel.channel),
            channel.link.clone(),
            channel.delivered.to_string(),
            lost.to_string(),
            channel.lost_frames.to_string(),
            channel.resent_frames.to_string(),
            channel.copied_frames.to_string(),
            format!("{} of {}", channel.recovered, channel.repair_frames),
            channel.skipped.to_string(),
            format!("{} / {}", ms(channel.mean_wait_s), ms(channel.longest_wait_s)),
            format!("{} / {}", ms(channel.mean_hold_s), ms(channel.longest_hold_s)),
        ]
    });
    let header = [
        "channel",
        "over",
        "delivered",
        "dropped",
        "lost",
        "retransmits",
        "copies",
        "repaired",
        "given up",
        "wait (ms)",
        "hold (ms)",
    ];
    let table = output::table(&header, 2, rows);
    let words = "wait: before the line; hold: for order, behind it (mean / max); copies: sent into an idle line; repaired: lost \
                 packets recovered from repair frames";
    format!("{table}\n{}", output::prose(words))
}

/// Packets that a link dropped, by reason, and those that it marked instead.
fn drops(link: &LinkSummary) -> String {
    let Drops { queue_full, early, channel, listed, too_long } = link.dropped;
    let reasons = [
        (queue_full, "queue"),
        (early, "early"),
        (channel, "channel"),
        (listed, "listed"),
        (too_long, "too long"),
        (link.marked_packets, "marked"),
    ];
    let given: Vec<_> = reasons.iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{n} {why}")).collect();
    if given.is_empty() { "0".to_owned() } else { given.join(", ") }
}
