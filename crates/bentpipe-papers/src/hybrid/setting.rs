//! The paper's scenarios: source, gateway, satellite link with ARQ, destination (figures 1 and 2), also as parameters
//! of the model. Each is a shipped scenario, `scenarios/hybrid-*.toml`, with the values that a figure varies.

use std::fmt;

use bentpipe_engine::units::{Bytes, Duration, Probability, Rate};
use bentpipe_study::model::hybrid::Path;
use bentpipe_study::model::hybrid::fading::Fading;
use bentpipe_study::model::hybrid::window::Delay;
use bentpipe_study::scenario::Scenario;

/// TCP packets per second on the satellite link: 1 Mbit/s and 500 B (§III.C).
pub(super) const MU: f64 = 250.0;
/// Length of a packet, bytes (§III.C).
pub(super) const PACKET: u64 = 500;
/// Its payload.
pub(super) const MSS: u64 = PACKET - 40;

const END_TO_END: &str = include_str!("../../scenarios/hybrid-end-to-end.toml");
const SPLIT: &str = include_str!("../../scenarios/hybrid-split.toml");

/// Min simulated time, seconds: slow start at the beginning is one or two percent of it.
const MIN_SECONDS: u32 = 300;
/// Number of simulated window cycles, from half to full.
const RISES: f64 = 12.0;
/// Number of fades, and min simulated time in seconds, for a fading channel. With 300 s, 30 fades at the slowest rate, the
/// error exceeded 20 %.
const FADES: f64 = 1000.0;
const FADING_SECONDS: u32 = 600;

/// How TCP crosses the satellite link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// One connection over the link layer's ARQ.
    EndToEnd,
    /// TCP ends at the gateway, which forwards the data over the ARQ.
    Split,
}

impl Scheme {
    pub(super) fn name(self) -> &'static str {
        match self {
            Scheme::EndToEnd => "end to end",
            Scheme::Split => "split",
        }
    }
}

/// The parameters of a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Setting {
    pub(super) scheme: Scheme,
    /// B, packets.
    pub(super) buffer: u32,
    /// T1 and T2, microseconds.
    pub(super) t1_us: u64,
    pub(super) t2_us: u64,
    /// p, or X with fading.
    pub(super) loss: f64,
    /// Fading rate f, per second; `None`: losses are independent.
    pub(super) fading: Option<f64>,
    /// J; `None`: fully reliable.
    pub(super) transmissions: Option<u32>,
    /// N.
    pub(super) connections: u32,
    /// S.
    pub(super) segments: u32,
    /// Simulated time, seconds.
    pub(super) seconds: u32,
    /// Other changes of an experiment, as for `--set`.
    pub(super) more: &'static [(&'static str, &'static str)],
}

impl Setting {
    /// The paper's base case: one connection, independent losses, fully reliable.
    pub(super) fn new(scheme: Scheme, buffer: u32, t1_ms: u64, t2_ms: u64, loss: f64) -> Self {
        let (t1_us, t2_us) = (t1_ms * 1000, t2_ms * 1000);
        Setting {
            scheme,
            buffer,
            t1_us,
            t2_us,
            loss,
            fading: None,
            transmissions: None,
            connections: 1,
            segments: 1,
            seconds: MIN_SECONDS,
            more: &[],
        }
    }

    /// Simulates at least [`RISES`] window cycles of one connection, because the first cycle is different.
    pub(super) fn for_many_rises(self) -> Self {
        let path = self.path();
        let rise = path.max_window() / 2.0 * path.transfer_s(0.75 * path.max_window(), Delay::Logarithm);
        Setting { seconds: MIN_SECONDS.max((RISES * rise) as u32), ..self }
    }

    /// Simulates a thousand fades, but at least 10 and at most 50 minutes.
    pub(super) fn for_many_fades(self) -> Self {
        let seconds = self.fading.map_or(0.0, |rate| FADES / rate) as u32;
        Setting { seconds: seconds.clamp(FADING_SECONDS, 5 * FADING_SECONDS), ..self }
    }

    /// Sets the terrestrial round trip for this α.
    pub(super) fn with_alpha(self, alpha: f64) -> Self {
        Setting { t1_us: (alpha * self.t2_us as f64 / (1.0 - self.loss)).round() as u64, ..self }
    }

    /// The same parameters for the model.
    pub(super) fn path(&self) -> Path {
        let round_trips = (Duration::from_micros(self.t1_us), Duration::from_micros(self.t2_us));
        let rate = Rate::from_bits_per_second(1_000_000).expect("not zero");
        let loss = Probability::new(self.loss).expect("a share");
        Path::new(f64::from(self.buffer), round_trips, rate, Bytes::new(PACKET), loss, self.segments)
            .expect("a path of the paper")
    }

    /// The settings of the channel: independent losses of packets, or fades.
    fn channel(&self) -> Vec<(&'static str, String)> {
        const LOSS: &str = "links.satellite.forward.loss";
        let share = Probability::new(self.loss).expect("a share");
        match self.fading.and_then(|rate| Fading::with_rate(share, rate)) {
            // §V.C: no packet is lost in the good state, every packet in the bad one.
            Some(fading) => {
                let bursts = format!(
                    "{{ gap = {{ exponential = \"{} ns\" }}, length = {{ exponential = \"{} ns\" }}, loss = \"100 %\" }}",
                    fading.mean_good().as_nanos(),
                    fading.mean_bad.as_nanos()
                );
                vec![(LOSS, "0".to_owned()), ("links.satellite.forward.bursts", bursts)]
            }
            None => vec![(LOSS, self.loss.to_string())],
        }
    }

    /// The shipped scenario with this setting's values.
    ///
    /// The gateway's buffer is the layer's queue end to end, and the gateway's own buffer with splitting. In both,
    /// unacknowledged data takes room (H-M05).
    pub(super) fn scenario(&self) -> Scenario {
        let (text, file, buffer) = match self.scheme {
            Scheme::EndToEnd => (END_TO_END, "hybrid-end-to-end.toml", "layers.arq.channels.data.queue"),
            Scheme::Split => (SPLIT, "hybrid-split.toml", "flows.data.spoof.buffer"),
        };
        let transmissions = self.transmissions.map_or("unlimited".to_owned(), |max| max.to_string());
        let mut sets = vec![
            ("time_limit", format!("{} s", self.seconds)),
            ("links.terrestrial.delay", format!("{} ns", self.t1_us * 500)),
            ("links.satellite.delay", format!("{} ns", self.t2_us * 500)),
            ("layers.arq.channels.data.transmissions", transmissions),
            ("layers.arq.channels.data.segments", self.segments.to_string()),
            (buffer, format!("{} packets", self.buffer)),
            ("flows.data.count", self.connections.to_string()),
        ];
        sets.extend(self.channel());
        sets.extend(self.more.iter().map(|&(key, value)| (key, value.to_owned())));
        let sets: Vec<_> = sets.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Scenario::parse(text, file, &sets).unwrap_or_else(|errors| panic!("{}", errors.render(false)))
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setting { scheme, buffer, t1_us, t2_us, loss, .. } = self;
        let (t1, t2) = (*t1_us as f64 / 1e3, *t2_us as f64 / 1e3);
        write!(f, "{}, B = {buffer}, T1 = {t1} ms, T2 = {t2} ms, p = {loss}", scheme.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worlds_are_sound_and_read_back() {
        let plain = Setting::new(Scheme::EndToEnd, 50, 100, 250, 0.1);
        let split = Setting { scheme: Scheme::Split, connections: 4, ..plain };
        let fading = Setting { fading: Some(5.0), transmissions: Some(3), ..plain };
        let cut = Setting { segments: 4, more: super::super::extensions::FAIR, ..plain };
        for setting in [plain, split, fading, cut] {
            let scenario = setting.scenario();
            assert_eq!(Scenario::parse(&scenario.to_toml(), "again.toml", &[]).as_ref(), Ok(&scenario));
        }
        assert_eq!((plain.path().mu(), plain.path().bdp()), (MU, 62.5));
        assert!((plain.with_alpha(10.0).path().alpha() - 10.0).abs() < 1e-4);
    }

    /// The shipped scenarios are settings of the study.
    #[test]
    fn the_shipped_scenarios_are_the_worlds_of_the_study() {
        let shipped = |text: &str| Scenario::parse(text, "shipped.toml", &[]).expect("a shipped scenario");
        let end_to_end = Setting::new(Scheme::EndToEnd, 100, 100, 250, 0.1);
        let split = Setting::new(Scheme::Split, 100, 100, 250, 0.1);
        let fading = Setting { fading: Some(1.0), ..end_to_end }.for_many_fades();
        let shared = Setting { connections: 10, ..Setting::new(Scheme::Split, 30, 100, 100, 0.1) };
        let pairs = [
            (end_to_end, END_TO_END),
            (split, SPLIT),
            (fading, include_str!("../../scenarios/hybrid-fading.toml")),
            (shared, include_str!("../../scenarios/hybrid-shared.toml")),
        ];
        for (setting, text) in pairs {
            let shipped = shipped(text);
            let named =
                Scenario { name: shipped.name.clone(), description: shipped.description.clone(), ..setting.scenario() };
            assert_eq!(named.to_toml(), shipped.to_toml(), "{setting}");
        }
    }
}
