//! References for the paper's topology, mechanisms and experiments, and the implementation of each decision.

use bentpipe_engine::link::{QueueConfig, QueueLimit};
use bentpipe_engine::stp::Arming;
use bentpipe_engine::units::{Duration, Rate};
use bentpipe_study::scenario::{FlowKind, FlowSpec, UdpFlow, UdpPattern};

use super::figures::{Channel, beside_print};
use super::measure::measure;
use super::setting::{DATA_BITS, FRAME_BITS, Setting, Transport};
use super::study::Study;
use crate::finding::Finding;
use crate::inventory::Seen::{self, Built, Compared, Decision, Ran};
use crate::inventory::Shown::{self, Scenario, Setting as Set, Test};
use crate::lab::Lab;
use crate::request::ReproduceError;

pub(super) const SEEN: &[(&str, Seen)] = &[
    ("S-N01", Built(&[Scenario("stp"), Test("papers", "both_transports_meet_the_same_links")], "")),
    (
        "S-N02",
        Built(
            &[
                Test("engine", "a_segment_byte_by_byte"),
                Test("sim", "stp_is_sound_ip_of_an_unknown_protocol"),
                Shown::Rows(&["S-C01"]),
            ],
            "STP 20 B, IPv4 20 B, links.*.header = \"8 B\"",
        ),
    ),
    (
        "S-M01",
        Built(
            &[Test("engine", "stp_delivers"), Test("engine", "agrees_with_the_pseudo_code")],
            "tcp::Duplex, which STP and TCP share; docs/specs/stp.md; fuzz target stp_pair",
        ),
    ),
    ("S-M02", Seen::Rows(&["S-C01", "S-C02"])),
    ("S-M03", Seen::Rows(&["S-C01", "S-F02"])),
    (
        "S-M04",
        Built(
            &[
                Test("engine", "agrees_with_the_pseudo_code"),
                Test("engine", "a_hole_is_repaired_once_then_by_its_timer"),
            ],
            "",
        ),
    ),
    (
        "S-M05",
        Built(
            &[
                Test("engine", "timers_armed_at_hand_over_run_while_segments_wait"),
                Set("stp", "flows.data.stp.timer", "hand-over"),
            ],
            "a queue of timers in order of arming; settings `stp.rto` and `stp.timer`",
        ),
    ),
    ("S-M06", Seen::Rows(&["S-C11"])),
    (
        "S-M07",
        Built(
            &[Test("engine", "the_peers_window_counts_where_it_is_smaller")],
            "setting `stp.receive_buffer`: 1 GiB, fifteen round trips of 1 Gbit/s",
        ),
    ),
    (
        "S-M08",
        Built(
            &[Test("papers", "both_transports_meet_the_same_links"), Shown::Rows(&["S-C03"])],
            "variant `sack` with `rto.*`",
        ),
    ),
    (
        "S-M09",
        Built(
            &[
                Test("engine", "bit_errors_grow_with_the_length"),
                Test("sim", "bit_errors_cost_repetitions_and_no_bytes"),
            ],
            "setting `bit_error_rate` of a link, for packets of either direction",
        ),
    ),
    (
        "S-M10",
        Built(
            &[
                Test("engine", "the_curve_of_the_textbook"),
                Test("engine", "nothing_lost_is_nothing_changed_and_more_lost_is_worse"),
            ],
            "setting `bit_error_rate` = { nominal, implementation_loss }",
        ),
    ),
    ("S-M11", Built(&[Test("sim", "a_transfer_without_loss_by_hand")], "from `connected_at` to `acked_at` of a flow")),
    ("S-M12", Built(&[Test("sim", "polls_take_the_place_of_timers")], "`poll_interval` of an STP flow")),
    ("S-E01", Seen::Rows(&["S-C02", "S-C03", "S-C04"])),
    ("S-E02", Seen::Rows(&["S-T01/STP/1e-10", "S-T01/TCP/1e-10"])),
    ("S-E03", Seen::Rows(&["S-T01/STP/1e-8", "S-T01/TCP/1e-8"])),
    ("S-E04", Seen::Rows(&["S-T01/STP/1e-6", "S-T01/TCP/1e-6"])),
    ("S-E05", Seen::Rows(&["S-C11"])),
    ("S-E06", Compared(|lab| beside_print(&Study::new(lab), Channel::Printed))),
    ("S-E07", Compared(|lab| beside_print(&Study::new(lab), Channel::Offset))),
    ("S-E08", Compared(congestion)),
    ("S-E09", Ran(arming)),
    ("S-Q01", Decision("S-T02: the paper's tables, not its introduction")),
    ("S-Q02", Decision("scenarios/stp.toml: bytes = \"1 MB\" in segments of 1000 B")),
    ("S-Q03", Decision("setting `stp.timer`, \"departure\" if not given; S-E09")),
    ("S-Q04", Decision("S-T01: each cell at face value, and the loss of Eb/N0 that it needs")),
    ("S-Q05", Decision("scenarios/stp.toml: the satellite stores and forwards")),
    ("S-Q06", Decision("stp::setting: ack.delay = 0 s, initial_window = 1")),
    ("S-Q07", Decision("stp::setting: window_scaling = false, so the max window is 65 535 B")),
    ("S-Q08", Decision("stp::Sender: on the first SACK above a hole")),
    ("S-Q09", Decision("stp::measure: aborted transfers are excluded from means and counted separately")),
];

/// S-E09: timers armed at departure and at hand-over, as text. The first window takes as long to send as a timer runs.
fn arming(lab: &Lab<'_>) -> Result<String, ReproduceError> {
    let settings =
        [Arming::Departure, Arming::HandOver].map(|arming| Setting::at_face_value(Transport::Stp(arming), 0.0));
    let runs = lab.sweep("from when timers run", &settings.map(|setting| setting.scenario()), 1)?;
    let measured = measure(lab, "from when timers run", &settings, 1)?;
    let said: Vec<_> = runs
        .iter()
        .zip(&measured)
        .map(|(runs, measured)| {
            let sent = runs[0].flows[0].stats.data_segments;
            let goodput = measured.goodput().unwrap_or(0.0) / 1000.0;
            format!("{goodput:.0} kbit/s with {sent} segments sent")
        })
        .collect();
    Ok(format!("without errors: timers from departure {}, from hand-over {}", said[0], said[1]))
}

/// Runs a transfer beside datagrams that take half of the link rate, with queues of 50 packets. Returns the share of the
/// link rate that it sends, or `None` if it is aborted, and a description.
fn beside_datagrams(lab: &Lab<'_>, transport: Transport) -> Result<(Option<f64>, String), ReproduceError> {
    let mut scenario = Setting::at_face_value(transport, 0.0).scenario();
    let mut line = 0.0f64;
    for link in &mut scenario.links {
        if let Some(rate) = link.config.rate {
            line = rate.bits_per_second() as f64;
            link.config.queue = QueueConfig { limit: QueueLimit::Packets(50), ..link.config.queue };
        }
    }
    let half = Rate::from_bits_per_second(500_000).expect("not zero");
    let cross = UdpFlow { rate: half, packet: 1040, pattern: UdpPattern::Cbr, stop: None };
    let first = scenario.flows[0].clone();
    scenario.flows.push(FlowSpec { name: "cross".into(), start: Duration::ZERO, kind: FlowKind::Udp(cross), ..first });
    let runs = lab.runs("beside cross traffic", &scenario, 1)?;
    let flow = &runs[0].flows[0];
    let time = flow.connected_at.zip(flow.acked_at).map(|(from, to)| to.saturating_since(from).as_secs_f64());
    let (sent, again) = (flow.stats.data_segments, flow.stats.retransmits);
    let Some(seconds) = time.filter(|_| flow.aborted.is_none()) else {
        return Ok((None, format!("aborted after {sent} segments")));
    };
    let share = sent as f64 * FRAME_BITS / seconds / line;
    let arrives = DATA_BITS / seconds / 1000.0;
    Ok((Some(share), format!("goodput {arrives:.0} kbit/s, {again} of {sent} segments sent are retransmissions")))
}

fn congestion(lab: &Lab<'_>) -> Result<Finding, ReproduceError> {
    let (share, stp) = beside_datagrams(lab, Transport::STP)?;
    let (other, tcp) = beside_datagrams(lab, Transport::Tcp)?;
    let note = format!(
        "share of the link rate that STP sends beside datagrams that take half of it, queues of 50 packets: {stp}. TCP sends \
         {:.2}: {tcp}",
        other.unwrap_or(f64::NAN)
    );
    Ok(Finding::new(share.unwrap_or(f64::NAN), note))
}

#[cfg(test)]
mod tests {
    use crate::published::STP;

    #[test]
    fn everything_is_answered_for() {
        crate::inventory::check(&STP, super::SEEN);
    }
}
