//! Every field has a row, and every row writes the value that it reads.

use bentpipe_engine::tcp::variant::{VARIANTS, Variant};
use bentpipe_engine::tcp::{AckPolicy, Pacing, RtoConfig, RttClock, Shortcuts};

use super::*;

/// A field that the engine gains must gain a row: this stops compiling, and the count below stops being right.
#[test]
fn every_field_has_a_row() {
    let TcpConfig {
        mss: _,
        assumed_mss: _,
        variant,
        ack,
        rto,
        receive_buffer: _,
        first_window: _,
        window_follows: _,
        gaps_take_room: _,
        window_scaling: _,
        timestamps: _,
        echo_repetitions: _,
        sack_blocks: _,
        dsack: _,
        window_clamp: _,
        initial_ssthresh: _,
        ecn: _,
        ecn_retries: _,
        ecn_option: _,
        ecn_control: _,
        abe: _,
        send_buffer: _,
        first_send_buffer: _,
        nagle: _,
        syn_losses: _,
        restart_after_idle: _,
        idle_decay: _,
        time_wait: _,
        tcb_sharing: _,
        resume: _,
        resume_lifetime: _,
        max_jump: _,
        shortcuts,
    } = TcpConfig::default();
    let Variant {
        startup: _,
        initial_window: _,
        congestion: _,
        growth: _,
        slow_start_exit: _,
        limited_slow_start: _,
        dup_thresh: DupThresh { count: _, window_fraction: _ },
        recovery: _,
        prr: _,
        sack: _,
        limited_transmit: _,
        frto: _,
        undo: _,
        tail_probe: _,
        rack_slack: _,
        rack_reordering: _,
        min_rtt_window: _,
        timeout_repair: _,
        timeout_window: _,
        once_per_window: _,
        guard_after_timeout: _,
        max_burst: _,
        pacing: Pacing { gains: _, quantum: _, credit: _, unpaced: _, max_rate: _ },
        offload: _,
    } = variant;
    let AckPolicy {
        delay: _,
        every: _,
        daass: _,
        tick: _,
        before_reading: _,
        compress: _,
        quick: _,
        pushed: _,
        adapt: _,
        gro: _,
    } = ack;
    let Compress { delay: _, slack: _, max: _ } = Compress::LINUX;
    let RtoConfig {
        initial: _,
        min: _,
        floor: _,
        timing: _,
        max: _,
        clock: _,
        max_retries: _,
        give_up: _,
        max_syn_retries: _,
        max_syn_ack_retries: _,
        max_closed_retries: _,
        max_probes: _,
        linear_syn_timeouts: _,
    } = rto;
    let Shortcuts {
        bsd_additive_constant: _,
        window_unit: _,
        handshake: _,
        ssthresh_base: _,
        ns2_recovery: _,
        ns2_inflate_always: _,
        ns2_lengths: _,
        ns2_delayed_syn_ack: _,
        ns2_bare_first_segment: _,
    } = shortcuts;
    let BurstEstimate { first_repeats: _, in_burst_skip: _, guard: _ } =
        match Variant::named("burst").map(|row| row.recovery) {
            Some(Recovery::BurstEstimate(cells)) => cells,
            other => panic!("{other:?}"),
        };
    // 27 plain fields, two of careful resume, 24 cells of the variant and 6 of its pacing, 3 of an inflating recovery and 3 of a burst
    // estimate, 10 of the ACK policy and 2 more of compression, 13 of the timer, 3 of a ticking clock and one of a wheel, 9 shortcuts.
    assert_eq!(SETTINGS.len(), 27 + 2 + 24 + 6 + 3 + 3 + 10 + 2 + 13 + 3 + 1 + 9);
}

#[test]
fn what_is_put_in_comes_out() {
    let mut configs: Vec<_> =
        VARIANTS.iter().map(|&(.., variant)| TcpConfig { variant, ..TcpConfig::default() }).collect();
    configs.push(crate::tcp::profile::profile("ns2-2003").expect("a profile").config());
    let rto = RtoConfig { clock: RttClock::Wheel(Duration::from_millis(4)), ..RtoConfig::LINUX };
    configs.push(TcpConfig { rto, ..TcpConfig::default() });
    for from in &configs {
        for to in &configs {
            let mut copy = *to;
            for setting in SETTINGS {
                if let Some(cell) = (setting.get)(from) {
                    assert!((setting.set)(&mut copy, cell), "{}", setting.key);
                }
            }
            assert_eq!(copy, *from);
        }
    }
}
