//! Limited transmit: a new segment on each of the first duplicate ACKs (RFC 3042).

use crate::tcp::config::WindowUnit;
use crate::tcp::congestion::Window;
use crate::tcp::sequence::SequenceSpace;
use crate::tcp::span::Span;

/// The state of limited transmit.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Limited {
    is_enabled: bool,
    /// The last duplicate ACK allows one segment.
    is_allowed: bool,
    /// Bytes sent by limited transmit since `snd_una` moved.
    sent: u64,
}

impl Limited {
    pub(super) fn new(is_enabled: bool) -> Self {
        Limited { is_enabled, is_allowed: false, sent: 0 }
    }

    pub(in crate::tcp) fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Bytes sent since `snd_una` moved: they do not count as outstanding when the window is halved.
    pub(in crate::tcp) fn sent(&self) -> u64 {
        self.sent
    }

    /// Allows one segment, because of a duplicate ACK.
    pub(in crate::tcp) fn allow(&mut self) {
        self.is_allowed = true;
    }

    /// True if a segment is allowed.
    #[inline(always)]
    pub(super) fn is_allowed(&self) -> bool {
        self.is_allowed
    }

    /// Uses up the allowance. Returns true if a segment was allowed.
    #[inline(always)]
    pub(in crate::tcp) fn take_allowance(&mut self) -> bool {
        core::mem::take(&mut self.is_allowed)
    }

    pub(super) fn forbid(&mut self) {
        self.is_allowed = false;
    }

    #[inline(always)]
    pub(super) fn advance(&mut self) {
        (self.is_allowed, self.sent) = (false, 0);
    }

    //= RFC 3042 §2: "The amount of outstanding data would remain less than or equal to the congestion window plus 2
    //= segments"
    /// Chooses a full segment from `from` on, after this many duplicate ACKs; `full`: the payload of a full segment.
    pub(in crate::tcp) fn choose(
        &mut self,
        seq: &mut SequenceSpace,
        window: &Window,
        from: u64,
        duplicates: u32,
        full: u16,
    ) -> Option<Span> {
        let cwnd = match window.unit() {
            WindowUnit::Bytes => window.cwnd(),
            WindowUnit::Segments => window.whole(),
        };
        let edge = seq.right_edge((cwnd + duplicates as u64 * window.mss()).min(window.clamp()));
        if from >= seq.data_end || from + window.mss().min(seq.data_end - from) > edge {
            return None;
        }
        seq.snd_nxt = from;
        let span = seq.span(from, edge, full);
        self.sent += span.len as u64;
        Some(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::config::TcpConfig;

    /// RFC 3042 §2, with a window of 4000 bytes that are all outstanding: each of two duplicate ACKs lets a segment of
    /// 1000 leave. The peer's window must have room for it, and there must be data; the last segment may be short.
    #[test]
    fn each_duplicate_lets_a_segment_leave() {
        for (data, peer, sent) in [
            (10_000, 10_000, [1000, 2000]),
            (10_000, 5999, [1000, 1000]),
            (10_000, 4999, [0, 0]),
            (4000, 10_000, [0, 0]),
            (5500, 10_000, [1000, 1500]),
        ] {
            let mut seq = SequenceSpace::new(0, peer);
            (seq.snd_nxt, seq.snd_max, seq.data_end) = (4000, 4000, data);
            let window = Window::new(&TcpConfig { mss: 1000, ..TcpConfig::default() }, 4);
            let mut limited = Limited::new(true);
            let seen = [1, 2].map(|duplicates| {
                limited.allow();
                if limited.take_allowance()
                    && let Some(span) = limited.choose(&mut seq, &window, 4000 + limited.sent(), duplicates, 1000)
                {
                    (seq.snd_nxt, seq.snd_max) = (span.end(), span.end());
                }
                limited.sent()
            });
            assert_eq!(seen, sent, "{data} {peer}");
            // An ACK of new data withdraws what was allowed.
            limited.allow();
            limited.advance();
            assert!(!limited.is_allowed() && limited.sent() == 0);
        }
    }
}
