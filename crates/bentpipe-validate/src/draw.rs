//! Scenarios for the comparison with `ns` itself: a few with round numbers, then random ones.

use bentpipe_engine::stream::Stream;

use crate::reference::Row;

fn pick<T: Copy>(stream: &mut Stream, choices: &[T]) -> T {
    choices[(stream.uniform() * choices.len() as f64) as usize]
}

/// Scenarios of round numbers, in which simultaneous events are common: rate, delay and queue of the satellite link,
/// flows.
const ROUND: [(f64, f64, u32, u32); 3] = [(10e6, 0.02, 10, 1), (50e6, 0.1, 1000, 1), (8e6, 0.25, 60, 2)];
const AGENTS: [&str; 4] = ["tahoe", "reno", "newreno", "sack"];

/// The scenarios of round numbers, for each agent, with and without delayed ACKs.
pub(crate) fn round() -> impl Iterator<Item = Vec<Row>> {
    let cases = ROUND.into_iter().flat_map(|set| AGENTS.map(|agent| (set, agent)));
    let cases = cases.flat_map(|(set, agent)| [0.0, 0.2].map(|delack| (set, agent, delack)));
    cases.map(|((bw, delay, queue, flows), agent, delack_s)| {
        let row = Row {
            id: format!("round-{}-{queue}-{agent}-{}", bw / 1e6, if delack_s > 0.0 { "delayed" } else { "each" }),
            agent: agent.to_owned(),
            newreno_mode: if agent == "newreno" { "impatient" } else { "" }.to_owned(),
            bw_bps: bw,
            delay_oneway_s: delay,
            access_bw_bps: 1e9,
            access_delay_s: 0.001,
            buffer_limit_pkts: queue,
            payload: 960,
            segments: 1042,
            iw: 2,
            window_pkts: 20_000,
            init_ssthresh_pkts: 20_000,
            delack_s,
            ..Row::default()
        };
        (0..flows).map(|flow| Row { flow, start_s: f64::from(flow) * 0.5, ..row.clone() }).collect()
    })
}

/// The n-th random scenario of a seed: one or more flows. Rates, delays and sizes are not round.
pub(crate) fn scenario(seed: u64, n: u64) -> Vec<Row> {
    let s = &mut Stream::named(seed, format_args!("scenario/{n}"));
    let agent = pick(s, &["tahoe", "reno", "newreno", "newreno", "sack", "sack"]);
    let bw = (pick(s, &[256.0, 512.0, 1e3, 2e3, 2e3, 5e3, 10e3]) * s.uniform_in(0.8, 1.25)).round() * 1e3;
    let window = pick(s, &[20, 64, 100, 200, 20_000, 20_000]);
    let drops = pick(s, &[0, 0, 1, 2, 3, 5, 8]);
    let mut indices: Vec<u64> = (0..drops).map(|_| s.uniform_in(0.0, 150.0) as u64).collect();
    if drops > 2 && s.uniform() < 0.5 {
        // Losses close together.
        let first = indices[0];
        indices = (0..drops).map(|i| first + i * pick(s, &[1, 2, 5])).collect();
    }
    indices.sort_unstable();
    indices.dedup();
    // Cross traffic takes at most a quarter or half of the line: with more, a transfer may not end.
    let share: f64 = pick(s, &[0.0, 0.0, 0.0, 0.25, 0.5]);
    let cbr = if share > 0.0 {
        let rate = (share * bw * s.uniform_in(0.99, 1.01)).round();
        format!("1000 B every {} ms", 8e6 / rate)
    } else {
        String::new()
    };
    let row = Row {
        id: format!("draw-{seed}-{n}"),
        flow: 0,
        agent: agent.to_owned(),
        newreno_mode: if agent == "newreno" { pick(s, &["impatient", "slow-but-steady"]) } else { "" }.to_owned(),
        bw_bps: bw,
        delay_oneway_s: (s.uniform_in(0.01, 0.3) * 1e4).round() / 1e4,
        access_bw_bps: pick(s, &[20.037e6, 1e9, 1e9]),
        access_delay_s: pick(s, &[0.001, 0.010]) * s.uniform_in(0.99, 1.01),
        buffer_limit_pkts: s.uniform_in(5.0, 120.0) as u32,
        payload: s.uniform_in(500.0, 1460.0) as u16,
        segments: s.uniform_in(100.0, 2500.0) as u64,
        iw: pick(s, &[1, 2, 4]),
        window_pkts: window,
        init_ssthresh_pkts: if s.uniform() < 0.2 { pick(s, &[8, 16, 32]) } else { window },
        delack_s: pick(s, &[0.0, 0.1, 0.2]) * s.uniform_in(0.99, 1.01),
        limtran: pick(s, &[0, 0, 1]),
        syn_exchange: pick(s, &[0, 0, 1]),
        drop_indices: indices.iter().map(u64::to_string).collect::<Vec<_>>().join(" "),
        cbr,
        start_s: 0.0,
        ..Row::default()
    };
    let flows = pick(s, &[1, 1, 1, 1, 2, 3]);
    (0..flows)
        .map(|flow| Row {
            flow,
            start_s: flow as f64 * pick(s, &[0.25, 0.5, 1.0]) * s.uniform_in(0.99, 1.01),
            ..row.clone()
        })
        .collect()
}
