//! The plots of a run.

use bentpipe_sim::record::{Guides, Outlook, Plot, Sequence};
use bentpipe_study::report::Figure;
use bentpipe_study::scenario::{FlowKind, Scenario};
use clap::ValueEnum;

/// Max panels of a figure: more are too small to read.
const PANELS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Sequence numbers sent, acknowledged, lost and retransmitted
    Sequence,
    /// Congestion window and data in flight, beside the BDP
    Cwnd,
    /// The queue before the bottleneck, and its losses
    Queue,
    /// Round-trip samples
    Rtt,
    /// Goodput
    Throughput,
}

impl Kind {
    const fn plot(self) -> Plot {
        match self {
            Kind::Sequence => Plot::Sequence,
            Kind::Cwnd => Plot::Window,
            Kind::Queue => Plot::Queue,
            Kind::Rtt => Plot::RoundTrip,
            Kind::Throughput => Plot::Throughput,
        }
    }
}

/// One panel for each of the first connections. The title says how many there are if some are left out. The queue is that of one
/// link, so it has one panel.
pub(crate) fn figure(scenario: &Scenario, sequence: &Sequence, kind: Kind) -> Figure {
    let outlook = Outlook::new(scenario).ok();
    let connections: Vec<_> = scenario
        .flows
        .iter()
        .enumerate()
        .filter_map(|(n, flow)| match &flow.kind {
            FlowKind::Tcp(tcp) => Some((n, format!("{} ({})", flow.name, tcp.variant_name))),
            FlowKind::Stp(_) => Some((n, format!("{} (stp)", flow.name))),
            FlowKind::Quic(quic) => Some((n, format!("{} (quic-{})", flow.name, quic.congestion_control.word()))),
            FlowKind::Udp(_) => None,
        })
        .collect();
    let shown = if kind == Kind::Queue { 1 } else { PANELS }.min(connections.len());
    let panels = connections[..shown].iter().map(|(n, title)| {
        let look = outlook.as_ref().map(|outlook| &outlook.flows[*n]);
        let guides = look.map_or(Guides::default(), |look| Guides {
            bdp: look.bdp_packets,
            queue_limit: look.queue.as_ref().map(|queue| queue.packets),
            goodput_limit: look.limit_goodput_bit_s,
        });
        let link = look.and_then(|look| look.bottleneck.as_deref()).unwrap_or("the first flow's path");
        let title = if kind == Kind::Queue { format!("queue of {link}") } else { title.clone() };
        sequence.plot(kind.plot(), *n, &title, guides)
    });
    let panels = panels.collect();
    let title = match connections.len() {
        all if all > shown && kind != Kind::Queue => format!("{} (the first {shown} of {all} flows)", scenario.name),
        _ => scenario.name.clone(),
    };
    Figure { title, panels }
}
