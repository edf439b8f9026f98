//! The plots of runs.

use std::borrow::Cow;
use std::path::Path;

use bentpipe_sim::RunResult;
use bentpipe_sim::record::{FlowOutlook, Guides, Measure, Outlook, Plot, Sequence, Summary, overlay};
use bentpipe_study::output::is_stream;
use bentpipe_study::report::{Axis, Figure, Mark, Panel, Picture, Series, write_whole};
use bentpipe_study::scenario::{FlowId, FlowKind, LinkSpec, Scenario};
use bentpipe_study::topology::{self, Connection};
use clap::ValueEnum;

use crate::failure::Failure;
use crate::output::{self, Remake, counted};

/// Max panels of a figure: more are too small to read.
const PANELS: usize = 4;

/// Max curves of a panel: more look alike.
const CURVES: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Sequence numbers sent, acknowledged, lost and retransmitted
    Sequence,
    /// Congestion window and data in flight, beside the BDP
    Cwnd,
    /// The queue before the bottleneck, and its losses
    Queue,
    /// Round-trip samples
    Rtt,
    /// Goodput
    Throughput,
    /// Completion times as a distribution: of a run's flows, or of replications
    Cdf,
}

impl Kind {
    /// The quantity over time, if it is one.
    pub(crate) const fn plot(self) -> Option<Plot> {
        match self {
            Kind::Sequence => Some(Plot::Sequence),
            Kind::Cwnd => Some(Plot::Window),
            Kind::Queue => Some(Plot::Queue),
            Kind::Rtt => Some(Plot::RoundTrip),
            Kind::Throughput => Some(Plot::Throughput),
            Kind::Cdf => None,
        }
    }
}

/// The format by the file's name; what has no name, as standard output, gets SVG. Checks that the file can be written.
pub(super) fn check(path: &Path) -> Result<Picture, Failure> {
    let picture = if is_stream(path) { Some(Picture::Svg) } else { Picture::of(path) };
    let Some(picture) = picture else {
        let message = format!("{}: a plot's name must end in .svg, .png or .pdf", path.display());
        return Err(Failure::usage(message, None));
    };
    output::check_writable(path)?;
    Ok(picture)
}

/// Writes a complete figure, with how to reproduce it.
pub(super) fn write(path: &Path, figure: &Figure, remake: &Remake) -> Result<(), Failure> {
    let picture = check(path)?;
    let drawn = figure.to_picture(picture, &remake.line());
    let bytes = drawn.map_err(|error| Failure::broken(format!("{}: {error}", path.display())))?;
    write_whole(path, &bytes).map_err(Failure::unwritten)
}

/// The connections that have panels, and what is left out.
struct Shown<'s> {
    panels: Vec<Subject<'s>>,
    note: String,
}

/// A connection that has a panel.
struct Subject<'s> {
    connection: usize,
    flow: FlowId,
    /// The name of the flow, and of the leg if it is split.
    name: String,
    variant: Cow<'s, str>,
    is_leg: bool,
}

/// The first connections, flow by flow. The queue is that of one link, so it has one panel.
fn shown(scenario: &Scenario, plot: Plot) -> Shown<'_> {
    let all = topology::connections(scenario);
    let mut panels: Vec<_> =
        all.iter().enumerate().filter_map(|(index, connection)| subject(scenario, index, connection)).collect();
    // Stable: the legs of a flow keep their order.
    panels.sort_by_key(|panel| panel.flow);
    let (all, most) = (panels.len(), if plot == Plot::Queue { 1 } else { PANELS });
    let what = if panels.iter().any(|panel| panel.is_leg) { "connections" } else { "flows" };
    panels.truncate(most);
    let note = match plot {
        Plot::Queue => String::new(),
        _ if all > most => format!(" (the first {most} of {all} {what})"),
        _ => String::new(),
    };
    Shown { panels, note }
}

/// `None` for UDP, which has no ACKs and no window.
fn subject<'s>(scenario: &'s Scenario, index: usize, connection: &Connection<'s>) -> Option<Subject<'s>> {
    let Connection { flow, number, leg } = *connection;
    let spec = &scenario[flow];
    let variant = match &spec.kind {
        FlowKind::Tcp(tcp) => Cow::Borrowed(tcp.leg_variants().nth(number)?),
        FlowKind::Stp(_) => Cow::Borrowed("stp"),
        FlowKind::Quic(quic) => Cow::Owned(format!("quic-{}", quic.congestion_control.word())),
        FlowKind::Udp(_) => return None,
    };
    let is_leg = topology::legs(spec).len() > 1;
    let name = match is_leg {
        true => format!("{}: {} → {}", spec.name, &scenario[leg.from], &scenario[leg.to]),
        false => spec.name.clone(),
    };
    Some(Subject { connection: index, flow, name, variant, is_leg })
}

/// What a connection's plot is compared with, and the link whose queue it is.
fn guides<'s>(scenario: &'s Scenario, outlook: Option<&Outlook>, subject: &Subject<'_>) -> (Guides<'s>, String) {
    let look = outlook.map(|outlook| &outlook.flows[subject.flow.index()]);
    let changing = |look: &FlowOutlook| {
        let named = |link: &&LinkSpec| look.rate_changes && Some(&link.name) == look.bottleneck.as_ref();
        scenario.links.iter().find(named).map(|link| (link, scenario.seed))
    };
    let guides = look.map_or(Guides::default(), |look| Guides {
        // That of the whole path is no measure for a leg.
        bdp: if subject.is_leg { None } else { look.bdp_packets },
        queue_limit: look.queue.as_ref().map(|queue| queue.packets),
        // That of the transfer includes its handshake, and the good times of a rate that changes.
        goodput_limit: look.endless_goodput_bit_s,
        changing: changing(look),
    });
    let link = look.and_then(|look| look.bottleneck.as_deref()).unwrap_or("the first flow's path");
    (guides, format!("queue of {link}"))
}

/// One panel for each of the first connections, on the same axes. The title says how many there are if some are left out.
pub(super) fn figure(scenario: &Scenario, sequence: &Sequence, plot: Plot) -> Figure {
    let outlook = Outlook::new(scenario).ok();
    let Shown { panels, note } = shown(scenario, plot);
    let panels = panels.iter().map(|subject| {
        let (guides, queue) = guides(scenario, outlook.as_ref(), subject);
        let title = if plot == Plot::Queue { queue } else { format!("{} ({})", subject.name, subject.variant) };
        sequence.plot(plot, subject.connection, &title, guides)
    });
    let panels = panels.collect();
    Figure { title: format!("{}{note}", scenario.name), panels }.with_shared_axes()
}

/// The same for several variants: a curve of each in every panel.
pub(super) fn compared(scenarios: &[(String, Scenario)], sequences: &[Sequence], plot: Plot) -> Figure {
    let base = &scenarios[0].1;
    let outlook = Outlook::new(base).ok();
    let Shown { panels, note } = shown(base, plot);
    let runs: Vec<_> = scenarios.iter().map(|(name, _)| name.as_str()).zip(sequences).take(CURVES).collect();
    let panels = panels.iter().map(|subject| {
        let (guides, queue) = guides(base, outlook.as_ref(), subject);
        overlay(plot, &runs, subject.connection, if plot == Plot::Queue { &queue } else { &subject.name }, guides)
    });
    let panels = panels.collect();
    let title = format!("{}, seed {}{note}{}", base.name, base.seed, left_out(scenarios.len()));
    Figure { title, panels }.with_shared_axes()
}

fn left_out(variants: usize) -> String {
    if variants > CURVES { format!(" (the first {CURVES} of {variants} variants)") } else { String::new() }
}

/// Checks that some flow has a panel.
///
/// # Errors
/// Wrong usage if all flows use UDP.
pub(super) fn check_panels(scenario: &Scenario) -> Result<(), Failure> {
    if scenario.flows.iter().any(|flow| !matches!(flow.kind, FlowKind::Udp(_))) {
        return Ok(());
    }
    let message = "no flow of this scenario has acknowledgements or a window to plot";
    Err(Failure::usage(message, Some("`--trace FILE` writes every packet".to_owned())))
}

/// Checks that the completion times of the flows have a distribution.
///
/// # Errors
/// Wrong usage if fewer than two flows end.
pub(super) fn check_distribution(scenario: &Scenario) -> Result<(), Failure> {
    let Ok(outlook) = Outlook::new(scenario) else { return Ok(()) };
    let (message, help) = match outlook.flows.iter().filter(|flow| flow.limit_time_s.is_some()).count() {
        0 => (
            "no flow of this scenario ends, so there are no completion times",
            "`--kind throughput` shows flows without an end",
        ),
        1 => (
            "only one flow of this scenario ends: one time has no distribution",
            match scenario.random_parts()[..] {
                [] => "nothing is random, so every run has the same time: `--kind sequence` shows the transfer",
                _ => "`compare --kind cdf` shows its times over the replications",
            },
        ),
        _ => return Ok(()),
    };
    Err(Failure::usage(message, Some(help.to_owned())))
}

/// The completion times of a run's flows as a distribution.
pub(super) fn completions(scenario: &Scenario, summary: &Summary) -> Figure {
    let ending = || summary.flows.iter().filter(|flow| flow.limit_time_s.is_some());
    let times: Vec<f64> = ending().filter_map(|flow| flow.time_s).collect();
    let series = vec![Series::distribution("flows", Mark::Step, times, ending().count())];
    let panel = distributions("completion times of flows", Axis::new("completion time", "s"), "flows", series);
    Figure { title: format!("{}, seed {}", scenario.name, scenario.seed), panels: vec![panel] }
}

/// What `compare` compares, of each variant, as a distribution over the replications.
pub(super) fn replications(scenarios: &[(String, Scenario)], runs: &[Vec<RunResult>]) -> Figure {
    let base = &scenarios[0].1;
    let measure = Measure::of(base);
    let (axis, scale) = match measure {
        Measure::SlowestTimeS => (Axis::new("time of the slowest transfer", "s"), 1.0),
        Measure::GoodputBitS => (Axis::new("goodput of all flows", "Mbit/s"), 1e-6),
    };
    let curves = scenarios.iter().enumerate().take(CURVES).map(|(v, (name, scenario))| {
        let values = runs.iter().filter_map(|rep| Some(measure.take(&Summary::new(scenario, &rep[v]))?.0 * scale));
        Series::distribution(name, Mark::of_curve(v), values.collect(), runs.len())
    });
    let title = format!("{}{}", counted(runs.len() as u64, "replication"), left_out(scenarios.len()));
    let panel = distributions(&title, axis, "replications", curves.collect());
    Figure { title: base.name.clone(), panels: vec![panel] }
}

fn distributions(title: &str, x: Axis, of: &str, series: Vec<Series>) -> Panel {
    Panel { title: title.into(), x, y: Axis::new(of, "%").between(0.0, 102.0), series, spans: None }
}

#[cfg(test)]
mod tests {
    use bentpipe_sim::{Timers, run_with};

    use super::*;

    /// The limit of a transfer that ends in a good time of the link was taken for that of the mean rate: the curve lay above the line's
    /// rate.
    #[test]
    fn the_limit_over_time_is_the_lines_rate_without_headers() {
        let text = "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"8 Mbit/s\"\ndelay = \"20 ms\"\n\
                    schedule = [{ at = \"5 s\", rate = \"2 Mbit/s\" }]\nschedule_period = \"10 s\"\n\
                    [[flows]]\nfrom = \"A\"\nto = \"B\"\nbytes = \"3 MB\"\n";
        let scenario = Scenario::parse(text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let mut sequence = Sequence::at_bottleneck(&scenario);
        run_with(&scenario, 1, &mut sequence, Timers::Lazy, |_| true).expect("it runs");
        let figure = figure(&scenario, &sequence, Plot::Throughput);
        let guide = figure.panels[0].series.iter().find(|series| series.mark == Mark::Guide).expect("a limit");
        let highest = guide.points.iter().map(|point| point.1).fold(0.0, f64::max);
        // 1460 of 1500 bytes are data. Intervals end between ticks of the clock.
        assert!((highest - 8.0 * 1460.0 / 1500.0).abs() < 0.01, "{highest} Mbit/s");
    }
}
