//! Clean paths from 20 kbit/s to 200 Mbit/s, with each kind of gateway: nothing is lost, so each sender that adapts fills
//! the line within some round trips, and none is faster than the limit.

use bentpipe_engine::NoProbe;
use bentpipe_engine::units::Time;
use bentpipe_sim::run;
use bentpipe_study::limit::flow_limit;
use bentpipe_study::scenario::Scenario;

/// The settings of a flow.
const TRANSPORTS: &[&str] = &[
    "tcp = { profile = \"rfc\", variant = \"rack\" }",
    "tcp = { profile = \"rfc\", variant = \"prague\", ecn = \"accurate\" }",
    "tcp = { profile = \"linux\" }",
    "tcp = { profile = \"linux\", variant = \"bbr\" }",
    "tcp = { profile = \"linux\", pacing.gain = 120 }",
    "tcp = { profile = \"macos\" }",
    "tcp = { profile = \"windows\" }",
    #[cfg(feature = "quic")]
    "type = \"quic\"\nquic = { encryption = false }",
    #[cfg(feature = "quic")]
    "type = \"quic\"\nquic = { encryption = false, congestion_control = \"linux-cubic\" }",
];

const GATEWAYS: &[&str] = &[
    "",
    "shape = \"split\"\nnear = \"near\"\nfar = \"far\"",
    "shape = \"link\"\nnear = \"near\"\nfar = \"far\"",
    "shape = \"uplink\"\nat = \"far\"",
];

/// A server, a satellite link of `rate` kbit/s with `delay` ms, and a client.
fn path(rate: u64, delay: u64, gateway: &str, flow: &str) -> String {
    // Two products of the path, and what every sender needs.
    let queue = rate * (delay + 5) / 2 / 1500 + 50;
    let gateway = match gateway {
        "" => String::new(),
        settings => format!("[[gateways]]\nname = \"boxes\"\n{settings}\n"),
    };
    format!(
        "name = \"clean\"\ntime_limit = \"5000 s\"\n\
         [[links]]\nname = \"internet\"\nbetween = [\"server\", \"far\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\
         [[links]]\nname = \"sat\"\nbetween = [\"far\", \"near\"]\nrate = \"{rate} kbit/s\"\ndelay = \"{delay} ms\"\nqueue = \"{queue} packets\"\n\
         [[links]]\nname = \"lan\"\nbetween = [\"near\", \"client\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\
         {gateway}[[flows]]\n{flow}\n"
    )
}

#[test]
fn every_sender_fills_a_clean_line() {
    let mut faults = String::new();
    let mut worst = (0.0, String::new());
    for (rate, delay) in
        [(20, 20), (20, 279), (200, 1), (200, 279), (5000, 20), (5000, 279), (200_000, 1), (200_000, 279)]
    {
        // Eight seconds of the line, at most 2 MB.
        let bytes = (rate * 1000).min(2_000_000);
        for (gateway, transport, [from, to]) in GATEWAYS.iter().flat_map(|gateway| {
            let both = [["server", "client"], ["client", "server"]];
            TRANSPORTS.iter().flat_map(move |transport| both.map(|ends| (gateway, transport, ends)))
        }) {
            let flow = format!("from = \"{from}\"\nto = \"{to}\"\nbytes = \"{bytes} B\"\n{transport}");
            let text = path(rate, delay, gateway, &flow);
            let scenario = Scenario::parse(&text, "clean.toml", &[]).unwrap_or_else(|e| panic!("{}", e.render(false)));
            let result = run(&scenario, 1, &mut NoProbe).expect("it runs");
            let flow = &result.flows[0];
            let case = format!("{rate} kbit/s, {delay} ms, {gateway}, from {from}, {transport}").replace('\n', " ");
            for link in &result.links {
                if link.offered < link.delivered + link.dropped() {
                    faults.push_str(&format!("{case}: more came than went: {link:?}\n"));
                }
            }
            let Some(received) = flow.received_at.filter(|_| flow.aborted.is_none() && flow.delivered == bytes) else {
                faults.push_str(&format!("{case}: {} of {bytes}, {:?}\n", flow.delivered, flow.aborted));
                continue;
            };
            let time = received.saturating_since(Time::ZERO).as_secs_f64();
            let limit = flow_limit(&scenario, &scenario.flows[0]).expect("joined").and_then(|limit| limit.time);
            let limit = limit.expect("it has an end").as_secs_f64();
            // A round trip without queues, with a full packet and its ACK: half of the time is that of the transfer, the
            // rest that of a window which doubles every other round trip.
            let round = 2.0 * (delay as f64 + 2.0) / 1e3 + 1540.0 * 8.0 / (rate * 1000) as f64;
            let rounds = (time - limit) / round;
            if rounds > worst.0 {
                worst = (rounds, case.clone());
            }
            if time < limit * (1.0 - 1e-9) || time > 1.3 * limit + MAX_ROUNDS * round {
                faults.push_str(&format!("{case}: {time:.3} s, at best {limit:.3}; {rounds:.1} round trips more\n"));
            }
        }
    }
    println!("most round trips beyond the limit: {worst:?}");
    assert!(faults.is_empty(), "{faults}");
}

/// 2 MB are 1400 segments: from ten on, a window that grows by half per round trip (an ACK for two segments) needs 9 until
/// it has sent them all. Handshakes, delayed ACKs and the first rounds of those that grow slower take as many, and some.
const MAX_ROUNDS: f64 = 20.0;
