//! Processors that do not fall asleep. An idle processor halts, and what wakes it is late by the time that it needs to get up: in a
//! virtual machine that is a tenth of a millisecond, and often ten times as much.

use std::fs::{File, OpenOptions, read_to_string};
use std::io::Write;
use std::path::Path;

use bentpipe_engine::units::{Duration, Time};

/// Linux's device for the max wake-up latency that a program tolerates (PM QoS). The request is withdrawn when the file is closed,
/// however the process ends.
const DEVICE: &str = "/dev/cpu_dma_latency";
/// How the kernel chooses idle states.
const GOVERNOR: &str = "/sys/devices/system/cpu/cpuidle/current_governor";
/// The governor of virtual machines. It halts the processor for every latency but zero.
const OF_GUESTS: &str = "haltpoll";
/// Microseconds to which a processor of its own is held. Its lightest sleep takes so long, and leaves it cool; zero would keep it running.
const LIGHT_SLEEP: i32 = 2;
/// Withdraws a request.
const ANY: i32 = -1;
/// How long after the last packet processors are kept awake.
const LINGER: Duration = Duration::from_secs(1);

/// Keeps the machine's processors awake while packets pass, and for a second after them. Does nothing where it is not allowed: without
/// root, and in most containers.
#[derive(Debug)]
pub struct Wakeful {
    device: Option<File>,
    latency_us: i32,
    /// Until when they are kept awake, while they are.
    until: Option<Time>,
}

impl Default for Wakeful {
    fn default() -> Self {
        Self::over(Path::new(DEVICE), Path::new(GOVERNOR))
    }
}

impl Wakeful {
    fn over(device: &Path, governor: &Path) -> Self {
        let device = OpenOptions::new().write(true).open(device).ok();
        let is_guest = read_to_string(governor).is_ok_and(|governor| governor.trim() == OF_GUESTS);
        let latency_us = if is_guest { 0 } else { LIGHT_SLEEP };
        Wakeful { device, latency_us, until: None }
    }

    /// A packet has passed.
    pub fn stir(&mut self, now: Time) {
        if self.device.is_some() && self.until.replace(now + LINGER).is_none() {
            self.ask(self.latency_us);
        }
    }

    /// Lets processors sleep again if no packet has passed for long enough. Returns when to ask next.
    pub fn rest(&mut self, now: Time) -> Option<Time> {
        if self.until.is_some_and(|until| until <= now) {
            self.until = None;
            self.ask(ANY);
        }
        self.until
    }

    fn ask(&mut self, latency_us: i32) {
        let Some(device) = &mut self.device else { return };
        if device.write_all(&latency_us.to_ne_bytes()).is_err() {
            (self.device, self.until) = (None, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The requests that a stand-in for the device got.
    fn requests(device: &Path) -> Vec<i32> {
        let bytes = std::fs::read(device).expect("it exists");
        bytes.chunks(4).map(|request| i32::from_ne_bytes(request.try_into().expect("four bytes"))).collect()
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn processors_are_kept_awake_while_packets_pass() {
        for (governor, latency) in [("haltpoll\n", 0), ("menu\n", 2)] {
            let folder = tempfile::tempdir().expect("a folder");
            let (device, name) = (folder.path().join("device"), folder.path().join("governor"));
            std::fs::write(&device, "").expect("a file");
            std::fs::write(&name, governor).expect("a file");
            let mut wakeful = Wakeful::over(&device, &name);
            assert_eq!(wakeful.rest(at(0)), None);
            wakeful.stir(at(5));
            wakeful.stir(at(900));
            // A second after the last packet, not after the first.
            assert_eq!(wakeful.rest(at(1100)), Some(at(1900)));
            assert_eq!(requests(&device), [latency]);
            assert_eq!(wakeful.rest(at(1900)), None);
            wakeful.stir(at(5000));
            assert_eq!(requests(&device), [latency, ANY, latency]);
        }
    }

    #[test]
    fn without_the_device_nothing_is_asked() {
        let nowhere = Path::new("/nonexistent");
        let mut wakeful = Wakeful::over(nowhere, nowhere);
        wakeful.stir(at(5));
        assert_eq!(wakeful.rest(at(6)), None);
        // One that takes no requests is left alone.
        let mut full = Wakeful::over(Path::new("/dev/full"), nowhere);
        full.stir(at(5));
        assert_eq!(full.rest(at(6)), None);
    }
}
