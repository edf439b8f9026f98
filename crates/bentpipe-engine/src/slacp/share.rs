//! Priority up to a share: urgent channels go first as long as they leave the other channels their part of the line.

/// The burst that urgent channels may send beyond their share: ten full packets, which take a tenth of a second at 1.2
/// Mbit/s.
const BURST: i64 = 10 * 1514;

/// The credit of the urgent channels.
#[derive(Clone, Copy, Debug)]
pub(super) struct UrgentShare {
    percent: i64,
    /// Bytes that they may send ahead of others, times `100 - percent`.
    credit: i64,
}

impl UrgentShare {
    /// Gives the urgent channels a share of `percent` of the line.
    pub(super) fn new(percent: u8) -> Self {
        let percent = i64::from(percent.clamp(1, 99));
        UrgentShare { percent, credit: BURST * (100 - percent) }
    }

    /// True if urgent channels go first now.
    pub(super) fn is_first(&self) -> bool {
        self.credit > 0
    }

    /// Records that an urgent frame of this size was sent while other channels waited.
    pub(super) fn sent_urgent(&mut self, bytes: u32) {
        self.credit -= i64::from(bytes) * (100 - self.percent);
    }

    /// Records that a frame of the other channels was sent.
    pub(super) fn sent_other(&mut self, bytes: u32) {
        self.credit = (self.credit + i64::from(bytes) * self.percent).min(BURST * (100 - self.percent));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_have_their_part() {
        for percent in [10, 50, 90] {
            let mut share = UrgentShare::new(percent);
            let (mut urgent, mut all) = (0.0, 0.0);
            for _ in 0..100_000 {
                let bytes = if share.is_first() { 200 } else { 1500 };
                if share.is_first() {
                    share.sent_urgent(bytes);
                    urgent += f64::from(bytes);
                } else {
                    share.sent_other(bytes);
                }
                all += f64::from(bytes);
            }
            // The initial burst is a thousandth of the total.
            assert!((urgent / all - f64::from(percent) / 100.0).abs() < 0.002, "{percent} {}", urgent / all);
        }
    }
}
