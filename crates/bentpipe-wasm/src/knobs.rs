//! What a page's sliders change: the satellite link, the size of the transfer, fades, the seed.

use std::sync::Arc;

use bentpipe_engine::link::{ChannelConfig, LinkConfig, Moves, Phases, QueueLimit};
use bentpipe_engine::network::LinkId;
use bentpipe_engine::units::{Duration, Probability, Rate};
use bentpipe_study::scenario::{BadQuantity, FlowId, FlowKind, Scenario, Workload, single};
use bentpipe_study::topology;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

#[cfg(test)]
mod tests;

/// Max number of fades.
const MAX_FADES: usize = 1000;
/// Max duration, seconds: a year.
const MAX_SECS: f64 = 31_536_000.0;

/// Values that replace those of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Knobs {
    /// Rate of the satellite link in the direction of the data, bit/s.
    pub(crate) rate_bit_s: Option<u64>,
    /// One-way delay of the satellite link, in both directions, seconds.
    pub(crate) delay_s: Option<f64>,
    /// Probability that a packet is lost on it in the direction of the data, in addition to fades.
    pub(crate) loss: Option<f64>,
    /// Room of its queue as the time that the line needs to send it, seconds.
    pub(crate) queue_s: Option<f64>,
    /// Size of the transfer, bytes.
    pub(crate) bytes: Option<u64>,
    /// Start and length of each fade in the direction of the data, seconds, in order of time; a fade loses all packets.
    pub(crate) fades: Option<Vec<(f64, f64)>>,
    /// Seed: a number, or its digits, since a number of JavaScript is exact only up to 2^53.
    #[serde(deserialize_with = "seed")]
    pub(crate) seed: Option<u64>,
}

fn seed<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "a seed: expected a whole number from 0 to 18446744073709551615, or its digits as text"
    )]
    enum Seed {
        Number(u64),
        Digits(String),
    }
    match Option::<Seed>::deserialize(from)? {
        None => Ok(None),
        Some(Seed::Number(number)) => Ok(Some(number)),
        Some(Seed::Digits(digits)) => digits.parse().map(Some).map_err(|_| {
            D::Error::custom(format_args!("a seed of `{digits}`: expected a whole number from 0 to {}", u64::MAX))
        }),
    }
}

/// The values that a scenario has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Settings {
    /// Name of the link.
    pub(crate) link: String,
    /// As [`Knobs::rate_bit_s`]; `None` if the line takes no time or its rate varies during a run.
    pub(crate) rate_bit_s: Option<u64>,
    /// As [`Knobs::delay_s`].
    pub(crate) delay_s: f64,
    /// As [`Knobs::loss`].
    pub(crate) loss: f64,
    /// As [`Knobs::queue_s`], for packets of the flow; `None` if it is unlimited.
    pub(crate) queue_s: Option<f64>,
    /// The queue's room in packets, if the scenario counts packets.
    pub(crate) queue_packets: Option<u32>,
    /// As [`Knobs::bytes`]; `None` if the flow is no transfer.
    pub(crate) bytes: Option<u64>,
    /// Digits of the seed.
    pub(crate) seed: String,
}

/// The link that knobs change, and the link back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Satellite {
    /// The link in the direction of the data.
    pub(crate) there: LinkId,
    /// The link between the same nodes in the other direction.
    pub(crate) back: Option<LinkId>,
}

impl Satellite {
    /// The link with this name; without one that with the longest delay on the way of the flow's data.
    ///
    /// # Errors
    /// Fails if there is no such link, or if the ends of the flow are not connected.
    pub(crate) fn of(scenario: &Scenario, flow: FlowId, name: Option<&str>) -> Result<Satellite, String> {
        let there = match name {
            Some(name) => {
                let there = scenario.link(name);
                there.ok_or_else(|| format!("there is no link `{name}`"))?
            }
            None => {
                let path = data_path(scenario, flow)?;
                topology::longest_delay(scenario, &path).ok_or("the flow crosses no link")?
            }
        };
        let (from, to) = (scenario[there].from, scenario[there].to);
        let back = scenario.links.iter().position(|link| (link.from, link.to) == (to, from));
        Ok(Satellite { there, back: back.map(LinkId::from) })
    }
}

/// The links of a flow's data in order; responses go from `to` to `from`.
///
/// # Errors
/// Fails if the ends of the flow are not connected.
pub(crate) fn data_path(scenario: &Scenario, flow: FlowId) -> Result<topology::Path, String> {
    let spec = &scenario[flow];
    let answers = matches!(spec.kind.workload(), Some(Workload::RequestResponse { .. }));
    let path = if answers { topology::return_path(scenario, spec) } else { topology::forward_path(scenario, spec) };
    path.map_err(|unreachable| unreachable.to_string())
}

impl Settings {
    /// Those of a scenario, of this link and this flow.
    pub(crate) fn of(scenario: &Scenario, flow: FlowId, link: LinkId) -> Settings {
        let link = &scenario[link];
        let config = &link.config;
        let fixed = config.rate.filter(|_| !varies(config));
        let (queue_s, queue_packets) = match (config.queue.limit, fixed) {
            (QueueLimit::Bytes(bytes), Some(rate)) => {
                (Some(bytes.get() as f64 * 8.0 / rate.bits_per_second() as f64), None)
            }
            (QueueLimit::Packets(count), Some(rate)) => {
                (Some(f64::from(count) * 1500.0 * 8.0 / rate.bits_per_second() as f64), Some(count))
            }
            _ => (None, None),
        };
        Settings {
            link: link.name.clone(),
            rate_bit_s: fixed.map(Rate::bits_per_second),
            delay_s: config.delay.as_secs_f64(),
            loss: config.good.packet.get(),
            queue_s,
            queue_packets,
            bytes: match scenario[flow].kind.workload() {
                Some(Workload::Bulk(bytes)) => Some(bytes.get()),
                _ => None,
            },
            seed: scenario.seed.to_string(),
        }
    }
}

/// True if the rate is no number.
fn varies(link: &LinkConfig) -> bool {
    let moves = link.moves.as_ref().is_some_and(|moves| moves.rate.is_some());
    link.rate_trace.is_some() || link.tdma.is_some() || moves || link.phases.as_ref().is_some_and(|p| p.rate.is_some())
}

/// Takes away what would change a value later: a knob's value stays.
fn stop(link: &mut LinkConfig, which: impl FnOnce(&mut Moves)) {
    if let Some(moves) = &mut link.moves {
        which(Arc::make_mut(moves));
    }
}

fn span(seconds: f64, what: &str) -> Result<Duration, String> {
    if !(0.0..=MAX_SECS).contains(&seconds) {
        // Not three hundred digits.
        let seconds = if seconds.abs() < 1e15 { format!("{seconds}") } else { format!("{seconds:e}") };
        return Err(format!("{what} of {seconds} s: expected 0 s to a year"));
    }
    Ok(Duration::from_secs_f64_rounded(seconds))
}

/// A value as the setting's own parser takes it: it knows the maximum. Beyond that, the scenario could not be read again, and the errors
/// would be about a text that the page's user did not write.
fn within<T>(what: &str, parsed: Result<T, BadQuantity>) -> Result<T, String> {
    parsed.map_err(|bad| format!("{what}: {}", bad.message))
}

impl Knobs {
    /// True if they change nothing.
    pub(crate) fn are_idle(&self) -> bool {
        *self == Knobs::default()
    }

    /// The scenario with these values.
    ///
    /// # Errors
    /// Fails if a value is impossible or does not fit the scenario.
    pub(crate) fn turned(&self, scenario: &Scenario, flow: FlowId, satellite: Satellite) -> Result<Scenario, String> {
        let mut changed = self.seed.map_or_else(|| scenario.clone(), |seed| scenario.with_seed(seed));
        let Satellite { there, back } = satellite;
        let link = &mut changed.links[there.index()].config;
        if let Some(rate) = self.rate_bit_s {
            if varies(link) || link.rate.is_none() {
                return Err("the rate of this link is not a number".to_owned());
            }
            if rate == 0 {
                return Err("a rate of 0 bit/s".to_owned());
            }
            link.rate = Some(within("rate", single::rate(&format!("{rate} bit/s")))?);
        }
        if let Some(loss) = self.loss {
            stop(link, |moves| moves.loss = None);
            link.good.packet = Probability::new(loss).ok_or_else(|| format!("a loss of {loss}: expected 0 to 1"))?;
        }
        if let Some(queue) = self.queue_s {
            if link.cells.is_some() {
                return Err("the queue of a link in cells has a number of cells, not a length in time".to_owned());
            }
            let rate = link.rate.ok_or("the queue of a line without a rate has no length in time")?;
            let bytes = rate.bytes_in_floor(span(queue, "a queue")?);
            link.queue.limit = QueueLimit::Bytes(within("queue", single::bytes(&format!("{bytes} B")))?);
            stop(link, |moves| (moves.queue, moves.limits) = (None, Vec::new()));
        }
        if let Some(fades) = &self.fades {
            link.channel = schedule(fades)?;
            link.bad.packet = Probability::ONE;
        }
        if let Some(delay) = self.delay_s {
            for n in [Some(there), back].into_iter().flatten() {
                let link = &mut changed.links[n.index()].config;
                link.delay = span(delay, "a delay")?;
                stop(link, |moves| moves.delay = None);
                // Phases that change nothing else are none.
                let phases = link.phases.map(|phases| Phases { delay: None, ..phases });
                link.phases = phases.filter(|phases| phases.rate.is_some() || phases.outage > Duration::ZERO);
            }
        }
        if let Some(bytes) = self.bytes {
            let workload = match &mut changed.flows[flow.index()].kind {
                FlowKind::Tcp(tcp) => &mut Arc::make_mut(tcp).workload,
                FlowKind::Stp(stp) => &mut stp.workload,
                FlowKind::Quic(quic) => &mut quic.workload,
                FlowKind::Udp(_) => return Err("a flow of datagrams has no size".to_owned()),
            };
            match workload {
                Workload::Bulk(size) if bytes > 0 => *size = within("size", single::bytes(&format!("{bytes} B")))?,
                Workload::Bulk(_) => return Err("a transfer of 0 bytes".to_owned()),
                _ => return Err("the flow is no transfer of a number of bytes".to_owned()),
            }
        }
        Ok(changed)
    }
}

fn schedule(fades: &[(f64, f64)]) -> Result<ChannelConfig, String> {
    if fades.is_empty() {
        return Ok(ChannelConfig::Clear);
    }
    if fades.len() > MAX_FADES {
        return Err(format!("more than {MAX_FADES} fades"));
    }
    let mut all: Vec<(Duration, Duration)> = Vec::new();
    for &(start, length) in fades {
        let (start, length) = (span(start, "a start")?, span(length, "a fade")?);
        if length == Duration::ZERO || all.last().is_some_and(|&(at, long)| start < at + long) {
            return Err("fades must have a length, follow in order of time, and not overlap".to_owned());
        }
        all.push((start, length));
    }
    Ok(ChannelConfig::Schedule(all))
}
