//! The worlds of the paper: source, gateway, satellite link with ARQ, destination (figures 1 and 2), and the same as
//! parameters of the model.

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

/// Simulated time where no window has to rise often: the first seconds, in which it opens, are a percent or two.
const LEAST_SECONDS: u32 = 300;
/// Rises of the window from half to all of it that are simulated.
const RISES: f64 = 12.0;

/// How TCP crosses the satellite link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// One connection over the link layer's ARQ.
    EndToEnd,
    /// It ends at the gateway, in whose name data goes on over the ARQ.
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

/// One world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Setting {
    pub(super) scheme: Scheme,
    /// B, packets.
    pub(super) buffer: u32,
    /// T1 and T2, microseconds.
    pub(super) t1_us: u64,
    pub(super) t2_us: u64,
    /// p, or with fading X.
    pub(super) loss: f64,
    /// Fading rate f, per second; `None`: losses are independent.
    pub(super) fading: Option<f64>,
    /// J; `None`: fully reliable.
    pub(super) transmissions: Option<u32>,
    /// N.
    pub(super) connections: u32,
    /// Simulated time, seconds.
    pub(super) seconds: u32,
}

impl Setting {
    /// The paper's ground: one connection, losses independent, fully reliable.
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
            seconds: LEAST_SECONDS,
        }
    }

    /// Simulated for so long that the window of one connection rises and falls often enough: the first rise is another.
    pub(super) fn for_many_rises(self) -> Self {
        let path = self.path();
        let rise = path.max_window() / 2.0 * path.transfer_s(0.75 * path.max_window(), Delay::Logarithm);
        Setting { seconds: LEAST_SECONDS.max((RISES * rise) as u32), ..self }
    }

    /// The terrestrial round trip that makes α this.
    pub(super) fn with_alpha(self, alpha: f64) -> Self {
        Setting { t1_us: (alpha * self.t2_us as f64 / (1.0 - self.loss)).round() as u64, ..self }
    }

    /// The same parameters for the model.
    pub(super) fn path(&self) -> Path {
        let round_trips = (Duration::from_micros(self.t1_us), Duration::from_micros(self.t2_us));
        let rate = Rate::from_bits_per_second(1_000_000).expect("not zero");
        let loss = Probability::new(self.loss).expect("a share");
        Path::new(f64::from(self.buffer), round_trips, rate, Bytes::new(PACKET), loss, 1).expect("a path of the paper")
    }

    fn channel(&self) -> String {
        let share = Probability::new(self.loss).expect("a share");
        match self.fading.and_then(|rate| Fading::with_rate(share, rate)) {
            // §V.C: nothing is lost in the good state, all in the bad one.
            Some(fading) => format!(
                "forward.bursts = {{ gap = {{ exponential = \"{} ns\" }}, length = {{ exponential = \"{} ns\" }}, \
                 loss = \"100 %\" }}",
                fading.mean_good().as_nanos(),
                fading.mean_bad.as_nanos()
            ),
            None => format!("forward.loss = {}", self.loss),
        }
    }

    /// The scenario.
    ///
    /// The gateway's buffer lies in the layer end to end, and in the gateway where TCP ends there; in both, what is
    /// sent and not acknowledged takes room (H-M05). TCP is ns-2's Reno without delayed ACKs (H-M06), with a timer of at
    /// least 1 s (H-Q14), and a window that only the buffer limits.
    ///
    /// TCP's ACKs go past the ARQ: the way back loses nothing (H-M10), while the reports that an ARQ of theirs would wait
    /// for cross the way there, which does. So does a SYN, hence none.
    pub(super) fn scenario(&self) -> Scenario {
        let queue = match self.scheme {
            Scheme::EndToEnd => format!("{} packets", self.buffer),
            Scheme::Split => "unlimited".to_owned(),
        };
        let spoof = match self.scheme {
            Scheme::EndToEnd => String::new(),
            Scheme::Split => format!("spoof = {{ at = \"gateway\", buffer = \"{} packets\" }}", self.buffer),
        };
        let transmissions = self.transmissions.map_or("\"unlimited\"".to_owned(), |most| most.to_string());
        let text = format!(
            r#"name = "hybrid"
time_limit = "{seconds} s"
[tcp]
profile = "ns2"
variant = "reno"
mss = "{MSS} B"
rto.min = "1 s"
once_per_window = false
shortcuts.handshake = "none"
[[links]]
name = "terrestrial"
between = ["source", "gateway"]
rate = "100 Mbit/s"
queue = "unlimited"
delay = "{terrestrial} ns"
[[links]]
name = "satellite"
between = ["gateway", "destination"]
delay = "{satellite} ns"
forward.rate = "1 Mbit/s"
{channel}
backward.rate = "unlimited"
[[layers]]
name = "arq"
over = "satellite"
report_interval = "0 s"
release_rate = "unlimited"
weightless = true
hears_damage = true
channels = [
    {{ name = "acks", match = [{{ up_to = "60 B" }}], transmissions = "off", order = "none" }},
    {{ name = "data", transmissions = {transmissions}, order = "flow", counts_copies = true, queue = "{queue}" }},
]
[[flows]]
name = "data"
from = "source"
to = "destination"
greedy = true
count = {connections}
stagger = "{stagger} ms"
{spoof}
"#,
            seconds = self.seconds,
            terrestrial = self.t1_us * 500,
            satellite = self.t2_us * 500,
            channel = self.channel(),
            connections = self.connections,
            // So that they do not begin as one.
            stagger = 137,
        );
        Scenario::parse(&text, "hybrid.toml", &[]).unwrap_or_else(|errors| panic!("{}", errors.render(false)))
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
        for setting in [plain, split, fading] {
            let scenario = setting.scenario();
            assert_eq!(Scenario::parse(&scenario.to_toml(), "again.toml", &[]).as_ref(), Ok(&scenario));
        }
        assert_eq!((plain.path().mu(), plain.path().bdp()), (MU, 62.5));
        assert!((plain.with_alpha(10.0).path().alpha() - 10.0).abs() < 1e-4);
    }
}
