//! Figures 3 to 5: the packets of a window, and the ARQ as a pipe and as a queue with many servers. The numbers come
//! from a run of one point of figure 6, with the model's values beside them.

use bentpipe_engine::slacp::ChannelStats;
use bentpipe_engine::units::Duration;
use bentpipe_sim::record::Sequence;
use bentpipe_study::model::hybrid::throughput::EndToEnd;
use bentpipe_study::report::{Axis, Mark, Panel, Series};

use super::setting::{Scheme, Setting};
use super::sweeps;
use crate::lab::Lab;
use crate::request::ReproduceError;
use bentpipe_study::drawing::{Drawing, Shape, Station, queues};

/// The setting of the figures: T1 = 100 ms, T2 = 250 ms, p = 0.1.
fn setting() -> Setting {
    Setting::new(Scheme::EndToEnd, sweeps::BUFFER, 100, 250, 0.1)
}

/// Figure 3: one window of packets at the source, at the gateway and, in order, at the destination, and its ACKs.
pub(super) fn window(lab: &Lab<'_>) -> Result<Vec<Panel>, ReproduceError> {
    let scenario = setting().scenario().with_seed(lab.seed());
    let watch = |name| -> Result<_, ReproduceError> {
        let mut watcher = Sequence::new(&scenario, scenario.link(name));
        lab.watched(&scenario, lab.seed(), &mut watcher)?;
        Ok(watcher.flows.swap_remove(0))
    };
    let (gateway, satellite) = (watch("terrestrial/forward")?, watch("satellite/forward")?);
    // Slow start is over after 30 s, so this window is in congestion avoidance.
    const AFTER: f64 = 30.0;
    let begin = satellite.acks.iter().find(|ack| ack.0 >= AFTER).expect("the source is greedy");
    let window = satellite.windows.iter().rfind(|point| point.at <= begin.0).map_or(1.0, |point| point.flight);
    // The window begins with the first packet after those in flight when this ACK arrives.
    let first = begin.1 + window.floor() + 1.0;
    let last = first + window.floor();
    let of_it =
        |points: &[(f64, f64)]| points.iter().copied().filter(|p| (first..last).contains(&p.1)).collect::<Vec<_>>();
    let sent: Vec<_> = satellite.sent.iter().map(|sent| sent.0).collect();
    let series = [
        ("sent by the source", of_it(&sent)),
        ("at the gateway", of_it(&gateway.crossed)),
        ("at the destination, in order", of_it(&satellite.crossed)),
        ("ACK at the source", of_it(&satellite.acks)),
    ];
    let series = series.map(|(name, points)| Series { name: name.into(), mark: Mark::Cross, points });
    let ends = series.iter().flat_map(|series| &series.points).map(|point| point.0);
    let (start, end) = ends.fold((f64::INFINITY, 0.0f64), |(low, high), at| (low.min(at), high.max(at)));
    Ok(vec![Panel {
        title: format!("a window of {} packets, {}", window.floor(), setting()),
        // Room for the legend beside the points.
        x: Axis::time().between(start - 0.4 * (end - start), end),
        y: Axis::new("number", "packets"),
        series: series.into(),
        spans: None,
    }])
}

/// Statistics of the ARQ in a run.
struct Run {
    data: ChannelStats,
    far: ChannelStats,
    seconds: f64,
}

fn run(lab: &Lab<'_>) -> Result<Run, ReproduceError> {
    let scenario = setting().scenario();
    let channel = scenario.layers[0].channels.iter().position(|channel| channel.name == "data").expect("a channel");
    let result = lab.single("the ARQ of figures 4 and 5", &scenario)?;
    let [near, far] = &result.layers[0];
    let (data, far) = (near.channels[channel], far.channels[channel]);
    Ok(Run { data, far, seconds: result.end.as_secs_f64() })
}

impl Run {
    /// Packets per second delivered by the far end.
    fn rate(&self) -> f64 {
        self.far.delivered as f64 / self.seconds
    }

    /// Transmissions per packet.
    fn transmissions(&self) -> f64 {
        (self.data.sent + self.data.resent) as f64 / self.data.sent as f64
    }

    /// Mean number of waiting packets, by Little's law; `total` is the sum of their waits.
    fn mean_number(&self, total: Duration) -> f64 {
        total.as_secs_f64() / self.seconds
    }

    fn mean_wait_ms(&self) -> f64 {
        1e3 * self.data.waited.as_secs_f64() / self.data.sent as f64
    }
}

fn fact(quantity: &str, value: String) -> (String, String) {
    (quantity.to_owned(), value)
}

fn station(title: &str, shape: Shape, facts: Vec<(String, String)>) -> Station {
    Station { title: title.into(), shape, facts, back: None }
}

/// Figure 4: buffer, pipe and resequencing.
pub(super) fn pipe(lab: &Lab<'_>, title: &str) -> Result<Drawing, ReproduceError> {
    let (setting, run) = (setting(), run(lab)?);
    let path = setting.path();
    let in_pipe = run.rate() * run.transmissions() * path.t2();
    let stations = [
        Station {
            back: Some(format!("not acknowledged, p = {}: resent before new packets", path.p())),
            ..station(
                "gateway: waiting",
                Shape::Queue,
                vec![
                    fact("buffer B, with copies", format!("{} packets", path.buffer())),
                    fact("waiting, mean of the run", format!("{:.1} packets", run.mean_number(run.data.waited))),
                    fact("dropped, buffer full", format!("{} of {}", run.data.dropped_full, run.data.packets)),
                ],
            )
        },
        station(
            "transmission pipe",
            Shape::Servers,
            vec![
                fact("capacity μT2S", format!("{} packets", path.bdp() * path.segments())),
                fact("in flight, mean of the run", format!("{in_pipe:.1} packets")),
                fact(
                    "transmissions per packet",
                    format!("{:.3}; 1/(1-p) = {:.3}", run.transmissions(), 1.0 / (1.0 - path.p())),
                ),
            ],
        ),
        station(
            "destination: resequencing",
            Shape::Queue,
            vec![
                fact("held, mean of the run", format!("{:.1} packets", run.mean_number(run.far.held))),
                fact("longest hold", format!("{:.0} ms", run.far.longest_hold.as_millis_f64())),
                fact("delivered", format!("{:.1} packets/s of μ = {}", run.rate(), path.mu())),
            ],
        ),
    ];
    Ok(queues(&format!("{title} ({setting})"), ["from TCP", "to TCP"], &stations))
}

/// Figure 5: the same system as a queue with a server for each packet in the pipe.
pub(super) fn servers(lab: &Lab<'_>, title: &str) -> Result<Drawing, ReproduceError> {
    let (setting, run) = (setting(), run(lab)?);
    let path = setting.path();
    let model = EndToEnd::new(&path).expect("a point of figure 6");
    // The mean of a window that grows linearly from half of the maximum to the maximum.
    let mean = 0.75 * path.max_window();
    let release = |share: f64| format!("{:.1} packets/s", path.mu() * path.segments() * share);
    let stations = [
        station(
            "q1: the pipe is full",
            Shape::Queue,
            vec![
                fact("service rate μS(1-p)", release(1.0 - path.p())),
                fact("model, 3/4 of the max window", format!("{:.1} packets", path.waiting_for_pipe(mean))),
                fact("model, max window", format!("{:.1} packets", path.waiting_for_pipe(path.max_window()))),
            ],
        ),
        station(
            "q2: behind its own burst",
            Shape::Queue,
            vec![
                fact("service rate μS", release(1.0)),
                fact("wait in q1 and q2, model, 3/4 window", format!("at most {:.0} ms", 1e3 * path.queueing_s(mean))),
                fact("wait for the first transmission, run", format!("{:.0} ms", run.mean_wait_ms())),
            ],
        ),
        station(
            "q3: a server for each packet",
            Shape::Servers,
            vec![
                fact("servers μT2S", format!("{}", path.bdp() * path.segments())),
                fact(
                    "service time T2/(1-p)",
                    format!(
                        "{:.0} ms; run {:.0} ms",
                        1e3 * path.t2() / (1.0 - path.p()),
                        1e3 * path.t2() * run.transmissions()
                    ),
                ),
                fact("throughput, share of μ", format!("model {:.3}, run {:.3}", model.per_mu, run.rate() / path.mu())),
            ],
        ),
    ];
    Ok(queues(&format!("{title} ({setting})"), ["from TCP", "acknowledged"], &stations))
}
