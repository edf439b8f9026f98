//! The receiver's parts together, without a connection.

use super::*;
use crate::tcp::variant::AckPolicy;

/// Kernel 6.18 at the start of a download: 64 kB of a buffer of 81 920 bytes are offered, and the window follows by two segments for each
/// that comes. Six times it can, and these ACKs are no quick ones; 16 are. The others acknowledge two segments each.
#[test]
fn the_first_22_segments_are_acknowledged_one_by_one() {
    const MSS: u64 = 1448;
    let mut receiver = Receiver::new(&TcpConfig {
        mss: MSS as u16,
        ack: AckPolicy::LINUX,
        receive_buffer: 21_240_000,
        first_window: Some(81_920),
        window_follows: true,
        ..TcpConfig::default()
    });
    receiver.synchronize();
    receiver.offer_window(7);
    let now = Time::from_nanos(1_000_000_000);
    let acks = (0..30).filter(|n| {
        let from = 1 + n * MSS;
        receiver.on_arrival(now, (MSS, from + MSS), Some((1, Duration::from_millis(100))));
        receiver.on_data(now, from, from + MSS);
        receiver.read(now, MSS);
        let is_due = receiver.ack_is_due(now);
        if is_due {
            receiver.offer_window(7);
            receiver.acknowledged(now);
        }
        is_due
    });
    assert_eq!(acks.collect::<Vec<_>>(), [(0..22).collect::<Vec<u64>>(), vec![23, 25, 27, 29]].concat());
}
