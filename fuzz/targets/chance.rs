//! Inputs for a fuzz target that is played as an ordinary test.

/// Numbers of 56 bits without period, the same in each run (xorshift, Marsaglia 2003).
pub(crate) fn chance() -> impl FnMut() -> u64 {
    let mut x = 0x9e37_79b9_7f4a_7c15_u64;
    move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x >> 8
    }
}
