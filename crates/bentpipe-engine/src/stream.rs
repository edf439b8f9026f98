//! Named streams of random numbers: the driver's seed and a component's name determine every draw.
//!
//! Adding, removing or using a component does not change the draws of another.

use core::fmt::{self, Write};

use rand_core::RngCore;
use rand_pcg::Pcg64;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64);

/// One step of SplitMix64's finaliser (Steele, Lea and Flood 2014): every input bit affects every output bit.
const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// FNV-1a over text, as it is written.
struct Fnv(u64);

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = text.bytes().fold(self.0, |h, b| (h ^ b as u64).wrapping_mul(0x0100_0000_01b3));
        Ok(())
    }
}

/// A key for the component `name` under `seed`: the hash of the name, mixed with the seed.
fn key(seed: u64, name: impl fmt::Display) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    write!(hash, "{name}").expect("hashing does not fail");
    mix(hash.0 ^ mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15)))
}

/// The upper 53 bits as a number in 0..1.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

impl Stream {
    /// The stream of the component `name` under `seed`. The name may be `format_args!`, which allocates nothing.
    pub fn named(seed: u64, name: impl fmt::Display) -> Self {
        let key = key(seed, name);
        Stream(Pcg64::new((mix(key) as u128) << 64 | key as u128, mix(!key) as u128))
    }

    /// Uniform in 0..1.
    pub fn uniform(&mut self) -> f64 {
        unit(self.0.next_u64())
    }

    /// Uniform in `low..high`.
    pub fn uniform_in(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }
}

/// Noise indexed by time: the draw at an instant does not depend on the order and number of calls.
#[derive(Clone, Copy, Debug)]
pub struct TimeNoise {
    key: u64,
}

impl TimeNoise {
    /// The noise of the component `name` under `seed`.
    pub fn named(seed: u64, name: impl fmt::Display) -> Self {
        TimeNoise { key: key(seed, name) }
    }

    /// The `nth` draw at the instant `nanos`, uniform in 0..1.
    #[inline]
    pub fn at(&self, nanos: u64, nth: u32) -> f64 {
        unit(mix(self.key ^ mix(nanos.wrapping_add((nth as u64) << 48 ^ 0x5851_f42d_4c95_7f2d))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_fixed_by_seed_and_name() {
        let draw = |seed, name| Stream::named(seed, name).uniform();
        assert_eq!(draw(1, "link/up"), draw(1, "link/up"));
        assert_ne!(draw(1, "link/up"), draw(2, "link/up"));
        assert_ne!(draw(1, "link/up"), draw(1, "link/down"));
    }

    #[test]
    fn time_noise_is_uniform() {
        // The mean of n uniform draws is 1/2 with deviation sqrt(1/12n). A sound generator never misses it by six of
        // these.
        let n = 100_000;
        let noise = TimeNoise::named(7, "x");
        let mean = (0..n).map(|i| noise.at(i * 4_000_000, 0)).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 6.0 * (1.0 / (12.0 * n as f64)).sqrt(), "{mean}");
    }
}
