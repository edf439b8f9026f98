//! The simulated points of each figure. Values that the paper does not print follow H-Q07 and H-Q10 to H-Q12.

use super::measure::{Measured, SEEDS, points};
use super::setting::{Scheme, Setting};
use crate::lab::Lab;
use crate::request::ReproduceError;

use Scheme::{EndToEnd, Split};

/// B of figures 6 to 8, packets (H-Q07).
pub(super) const BUFFER: u32 = 100;
pub(super) const ROUND_TRIPS_MS: [u64; 5] = [100, 200, 300, 400, 500];
pub(super) const LOSSES: [f64; 2] = [0.1, 0.3];
pub(super) const FADING_RATES: [f64; 7] = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 50.0];
/// X of figure 14 (H-Q11).
pub(super) const SHARE: f64 = 0.1;
pub(super) const TRANSMISSIONS: [u32; 8] = [1, 2, 3, 4, 5, 7, 10, 20];
pub(super) const CONNECTIONS: [u32; 6] = [1, 2, 4, 7, 10, 20];
/// B of figure 15 (H-Q12).
pub(super) const SHARED_BUFFERS: [u32; 2] = [30, 100];
pub(super) const ALPHAS: [f64; 3] = [0.1, 1.0, 10.0];
/// T2 of figures 10 and 11, milliseconds.
pub(super) const SPLIT_T2_MS: [u64; 2] = [10, 500];
/// B of figure 11, packets. With the smaller value, the buffer always limits the throughput.
pub(super) const SPLIT_BUFFERS: [u32; 2] = [20, 50];

/// The settings of figure `number`, 6 to 15.
pub(super) fn settings(number: u8) -> Vec<Setting> {
    let mut all = Vec::new();
    match number {
        6 => {
            for t2 in [100, 250, 500] {
                all.extend([0.1, 0.2, 0.3, 0.4, 0.5].map(|p| Setting::new(EndToEnd, BUFFER, 100, t2, p)));
            }
        }
        7 => {
            for p in LOSSES {
                all.extend(ROUND_TRIPS_MS.map(|t2| Setting::new(EndToEnd, BUFFER, 100, t2, p)));
            }
        }
        8 => {
            for p in LOSSES {
                all.extend(ROUND_TRIPS_MS.map(|t1| Setting::new(EndToEnd, BUFFER, t1, 100, p)));
            }
        }
        9 => {
            for p in LOSSES {
                all.extend([10, 20, 50, 100, 200].map(|buffer| Setting::new(EndToEnd, buffer, 100, 100, p)));
            }
        }
        10 => {
            for t2 in SPLIT_T2_MS {
                all.extend([5, 10, 20, 50, 100, 200, 300].map(|buffer| Setting::new(Split, buffer, 100, t2, 0.1)));
            }
        }
        11 => {
            for buffer in SPLIT_BUFFERS {
                for t2 in SPLIT_T2_MS {
                    all.extend([0.1, 0.3, 0.5].map(|p| Setting::new(Split, buffer, 100, t2, p)));
                }
            }
        }
        12 => {
            for alpha in ALPHAS {
                for x in [0.2, 0.4, 0.8] {
                    let at = |scheme| Setting::new(scheme, 1, 0, 100, 0.1).with_alpha(alpha);
                    let buffer = (x * (1.0 + 2.0 * alpha) * at(EndToEnd).path().bdp()).round() as u32;
                    // Rounding to whole packets changes smaller buffers by more than a tenth.
                    if buffer >= 5 {
                        all.extend([EndToEnd, Split].map(|scheme| Setting { buffer, ..at(scheme) }));
                    }
                }
            }
        }
        13 => {
            for p in LOSSES {
                let plain = Setting::new(EndToEnd, BUFFER, 100, 100, p);
                all.extend(TRANSMISSIONS.map(|max| Setting { transmissions: Some(max), ..plain }));
            }
        }
        14 => {
            for scheme in [EndToEnd, Split] {
                let plain = Setting::new(scheme, BUFFER, 100, 250, SHARE);
                all.extend(FADING_RATES.map(|rate| Setting { fading: Some(rate), ..plain }));
            }
        }
        15 => {
            for scheme in [EndToEnd, Split] {
                for buffer in SHARED_BUFFERS {
                    let one = Setting::new(scheme, buffer, 100, 100, 0.1);
                    all.extend(CONNECTIONS.map(|connections| Setting { connections, ..one }));
                }
            }
        }
        _ => {}
    }
    let windows_rise = matches!(number, 6..=9 | 12);
    let lengthen = |s: Setting| match () {
        () if number == 14 => s.for_many_fades(),
        () if windows_rise && s.scheme == EndToEnd => s.for_many_rises(),
        () => s,
    };
    all.into_iter().map(lengthen).collect()
}

/// The points of figure `number`.
pub(super) fn simulate(lab: &Lab<'_>, number: u8) -> Result<Vec<Measured>, ReproduceError> {
    // The shape of figure 9's curves is judged, and a few percent of noise would hide it.
    let seeds = if number == 9 { 3 * SEEDS } else { SEEDS };
    points(lab, &format!("figure {number}"), &settings(number), seeds)
}
