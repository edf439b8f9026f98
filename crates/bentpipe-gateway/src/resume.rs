//! Whether this process may have been copied or stopped: a machine that slept, or a virtual machine that runs on from a
//! snapshot.
//!
//! A snapshot that runs twice would send twice under the same keys with the same numbers. Linux does not tell a process of it.
//! What can be seen is that clocks part: the one that counts sleep, or the time of day once it is set right. Until then
//! the copy has sent what it sends: only a hypervisor that resets the clock at once (as `kvm-clock` and `vmgenid` do) leaves no
//! gap.

use bentpipe_engine::units::Duration;
use nix::time::{ClockId, clock_gettime};

/// Clocks that part by more than this have jumped: adjustments are slower, 500 ppm at most (adjtimex(2)).
const JUMP: Duration = Duration::from_millis(1000);

/// How far CLOCK_BOOTTIME and the time of day are ahead of CLOCK_MONOTONIC, nanoseconds.
type Offsets = [i128; 2];

#[derive(Debug)]
pub(crate) struct Resume {
    offsets: Option<Offsets>,
}

impl Resume {
    pub(crate) fn new() -> Self {
        Resume { offsets: read() }
    }

    /// Whether clocks have jumped since this was asked last.
    pub(crate) fn has_jumped(&mut self) -> bool {
        self.note(read())
    }

    fn note(&mut self, offsets: Option<Offsets>) -> bool {
        let before = std::mem::replace(&mut self.offsets, offsets);
        let pairs = before.into_iter().flatten().zip(offsets.into_iter().flatten());
        pairs.into_iter().any(|(before, now)| before.abs_diff(now) > u128::from(JUMP.as_nanos()))
    }
}

fn read() -> Option<Offsets> {
    let nanos =
        |clock| clock_gettime(clock).ok().map(|at| i128::from(at.tv_sec()) * 1_000_000_000 + i128::from(at.tv_nsec()));
    let monotonic = nanos(ClockId::CLOCK_MONOTONIC)?;
    Some([nanos(ClockId::CLOCK_BOOTTIME)? - monotonic, nanos(ClockId::CLOCK_REALTIME)? - monotonic])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_part_are_noticed() {
        let mut resume = Resume::new();
        assert!(!resume.has_jumped(), "the clocks of this machine go together");
        resume.offsets = Some([0, 0]);
        let second = 1_000_000_000;
        for (offsets, jumped) in [
            ([0, 0], false),
            ([0, second / 2], false),
            ([0, second * 2], true),
            ([0, second * 2], false),
            ([600 * second, 600 * second], true),
            ([600 * second, -second * 3600], true),
        ] {
            assert_eq!(resume.note(Some(offsets)), jumped, "{offsets:?}");
        }
    }
}
