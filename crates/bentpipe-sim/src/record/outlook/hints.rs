//! Hints that follow from a flow's numbers, as sentences.

use bentpipe_engine::stp::StpConfig;
use bentpipe_engine::tcp::TcpConfig;
use bentpipe_engine::tcp::variant::{Growth, SlowStartExit, Startup};
use bentpipe_engine::units::Bytes;
use bentpipe_study::scenario::{FlowKind, FlowSpec, TcpFlow, Workload};

use super::{FlowOutlook, QueueOutlook};

/// The sentences; `sharing` is the number of other flows on the bottleneck, `changes` whether the rate of a line on the data's path
/// changes, `port_fills` whether the lines of several flows, each without a limit to its queue, may fill the port behind them,
/// `queue_changes` whether the limit of the queue before the bottleneck changes.
pub(super) fn of(
    outlook: &FlowOutlook,
    flow: &FlowSpec,
    sharing: usize,
    [changes, port_fills, queue_changes]: [bool; 3],
) -> Vec<String> {
    let mut hints = Vec::new();
    if changes && outlook.limit_time_s.is_some() {
        let mean = outlook
            .limit_long_run_bit_s
            .map_or(String::new(), |bits| format!(", and an endless transfer could reach {:.2} Mbit/s", bits / 1e6));
        hints.push(format!("the rate changes: the limit is for the best rates that this transfer can meet{mean}"));
    }
    match &flow.kind {
        FlowKind::Tcp(tcp) if tcp.spoof.is_some() => {
            hints.push("a gateway ends the connection (`spoof`): its window is for the path up to there".into());
        }
        FlowKind::Tcp(tcp) if tcp.splits.is_empty() => {
            let is_steady = sharing == 0 && !changes && !outlook.delay_changes;
            // Later limits may be anything, and a buffer behind a slower line fills with the data of others.
            let queue = outlook.queue.as_ref().filter(|_| !queue_changes && !port_fills);
            window(outlook, queue, tcp, is_steady, &mut hints);
            startup(outlook, queue, tcp, &mut hints);
        }
        FlowKind::Tcp(_) => hints.push("the connection is split: each leg has its own window".into()),
        _ => {}
    }
    if let FlowKind::Stp(stp) = &flow.kind {
        constant_window(outlook, &stp.config, &mut hints);
    }
    if let FlowKind::Quic(quic) = &flow.kind
        && outlook.rtt_ms >= quic.idle_timeout.as_millis_f64()
    {
        hints.push(format!(
            "the round trip of {} ms is longer than QUIC's idle timeout of {} ms: the connection ends before the first \
             answer arrives. Set a longer `quic.idle_timeout`",
            outlook.rtt_ms,
            quic.idle_timeout.as_millis_f64()
        ));
    }
    if queue_changes {
        hints.push("the limit of the queue changes: the first one is shown".into());
    } else if outlook.queue.is_none() && outlook.bottleneck.is_some() {
        hints.push("the queue is unlimited: nothing is lost in it, but delay may grow without bound".into());
    } else if port_fills {
        hints.push(
            "all flows together may fill the port: its buffer is shown, and cells wait for their lines without limit"
                .into(),
        );
    }
    if outlook.mean_loss > 0.0 {
        let percent = outlook.mean_loss * 100.0;
        let shown = if percent < 0.01 { format!("{percent:.1e}") } else { format!("{percent:.2}") };
        hints.push(format!("the channel loses {shown} % of full packets on average: a loss does not mean congestion"));
    }
    if sharing > 0 {
        let others = if sharing == 1 { "another flow shares".into() } else { format!("{sharing} other flows share") };
        let but = if outlook.limit_goodput_bit_s.is_some() { "; the limit ignores this" } else { "" };
        hints.push(format!("{others} the bottleneck{but}"));
    }
    hints
}

/// Compares STP's provisioning with the path.
fn constant_window(outlook: &FlowOutlook, config: &StpConfig, hints: &mut Vec<String>) {
    let window = config.window(config.mss).min(u64::from(config.receive_buffer));
    let segments = window / u64::from(config.mss);
    hints.push(format!("STP keeps a window of {segments} segments, {window} B, despite losses"));
    let rto = config.rto.as_millis_f64();
    if rto <= outlook.rtt_ms {
        let rtt = outlook.rtt_ms;
        hints.push(format!(
            "its timers run {rto} ms, less than the round trip of {rtt} ms: everything is retransmitted"
        ));
    }
    if outlook.bottleneck_bit_s.is_some_and(|rate| config.rate.bits_per_second() > rate) {
        hints.push("its provisioned rate exceeds the bottleneck: the rest of its window waits in a queue".into());
    }
}

/// Maximum outstanding data that the ends allow, in bytes, and whether the send buffer is the limit.
fn max_outstanding(tcp: &TcpFlow) -> (u64, bool) {
    let (data, other) = ends(tcp);
    let scaled = data.window_scaling && other.window_scaling;
    // RFC 7323 §2.3: at most 2^30 with scaling, 16 bits without.
    let offered = if scaled { other.receive_buffer.min(1 << 30) } else { other.receive_buffer.min(65_535) };
    let clamp = data.window_clamp.map_or(u64::MAX, |segments| u64::from(segments) * u64::from(data.mss));
    let fixed = match data.variant.startup {
        Startup::FixedWindow(segments) => u64::from(segments) * u64::from(data.mss),
        Startup::SlowStart => u64::MAX,
    };
    let window = u64::from(offered).min(clamp).min(fixed);
    let buffer = data.send_buffer.unwrap_or(u64::MAX);
    (window.min(buffer), buffer < window)
}

/// The end that sends the data, and the other end.
fn ends(tcp: &TcpFlow) -> (&TcpConfig, &TcpConfig) {
    match tcp.workload {
        Workload::RequestResponse { .. } => (&tcp.receiver, &tcp.sender),
        Workload::Bulk(_) | Workload::Greedy { .. } | Workload::Paced { .. } => (&tcp.sender, &tcp.receiver),
    }
}

/// Compares the data that the ends allow to be outstanding with what the path holds. What follows for the line and its queue is said
/// only if the path is the flow's own and always the same: `is_steady`.
fn window(
    outlook: &FlowOutlook,
    queue: Option<&QueueOutlook>,
    tcp: &TcpFlow,
    is_steady: bool,
    hints: &mut Vec<String>,
) {
    let Some(bdp) = outlook.bdp_bytes.filter(|bdp| *bdp > 0) else { return };
    let (max, by_buffer) = max_outstanding(tcp);
    let bdps = max as f64 / bdp as f64;
    let room = queue.map_or(f64::INFINITY, |queue| queue.bdps);
    let may = format!("at most {max} B may be outstanding{}", if by_buffer { " (send buffer)" } else { "" });
    if bdps < 1.0 {
        let so = if is_steady { ": the line can never be busy all the time" } else { "" };
        hints.push(format!("{may}, {bdps:.2} BDP{so}"));
    } else if bdps <= 1.0 + room && room.is_finite() {
        hints.push(match is_steady {
            true => format!("{may}, which fits pipe and queue: the queue never overflows"),
            false => format!("{may}, {bdps:.2} BDP"),
        });
    }
}

fn startup(outlook: &FlowOutlook, queue: Option<&QueueOutlook>, tcp: &TcpFlow, hints: &mut Vec<String>) {
    let (Some(bdp), Some(queue)) = (outlook.bdp_bytes, queue) else { return };
    let (data, other) = ends(tcp);
    let holds = bdp + queue.bytes;
    let slow_start = matches!(data.variant.startup, Startup::SlowStart);
    if !slow_start || max_outstanding(tcp).0 <= holds {
        return;
    }
    let payload = u64::from(data.mss).max(1);
    let initial = u64::from(data.variant.initial_window) * payload;
    let bdps = queue.bdps;
    let length = match tcp.workload {
        Workload::Bulk(bytes) => bytes.get(),
        Workload::RequestResponse { response, .. } => response.get(),
        Workload::Paced { total, .. } => total.map_or(u64::MAX, Bytes::get),
        Workload::Greedy { .. } => u64::MAX,
    };
    let threshold = data.initial_ssthresh.map_or(u64::MAX, |segments| u64::from(segments) * payload);
    // A first threshold below the BDP ends slow start before the pipe is full.
    let rounds = doublings(initial, bdp.min(threshold), growth(data, other));
    let seconds = f64::from(rounds) * outlook.rtt_ms / 1000.0;
    let goal = match threshold < bdp {
        true => format!("its first threshold of {threshold} B, {:.2} BDP", threshold as f64 / bdp as f64),
        false => "a window of 1 BDP".to_owned(),
    };
    // Before the window fills the pipe and the queue, as much has been acknowledged, minus the first window.
    if length <= holds {
        hints.push(format!(
            "the transfer is over before slow start fills pipe and queue: the number of round trips decides ({rounds} of \
             {:.0} ms to {goal})",
            outlook.rtt_ms
        ));
        return;
    }
    let s = if rounds == 1 { "" } else { "s" };
    hints.push(format!("slow start takes about {rounds} round trip{s}, {seconds:.1} s, to {goal}"));
    let ends_early = match data.variant.slow_start_exit {
        SlowStartExit::Loss => None,
        SlowStartExit::HyStartPlusPlus => Some("HyStart++"),
        SlowStartExit::HyStart => Some("HyStart"),
        SlowStartExit::Search => Some("SEARCH"),
    };
    if threshold <= holds {
        hints.push("the first slow start threshold ends slow start before the queue overflows".into());
    } else if bdps < 1.0 {
        let how = ends_early
            .map_or("will overshoot it".to_owned(), |by| format!("overshoots it, unless {by} ends it in time"));
        hints.push(format!("the queue holds {bdps:.2} BDP: slow start {how}"));
    } else {
        let delay = queue.ms;
        let unless = ends_early.map_or(String::new(), |by| format!(", unless {by} ends it in time"));
        hints.push(format!(
            "the queue holds {bdps:.2} BDP: slow start fills it, {delay:.0} ms, and overshoots it too{unless}"
        ));
    }
}

/// Growth factor of the window per round trip in slow start.
fn growth(data: &TcpConfig, other: &TcpConfig) -> f64 {
    match data.variant.growth {
        Growth::PerAck => 1.0 + 1.0 / f64::from(other.ack.every.max(1)),
        Growth::All => 2.0,
        Growth::Bytes(limit) => 1.0 + f64::from(limit.min(other.ack.every)) / f64::from(other.ack.every.max(1)),
    }
}

/// Number of round trips from one window to another.
fn doublings(from: u64, to: u64, factor: f64) -> u32 {
    let rounds = (to as f64 / from.max(1) as f64).ln() / factor.ln();
    rounds.max(0.0).ceil() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_by_hand() {
        // 10 to 1000 segments: six doublings give 640, the seventh 1280. With a factor of 1.5, 12 round trips give
        // 1297.
        assert_eq!(doublings(10, 1000, 2.0), 7);
        assert_eq!(doublings(10, 1000, 1.5), 12);
        assert_eq!(doublings(10, 5, 2.0), 0);
    }
}
