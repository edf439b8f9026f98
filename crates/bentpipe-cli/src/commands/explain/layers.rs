//! Link layers and gateways in words.

use std::fmt::Write;

use bentpipe_engine::link::QueueLimit;
use bentpipe_engine::slacp::{Arq, ChannelConfig, Fec, Order, Queueing};
use bentpipe_study::scenario::{BufferSharing, LayerSpec, Scenario, Spoof};

use super::span;
use crate::output::{self, counted};

/// A layer, its links, and a line for each channel.
pub(super) fn layer_text(scenario: &Scenario, layer: &LayerSpec) -> String {
    let [forward, backward] = layer.over.map(|link| scenario[link].name.as_str());
    let mut out =
        format!("Layer {}: S-LACP over {forward} and {backward}, which have no queue of their own\n", layer.name);
    let settings = layer.end(&scenario.links, 0).channels;
    for (channel, config) in layer.channels.iter().zip(&settings) {
        let _ = writeln!(out, "  {:<11} {}", channel.name, channel_text(config));
    }
    out
}

pub(super) fn channel_text(config: &ChannelConfig) -> String {
    let mut parts = vec![match config.arq {
        None => "no retransmission".to_owned(),
        Some(Arq { transmissions: None }) => "retransmits until delivered".to_owned(),
        Some(Arq { transmissions: Some(n) }) => format!("at most {} of a packet", counted(n.into(), "transmission")),
    }];
    if let Some(fec) = &config.fec {
        let Fec { block, max_overhead, .. } = *fec;
        parts.push(format!(
            "FEC: blocks of up to {}, at most {:.0} % repair",
            counted(block.into(), "packet"),
            max_overhead * 100.0
        ));
    }
    if let Some(copies) = &config.copies {
        parts.push(format!("up to {} copies into an idle line", copies.max));
    }
    parts.push(match config.order {
        Order::None => "no order".to_owned(),
        Order::Flow => "order per flow".to_owned(),
        Order::Channel => "one order".to_owned(),
    });
    parts.push(format!("priority {}", config.priority));
    parts.push(format!(
        "{} {}",
        match config.queueing {
            Queueing::Fifo => "FIFO",
            Queueing::Fair => "a queue per flow",
            Queueing::Hosts => "FQ-CoDel by host",
        },
        match config.limit {
            QueueLimit::Packets(packets) => format!("up to {}", counted(packets.into(), "packet")),
            QueueLimit::Bytes(bytes) => format!("up to {}", output::bytes(bytes.get())),
            QueueLimit::Unlimited => "without limit".to_owned(),
        }
    ));
    if let Some(codel) = &config.codel {
        parts.push(format!("CoDel with a target of {}", span(codel.target)));
    }
    if config.filters_acks {
        parts.push("filters ACKs".to_owned());
    }
    parts.join(", ")
}

/// A gateway that acknowledges for the destination, in one line.
pub(super) fn spoof_text(scenario: &Scenario, spoof: &Spoof) -> String {
    let sharing = match spoof.sharing {
        BufferSharing::Common => "shared by its flows",
        BufferSharing::Equal => "divided equally among its flows",
    };
    let (at, buffer) = (&scenario[spoof.at], counted(spoof.buffer.into(), "segment"));
    format!("ends at {at}, which acknowledges for the destination; a buffer of {buffer}, {sharing}")
}
