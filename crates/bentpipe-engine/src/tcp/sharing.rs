//! State shared between successive connections to one host (RFC 9040).

use super::config::{Resume, TcbSharing};
use super::congestion::Congestion;
use crate::rtt::RttEstimator;

/// The state that connections to one host leave for later ones.
#[derive(Clone, Debug, Default)]
pub struct TcbCache {
    ssthresh: Option<u64>,
    rtt: Option<RttEstimator>,
    path: Option<Resume>,
}

impl TcbCache {
    /// Gives the next connection the state that it may use.
    pub(in crate::tcp) fn inherit(&mut self, sharing: TcbSharing, congestion: &mut Congestion, rtt: &mut RttEstimator) {
        match sharing {
            TcbSharing::Off => return,
            TcbSharing::Resume => {
                // RFC 9959 §3.2: only one connection may use it. That connection's own measurement replaces it.
                if let Some(path) = self.path.take() {
                    congestion.resume(path);
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

    /// Stores a connection's state (RFC 9040 §4). ssthresh is known only after a loss. `path`: the window that the
    /// connection used, if it measured the minimum round trip.
    pub(in crate::tcp) fn keep(&mut self, congestion: &Congestion, rtt: &RttEstimator, path: Option<Resume>) {
        if congestion.window.ssthresh() != u64::MAX {
            self.ssthresh = Some(congestion.window.ssthresh());
        }
        self.rtt = Some(*rtt);
        self.path = path.or(self.path);
    }
}
