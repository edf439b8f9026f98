//! Notices when the kernel turns away new connections before the gateway sees them, because its queue of connections
//! being opened is full.
//!
//! The counters are those of the network namespace. The kernel has none of one listener for cookies.

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek};

use bentpipe_engine::units::{Duration, Time};

use super::prepare::{self, MAX_SYN_BACKLOG, SOMAXCONN, SYN_COOKIES};
use crate::log::{LeftOut, Limit, note};
use crate::readings::Readings;
use crate::readings::listener::Unqueued;
use crate::sockets;

/// The counters, from the namespace in which the listeners are.
const COUNTERS: &str = "/proc/thread-self/net/netstat";
/// A period in which connections are turned away ends after this time without one.
const CALM: Duration = Duration::from_secs(5);

impl Unqueued {
    fn sum(self) -> u64 {
        self.cookies + self.full + self.other
    }

    fn since(self, before: Self) -> Self {
        Unqueued {
            cookies: self.cookies.saturating_sub(before.cookies),
            full: self.full.saturating_sub(before.full),
            other: self.other.saturating_sub(before.other),
        }
    }

    /// Reads the kernel's counters: pairs of lines, one with names and one with values (proc_net_netstat in
    /// Documentation/networking/snmp_counter.rst).
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt: "));
        let (names, values) = (lines.next()?.split(' '), lines.next()?.split(' '));
        let all: Vec<(&str, u64)> =
            names.zip(values).filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect();
        let of = |name: &str| all.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        // Drops for any reason are counted as ListenDrops, too.
        let full = of("ListenOverflows")? + of("TCPReqQFullDrop")?;
        let other = of("ListenDrops")?.saturating_sub(full);
        Some(Unqueued { cookies: of("TCPReqQFullDoCookies")?, full, other })
    }
}

/// What to log.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    Begins { why: Why, left_out: LeftOut },
    Over { counted: Unqueued },
}

/// Why connections are turned away, and the setting that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// Every SYN is answered by a cookie.
    OnlyCookies,
    /// The queue has so few places.
    Small { places: u64 },
    /// The queue is as long as the gateway asks for.
    Flood,
    /// Without cookies, the last quarter of so many places is for known clients.
    SmallWithoutCookies { places: u64 },
    /// The queue is not full.
    Other,
}

impl Why {
    /// The cause of what was counted, by the kernel's settings.
    fn of(counted: Unqueued, read: impl Fn(&str) -> Option<u64>) -> Self {
        let cookies = read(SYN_COOKIES);
        match (read(SOMAXCONN), read(MAX_SYN_BACKLOG)) {
            _ if cookies == Some(2) => Why::OnlyCookies,
            (Some(places), _) if counted.cookies + counted.full > 0 && places < prepare::BACKLOG => {
                Why::Small { places }
            }
            _ if counted.cookies + counted.full > 0 => Why::Flood,
            (_, Some(places)) if cookies == Some(0) && places < prepare::UNKNOWN => Why::SmallWithoutCookies { places },
            _ => Why::Other,
        }
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const REMEDY: &str = "run `bentpipe-gateway prepare FILE` as root";
        const SOURCES: &str = "`ss -tn state syn-recv` shows from where";
        match self {
            Said::Begins { why, left_out } => {
                f.write_str("new connections are turned away: ")?;
                match why {
                    Why::OnlyCookies => write!(
                        f,
                        "net.ipv4.tcp_syncookies is 2, so the kernel answers every SYN by a cookie, and no client can connect: {REMEDY}"
                    ),
                    Why::Small { places } => write!(
                        f,
                        "the kernel's queue of half-open connections is full (net.core.somaxconn is {places}): {REMEDY}, then reload \
                         this gateway (SIGHUP); {SOURCES}"
                    ),
                    Why::Flood => {
                        write!(f, "the kernel's queue of {} half-open connections is full: {SOURCES}", sockets::BACKLOG)
                    }
                    Why::SmallWithoutCookies { places } => write!(
                        f,
                        "the kernel's queue of half-open connections is full (net.ipv4.tcp_max_syn_backlog is {places} and \
                         net.ipv4.tcp_syncookies is 0): {REMEDY}; {SOURCES}"
                    ),
                    Why::Other => f.write_str(
                        "the kernel drops SYNs though its queue is not full: is there a route back to the clients?",
                    ),
                }?;
                left_out.fmt(f)
            }
            Said::Over { counted: Unqueued { cookies, full, other } } => write!(
                f,
                "new connections are accepted again; {cookies} SYNs were answered by cookies and so reset, {full} dropped because the \
                 queue was full, {other} for other reasons"
            ),
        }
    }
}

/// One period.
#[derive(Clone, Copy, Debug)]
struct Period {
    begun: Unqueued,
    last: Time,
    is_said: bool,
}

/// Compares the counters at each look.
#[derive(Debug, Default)]
struct Compared {
    first: Option<Unqueued>,
    last: Unqueued,
    period: Option<Period>,
    limit: Limit,
}

impl Compared {
    fn look(&mut self, now: Time, counted: Unqueued, read: impl Fn(&str) -> Option<u64>) -> Option<Said> {
        if self.first.is_none() {
            (self.first, self.last) = (Some(counted), counted);
        }
        let before = std::mem::replace(&mut self.last, counted);
        let more = counted.since(before);
        if more.sum() > 0 {
            if let Some(period) = &mut self.period {
                period.last = now;
                return None;
            }
            let left_out = self.limit.take(now);
            self.period = Some(Period { begun: before, last: now, is_said: left_out.is_some() });
            return Some(Said::Begins { why: Why::of(more, read), left_out: left_out? });
        }
        let over = self.period.take_if(|period| now.saturating_since(period.last) >= CALM)?;
        over.is_said.then(|| Said::Over { counted: counted.since(over.begun) })
    }
}

/// The counters of a gateway that listens.
#[derive(Debug)]
pub(super) struct Backlog {
    /// Kept open: it can be read even when no descriptors are left.
    file: File,
    text: String,
    compared: Compared,
}

impl Backlog {
    /// `None` if the gateway has no listeners, or if the kernel does not show its counters.
    pub(super) fn new(listens: bool) -> Option<Self> {
        let file = listens.then(|| File::open(COUNTERS).ok())??;
        Some(Backlog { file, text: String::new(), compared: Compared::default() })
    }

    /// Reads the counters, logs a line when a period begins or ends, and adds what was counted since the start.
    pub(super) fn look(&mut self, now: Time, readings: &mut Readings) {
        self.text.clear();
        if self.file.rewind().and_then(|()| self.file.read_to_string(&mut self.text)).is_err() {
            return;
        }
        let Some(counted) = Unqueued::parse(&self.text) else { return };
        if let Some(said) = self.compared.look(now, counted, prepare::read) {
            note!("{said}");
        }
        readings.add_unqueued(counted.since(self.compared.first.unwrap_or_default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn the_kernels_text_is_read() {
        let text = "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPReqQFullDoCookies TCPReqQFullDrop\n\
                    TcpExt: 9 1 7 5 2\nIpExt: ListenDrops\nIpExt: 3\n";
        assert_eq!(Unqueued::parse(text), Some(Unqueued { cookies: 5, full: 3, other: 4 }));
        assert_eq!(Unqueued::parse("TcpExt: ListenDrops\nTcpExt: 3\n"), None);
        assert!(std::fs::read_to_string(COUNTERS).is_ok_and(|text| Unqueued::parse(&text).is_some()), "this kernel's");
    }

    /// A flood of any length has one line when it begins and one when it is over; what was counted before does not count.
    #[test]
    fn a_flood_is_said_twice() {
        let mut compared = Compared::default();
        let counted = |cookies| Unqueued { cookies, full: 0, other: 2 };
        let settings = |name: &str| (name == SOMAXCONN).then_some(4096);
        let mut said = Vec::new();
        for second in 0..100 {
            let cookies = 1000 + 10 * (second.clamp(10, 60) - 10);
            said.extend(compared.look(at(second), counted(cookies), settings).map(|said| (second, said)));
        }
        let begins = Said::Begins { why: Why::Small { places: 4096 }, left_out: LeftOut::default() };
        let over = Said::Over { counted: Unqueued { cookies: 500, full: 0, other: 0 } };
        assert_eq!(said, [(11, begins), (65, over)]);
        assert!(said[0].1.to_string().contains("net.core.somaxconn is 4096"), "{}", said[0].1);
    }

    /// Many short floods have few lines, in pairs.
    #[test]
    fn floods_without_end_are_limited() {
        let mut compared = Compared::default();
        let said = (0..600).filter_map(|second| {
            compared.look(at(second), Unqueued { full: second / 10, ..Unqueued::default() }, |_| None)
        });
        let said: Vec<_> = said.collect();
        let begins = said.iter().filter(|said| matches!(said, Said::Begins { .. })).count();
        assert!((6..16).contains(&begins) && said.len() - begins <= begins, "{said:?}");
    }

    #[test]
    fn the_setting_that_matters_is_named() {
        let [cookies, full, other] =
            [(1, 0, 0), (0, 1, 0), (0, 0, 1)].map(|(cookies, full, other)| Unqueued { cookies, full, other });
        let why = |counted, somaxconn, syn_cookies, max_syn_backlog| {
            Why::of(counted, |name| {
                Some(match name {
                    SOMAXCONN => somaxconn,
                    SYN_COOKIES => syn_cookies,
                    _ => max_syn_backlog,
                })
            })
        };
        assert_eq!(why(cookies, 65_536, 2, 65_536), Why::OnlyCookies);
        assert_eq!(why(cookies, 4096, 1, 128), Why::Small { places: 4096 });
        assert_eq!(why(full, 65_536, 1, 128), Why::Flood);
        assert_eq!(why(other, 65_536, 0, 65_536), Why::SmallWithoutCookies { places: 65_536 });
        assert_eq!(why(other, 65_536, 0, 131_072), Why::Other);
        assert_eq!(why(other, 128, 1, 128), Why::Other);
    }
}
