//! Linux's senders: the congestion control of a socket, and the kernel's settings of loss recovery.

use bentpipe_engine::tcp::Variant;
use bentpipe_engine::tcp::variant::{PipeForm, Recovery, TimeoutWindow};

/// Congestion controls, by `tcp_congestion_control`, each with its row of the engine's table.
const CONTROLS: [(&str, &str); 3] = [("cubic", "linux-cubic"), ("reno", "linux-reno"), ("bbr", "bbr")];

/// What a kernel has besides the settings of the protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    /// `tcp_congestion_control`: a row of the table.
    control: &'static str,
    /// `tcp_recovery`: losses are found by time (RACK), otherwise by duplicates and SACK blocks (RFC 6675).
    rack: bool,
    /// `tcp_early_retrans`: probes of the tail (TLP). They need RACK.
    tail_probe: bool,
}

impl Default for Kernel {
    /// Linux's defaults.
    fn default() -> Self {
        Kernel { control: "linux-cubic", rack: true, tail_probe: true }
    }
}

/// The row for a congestion control.
pub(crate) fn row(control: &str) -> Option<&'static str> {
    CONTROLS.iter().find(|(name, _)| *name == control).map(|(_, row)| *row)
}

impl Kernel {
    /// Applies a setting; false if it is not one of these, or its value is unknown.
    pub(super) fn sysctl(&mut self, name: &str, value: &str) -> bool {
        match (name, value.trim()) {
            ("tcp_congestion_control", value) => match row(value) {
                Some(row) => self.control = row,
                None => return false,
            },
            // Its other bits, 2 and 4, change how RACK counts, which is not implemented; without bit 1 they have no effect.
            ("tcp_recovery", value) => match value.parse::<u32>() {
                Ok(1) => self.rack = true,
                Ok(bits) if bits & 1 == 0 => self.rack = false,
                _ => return false,
            },
            ("tcp_early_retrans", value) => self.tail_probe = !matches!(value, "0" | "1" | "2"),
            _ => return false,
        }
        true
    }

    /// The row of a socket. `chosen`: by TCP_CONGESTION.
    pub(super) fn control(&self, chosen: Option<&'static str>) -> &'static str {
        chosen.unwrap_or(self.control)
    }

    /// True if the engine knows of each segment what Linux counts in TCP_INFO.
    pub(super) fn counts_segments(&self) -> bool {
        self.rack
    }

    /// The settings of a sender with this row; those of the protocol are as in `settings`.
    pub(super) fn sender(&self, row: &str, settings: &Variant) -> Variant {
        let row = Variant::named(row).expect("a row of the table");
        let &Variant { initial_window, dup_thresh, frto, sack, .. } = settings;
        let mut variant = Variant { initial_window, dup_thresh, frto, sack, ..row };
        variant.tail_probe &= self.tail_probe;
        if !self.rack {
            variant.recovery = Recovery::Pipe(PipeForm::Rfc6675);
            variant.limited_transmit = true;
            variant.timeout_window = TimeoutWindow::One;
            (variant.tail_probe, variant.undo) = (false, false);
        }
        if !sack {
            variant.recovery = Variant::named("newreno").expect("a row of the table").recovery;
        }
        variant
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only bit 1 turns RACK on. What the others do to it is refused: the script would pass or fail by another recovery.
    #[test]
    fn the_bits_of_tcp_recovery() {
        for (value, taken, rack) in [
            ("0", true, false),
            ("1", true, true),
            ("2", true, false),
            ("6", true, false),
            ("3", false, true),
            ("x", false, true),
        ] {
            let mut kernel = Kernel::default();
            assert_eq!((kernel.sysctl("tcp_recovery", value), kernel.rack), (taken, rack), "{value}");
        }
    }
}
