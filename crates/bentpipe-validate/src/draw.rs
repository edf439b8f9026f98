//! Scenarios drawn at random, of the kinds that the reference table holds.
//!
//! Delays are odd numbers on purpose. With round ones a delayed-ACK timer often runs out in the very instant in which
//! the next segment arrives; ns-2, whose time is a sum of floating-point numbers, then decides by the last bit of a
//! rounding error, which is nothing to agree with.

use bentpipe_engine::stream::Stream;

use crate::reference::Row;

fn pick<T: Copy>(stream: &mut Stream, choices: &[T]) -> T {
    choices[(stream.uniform() * choices.len() as f64) as usize]
}

/// The n-th scenario under a seed: one or more flows.
pub(crate) fn scenario(seed: u64, n: u64) -> Vec<Row> {
    let s = &mut Stream::named(seed, &format!("scenario/{n}"));
    let agent = pick(s, &["tahoe", "reno", "newreno", "newreno", "sack", "sack"]);
    let bw = pick(s, &[256_000.0, 512_000.0, 1e6, 2e6, 2e6, 5e6, 10e6]);
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
    // Cross traffic takes a quarter or half of the line at most: with more, a transfer may not end.
    let share: f64 = pick(s, &[0.0, 0.0, 0.0, 0.25, 0.5]);
    let cbr = if share > 0.0 {
        format!("1000 B every {} ms", 8000.0 / (share * bw) * 1e3 * s.uniform_in(0.99, 1.01))
    } else {
        String::new()
    };
    let row = Row {
        id: format!("draw-{seed}-{n}"),
        flow: 0,
        agent: agent.to_owned(),
        newreno_mode: if agent == "newreno" { pick(s, &["impatient", "slow-but-steady"]) } else { "" }.to_owned(),
        bw_bps: bw,
        delay_oneway_s: pick(s, &[0.01, 0.15, 0.25, 0.255, 0.3]) * s.uniform_in(0.999, 1.001),
        access_bw_bps: pick(s, &[10.037e6, 1e9, 1e9]),
        access_delay_s: pick(s, &[0.001, 0.010]) * s.uniform_in(0.99, 1.01),
        buffer_limit_pkts: pick(s, &[10, 20, 50, 100, 1000]),
        payload: 960,
        segments: pick(s, &[100, 200, 521, 1042, 2084]),
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
