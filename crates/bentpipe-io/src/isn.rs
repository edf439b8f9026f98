//! Initial sequence numbers.

use std::net::{IpAddr, SocketAddr};
use std::sync::LazyLock;

use bentpipe_engine::units::Time;
use blake2::Blake2sMac;
use blake2::digest::consts::U4;
use blake2::digest::{FixedOutput, KeyInit, Update};

/// Key of [`isn`].
type Secret = [u8; 32];

/// Returns an initial sequence number for a connection between these two ends (RFC 6528 §3).
///
/// The secret key comes from the system's entropy, once per process. `now` is the caller's clock.
///
/// # Panics
/// Panics if the system has no entropy.
pub fn isn(now: Time, local: SocketAddr, remote: SocketAddr) -> u32 {
    static SECRET: LazyLock<Secret> = LazyLock::new(|| {
        let mut secret = Secret::default();
        getrandom::fill(&mut secret).expect("the system has entropy");
        secret
    });
    isn_with(&SECRET, now, local, remote)
}

//= RFC 6528 §3: "ISN = M + F(localip, localport, remoteip, remoteport, secretkey)"
fn isn_with(secret: &Secret, now: Time, local: SocketAddr, remote: SocketAddr) -> u32 {
    //= RFC 6528 §3: "where M is the 4 microsecond timer, and F() is a pseudorandom function (PRF) of the connection-id."
    let timer = (now.as_nanos() / 4_000) as u32;
    let mut hash = Blake2sMac::<U4>::new_from_slice(secret).expect("a key of 32 bytes is one of BLAKE2s");
    for end in [local, remote] {
        // Both addresses have the same IP version, so the lengths distinguish IPv4 and IPv6.
        match end.ip() {
            IpAddr::V4(ip) => hash.update(&ip.octets()),
            IpAddr::V6(ip) => hash.update(&ip.octets()),
        }
        hash.update(&end.port().to_be_bytes());
    }
    timer.wrapping_add(u32::from_le_bytes(hash.finalize_fixed().into()))
}

#[cfg(test)]
mod tests {
    use bentpipe_engine::units::Duration;

    use super::*;

    #[test]
    fn sequence_numbers_follow_the_clock_and_differ_between_peers() {
        let local = SocketAddr::from(([192, 0, 2, 1], 80));
        let peer = |port| SocketAddr::from(([192, 0, 2, 2], port));
        let first = isn(Time::ZERO, local, peer(1000));
        let later = isn(Time::ZERO + Duration::from_secs(1), local, peer(1000));
        assert_eq!(later.wrapping_sub(first), 250_000);
        assert_ne!(first, isn(Time::ZERO, local, peer(1001)));
    }

    /// RFC 6528 §3: each of the five arguments of F matters, and M wraps after 2^32 ticks.
    #[test]
    fn sequence_numbers_depend_on_the_key_and_all_of_the_connection() {
        let (local, remote): (SocketAddr, SocketAddr) = (([192, 0, 2, 1], 80).into(), ([192, 0, 2, 2], 1000).into());
        let of = |secret, local, remote| isn_with(&secret, Time::ZERO, local, remote);
        let first = of([1; 32], local, remote);
        assert_eq!(of([1; 32], local, remote), first);
        let mut last = [1; 32];
        last[31] = 2;
        let v6 = |host: u16| SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, host], 80));
        let others = [
            of(last, local, remote),
            of([1; 32], remote, local),
            of([1; 32], ([192, 0, 2, 3], 80).into(), remote),
            of([1; 32], ([192, 0, 2, 1], 81).into(), remote),
            of([1; 32], local, ([192, 0, 2, 3], 1000).into()),
            of([1; 32], local, ([192, 0, 2, 2], 1001).into()),
            of([1; 32], v6(1), v6(2)),
        ];
        let all: std::collections::BTreeSet<u32> = others.into_iter().chain([first]).collect();
        // Eight 32-bit numbers from fixed keys: they differ deterministically, not by chance.
        assert_eq!(all.len(), 8);
        let wrapped = Time::from_nanos((1 << 32) * 4_000 + 4_000);
        assert_eq!(isn_with(&[1; 32], wrapped, local, remote), first.wrapping_add(1));
    }
}
