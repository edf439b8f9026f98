//! Counts datagrams that the kernel refuses, by reason, and logs a line at the beginning and at the end.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use bentpipe_engine::units::{Duration, Time};
use nix::errno::Errno;

/// A period of trouble ends after this time without a refusal.
const CALM: Duration = Duration::from_secs(5);

/// Number of refused datagrams, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refusals {
    /// Longer than the interface's MTU: EMSGSIZE.
    pub(crate) too_long: u64,
    /// No room in a queue: EAGAIN, ENOBUFS, ENOMEM.
    pub(crate) no_room: u64,
    /// Other errors: no route, an interface that is down, a firewall.
    pub(crate) unreachable: u64,
}

impl Refusals {
    pub(crate) fn sum(&self) -> u64 {
        self.too_long + self.no_room + self.unreachable
    }
}

/// What to log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Begins { errno: Errno, to: SocketAddr },
    Over { count: u64 },
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Said::Begins { errno, to } => {
                write!(f, "the kernel refuses the tunnel's datagrams to {to}: {}", errno.desc())?;
                match errno {
                    Errno::ENETUNREACH | Errno::EHOSTUNREACH | Errno::ENETDOWN => {
                        write!(f, "; `ip route get {}` shows its route", to.ip())
                    }
                    // A blackhole route, for which `ip route get` has the same error.
                    Errno::EINVAL => {
                        let version = if to.is_ipv6() { " -6" } else { "" };
                        write!(f, "; `ip{version} route show to match {}` shows its routes", to.ip())
                    }
                    Errno::EPERM | Errno::EACCES => f.write_str("; does a firewall's rule for output drop them?"),
                    Errno::EAGAIN | Errno::ENOBUFS => f.write_str("; the interface is slower than `rate`"),
                    _ => Ok(()),
                }
            }
            Said::Over { count } => write!(f, "the kernel accepts the tunnel's datagrams again; it refused {count}"),
        }
    }
}

/// Counts refusals.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    refusals: Refusals,
    /// The number of refusals when the trouble began, and the time of the last one.
    since: Option<(u64, Time)>,
}

impl Trouble {
    pub(crate) fn refusals(&self) -> Refusals {
        self.refusals
    }

    /// Records that datagrams were refused. One that is too long is not trouble: the path's MTU is searched again.
    pub(crate) fn on_refused(&mut self, now: Time, to: SocketAddr, error: &io::Error, count: u64) -> Option<Said> {
        let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
        match errno {
            Errno::EMSGSIZE => {
                self.refusals.too_long += count;
                return None;
            }
            Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM => self.refusals.no_room += count,
            _ => self.refusals.unreachable += count,
        }
        let begins = self.since.is_none();
        let before = self.since.map_or(self.refusals.sum() - count, |(before, _)| before);
        self.since = Some((before, now));
        begins.then_some(Said::Begins { errno, to })
    }

    /// Records that datagrams were accepted.
    pub(crate) fn on_sent(&mut self, now: Time) -> Option<Said> {
        let (before, _) = self.since.take_if(|(_, last)| now.saturating_since(*last) >= CALM)?;
        Some(Said::Over { count: self.refusals.sum() - before })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There is one line at the beginning and one at the end, however many datagrams are refused in between.
    #[test]
    fn each_trouble_is_said_twice() {
        let mut trouble = Trouble::default();
        let at = |tenths: u64| Time::ZERO + Duration::from_millis(100 * tenths);
        let error = |errno: Errno| io::Error::from_raw_os_error(errno as i32);
        let to: SocketAddr = ([192, 0, 2, 1], 4500).into();
        assert_eq!(trouble.on_refused(at(0), to, &error(Errno::EMSGSIZE), 1), None);
        for round in 0..2_u64 {
            let mut said = Vec::new();
            for n in 0..1000 {
                let now = at(round * 1000 + n);
                said.extend(if n % 10 < 9 && n < 500 {
                    trouble.on_refused(now, to, &error(Errno::ENETUNREACH), 2)
                } else {
                    trouble.on_sent(now)
                });
            }
            assert_eq!(said, [Said::Begins { errno: Errno::ENETUNREACH, to }, Said::Over { count: 900 }]);
        }
        // "Invalid argument" alone helps nobody.
        let said = trouble.on_refused(at(2500), to, &error(Errno::EINVAL), 1).expect("it begins").to_string();
        let expected = "Invalid argument; `ip route show to match 192.0.2.1` shows its routes";
        assert!(said.ends_with(expected), "{said}");
        trouble.on_refused(at(3000), to, &error(Errno::ENOBUFS), 3);
        assert_eq!(trouble.refusals(), Refusals { too_long: 1, no_room: 3, unreachable: 1801 });
    }
}
