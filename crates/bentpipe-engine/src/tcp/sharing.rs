//! What connections to one host tell the next one (RFC 9040).

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
    /// Hands the next connection what it may use.
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

    /// Keeps what a connection has learnt (RFC 9040 §4). A threshold is known after a loss only.
    pub(in crate::tcp) fn keep(&mut self, window: &Window, rtt: &RttEstimator) {
        if window.ssthresh() != u64::MAX {
            self.ssthresh = Some(window.ssthresh());
        }
        self.rtt = Some(rtt.clone());
    }
}
