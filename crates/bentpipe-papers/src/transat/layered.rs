//! Measurements that the paper could not make: its tables with S-LACP itself instead of the imitation, and a voice flow
//! beside the transfer (T-E17, T-E20).

use bentpipe_engine::link::LinkCounters;
use bentpipe_engine::stream::Stream;
use bentpipe_sim::RunResult;
use bentpipe_sim::record::{ChannelSummary, Summary};
use bentpipe_study::stats::{Sample, Subsets};

use super::counted::LEVEL;
use super::lab::Lab;
use super::layer::BOTTLENECK;
use super::layer::Layer;
use super::replicated::{self, DRAWS, Pick, picked};
use super::setting::{Setting, Voice};
use super::variant::Variant;
use crate::published::TRANSAT_TABLES;
use crate::request::ReproduceError;
use crate::{Row, Verdict};

/// The tables of the strong imitation (1 % lost in a burst, 550 ms), each with the tables of the weak one (25 %) and of the
/// link without S-LACP.
const TABLES: [(u8, u8, u8); 4] = [(5, 4, 3), (12, 9, 6), (13, 10, 7), (14, 11, 8)];

pub(super) fn rows(lab: &Lab<'_>) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = Vec::new();
    for (strong, weak, bare) in TABLES {
        for &variant in Variant::WITHOUT_RED {
            rows.push(median_row(lab, variant, (strong, weak, bare))?);
        }
    }
    for retransmissions in 0..=3 {
        for (fec, paced) in [(false, false), (false, true), (true, false), (true, true)] {
            rows.push(sweep_row(lab, Layer { retransmissions, fec, paced })?);
        }
    }
    rows.extend(voice_rows(lab)?);
    Ok(rows)
}

/// The row for bursts with 100 % loss under S-LACP itself: its median compared with that of the imitation.
fn median_row(lab: &Lab<'_>, variant: Variant, (strong, weak, bare): (u8, u8, u8)) -> Result<Row, ReproduceError> {
    let (plan, pick) = replicated::plan(strong);
    let setting = plan.with_variant(variant).with_lost_bursts_under(Layer::PLAIN);
    let runs = lab.replications(&setting)?;
    let units: Vec<Vec<f64>> = runs.iter().map(|run| picked(run, pick)).collect();
    let ours = middle(units.concat());
    let id = format!("T-E17/T{strong:02}/median/{}", variant.key());
    // As for the tables: the 90 % range of the median over samples of 20 of our runs.
    let [range] = Subsets { population: units.len(), size: TRANSAT_TABLES.replications, draws: DRAWS }
        .ranges(LEVEL, &mut Stream::named(lab.seed(), &id), |drawn| {
            [middle(drawn.iter().flat_map(|&i| units[i].iter().copied()).collect())]
        })
        .expect("replications were checked to be there");
    let published = TRANSAT_TABLES.cell(strong, "median", variant.key()).expect("a full table");
    let imitated = |table| replicated::median(lab, table, variant);
    let (as_weak, as_strong, without) = (imitated(weak)?, imitated(strong)?, imitated(bare)?);
    // The imitation loses 1 % of the packets in a burst, S-LACP nearly none, so S-LACP should not be slower.
    let verdict = if range.low <= as_strong {
        Verdict::Match
    } else if ours < as_weak.max(without) {
        Verdict::Shape
    } else {
        Verdict::Differs
    };
    let drops =
        |runs: &[RunResult], of: fn(&RunResult) -> u64| runs.iter().map(of).sum::<u64>() as f64 / runs.len() as f64;
    let imitation = lab.replications(&replicated::plan(strong).0.with_variant(variant))?;
    let clean = lab.single(&replicated::plan(strong).0.with_variant(variant).without_bursts())?;
    let clean = middle(picked(&clean, pick));
    let why = format!(
        "without errors {clean:.2} s here; imitated with 100 / 25 / 1 % lost: {without:.2} / {as_weak:.2} / {as_strong:.2} s; S-LACP itself should not be \
         slower than the last, within the range for samples of {}; the queue drops {:.0} packets per run, {:.0} under the \
         imitation, whose losses end slow start early; {}",
        TRANSAT_TABLES.replications,
        drops(&runs, queue_drops),
        drops(&imitation, |run| run.links.iter().map(|link| link.dropped_full).sum()),
        Residual::of(lab, &setting, &runs),
    );
    let flows = match pick {
        Pick::All => "",
        Pick::Fastest => ", fastest flow",
        Pick::Slowest => ", slowest flow",
    };
    let item = format!("table {strong} with S-LACP itself; median{flows}, {}", variant.name());
    Ok(Row::new(id, item, Some(published), Some(ours), "s")
        .within(Some(range.low), Some(range.high))
        .judged(verdict, why))
}

/// Number of packets dropped because the layer's queue was full.
fn queue_drops(run: &RunResult) -> u64 {
    run.layers.iter().flatten().flat_map(|end| &end.channels).map(|channel| channel.dropped_full).sum()
}

fn middle(times: Vec<f64>) -> f64 {
    Sample::new(times).expect("transfers last a finite time").median()
}

/// The losses and delays that S-LACP leaves to TCP.
struct Residual {
    /// Share of abandoned packets.
    loss: f64,
    /// Mean and max time that a packet was held for order, seconds.
    hold: (f64, f64),
    /// Repair frames per packet.
    overhead: f64,
}

impl Residual {
    fn of(lab: &Lab<'_>, setting: &Setting, runs: &[RunResult]) -> Residual {
        let scenario = setting.scenario().with_seed(lab.seed());
        let bulk = |run: &RunResult| -> ChannelSummary {
            let channels = Summary::new(&scenario, run).channels;
            channels.into_iter().find(|c| c.link == BOTTLENECK && c.channel == "bulk").expect("the data's channel")
        };
        let all: Vec<_> = runs.iter().map(bulk).collect();
        let sum = |of: fn(&ChannelSummary) -> f64| all.iter().map(of).sum::<f64>();
        let delivered = sum(|c| c.delivered as f64);
        let skipped = sum(|c| c.skipped as f64);
        Residual {
            loss: skipped / (delivered + skipped).max(1.0),
            hold: (
                sum(|c| c.mean_hold_s * c.delivered as f64) / delivered.max(1.0),
                all.iter().map(|c| c.longest_hold_s).fold(0.0, f64::max),
            ),
            overhead: sum(|c| c.repair_frames as f64) / delivered.max(1.0),
        }
    }
}

impl std::fmt::Display for Residual {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (mean, longest) = (self.hold.0 * 1e3, self.hold.1 * 1e3);
        write!(
            f,
            "S-LACP leaves {:.3} % lost, holds packets for {mean:.0} ms on average, {longest:.0} ms at most",
            self.loss * 100.0
        )?;
        if self.overhead > 0.0 {
            write!(f, ", sends {:.1} % repair frames", self.overhead * 100.0)?;
        }
        Ok(())
    }
}

/// The row for one setting of the layer with Enhanced, the variant with the largest gain in the paper.
fn sweep_row(lab: &Lab<'_>, layer: Layer) -> Result<Row, ReproduceError> {
    let setting = Setting::one_flow().with_variant(Variant::Enh).with_lost_bursts_under(layer);
    let runs = lab.replications(&setting)?;
    let ours = middle(runs.iter().flat_map(|run| picked(run, Pick::All)).collect());
    let residual = Residual::of(lab, &setting, &runs);
    // The paper's imitation of a strong protocol loses 1 % of the packets in a burst. Without retransmission, `R0`, all
    // packets hit by bursts are lost, and repair frames are, too. A retransmission is sent more than one round trip
    // (0.51 s) after the loss: after the end of its burst, and usually before the next one, which starts at the earliest
    // 1 s later. If nothing follows a lost frame, a timer detects the loss, and the retransmission can hit the next burst.
    let burst_loss = match layer.retransmissions {
        0 => lost_frames(&setting, &runs),
        _ => {
            let bare = Setting::one_flow().with_variant(Variant::Enh);
            let bare = bare.with_lost_bursts_under(Layer { retransmissions: 0, fec: false, ..layer });
            Residual::of(lab, &bare, &lab.replications(&bare)?).loss
        }
    };
    let complete = residual.loss <= 0.01 * burst_loss;
    let verdict = if complete == (layer.retransmissions > 0) { Verdict::Match } else { Verdict::Differs };
    let expected = match layer.retransmissions {
        0 => "more than 1 % of the packets lost in bursts should stay lost",
        _ => "at most 1 % of the packets lost in bursts should stay lost",
    };
    Ok(Row::new(
        format!("T-E17/{}", layer.key()),
        format!("one transfer, Enhanced, {layer}; median of the time"),
        None,
        Some(ours),
        "s",
    )
    .judged(verdict, format!("{expected}; {residual}")))
}

/// The share of the frames that the channel of the satellite link loses.
fn lost_frames(setting: &Setting, runs: &[RunResult]) -> f64 {
    let scenario = setting.scenario();
    let link = scenario.link(BOTTLENECK).expect("the satellite link").index();
    let sum = |of: fn(&LinkCounters) -> u64| runs.iter().map(|run| of(&run.links[link])).sum::<u64>() as f64;
    sum(|link| link.dropped_channel) / sum(|link| link.offered).max(1.0)
}

/// The rows for voice of 64 kbit/s (G.711, packets of 20 ms and 200 B) beside the transfer.
fn voice_rows(lab: &Lab<'_>) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = Vec::new();
    for (key, voice, what) in [
        ("own-channel", Voice::Urgent, "in a channel without ARQ"),
        ("with-data", Voice::WithData, "in the channel of the data"),
    ] {
        let setting = Setting::one_flow().with_variant(Variant::Enh).with_lost_bursts_under(Layer::PLAIN);
        let setting = setting.with_voice(voice);
        let own = voice == Voice::Urgent;
        let runs = lab.replications(&setting)?;
        let mut extra = Vec::new();
        let (mut arrived, mut sent) = (0, 0);
        for run in runs.iter() {
            let voice = run.flows.last().expect("the voice comes last");
            let delays = voice.delays.as_ref().expect("datagrams have delays");
            let [min, p99] = [0.0, 0.99].map(|q| delays.quantile(q).expect("some arrive").as_secs_f64());
            extra.push((p99 - min) * 1e3);
            arrived += delays.count();
            sent += voice.stats.data_segments;
        }
        let ours = middle(extra);
        // One extra round trip of the satellite link: 2 x 255 ms.
        let high = 510.0;
        let lost = 100.0 * (1.0 - arrived as f64 / sent as f64);
        let verdict = if (ours <= high) == own { Verdict::Match } else { Verdict::Differs };
        let why = if own {
            format!("at most one round trip of the satellite link; {lost:.1} % lost, in bursts")
        } else {
            format!(
                "for comparison: waits in the data's queue and for its repairs; {lost:.1} % lost, because the queue is full"
            )
        };
        rows.push(
            Row::new(
                format!("T-E20/{key}"),
                format!("voice beside a transfer, {what}: 99th percentile of the delay above the minimum"),
                None,
                Some(ours),
                "ms",
            )
            .within(None, own.then_some(high))
            .judged(verdict, why),
        );
    }
    Ok(rows)
}
