//! Physical bounds of a transfer, for any transport.
//!
//! **Time.** The minimum time from the start of a flow to the arrival of its last byte: the handshake, then every
//! segment sent as if the sender filled the pipe from the start. Links store and forward. Consider n packets, all of
//! length L except the last, which has length l ≤ L, over links with rates r and delays d. The last bit arrives after
//! the sum of all d and
//!
//! ```text
//! max over k of [ sum over i ≤ k of L/r_i + (n-2) L / min over i ≤ k of r_i + sum over i ≥ k of l/r_i ]     n ≥ 2
//! ```
//!
//! (a tandem of FIFO servers as a path in the max-plus plane; k is the link where the last packet waits last). With
//! equal packets, this is the time of one packet over all links plus n-1 times the bottleneck's packet time.
//!
//! **Goodput.** The bottleneck's rate, minus headers and packets lost on the channel: min over links of r_i times the
//! product over j ≥ i of (1-p_j), times payload over wire length.
//!
//! If the rate of a line changes, a transfer may fall into a good period. The goodput of a transfer of known length is
//! then its length divided by the minimum time, and the mean rate says nothing about it. An endless flow, or one that does
//! not end, is limited by what the lines can send while it runs ([`goodput_between`]).
//!
//! Neither limit accounts for other flows, ACKs on a shared line, link headers or retransmissions.

mod loss;
mod within;

use std::borrow::Cow;

use bentpipe_engine::atm::aal5;
use bentpipe_engine::gateway::{Satellite, line_overhead, max_payload};
use bentpipe_engine::link::LinkConfig;
use bentpipe_engine::network::LinkId;
use bentpipe_engine::slacp::DATA_HEADER;
use bentpipe_engine::stp::StpConfig;
use bentpipe_engine::tcp::{Handshake, TcpConfig};
use bentpipe_engine::units::{Bytes, Duration, Rate, Time};

use crate::scenario::model::{FlowKind, FlowSpec, QuicFlow, Scenario, Through, Workload};
use crate::topology::{self, Unreachable};

use loss::loss_with;
pub use loss::mean_loss;
pub use within::goodput_between;

/// IPv4 and TCP headers without options.
const HEADERS: u32 = 40;

/// The limits of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limit {
    /// Minimum time from the flow's start to the arrival of the last byte; `None` for an endless flow.
    pub time: Option<Duration>,
    /// Maximum payload rate in bits per second in the direction of the data (of the responses, if any); `None` if no
    /// line takes time, or if the rate of a line changes and `time` is zero.
    pub goodput: Option<f64>,
    /// The same for an endless flow, using the mean rates of lines that change.
    pub long_run: Option<f64>,
    /// The link that sets `long_run`, if all flows over it share its line: virtual channels have lines of their own.
    pub narrowest: Option<LinkId>,
}

/// The links of a leg, in both directions.
type Way<'s> = (Vec<&'s LinkConfig>, Vec<&'s LinkConfig>);

/// The limits of a connection; `None` for UDP, whose rate is given.
///
/// # Errors
/// Fails if no path connects the ends of the flow.
pub fn flow_limit(scenario: &Scenario, flow: &FlowSpec) -> Result<Option<Limit>, Unreachable> {
    let Some(Plan { sizes, opening, workload }) = plan(scenario, flow) else { return Ok(None) };
    let best: Vec<_> = scenario.links.iter().map(|link| link.config.at_best()).collect();
    let legs = legs_over(scenario, flow, &best)?;
    let answers = matches!(workload, Workload::RequestResponse { .. });
    // Each leg retransmits its own losses.
    let goodputs = sizes.iter().zip(&legs);
    let goodputs = goodputs.filter_map(|(size, (there, back))| narrowest_of(if answers { back } else { there }, *size));
    let over = |workload, opening, opened: &[_], legs: &[_]| workload_time((workload, opening, &sizes), opened, legs);
    let opened_best = opened(scenario, &best, flow, &legs)?;
    let mut time = over(workload, opening, &opened_best, &legs);
    // A line with bursts or a trace is at times faster than its mean: at best, a whole period's capacity comes at its
    // start.
    let links = legs.iter().flat_map(|(there, back)| there.iter().chain(back));
    let early = links.filter_map(|link| link.rate_period()).fold(Duration::ZERO, |sum, period| sum + period);
    if early > Duration::ZERO {
        // No line is faster than at its best instant.
        let fastest: Vec<_> = best.iter().map(|link| at_its_fastest(link)).collect();
        let fast_legs = legs_over(scenario, flow, &fastest)?;
        let min = over(workload, opening, &opened(scenario, &fastest, flow, &fast_legs)?, &fast_legs);
        let at_mean = |workload, opening| Some(over(workload, opening, &opened_best, &legs)? - early);
        time = match workload {
            // Each exchange may fall into a good period, but all responses together have no more than one, and so do all requests.
            Workload::RequestResponse { request, response, count, .. } => {
                let once = |request, response| Workload::RequestResponse {
                    request,
                    response,
                    think: Duration::ZERO,
                    count: 1,
                };
                let all = |bytes: Bytes| Bytes::new(bytes.get().saturating_mul(count.into()));
                let one = once(request, response);
                let gained = at_mean(one, None).zip(over(one, None, &[], &fast_legs)).map(|(mean, fast)| mean - fast);
                let each = min.zip(gained).map(|(min, gained)| min + gained.saturating_mul(count.into()));
                let together = [once(request, all(response)), once(all(request), response)];
                together.into_iter().map(|all| at_mean(all, opening)).chain([min, each]).max().flatten()
            }
            _ => at_mean(workload, opening).max(min),
        };
    }
    // With a schedule or a trace, it is known when a line can have sent everything.
    let scheduled = match workload {
        Workload::Bulk(bytes) => {
            sizes.iter().zip(&legs).filter_map(|(size, (there, _))| scheduled(flow, there, bytes, *size)).max()
        }
        _ => None,
    };
    let time = time.map(|time| scheduled.map_or(time, |scheduled| time.max(scheduled)));
    let mut with_data = legs.iter().flat_map(|(there, back)| if answers { back } else { there });
    let changes = with_data.any(|link| link.rate_changes());
    let narrowest = goodputs.reduce(|a, b| if b.0 < a.0 { b } else { a });
    let long_run = narrowest.map(|(rate, _)| rate);
    let narrowest = narrowest.filter(|(_, link)| has_one_line(link)).and_then(|(_, link)| place(&best, link));
    let goodput = match (payload(workload), time) {
        (Some(bytes), Some(time)) if changes => {
            (time > Duration::ZERO).then(|| bytes as f64 * 8.0 / time.as_secs_f64())
        }
        _ => long_run,
    };
    Ok(Some(Limit { time, goodput, long_run, narrowest: narrowest.map(LinkId::from) }))
}

/// What a connection sends.
struct Plan {
    /// The segments of each leg; those of a tunnel that carries the flow are one leg.
    sizes: Vec<SegmentSize>,
    /// Bytes of the packets that open it, in each direction; `None` if data follows at once.
    opening: Option<u32>,
    workload: Workload,
}

/// `None` for UDP.
fn plan(scenario: &Scenario, flow: &FlowSpec) -> Option<Plan> {
    let mut plan = match &flow.kind {
        FlowKind::Tcp(tcp) => {
            let further =
                tcp.splits.iter().map(|split| SegmentSize::of_leg(&split.stp, &split.sender, &split.receiver));
            let first = SegmentSize::of_leg(&tcp.stp, &tcp.sender, &tcp.receiver);
            let opening = (tcp.sender.shortcuts.handshake != Handshake::None).then_some(HEADERS);
            Plan { sizes: std::iter::once(first).chain(further).collect(), opening, workload: tcp.workload }
        }
        // STP's header is as long as TCP's, and it opens in the same way.
        FlowKind::Stp(stp) => {
            let size = SegmentSize::of_stp(&stp.config);
            Plan { sizes: vec![size], opening: Some(HEADERS), workload: stp.workload }
        }
        FlowKind::Quic(quic) => Plan {
            sizes: vec![SegmentSize::of_quic(quic)],
            opening: SegmentSize::of_quic_opening(quic),
            workload: quic.workload,
        },
        FlowKind::Udp(_) => return None,
    };
    if let Some(through) = through_a_tunnel(flow) {
        plan.sizes.truncate(1);
        if let Some(pair) = scenario.gateways.pairs.get(through.pair) {
            plan.sizes[0] = plan.sizes[0].in_tunnel(&pair.satellite[through.side]);
        }
        plan.opening = None;
    }
    Some(plan)
}

/// Bytes of all the data whose rate counts; `None` for an endless flow.
fn payload(workload: Workload) -> Option<u64> {
    match workload {
        Workload::Bulk(bytes) | Workload::Paced { total: Some(bytes), .. } => Some(bytes.get()),
        Workload::RequestResponse { response, count, .. } => Some(response.get().saturating_mul(count.into())),
        Workload::Greedy { .. } | Workload::Paced { total: None, .. } => None,
    }
}

/// The legs of a flow over links with these settings. Data follows at once in a tunnel, so there the limit is that of the
/// whole path without a handshake.
fn legs_over<'s>(
    scenario: &Scenario,
    flow: &FlowSpec,
    best: &'s [Cow<'s, LinkConfig>],
) -> Result<Vec<Way<'s>>, Unreachable> {
    let links = |path: &[LinkId]| path.iter().map(|link| &*best[link.index()]).collect::<Vec<_>>();
    if through_a_tunnel(flow).is_some() {
        let (there, back) = (topology::forward_path(scenario, flow)?, topology::return_path(scenario, flow)?);
        return Ok(vec![(links(&there), links(&back))]);
    }
    let legs = topology::legs(flow).into_iter();
    legs.map(|leg| Ok((links(&leg.forward_path(scenario)?), links(&leg.return_path(scenario)?)))).collect()
}

/// A link whose rate repeats, at the highest of its rates; without a limit if that is not known.
fn at_its_fastest(link: &LinkConfig) -> Cow<'_, LinkConfig> {
    if link.rate_period().is_none() {
        return Cow::Borrowed(link);
    }
    let track = link.moves.as_ref().and_then(|moves| moves.rate.as_ref());
    let greatest = track.and_then(|track| track.values().max()).and_then(Rate::from_bits_per_second);
    let rate = link.tdma.as_ref().map(|schedule| schedule.rate()).or(greatest);
    Cow::Owned(LinkConfig { rate, ..link.clone() })
}

/// The gateway that carries the flow's bytes between two of its legs.
fn through_a_tunnel(flow: &FlowSpec) -> Option<Through> {
    let FlowKind::Tcp(tcp) = &flow.kind else { return None };
    tcp.splits.iter().find_map(|split| split.through())
}

/// The legs whose handshakes precede the data. A spoofing gateway opens the leg that ends there.
fn opened<'s>(
    scenario: &Scenario,
    best: &'s [Cow<'s, LinkConfig>],
    flow: &FlowSpec,
    legs: &[Way<'s>],
) -> Result<Vec<Way<'s>>, Unreachable> {
    let mut opened = legs.to_vec();
    let (Some(spoof), Some(leg), Some(last)) = (flow.kind.spoof(), topology::legs(flow).pop(), opened.last_mut())
    else {
        return Ok(opened);
    };
    let links = |path: topology::Path| path.into_iter().map(|link| &*best[link.index()]).collect();
    let there = topology::up_to(scenario, leg.forward_path(scenario)?, spoof.at, leg.from);
    let back = topology::from_on(scenario, leg.return_path(scenario)?, spoof.at, leg.from);
    if let (Some(there), Some(back)) = (there, back) {
        *last = (links(there), links(back));
    }
    Ok(opened)
}

/// When each leg is open, after a packet of `bytes` there and one back. The far leg of a split connection opens when the
/// SYN reaches it.
fn open_times(legs: &[Way<'_>], bytes: u32) -> Vec<Duration> {
    let syn = |links: &[&LinkConfig]| pipe_time(links, 1, bytes, bytes);
    let mut asked = Duration::ZERO;
    let open = |(there, back): &Way<'_>| {
        asked += syn(there);
        asked + syn(back)
    };
    legs.iter().map(open).collect()
}

fn workload_time(
    (workload, opening, sizes): (Workload, Option<u32>, &[SegmentSize]),
    opened: &[Way<'_>],
    legs: &[Way<'_>],
) -> Option<Duration> {
    let there: Vec<_> = legs.iter().map(|(there, _)| there.as_slice()).collect();
    let back: Vec<_> = legs.iter().rev().map(|(_, back)| back.as_slice()).collect();
    let sizes_back: Vec<_> = sizes.iter().rev().copied().collect();
    let transfer = |bytes: Bytes| transfer_over_legs(&there, bytes, sizes);
    // The data waits for the leg that opens last; until then it may have passed the legs before it.
    let first = |bytes: Bytes| {
        let Some(syn) = opening else { return transfer(bytes) };
        let open = open_times(opened, syn).into_iter().enumerate();
        open.map(|(leg, open)| open + transfer_over_legs(&there[leg..], bytes, &sizes[leg..])).max().unwrap_or_default()
    };
    match workload {
        Workload::Bulk(bytes) => Some(first(bytes)),
        Workload::Greedy { .. } | Workload::Paced { total: None, .. } => None,
        // As if all data were available at the start: a lower bound.
        Workload::Paced { total: Some(bytes), .. } => Some(first(bytes)),
        Workload::RequestResponse { request, response, think, count } => {
            let pause = think.saturating_mul(count as u64 - 1);
            let requests = first(request) + transfer(request).saturating_mul(count as u64 - 1);
            let responses = transfer_over_legs(&back, response, &sizes_back).saturating_mul(count as u64);
            Some(requests + responses + pause)
        }
    }
}

/// The payload and headers of a data segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSize {
    /// Payload of a full segment, bytes.
    pub payload: u32,
    /// IPv4 and TCP headers with the options of a data segment, bytes.
    pub headers: u32,
}

impl SegmentSize {
    /// The segments of an STP connection, whose header is as long as TCP's.
    pub fn of_stp(config: &StpConfig) -> Self {
        SegmentSize { payload: config.mss as u32, headers: HEADERS }
    }

    /// The packets of a QUIC connection: the longest that it may send, with the shortest headers.
    pub fn of_quic(quic: &QuicFlow) -> Self {
        let payload = u32::from(quic.max_datagram()) - QuicFlow::min_overhead();
        SegmentSize { payload, headers: QuicFlow::UDP_HEADERS + QuicFlow::min_overhead() }
    }

    /// Bytes of the datagrams that open a QUIC connection before data can follow, one in each direction. Both have an
    /// Initial packet that asks for an ACK, so both are padded (RFC 9000 §14.1). `None` if data is sent with the first
    /// one (0-RTT).
    fn of_quic_opening(quic: &QuicFlow) -> Option<u32> {
        (!quic.zero_rtt).then_some(QuicFlow::UDP_HEADERS + u32::from(QuicFlow::MIN_DATAGRAM))
    }

    /// The segments of a leg. It is an STP leg if it has STP settings.
    pub fn of_leg(stp: &Option<StpConfig>, a: &TcpConfig, b: &TcpConfig) -> Self {
        stp.as_ref().map_or_else(|| SegmentSize::between(a, b), SegmentSize::of_stp)
    }

    /// The same payload in a tunnel whose messages may hold several segments: its headers, if they take less for so many
    /// bytes.
    fn in_tunnel(self, satellite: &Satellite) -> Self {
        /// At least a byte is the multiplexer's.
        const HEADERS: u32 = line_overhead(false) + DATA_HEADER + 1;
        let longest = max_payload(satellite.max_packet());
        SegmentSize { headers: self.headers.min(self.payload * HEADERS / longest), ..self }
    }

    /// The segments of a connection between these ends: the smaller MSS, minus timestamps if both enable them (RFC
    /// 6691: the MSS excludes options, so they reduce the payload).
    pub fn between(a: &TcpConfig, b: &TcpConfig) -> Self {
        // ns-2's lengths count no timestamps.
        let has_options = a.timestamps && b.timestamps && !a.shortcuts.ns2_lengths;
        let options = if has_options { 12 } else { 0 };
        SegmentSize { payload: (a.mss.min(b.mss) as u32).saturating_sub(options).max(1), headers: HEADERS + options }
    }
}

/// The transfer time over the legs of a split connection. Segments of equal size pass all legs as if these were one.
/// Otherwise, only the slowest leg counts, plus the propagation delay of the others, which is a lower bound.
fn transfer_over_legs(legs: &[&[&LinkConfig]], bytes: Bytes, sizes: &[SegmentSize]) -> Duration {
    if sizes.iter().all(|size| *size == sizes[0]) {
        return transfer_time(&legs.concat(), bytes, sizes[0]);
    }
    let all = legs.iter().fold(Duration::ZERO, |sum, links| sum + delay(links));
    let alone = legs.iter().zip(sizes).map(|(links, size)| {
        let taken = transfer_time(links, bytes, *size).as_nanos() - delay(links).as_nanos();
        all + Duration::from_nanos(taken)
    });
    alone.max().unwrap_or(all)
}

/// The time from the flow's start until the last of these links' lines that follow a schedule or a trace has sent all of
/// the flow's data and the data has arrived. The data reaches a line no sooner than the links before it allow.
fn scheduled(flow: &FlowSpec, links: &[&LinkConfig], bytes: Bytes, size: SegmentSize) -> Option<Duration> {
    let wire = bytes.get() + bytes.get().div_ceil(size.payload.into()).max(1) * u64::from(size.headers);
    let start = Time::ZERO + flow.start;
    let arrived = |n: usize| Some(links[n].sent_by(start + delay(&links[..n]), wire)? + delay(&links[n..]));
    (0..links.len()).filter_map(arrived).max().map(|end| end.saturating_since(start))
}

/// Time from the first bit of `bytes` at the sender to the last at the receiver, over otherwise empty links.
pub fn transfer_time(links: &[&LinkConfig], bytes: Bytes, size: SegmentSize) -> Duration {
    let SegmentSize { payload, headers } = size;
    let segments = bytes.get().div_ceil(payload as u64).max(1);
    let last = bytes.get() - (segments - 1) * payload as u64;
    pipe_time(links, segments, payload + headers, last as u32 + headers)
}

/// The propagation delay of these links together.
fn delay(links: &[&LinkConfig]) -> Duration {
    links.iter().fold(Duration::ZERO, |sum, link| sum + link.delay)
}

/// True if all flows over the link share its line: virtual channels may have lines of their own.
fn has_one_line(link: &LinkConfig) -> bool {
    link.cells.and_then(|cells| cells.line).is_none()
}

/// The number of a link among those at their best.
fn place(best: &[Cow<'_, LinkConfig>], link: &LinkConfig) -> Option<usize> {
    best.iter().position(|config| std::ptr::eq(&**config, link))
}

/// The time of `count` packets, all of `length` bytes except the last.
fn pipe_time(links: &[&LinkConfig], count: u64, length: u32, last: u32) -> Duration {
    // Rounding loses 0.1 ns per link, and a path has few links.
    let times = |bytes: u32| -> Vec<f64> { links.iter().filter_map(|link| line_time(link, bytes)).collect() };
    let (full, last) = (times(length), times(last));
    let tail = |from: usize| last[from..].iter().sum::<f64>();
    let transmission = if count == 1 {
        tail(0)
    } else {
        let through = |k: usize| {
            let first = full[..=k].iter().sum::<f64>();
            let slowest = full[..=k].iter().fold(0.0, |max: f64, time| max.max(*time));
            first + (count - 2) as f64 * slowest + tail(k)
        };
        (0..full.len()).map(through).fold(0.0, f64::max)
    };
    delay(links) + Duration::from_secs_f64_rounded(transmission)
}

/// Maximum payload rate over these links in bits per second; `None` if no line takes time.
pub fn goodput(links: &[&LinkConfig], size: SegmentSize) -> Option<f64> {
    narrowest_of(links, size).map(|(rate, _)| rate)
}

/// The same, with the link that sets it.
fn narrowest_of<'s>(links: &[&'s LinkConfig], size: SegmentSize) -> Option<(f64, &'s LinkConfig)> {
    let wire = size.payload + size.headers;
    let mut passes = 1.0;
    let mut min: Option<(f64, &LinkConfig)> = None;
    for &link in links.iter().rev() {
        passes *= 1.0 - loss_with(link, link.good, wire);
        if let Some(time) = line_time(link, wire) {
            let here = size.payload as f64 * 8.0 / time * passes;
            min = Some(min.filter(|(min, _)| *min <= here).unwrap_or((here, link)));
        }
    }
    min
}

/// Transmission time of a packet on a line in seconds; `None` if it takes none. For cells, it includes AAL5's overhead,
/// over the slower of the port and the line to the port.
pub(crate) fn line_time(link: &LinkConfig, wire: u32) -> Option<f64> {
    let rate = topology::within_line(link, link.rate?);
    Some(line_bytes(link, wire) as f64 * 8.0 / rate.bits_per_second() as f64)
}

/// Bytes on a line for a packet of `wire` bytes.
fn line_bytes(link: &LinkConfig, wire: u32) -> u64 {
    match link.cells {
        None => wire as u64,
        Some(_) => aal5::line_bytes(wire as usize) as u64,
    }
}

#[cfg(test)]
mod tests;
