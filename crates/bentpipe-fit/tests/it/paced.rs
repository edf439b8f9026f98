//! Near the receiver, the pauses of a sender that paces are no time on the line, and its late answers no time in the queue.

use bentpipe_fit::Estimate;

use crate::captures::{path, with_drops};

/// Pauses of 0.2 to 2 ms counted as time on the line: the rate was 88.7 Mbit/s, 82.7 to 94.6. Over a queue of 20 packets, the losses that
/// it caused counted as the link's: 27 %.
#[test]
fn bbr_near_the_receiver() {
    for packets in [20_u32, 100, 500, 1000] {
        let keys = format!("forward.queue = \"{packets} packets\"");
        let text = path((100.0, 120), "", &keys, "15 MB").replace("\"cubic\"", "\"bbr\"");
        let (fit, drops) = with_drops(&text, 1, "client");
        let Estimate::Measured { low, high, .. } = fit.rate else { panic!("{packets}: {:?}", fit.rate) };
        assert!(low <= 100e6 && 100e6 <= high && high - low < 1e6, "{packets}: {:?}", fit.rate);
        let full = f64::from(packets) * 1500.0;
        assert!(fit.queue_bytes.allows(full), "{packets}: {:?}", fit.queue_bytes);
        assert!(fit.losses.probability.allows(0.0), "{packets}: {:?}", fit.losses);
        // If it overflowed, the estimate is the queue's length to within the millisecond between two bursts.
        let overflowed = drops.iter().any(|drops| drops.queue_full > 0);
        match fit.queue_bytes {
            Estimate::Measured { value, .. } => {
                assert!(overflowed && (value - full).abs() < 12_500.0, "{packets}: {value}")
            }
            other => assert!(!overflowed, "{packets}: {other:?}"),
        }
    }
}
