//! Random numbers that are not zero.

#[cfg(test)]
thread_local! {
    /// The state of a generator in place of the system's; 0: none.
    static STATE: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// From now on this thread's numbers, and with them the times of retries, follow from this seed.
#[cfg(test)]
pub(crate) fn seed_draws(seed: u64) {
    STATE.set(seed);
}

/// SplitMix64 (Steele, Lea and Flood 2014).
#[cfg(test)]
fn seeded() -> Option<u64> {
    let state = Some(STATE.get()).filter(|state| *state != 0)?.wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.set(state);
    let x = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    Some(x ^ x >> 31)
}

pub(super) fn draw() -> u64 {
    loop {
        #[cfg(test)]
        if let Some(number) = seeded().filter(|number| *number != 0) {
            return number;
        }
        match getrandom::u64().expect("the system has entropy") {
            0 => {}
            number => return number,
        }
    }
}
