//! The rate that the network advises to QUIC (SCONE).

use super::{bulk, fingerprint, geo, results};

/// Advice of 18 Mbit/s: signal 45, 100 kbit/s times 10^2.25, 17.78 Mbit/s. Over 600 ms the window that fills it is 1.52 MB, which the
/// path of 1.5 MB and its queue of as much can hold: nothing is lost. Slow start without advice fills both and loses packets.
#[test]
fn advice_keeps_the_queue_short() {
    let losses = |link: &str, quic: &str| {
        let scenario = geo(link, &bulk("20 MB", quic));
        let result = results(&scenario);
        assert_eq!(result.flows[0].delivered, 20_000_000, "{link}, {quic}");
        (result.links[0].dropped_full, result.flows[0].stats.max_flight)
    };
    const ADVICE: &str = "throughput_advice = \"18 Mbit/s\"";
    let (alone, followed) = (losses(ADVICE, "scone = false"), losses(ADVICE, "scone = true"));
    assert!(alone.0 > 0 && followed.0 == 0, "{alone:?}, {followed:?}");
    // The window counts data, the flight packets with their headers, and packets without data.
    let window = 17_782_794 * 6 / 80 * 8 / 7;
    assert!((window * 9 / 10..window * 11 / 10).contains(&followed.1), "{followed:?}");
    let unadvised = losses("", "scone = true");
    assert!(unadvised.0 > 0 && unadvised.1 > followed.1, "{unadvised:?}");
}

/// A gateway of shape `link` advises as a network element before the link does: connections behave as they do at the same advice.
#[test]
fn a_gateway_advises_as_a_link_does() {
    let through = |link: &str, gateway: &str| {
        let boxes = format!(
            "[[gateways]]\nname = \"boxes\"\nshape = \"link\"\nnear = \"client\"\nfar = \"server\"\n{gateway}\n"
        );
        fingerprint(&geo(link, &(boxes + &bulk("5 MB", "scone = true"))))
    };
    let unadvised = through("", "");
    let links = |there: u32, back: u32| {
        let advice = |way, rate| format!("{way}.throughput_advice = \"{rate} Mbit/s\"\n");
        through(&(advice("forward", there) + &advice("backward", back)), "")
    };
    let by_link = links(15, 19);
    assert_ne!(by_link, unadvised);
    // The far box sends the server's packets, the near one the client's.
    assert_eq!(through("", "throughput_advice = [\"19 Mbit/s\", \"15 Mbit/s\"]"), by_link);
    assert_eq!(through("", "throughput_advice = \"line\""), links(20, 20));
}
