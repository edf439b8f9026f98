//! The erasure locator of a short block, point by point.
//!
//! For each of the 65 536 points of the code, the decoder needs the product of its distances from all erased points. By
//! default it computes them by two transforms over all points, which take a millisecond whatever the block's length.
//! For a block with its repair symbols, only the first points are present. The product of all distances from a point is
//! one, so the product over the erased points is the inverse of the product over the others.

use reed_solomon_simd::engine::{DefaultEngine, Engine, GF_MODULUS, GF_ORDER, GfElement, ShardsRefMut, tables};

/// Like [`DefaultEngine`], for blocks whose points, including repair symbols, are among the first 256.
pub(super) struct ShortEngine(DefaultEngine);

/// Number of points of the longest block and as many repair symbols.
const POINTS: usize = 256;

impl ShortEngine {
    pub(super) fn new() -> Self {
        // This table is built along with the others, not at the first decoding.
        let _ = tables::get_exp_log();
        ShortEngine(DefaultEngine::new())
    }
}

impl Engine for ShortEngine {
    fn fft(&self, data: &mut ShardsRefMut<'_>, pos: usize, size: usize, truncated_size: usize, skew_delta: usize) {
        self.0.fft(data, pos, size, truncated_size, skew_delta);
    }

    fn ifft(&self, data: &mut ShardsRefMut<'_>, pos: usize, size: usize, truncated_size: usize, skew_delta: usize) {
        self.0.ifft(data, pos, size, truncated_size, skew_delta);
    }

    fn mul(&self, x: &mut [[u8; 64]], log_m: GfElement) {
        self.0.mul(x, log_m);
    }

    /// Replaces the marks of erased points by the logarithms of the products, up to the last point that is present.
    fn eval_poly(erasures: &mut [GfElement; GF_ORDER], _: usize) {
        debug_assert!(erasures[POINTS..].iter().all(|&mark| mark == 1), "longer than any block");
        let log = &tables::get_exp_log().log;
        let there: Vec<usize> = (0..POINTS).filter(|&at| erasures[at] == 0).collect();
        let end = there.last().map_or(0, |last| last + 1);
        for (at, place) in erasures[..end].iter_mut().enumerate() {
            let distances = there.iter().filter(|&&other| other != at).map(|&other| u32::from(log[at ^ other]));
            let sum = distances.sum::<u32>() % u32::from(GF_MODULUS);
            *place = (GF_MODULUS - sum as GfElement) % GF_MODULUS;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// The result equals that of transforms over all points.
        #[test]
        fn it_is_that_of_all_points(count in 1usize..=256, marks in prop::collection::vec(0u16..2, 256)) {
            let mut short = Box::new([1; GF_ORDER]);
            short[..count].copy_from_slice(&marks[..count]);
            let end = marks[..count].iter().rposition(|&mark| mark == 0).map_or(0, |last| last + 1);
            let mut whole = short.clone();
            ShortEngine::eval_poly(&mut short, GF_ORDER);
            DefaultEngine::eval_poly(&mut whole, GF_ORDER);
            for (at, (ours, theirs)) in short[..end].iter().zip(&whole[..end]).enumerate() {
                prop_assert_eq!(ours % GF_MODULUS, theirs % GF_MODULUS, "{}", at);
            }
        }
    }
}
