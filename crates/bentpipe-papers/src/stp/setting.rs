//! The settings of the study: the scenario of figure 1 with one of the transports and one of the channels.

use std::fmt;

use bentpipe_engine::link::LossConfig;
use bentpipe_engine::link::modulation::with_implementation_loss;
use bentpipe_engine::stp::Arming;
use bentpipe_engine::units::{Decibels, Probability};
use bentpipe_study::scenario::{FlowKind, Scenario};

/// Data of a transfer, bits: 1 MB (S-Q02).
pub(super) const DATA_BITS: f64 = 8e6;

/// A full segment on the line, of either transport, bits: 1000 B, headers of 20, 20 and 8 B (figure 2).
pub(super) const FRAME_BITS: f64 = 8.0 * 1048.0;

/// The transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Stp(Arming),
    Tcp,
}

impl Transport {
    pub(super) const STP: Transport = Transport::Stp(Arming::Departure);
    /// The rows of the paper's tables.
    pub(super) const ROWS: [(&'static str, Transport); 2] = [("STP", Transport::STP), ("TCP", Transport::Tcp)];
}

/// The bit error channel (S-Q04).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sky {
    /// Channel A: this bit error rate on each of the two radio links.
    FaceValue(f64),
    /// Channel B: this nominal bit error rate for uplink and downlink together, and this loss of Eb/N0 in decibels.
    Budget { nominal: f64, loss_db: f64 },
}

/// One experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Setting {
    pub(super) transport: Transport,
    pub(super) sky: Sky,
}

/// The shipped scenario, with one STP flow.
const WORLD: &str = include_str!("../../scenarios/stp.toml");

/// TCP as in section IV: Reno with fast retransmit, fast recovery and SACK, RTO initially 1.0 s, 0.5 to 64 s, and six
/// retransmissions like STP; an initial window of one segment and an ACK for each segment (S-Q06); a window field of 16
/// bits without scaling (S-Q07).
const TCP: &str = r#"
[tcp]
profile = "rfc"
variant = "sack"
mss = "1000 B"
initial_window = 1
limited_transmit = false
ack.delay = "0 s"
ack.every = 1
rto.initial = "1 s"
rto.min = "500 ms"
rto.max = "64 s"
rto.max_retries = 6
window_scaling = false

"#;

impl Setting {
    pub(super) fn at_face_value(transport: Transport, rate: f64) -> Self {
        Setting { transport, sky: Sky::FaceValue(rate) }
    }

    pub(super) fn with_loss(transport: Transport, nominal: f64, loss_db: f64) -> Self {
        Setting { transport, sky: Sky::Budget { nominal, loss_db } }
    }

    /// The bit errors of the uplink and of the downlink.
    pub(super) fn bit_errors(&self) -> [Probability; 2] {
        let probability = |rate| Probability::new(rate).expect("a bit error rate of the study");
        match self.sky {
            Sky::FaceValue(rate) => [probability(rate); 2],
            Sky::Budget { nominal, loss_db } => {
                let loss = Decibels::new(loss_db).expect("a finite number");
                [with_implementation_loss(probability(nominal), loss), Probability::ZERO]
            }
        }
    }

    pub(super) fn scenario(&self) -> Scenario {
        let mut scenario = world(self.transport);
        let [up, down] = self.bit_errors();
        for link in &mut scenario.links {
            let bit = match link.name.split('/').next() {
                Some("up") => up,
                Some("down") => down,
                _ => Probability::ZERO,
            };
            link.config.good = LossConfig { bit, ..LossConfig::NONE };
        }
        if let (Transport::Stp(arming), FlowKind::Stp(stp)) = (self.transport, &mut scenario.flows[0].kind) {
            stp.config.arming = arming;
        }
        scenario
    }
}

fn world(transport: Transport) -> Scenario {
    let text = match transport {
        Transport::Stp(_) => WORLD.to_owned(),
        Transport::Tcp => {
            // STP's settings are the last table of the file; `[tcp]` comes before the links.
            let (before, _) = WORLD.split_once("[flows.stp]").expect("the shipped scenario has STP's settings");
            let tcp = before.replacen("type = \"stp\"", "type = \"tcp\"", 1);
            tcp.replacen("[[links]]", &format!("{TCP}[[links]]"), 1)
        }
    };
    Scenario::parse(&text, "stp.toml", &[]).unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.transport {
            Transport::Stp(Arming::Departure) => "STP",
            Transport::Stp(Arming::HandOver) => "STP, timers from hand-over",
            Transport::Tcp => "TCP",
        })?;
        match self.sky {
            Sky::FaceValue(rate) => write!(f, " at BER {rate:e}"),
            Sky::Budget { nominal, loss_db } => write!(f, " at BER {nominal:e} less {loss_db:.2} dB"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_transports_meet_the_same_links() {
        let [stp, tcp] = Transport::ROWS.map(|(_, transport)| Setting::at_face_value(transport, 1e-6).scenario());
        assert_eq!(stp.links, tcp.links);
        assert!(matches!(stp.flows[0].kind, FlowKind::Stp(_)) && matches!(tcp.flows[0].kind, FlowKind::Tcp(_)));
        let errors: Vec<_> = stp.links.iter().map(|link| link.config.good.bit.get()).collect();
        assert_eq!(errors, [0.0, 0.0, 1e-6, 1e-6, 1e-6, 1e-6]);
        // Channel B has errors on the uplink only, in both directions: its rate is that of the whole path.
        let budget = Setting::with_loss(Transport::Tcp, 1e-6, 0.0).scenario();
        let struck = budget.links.iter().filter(|link| link.config.good.bit.get() > 0.0).count();
        assert_eq!(struck, 2);
    }
}
