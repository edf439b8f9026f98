//! State shared between successive connections to one host (RFC 9040).

use super::config::TcbSharing;
use super::congestion::Window;
use crate::rtt::RttEstimator;

/// The state that connections to one host leave for later ones.
#[derive(Clone, Debug, Default)]
pub struct TcbCache {
    ssthresh: Option<u64>,
    rtt: Option<RttEstimator>,
}

impl TcbCache {
    /// Gives the next connection the state that it may use.
    pub(in crate::tcp) fn inherit(&self, sharing: TcbSharing, window: &mut Window, rtt: &mut RttEstimator) {
        if sharing == TcbSharing::Off {
            return;
        }
        if let Some(ssthresh) = self.ssthresh {
            window.inherit_ssthresh(ssthresh);
        }
        if let (TcbSharing::SsthreshAndRtt, Some(earlier)) = (sharing, &self.rtt) {
            rtt.inherit(earlier);
        }
    }

    /// Stores a connection's state (RFC 9040 §4). ssthresh is known only after a loss.
    pub(in crate::tcp) fn keep(&mut self, window: &Window, rtt: &RttEstimator) {
        if window.ssthresh() != u64::MAX {
            self.ssthresh = Some(window.ssthresh());
        }
        self.rtt = Some(*rtt);
    }
}
