//! State shared between successive connections to one host (RFC 9040).

use super::config::{Resume, TcbSharing, TcpConfig};
use super::congestion::Congestion;
use super::loss::DUP_THRESH;
use crate::rtt::RttEstimator;
use crate::units::{Duration, Time};

/// The state that connections to one host leave for later ones.
#[derive(Clone, Debug, Default)]
pub struct TcbCache {
    ssthresh: Option<u64>,
    rtt: Option<RttEstimator>,
    path: Option<Path>,
    metrics: Metrics,
}

/// What a connection has measured of the path, for careful resume.
#[derive(Clone, Copy, Debug)]
struct Path {
    saved: Resume,
    /// When it was measured.
    at: Time,
}

/// What Linux remembers of a destination and uses as it is shipped (tcp_metrics.c; `tcp_no_ssthresh_metrics_save` is 1, and the window that
/// it remembers counts only if a route fixes it).
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Metrics {
    /// A smoothed round trip, rather too long than too short.
    pub(in crate::tcp) rtt: Option<Duration>,
    /// By how many segments data has come late; 0 if not more than [`DUP_THRESH`].
    pub(in crate::tcp) reordering: u64,
}

impl Metrics {
    /// A connection ends (`tcp_update_metrics`). `rtt`: its smoothed round trip, unless it has none or its timer is backed off.
    /// `reordering`: by how many segments data has come late, if it counts.
    pub(in crate::tcp) fn keep(&mut self, rtt: Option<Duration>, reordering: u64) {
        let (Some(new), known) = (rtt, self.rtt.unwrap_or_default()) else {
            self.rtt = None;
            return;
        };
        self.rtt = Some(if new < known { known - (known - new).div_floor(8) } else { new });
        if reordering > DUP_THRESH as u64 {
            self.reordering = self.reordering.max(reordering);
        }
    }
}

impl TcbCache {
    /// What Linux's hosts remember.
    pub(in crate::tcp) fn metrics(&mut self) -> &mut Metrics {
        &mut self.metrics
    }

    /// Forgets what is known of the path for careful resume, because the path has changed (RFC 9959 §4.3.1).
    pub fn forget_path(&mut self) {
        self.path = None;
    }

    /// Gives the next connection, with the settings `config`, the state that it may use at `now`.
    pub(in crate::tcp) fn inherit(
        &mut self,
        config: &TcpConfig,
        now: Time,
        congestion: &mut Congestion,
        rtt: &mut RttEstimator,
    ) {
        let sharing = config.tcb_sharing;
        match sharing {
            TcbSharing::Off | TcbSharing::Linux => return,
            TcbSharing::Resume => {
                //= RFC 9959 §3.2: "Only one connection can use a specific set of saved CC parameters"
                // That connection's own measurement replaces them. What is older than its lifetime is deleted, too.
                if let Some(path) = self.path.take() {
                    let expires = path.at + config.resume_lifetime;
                    if now <= expires {
                        congestion.resume(path.saved, config.max_jump, expires);
                    }
                }
                return;
            }
            TcbSharing::Ssthresh | TcbSharing::SsthreshAndRtt => {}
        }
        if let Some(ssthresh) = self.ssthresh {
            congestion.window.inherit_ssthresh(ssthresh);
        }
        if let (TcbSharing::SsthreshAndRtt, Some(earlier)) = (sharing, &self.rtt) {
            rtt.inherit(earlier);
        }
    }

    /// Stores a connection's state at `now` (RFC 9040 §4). ssthresh is known only after a loss. `path`: the window that
    /// the connection used, if it measured the minimum round trip.
    pub(in crate::tcp) fn keep(
        &mut self,
        now: Time,
        congestion: &Congestion,
        rtt: &RttEstimator,
        path: Option<Resume>,
    ) {
        if congestion.window.ssthresh() != u64::MAX {
            self.ssthresh = Some(congestion.window.ssthresh());
        }
        self.rtt = Some(*rtt);
        //= RFC 9959 §3.1: "A sender MUST NOT retain more than one set of CC parameters for a Remote Endpoint"
        self.path = path.map(|saved| Path { saved, at: now }).or(self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A longer round trip replaces what is known; a shorter one counts an eighth. A connection whose timer is backed off leaves none, and
    /// what is known of reordering only grows.
    #[test]
    fn linux_remembers_the_longer_round_trip() {
        let ms = Duration::from_millis;
        let mut metrics = Metrics::default();
        for (rtt, reordering, known, late) in [
            (Some(600), 3, Some(600), 0),
            (Some(200), 9, Some(550), 9),
            (Some(700), 5, Some(700), 9),
            (None, 20, None, 9),
        ] {
            metrics.keep(rtt.map(ms), reordering);
            assert_eq!((metrics.rtt, metrics.reordering), (known.map(ms), late), "{rtt:?}");
        }
    }
}
