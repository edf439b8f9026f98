//! Connects to servers, and logs that the box has no source port left.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use bentpipe_engine::mux::Route;
use bentpipe_engine::units::{Duration, Time};
use mio::net::TcpStream;

use crate::log;
use crate::sockets::{self, ClientAddress};

/// The interval of lines about missing ports.
const PAUSE: Duration = Duration::from_secs(60);

/// When the next line may be written.
#[derive(Debug, Default)]
pub(crate) struct Dialer {
    due: Time,
}

/// No source port is free for a connection to this destination.
struct NoPort {
    to: SocketAddr,
    address: ClientAddress,
}

impl fmt::Display for NoPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoPort { to, address } = self;
        write!(
            f,
            "no source port was free for a connection to {to}, so the client was reset: widen net.ipv4.ip_local_port_range"
        )?;
        if *address == ClientAddress::Replace {
            f.write_str(", or keep the clients' addresses (`client_address`), since each has ports of its own")?;
        }
        Ok(())
    }
}

impl Dialer {
    /// Connects as [`sockets::connect`] does.
    pub(crate) fn connect(
        &mut self,
        now: Time,
        route: Route,
        address: ClientAddress,
        mark: Option<u32>,
    ) -> (io::Result<TcpStream>, bool) {
        let (made, other_port) = sockets::connect(route, address, mark);
        if let Err(error) = &made
            && self.tells(now, error)
        {
            log::line(NoPort { to: route.destination, address });
        }
        (made, other_port)
    }

    /// True if this error needs a line now.
    fn tells(&mut self, now: Time, error: &io::Error) -> bool {
        let tells = error.kind() == ErrorKind::AddrNotAvailable && self.due <= now;
        if tells {
            self.due = now + PAUSE;
        }
        tells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_to_change() {
        let line = |address| {
            let to = SocketAddr::from(([10, 2, 0, 2], 443));
            NoPort { to, address }.to_string()
        };
        let keep = "no source port was free for a connection to 10.2.0.2:443, so the client was reset: widen net.ipv4.ip_local_port_range";
        assert_eq!(line(ClientAddress::Keep), keep);
        assert!(line(ClientAddress::Replace).starts_with(&format!("{keep}, or keep the clients' addresses")));
    }

    #[test]
    fn a_minute_has_one_line() {
        let mut dialer = Dialer::default();
        let missing = io::Error::from(ErrorKind::AddrNotAvailable);
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        for other in [ErrorKind::ConnectionRefused, ErrorKind::AddrInUse, ErrorKind::PermissionDenied] {
            assert!(!dialer.tells(at(5), &other.into()), "{other}");
        }
        let told: Vec<u64> = (5..200).filter(|&second| dialer.tells(at(second), &missing)).collect();
        assert_eq!(told, [5, 65, 125, 185]);
    }

    #[test]
    fn missing_ports_are_missing_resources() {
        let error = io::Error::from(ErrorKind::AddrNotAvailable);
        assert_eq!(sockets::reason(&error), bentpipe_engine::mux::Reason::NoResources);
    }
}
