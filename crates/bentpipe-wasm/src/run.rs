//! Answers to requests.

use bentpipe_engine::link::QueueLimit;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::probe::Who;
use bentpipe_engine::tcp::variant::VARIANTS;
use bentpipe_engine::units::Duration;
use bentpipe_sim::recommend::{System, equipped};
use bentpipe_sim::record::{Sequence, Summary};
use bentpipe_sim::{Timers, run_with};
use bentpipe_study::limit::SegmentSize;
use bentpipe_study::scenario::{ConnectionId, FlowId, FlowKind, Scenario, Workload};
use bentpipe_study::topology::{self, bandwidth_delay_product, facts};
use serde::Serialize;

use crate::arrays::Arrays;
use crate::knobs::{Settings, data_path};
use crate::plot::{Drawn, Plot, Subject};
use crate::request::{Fingerprint, Read, Run, World};

/// Max number of fades in an answer; of more, those that a column cannot tell apart are one.
const MAX_FADES: usize = 2000;

/// A name with its description.
#[derive(Debug, Serialize)]
pub(crate) struct Named {
    name: String,
    description: String,
}

/// What there is.
#[derive(Debug, Serialize)]
pub(crate) struct About {
    version: &'static str,
    variants: Vec<Named>,
    systems: Vec<System>,
}

/// The version, the variants and the systems.
pub(crate) fn about() -> About {
    let named =
        |&(name, description, _): &(&str, &str, _)| Named { name: name.into(), description: description.into() };
    About {
        version: env!("CARGO_PKG_VERSION"),
        variants: VARIANTS.iter().map(named).collect(),
        systems: System::ALL.to_vec(),
    }
}

/// A scenario, not run.
#[derive(Debug, Serialize)]
pub(crate) struct Look {
    name: String,
    description: String,
    /// The scenario with its changes, as text.
    toml: String,
    settings: Settings,
    /// Names of the links on the way of the flow's data.
    path: Vec<String>,
    flows: Vec<Flow>,
    /// The variants that it can use.
    variants: Vec<Named>,
    /// Why a system does not fit its path.
    unfit: Vec<(System, String)>,
    /// Warnings of the text, as the command prints them.
    warnings: String,
}

#[derive(Debug, Serialize)]
struct Flow {
    name: String,
    from: String,
    to: String,
    variant: Option<String>,
}

/// Reads a scenario.
///
/// # Errors
/// Returns all mistakes in the scenario, as the command prints them.
pub(crate) fn look(world: &World) -> Result<Look, String> {
    let Read { scenario, satellite, warnings } = world.scenario()?;
    let described = |name: &str| {
        let row = VARIANTS.iter().find(|(known, ..)| *known == name && !scenario.variants.contains_key(name));
        Named { name: name.into(), description: row.map_or("the scenario's own", |row| row.1).into() }
    };
    let flows = scenario.flows.iter().map(|flow| Flow {
        name: flow.name.clone(),
        from: scenario[flow.from].to_owned(),
        to: scenario[flow.to].to_owned(),
        variant: match &flow.kind {
            FlowKind::Tcp(tcp) => Some(tcp.variant_name.clone()),
            FlowKind::Stp(_) | FlowKind::Quic(_) | FlowKind::Udp(_) => None,
        },
    });
    let unfit = System::ALL.into_iter().filter(|system| *system != System::Plain).filter_map(|system| {
        let unfit = equipped(&scenario, system).err()?;
        Some((system, unfit.to_string()))
    });
    Ok(Look {
        name: scenario.name.clone(),
        description: scenario.description.clone(),
        toml: scenario.to_toml(),
        settings: Settings::of(&scenario, FlowId::from(world.flow), satellite.there),
        path: data_path(&scenario, FlowId::from(world.flow))?.iter().map(|&link| scenario[link].name.clone()).collect(),
        flows: flows.collect(),
        variants: scenario.variant_names().into_iter().map(described).collect(),
        unfit: unfit.collect(),
        warnings,
    })
}

/// One run.
#[derive(Debug, Serialize)]
pub(crate) struct Ran {
    summary: Summary,
    /// True if the limit on events ended it.
    stopped: bool,
    /// Name of the link whose queue is drawn.
    link: String,
    /// Its room in full segments; `None` if it is unlimited.
    queue_packets: Option<f64>,
    /// Ends of the leg that is drawn, if the flow is split.
    leg: Option<(String, String)>,
    /// Bandwidth-delay product of the connection that is drawn, full segments.
    bdp_segments: Option<f64>,
    /// Payload of a full segment, bytes.
    segment_bytes: u32,
    /// Bursts of the satellite link: start and end, seconds.
    fades_s: Vec<(f64, f64)>,
    plot: Drawn,
}

/// The connection of a flow that crosses `link`, or its first one.
fn subject(scenario: &Scenario, flow: FlowId, link: LinkId, last_link: LinkId) -> (Subject, SegmentSize) {
    let kind = &scenario[flow].kind;
    let answers = matches!(kind.workload(), Some(Workload::RequestResponse { .. }));
    let all = topology::connections(scenario);
    let numbered = ConnectionId::first(all.len()).zip(&all);
    let legs: Vec<_> = numbered.filter(|(_, connection)| connection.flow == flow).collect();
    let crosses = |leg: &topology::Leg<'_>| {
        let path = if answers { leg.return_path(scenario) } else { leg.forward_path(scenario) };
        path.is_ok_and(|path| path.contains(&link))
    };
    let &(connection, &topology::Connection { number, .. }) =
        legs.iter().find(|(_, connection)| crosses(&connection.leg)).unwrap_or(&legs[0]);
    // Ends as observers know them.
    let receiver = if answers { 2 * legs[0].0.0 } else { 2 * legs[legs.len() - 1].0.0 + 1 };
    let size = match kind {
        FlowKind::Tcp(tcp) => {
            let split = number.checked_sub(1).and_then(|n| tcp.splits.get(n));
            match split {
                Some(split) => SegmentSize::of_leg(&split.stp, &split.sender, &split.receiver),
                None => SegmentSize::of_leg(&tcp.stp, &tcp.sender, &tcp.receiver),
            }
        }
        FlowKind::Stp(stp) => SegmentSize::of_stp(&stp.config),
        FlowKind::Quic(quic) => SegmentSize::of_quic(quic),
        FlowKind::Udp(udp) => SegmentSize { payload: udp.packet, headers: 0 },
    };
    let datagrams = matches!(kind, FlowKind::Udp(_)).then_some(ConnectionId(flow.0));
    (Subject { connection, receiver: Who(receiver), datagrams, link, last_link }, size)
}

/// Runs a scenario.
///
/// # Errors
/// Returns the mistakes of the scenario, as the command prints them, or of the request.
pub(crate) fn run(request: &Run, arrays: &mut Arrays) -> Result<Ran, String> {
    let (scenario, satellite) = request.scenario()?;
    let flow = FlowId::from(request.world.flow);
    if ![request.size.0, request.size.1].iter().all(|side| Run::SIZES.contains(side)) {
        return Err(format!("a plot of {} x {}: expected {:?} each", request.size.0, request.size.1, Run::SIZES));
    }
    if request.window.is_some_and(|(from, to)| !(from >= 0.0 && to > from && to.is_finite())) {
        return Err("a window must end after it begins".to_owned());
    }
    let path = data_path(&scenario, flow)?;
    let last_link = *path.last().ok_or("the flow crosses no link")?;
    let link = facts(&scenario, &path, 1500).bottleneck_link.unwrap_or(satellite.there);
    let (subject, size) = subject(&scenario, flow, link, last_link);
    let mut plot = Plot::new(&scenario, subject, request.size, request.window);
    // `run_with` asks every 2^17 events.
    let mut questions = (request.max_events.unwrap_or(Run::EVENTS) >> 17).max(1);
    let mut stopped = false;
    let result = run_with(&scenario, scenario.seed, &mut plot, Timers::Lazy, |_| {
        questions -= 1;
        stopped = questions == 0;
        !stopped
    });
    let result = result.map_err(|error| error.to_string())?;
    let end = result.end.as_secs_f64();
    let plot = plot.finish(end, arrays);
    let wire = f64::from(size.payload + size.headers);
    let topology::Connection { leg: ends, .. } = topology::connections(&scenario)[subject.connection.index()];
    let split = topology::legs(&scenario[flow]).len() > 1;
    let bdp = match (ends.forward_path(&scenario), ends.return_path(&scenario)) {
        (Ok(there), Ok(back)) => {
            let [there, back] = [there, back].map(|path| facts(&scenario, &path, size.payload + size.headers));
            bandwidth_delay_product(&there, &back).map(|bytes| bytes.get() as f64 / wire)
        }
        _ => None,
    };
    Ok(Ran {
        summary: Summary::new(&scenario, &result),
        stopped,
        link: scenario[link].name.clone(),
        queue_packets: match scenario[link].config.queue.limit {
            QueueLimit::Unlimited => None,
            QueueLimit::Packets(count) => Some(f64::from(count)),
            QueueLimit::Bytes(bytes) => Some(bytes.get() as f64 / wire),
        },
        leg: split.then(|| (scenario[ends.from].to_owned(), scenario[ends.to].to_owned())),
        bdp_segments: bdp,
        segment_bytes: size.payload,
        fades_s: fades(&scenario, satellite.there, end, plot.column_s),
        plot,
    })
}

fn fades(scenario: &Scenario, link: LinkId, end: f64, column: f64) -> Vec<(f64, f64)> {
    let all = Sequence::new(scenario, Some(link)).bursts_until(end);
    if all.len() <= MAX_FADES {
        return all;
    }
    let mut merged: Vec<(f64, f64)> = Vec::new();
    for (start, stop) in all {
        match merged.last_mut() {
            Some(last) if start - last.1 < column => last.1 = last.1.max(stop),
            _ => merged.push((start, stop)),
        }
    }
    merged
}

/// The hash of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Hashed {
    fingerprint: String,
    passages: u64,
    summary: Summary,
}

/// Runs a scenario without plots.
///
/// # Errors
/// Returns all mistakes in the scenario, as the command prints them.
pub(crate) fn fingerprint(request: &Fingerprint) -> Result<Hashed, String> {
    let Read { mut scenario, .. } = request.world.scenario()?;
    if let Some(limit) = request.limit_s {
        scenario.time_limit = scenario.time_limit.min(Duration::from_secs(limit));
    }
    let mut hash = bentpipe_sim::Fingerprint::default();
    let result =
        run_with(&scenario, scenario.seed, &mut hash, Timers::Lazy, |_| true).map_err(|error| error.to_string())?;
    Ok(Hashed {
        fingerprint: format!("{:016x}", hash.value()),
        passages: hash.events(),
        summary: Summary::new(&scenario, &result),
    })
}
