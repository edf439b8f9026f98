//! Several connections at once through one queue, with senders that something other than the path limits.
//!
//! Of the path they show bounds: the rate at least, the losses of the link at most, and how long the queue was with what other segments may
//! have waited for on the host's own line. Each must be on the truth's right side.
//!
//! The bound of the losses is statistical: one-sided of 97.5 %, so of the 24 cells of a link with losses 0.6 miss on average, and more than
//! 3 do with a probability of 0.3 % (binomial).

use bentpipe_fit::Estimate;

use crate::captures::{path, with_drops};

const LOSS_MISSES: usize = 3;
const LIMITS: [&str; 4] = ["", "send_buffer = \"off\"", "receive_buffer = \"256 kB\"", "application"];

/// The first of `count` transfers has `bytes`, limited by its application if `limit` is "application". The others start 0.3 s apart.
fn transfers(link: (f64, u32), limit: &str, keys: &str, bytes: &str, count: u32) -> String {
    let is_paced = limit == "application";
    let mut text = path(link, if is_paced { "" } else { limit }, keys, bytes);
    if is_paced {
        let paced = format!("paced = {{ rate = \"{} Mbit/s\", bytes = \"{bytes}\", write = \"20 kB\" }}", link.0 / 4.0);
        text = text.replace(&format!("bytes = \"{bytes}\""), &paced);
    }
    for number in 1..count {
        text += &format!(
            "[[flows]]\nname = \"data{number}\"\nfrom = \"server\"\nto = \"client\"\nbytes = \"4 MB\"\nstart = \"{} ms\"\n",
            300 * number
        );
    }
    text
}

fn cells(link: (f64, u32), bytes: &str) {
    let mut missed = Vec::new();
    for (count, packets, loss) in [2, 5].iter().flat_map(|&count| {
        [100_u32, 300, 1000].into_iter().flat_map(move |packets| [0.0, 0.001].map(|loss| (count, packets, loss)))
    }) {
        for (limit, host) in LIMITS.iter().flat_map(|&limit| ["server", "client"].map(|host| (limit, host))) {
            let keys = format!("forward.queue = \"{packets} packets\"\nforward.loss = {loss:.4}");
            let (fit, _) = with_drops(&transfers(link, limit, &keys, bytes, count), 1, host);
            let what = format!("{count} over {link:?}, {packets} packets, loss {loss}, {limit}, {host}");
            let (rate, queue) = (link.0 * 1e6, f64::from(packets) * 1500.0);
            assert!(matches!(fit.rate, Estimate::AtLeast { .. }) && fit.rate.allows(rate), "{what}: {:?}", fit.rate);
            assert!(fit.queue_bytes.allows(queue), "{what}: {:?}", fit.queue_bytes);
            assert!(fit.queue_time.allows(queue * 8.0 / rate), "{what}: {:?}", fit.queue_time);
            let losses = &fit.losses;
            assert!(matches!(losses.probability, Estimate::AtMost { .. }), "{what}: {losses:?}");
            if !losses.probability.allows(loss) {
                missed.push(format!("{what}: {losses:?}"));
            }
        }
    }
    assert!(missed.len() <= LOSS_MISSES, "{missed:?}");
}

#[test]
fn geo() {
    cells((20.0, 240), "5 MB");
}

#[test]
fn fast_geo() {
    cells((100.0, 240), "10 MB");
}

#[test]
fn leo() {
    cells((50.0, 20), "6 MB");
}
