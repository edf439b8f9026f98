//! Detects that this process may have been copied or stopped: the machine slept, or a virtual machine continues from a
//! snapshot.
//!
//! If two copies run from the same snapshot, both send under the same keys with the same numbers. There are two signs
//! of this:
//!
//! - The hypervisor's vmclock device changes its marker before the copy resumes (Linux, `vmclock-abi.h`).
//! - Clocks jump: the one that counts sleep, or the time of day once it is corrected. Without the device, nothing stops
//!   the copy from sending until then. Linux uses `vmgenid` for its random numbers, but does not expose it to
//!   processes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bentpipe_engine::units::Duration;
use nix::time::{ClockId, clock_gettime};

/// If the difference between clocks changes by more than this, it is a jump: adjustments are slower, at most 500 ppm
/// (adjtimex(2)).
const JUMP: Duration = Duration::from_millis(1000);

/// How far CLOCK_BOOTTIME and the time of day are ahead of CLOCK_MONOTONIC, in nanoseconds.
type Offsets = [i128; 2];

#[derive(Debug)]
pub(crate) struct Resume {
    offsets: Option<Offsets>,
    machine: Option<(VmClock, Markers)>,
}

impl Resume {
    pub(crate) fn new() -> Self {
        Resume { offsets: read(), machine: VmClock::open(Path::new("/dev/vmclock0")) }
    }

    /// True if the clocks or the hypervisor's markers have jumped since the last call.
    pub(crate) fn has_jumped(&mut self) -> bool {
        // Both are read, without short-circuiting.
        self.note(read()) | self.is_copied()
    }

    fn note(&mut self, offsets: Option<Offsets>) -> bool {
        let before = std::mem::replace(&mut self.offsets, offsets);
        let pairs = before.into_iter().flatten().zip(offsets.into_iter().flatten());
        pairs.into_iter().any(|(before, now)| before.abs_diff(now) > u128::from(JUMP.as_nanos()))
    }

    fn is_copied(&mut self) -> bool {
        let Some((clock, before)) = &mut self.machine else { return false };
        // A device that cannot be read proves nothing.
        let Some(now) = clock.markers() else { return false };
        std::mem::replace(before, now) != now
    }
}

fn read() -> Option<Offsets> {
    let nanos =
        |clock| clock_gettime(clock).ok().map(|at| i128::from(at.tv_sec()) * 1_000_000_000 + i128::from(at.tv_nsec()));
    let monotonic = nanos(ClockId::CLOCK_MONOTONIC)?;
    Some([nanos(ClockId::CLOCK_BOOTTIME)? - monotonic, nanos(ClockId::CLOCK_REALTIME)? - monotonic])
}

/// The vmclock device: a page that the hypervisor writes.
#[derive(Debug)]
struct VmClock(File);

/// `disruption_marker`, which changes when the machine is copied, restored or moved, and `vm_generation_counter`, if
/// there is one, which changes when the machine is copied or restored.
type Markers = (u64, Option<u64>);

impl VmClock {
    /// Number of bytes of the page that are read.
    const LEN: usize = 112;
    const MAGIC: &[u8] = b"VCLK";
    /// Bit in `flags`: there is a generation counter.
    const HAS_GENERATION: u64 = 1 << 8;

    /// Opens the device, if the machine has one that this process may read.
    fn open(path: &Path) -> Option<(VmClock, Markers)> {
        let clock = VmClock(File::open(path).ok()?);
        let markers = clock.markers()?;
        Some((clock, markers))
    }

    fn markers(&self) -> Option<Markers> {
        let mut page = [0; VmClock::LEN];
        self.0.read_exact_at(&mut page, 0).ok()?;
        let field = |at: usize| u64::from_le_bytes(*page[at..].first_chunk().expect("within the page"));
        let (disruption, flags, generation) = (field(16), field(24), field(104));
        let generation = (flags & VmClock::HAS_GENERATION != 0).then_some(generation);
        page.starts_with(VmClock::MAGIC).then_some((disruption, generation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_part_are_noticed() {
        let mut resume = Resume::new();
        assert!(!resume.has_jumped(), "the clocks of this machine agree");
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

    /// Writes a page of `vmclock-abi.h` with these values, as the hypervisor would.
    fn write(path: &Path, disruption: u64, flags: u64, generation: u64) {
        let mut page = [0; 4096];
        page[..4].copy_from_slice(VmClock::MAGIC);
        for (at, value) in [(16, disruption), (24, flags), (104, generation)] {
            page[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        std::fs::write(path, page).expect("a file");
    }

    #[test]
    fn a_copy_of_the_machine_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("vmclock0");
        assert!(VmClock::open(&path).is_none(), "no such device");
        std::fs::write(&path, [0; 4096]).expect("a file");
        assert!(VmClock::open(&path).is_none(), "not such a device");
        write(&path, 7, 0, 0);
        let mut resume = Resume { offsets: None, machine: VmClock::open(&path) };
        let generations = VmClock::HAS_GENERATION;
        for (disruption, flags, generation, copied) in [
            (7, 0, 0, false),
            (7, 0, 1, false),
            (8, 0, 1, true),
            (8, 0, 1, false),
            // Another hypervisor, which counts generations.
            (9, generations, 1, true),
            (9, generations, 1, false),
            (9, generations, 2, true),
        ] {
            write(&path, disruption, flags, generation);
            assert_eq!(resume.is_copied(), copied, "{disruption} {flags} {generation}");
        }
        std::fs::write(&path, b"").expect("a file");
        assert!(!resume.is_copied(), "it cannot be read");
    }
}
