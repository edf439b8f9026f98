//! Bytes from the network, without any key: none of them brings anything, whatever they look like, and nothing is answered.

use bentpipe_engine::Step;
use bentpipe_engine::units::{Duration, Time};
use bentpipe_gateway::tunnel::{Heard, PrivateKey, Todo, Tunnel, TunnelConfig};

pub(crate) fn run(data: &[u8]) {
    let [private, peer] =
        ["4GWIBQGy+ykODPHIYWyxBVtmcmHFZlWbU5BDWJzhc0M=", "EOXVdFLr6cdSWbcCkTa1KrbiNbc5XhUgQcNZXLm1p0s="]
            .map(|text| text.parse::<PrivateKey>().expect("a key"));
    let config = TunnelConfig {
        keepalive: Duration::from_secs(5),
        dead_after: Duration::from_secs(15),
        ..TunnelConfig::new(private, peer.public(), None)
    };
    let mut tunnel = Tunnel::new(config, Time::ZERO);
    let mut rest = data;
    let mut now = Time::ZERO;
    while let [length, more @ ..] = rest {
        let (datagram, next) = more.split_at(usize::from(*length).min(more.len()));
        rest = next;
        now += Duration::from_millis(u64::from(*length));
        let mut out = [0; 1500];
        let heard = tunnel.receive(now, ([192, 0, 2, 1], 1).into(), &mut datagram.to_vec());
        assert_eq!(heard, Heard::default());
        let step = tunnel.poll(now, 1, &mut out);
        // A first message of version 3 is named: its mac needs the public key only.
        assert!(matches!(step, Step::Wait(_) | Step::Do(Todo::Log(_))), "strangers get no answer: {step:?}");
        assert!(!tunnel.is_up());
    }
}
