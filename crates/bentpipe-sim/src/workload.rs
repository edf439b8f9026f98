//! The bytes that the two ends of a connection send and expect.

use bentpipe_engine::units::Bytes;
use bentpipe_study::scenario::Workload;

/// The data of a greedy source: more than a million seconds at a gigabit per second.
pub(crate) const ENDLESS: u64 = 1 << 50;

/// One end's part of a workload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// Bytes to write until the end is done.
    pub(crate) to_send: u64,
    /// Bytes to receive; `u64::MAX` if the workload is endless.
    pub(crate) expected: u64,
    /// Requests to send.
    pub(crate) requests: u32,
}

impl Share {
    /// The part of the client or of the server.
    pub(crate) fn of(workload: Workload, client: bool) -> Share {
        let (sent, received, requests) = match workload {
            Workload::Bulk(bytes) => (bytes.get(), 0, 0),
            Workload::Paced { total, .. } => (total.map_or(ENDLESS, Bytes::get), 0, 0),
            Workload::Greedy { .. } => (ENDLESS, 0, 0),
            Workload::RequestResponse { request, response, count, .. } => {
                (request.get() * u64::from(count), response.get() * u64::from(count), count)
            }
        };
        if client {
            return Share { to_send: sent, expected: received, requests };
        }
        let is_endless = matches!(workload, Workload::Greedy { .. } | Workload::Paced { total: None, .. });
        Share { to_send: received, expected: if is_endless { u64::MAX } else { sent }, requests: 0 }
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_engine::units::{Duration, Rate};
    use bentpipe_study::scenario::UdpPattern;

    use super::*;

    /// What one end sends is what the other one expects, and the client alone asks.
    #[test]
    fn the_ends_share_a_workload() {
        let shares = |workload| {
            [true, false].map(|client| {
                let Share { to_send, expected, requests } = Share::of(workload, client);
                (to_send, expected, requests)
            })
        };
        let bytes = Bytes::new;
        let rate = Rate::from_bits_per_second(1000).expect("above 0");
        let paced = |total| Workload::Paced { rate, write: bytes(10), pattern: UdpPattern::Cbr, total };
        let asks =
            Workload::RequestResponse { request: bytes(2), response: bytes(30), think: Duration::ZERO, count: 5 };
        assert_eq!(shares(Workload::Bulk(bytes(7))), [(7, 0, 0), (0, 7, 0)]);
        assert_eq!(shares(paced(Some(bytes(70)))), [(70, 0, 0), (0, 70, 0)]);
        assert_eq!(shares(asks), [(10, 150, 5), (150, 10, 0)]);
        for endless in [Workload::Greedy { duration: None }, paced(None)] {
            assert_eq!(shares(endless), [(ENDLESS, 0, 0), (0, u64::MAX, 0)]);
        }
    }
}
