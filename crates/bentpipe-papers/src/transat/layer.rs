//! S-LACP itself over the satellite link. The paper only imitates it.

use std::fmt;

use bentpipe_engine::slacp::{Arq, Fec, Release, Repairs};
use bentpipe_engine::units::Duration;
use bentpipe_study::scenario::{LayerSpec, Scenario};

/// The satellite link, Satellite Node 1 to Satellite Node 2.
pub(super) const BOTTLENECK: &str = "sat/forward";

/// Its return direction.
pub(super) const BOTTLENECK_BACK: &str = "sat/backward";

/// The file with the layer. Settings change its release and its bulk channel.
const FILE: &str = include_str!("../../scenarios/transat-layer.toml");

/// The last channel, for all packets that are not urgent.
const BULK: &str = "bulk";

/// The varied settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layer {
    /// Max retransmissions of a frame (T-M08).
    pub(super) retransmissions: u32,
    /// True to send repair frames with the data.
    pub(super) fec: bool,
    /// True to release packets that waited for a repair at 1.25 times the line's rate, false for at once.
    pub(super) paced: bool,
}

impl Layer {
    /// As in the file: one retransmission, paced, no repair frames.
    pub(super) const PLAIN: Layer = Layer { retransmissions: 1, fec: false, paced: true };

    /// Blocks of 60 packets: 0.24 s of line time. A burst of 0.1 s hits 25 of them. A block has at most 30 repair frames, so
    /// they cannot restore more than half of it.
    const FEC: Fec = Fec {
        block: 60,
        first_block: None,
        interval: Duration::from_millis(100),
        max_overhead: 0.5,
        repairs: Repairs::Prompt,
        worth: Fec::WORTH,
    };

    /// Adds the layer to the satellite link of a scenario.
    pub(super) fn cover(&self, scenario: &mut Scenario) {
        let file = Scenario::parse(FILE, "scenarios/transat-layer.toml", &[]).expect("a test parses it");
        let link = |name: &str| scenario.link(name).expect("each setting has this link");
        let over = [link(BOTTLENECK), link(BOTTLENECK_BACK)];
        let mut layer = LayerSpec { over, ..file.layers.into_iter().next().expect("the file has one") };
        let bulk = layer.channels.last_mut().filter(|channel| channel.name == BULK).expect("the file's last channel");
        bulk.config.arq = Some(Arq { transmissions: Some(1 + self.retransmissions) });
        bulk.config.fec = self.fec.then_some(Self::FEC);
        if !self.paced {
            layer.release = Some(Release::AtOnce);
        }
        scenario.layers.push(layer);
    }

    /// Name in the ids.
    pub(super) fn key(&self) -> String {
        let fec = if self.fec { "-fec" } else { "" };
        let paced = if self.paced { "-paced" } else { "" };
        format!("R{}{fec}{paced}", self.retransmissions)
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fec = if self.fec { "with FEC" } else { "no FEC" };
        let paced = if self.paced { "release paced" } else { "release at once" };
        let s = if self.retransmissions == 1 { "" } else { "s" };
        write!(f, "S-LACP, {} retransmission{s}, {fec}, {paced}", self.retransmissions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transat::setting::Setting;
    use bentpipe_engine::units::Rate;

    #[test]
    fn what_is_varied_arrives() {
        let layer = Layer { retransmissions: 3, fec: true, paced: false };
        for setting in [Setting::one_flow(), Setting::four_flows().with_cbr(800)] {
            let scenario = setting.with_lost_bursts_under(layer).scenario();
            let spec = &scenario.layers[0];
            assert_eq!(spec.over.map(|link| scenario[link].name.as_str()), [BOTTLENECK, BOTTLENECK_BACK]);
            let [end, _] = [0, 1].map(|side| spec.end(&scenario.links, side));
            let bulk = end.channels.last().expect("there is one");
            assert_eq!(bulk.arq, Some(Arq { transmissions: Some(4) }));
            assert!(bulk.fec.is_some() && end.release == Release::AtOnce);
            assert_eq!(bulk.limit, scenario[spec.over[0]].config.queue.limit, "the paper's 50 packets");
        }
        let plain = Setting::one_flow().with_lost_bursts_under(Layer::PLAIN).scenario();
        let paced = Release::Paced(Rate::from_bits_per_second(2_500_000).expect("not zero"));
        assert_eq!(plain.layers[0].end(&plain.links, 0).release, paced, "as the file has it");
    }
}
