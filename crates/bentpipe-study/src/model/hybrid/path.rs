//! The parameters of the model, checked once.

use bentpipe_engine::units::{Bytes, Duration, Probability, Rate};

/// A terrestrial part without loss, a gateway with a buffer, and a satellite part that loses packets (§II, fig. 2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    buffer: f64,
    t1: f64,
    t2: f64,
    mu: f64,
    p: f64,
    segments: f64,
}

/// Max loss. Eq. 65 has some ln(10^17 k)/ln(1/p) terms for a burst of k packets: with this loss 400 000 for one packet, 610 000 for 4e9.
/// Towards a loss of 1 their number has no bound.
const MAX_LOSS: f64 = 0.9999;

/// Parameters outside the model's range.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum OutOfRange {
    /// A gateway that holds no packet.
    #[error("the buffer holds {0} packets; the model needs at least 1")]
    Buffer(f64),
    /// No satellite part.
    #[error("the satellite part has a round trip of 0 s; the model needs one above zero")]
    SatelliteRoundTrip,
    /// Nothing arrives.
    #[error("all packets are lost; the model needs a loss probability below 1")]
    Loss,
    /// So many retransmissions that the sum of Eq. 65 is too long.
    #[error(
        "the loss is {0}; the model computes up to {MAX_LOSS}, where Eq. 65 adds up the probabilities of 400 000 round trips and more"
    )]
    HighLoss(f64),
    /// A packet without length or without link-layer packets.
    #[error("a TCP packet of {0}; the model needs at least 1")]
    Packet(&'static str),
    /// A ratio that is negative or not a number.
    #[error("{0} is {1}; it must be a finite number, not below zero")]
    Ratio(&'static str, f64),
    /// Too few packets in flight for Eq. 5's logarithm as the delay of the slowest one.
    #[error(
        "min(B, mu T2) S = {0:.3} link-layer packets are in flight; the logarithm of Eq. 5 needs at least 2, or it falls \
         below the delay of a single packet"
    )]
    InFlight(f64),
}

impl Path {
    /// A path. `buffer` (B): TCP packets that the gateway holds, waiting or unacknowledged; `t1`, `t2`: round trips
    /// of the terrestrial and of the satellite part; `rate`: of the satellite link; `packet`: length of a TCP packet
    /// on it; `loss` (p): probability that a link-layer packet is lost; `segments` (S): link-layer packets that a TCP
    /// packet is cut into. The rate of the terrestrial part is taken as unlimited.
    ///
    /// # Errors
    /// Returns [`OutOfRange`] for an empty buffer, no satellite round trip, a loss above 0.9999, or an empty packet.
    pub fn new(
        buffer: f64,
        (t1, t2): (Duration, Duration),
        rate: Rate,
        packet: Bytes,
        loss: Probability,
        segments: u32,
    ) -> Result<Path, OutOfRange> {
        if packet.get() == 0 {
            return Err(OutOfRange::Packet("0 bytes"));
        }
        if segments == 0 {
            return Err(OutOfRange::Packet("0 link-layer packets"));
        }
        if t2 == Duration::ZERO {
            return Err(OutOfRange::SatelliteRoundTrip);
        }
        if loss.get() >= 1.0 {
            return Err(OutOfRange::Loss);
        }
        if loss.get() > MAX_LOSS {
            return Err(OutOfRange::HighLoss(loss.get()));
        }
        let mu = rate.bits_per_second() as f64 / (packet.get() as f64 * 8.0);
        let (t1, t2) = (t1.as_secs_f64(), t2.as_secs_f64());
        Path { buffer: 1.0, t1, t2, mu, p: loss.get(), segments: f64::from(segments) }.with_buffer(buffer)
    }

    /// The path with another buffer, in TCP packets; a real number, for continuous curves.
    ///
    /// # Errors
    /// Fails for a buffer below one packet.
    pub fn with_buffer(self, buffer: f64) -> Result<Path, OutOfRange> {
        if buffer.is_finite() && buffer >= 1.0 { Ok(Path { buffer, ..self }) } else { Err(OutOfRange::Buffer(buffer)) }
    }

    /// The path with the terrestrial round trip that makes [`Path::alpha`] this.
    ///
    /// # Errors
    /// Fails for a ratio that is negative or not finite.
    pub fn with_alpha(self, alpha: f64) -> Result<Path, OutOfRange> {
        if alpha.is_finite() && alpha >= 0.0 {
            Ok(Path { t1: alpha * self.t2 / (1.0 - self.p), ..self })
        } else {
            Err(OutOfRange::Ratio("alpha", alpha))
        }
    }

    /// The path with the buffer that makes [`Path::beta`] this.
    ///
    /// # Errors
    /// Fails for a buffer below one packet.
    pub fn with_beta(self, beta: f64) -> Result<Path, OutOfRange> {
        self.with_buffer(beta * self.bdp())
    }

    /// B: buffer of the gateway, TCP packets.
    pub fn buffer(&self) -> f64 {
        self.buffer
    }

    /// T1: round trip of the terrestrial part, seconds.
    pub fn t1(&self) -> f64 {
        self.t1
    }

    /// T2: round trip of the satellite part, seconds.
    pub fn t2(&self) -> f64 {
        self.t2
    }

    /// μ: rate of the satellite link, TCP packets per second.
    pub fn mu(&self) -> f64 {
        self.mu
    }

    /// p: probability that a link-layer packet is lost.
    pub fn p(&self) -> f64 {
        self.p
    }

    /// S: link-layer packets per TCP packet.
    pub fn segments(&self) -> f64 {
        self.segments
    }

    /// μ T2: bandwidth-delay product of the satellite part, TCP packets.
    pub fn bdp(&self) -> f64 {
        self.mu * self.t2
    }

    /// β = B/(μ T2): the buffer in bandwidth-delay products (Eq. 39).
    pub fn beta(&self) -> f64 {
        self.buffer / self.bdp()
    }

    /// α = T1 (1-p)/T2: the terrestrial round trip over a packet's mean time on the satellite part (§IV, Eq. 52).
    pub fn alpha(&self) -> f64 {
        self.t1 * (1.0 - self.p) / self.t2
    }

    /// ν of Eq. 4; see [`delay::nu`](super::delay::nu).
    pub fn nu(&self) -> f64 {
        super::delay::nu(self.p)
    }

    /// θ = min(B, w, μ T2): TCP packets in flight on the satellite part with a window of `w` (Eq. 6).
    pub fn in_flight(&self, w: f64) -> f64 {
        self.buffer.min(w).min(self.bdp())
    }
}
