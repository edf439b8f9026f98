//! The text form of prefixes and destinations in settings.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::{Destination, Prefix};

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl FromStr for Prefix {
    type Err = String;

    /// `10.0.0.0/8`, `2001:db8::/32`, or a single address. The error is a readable message.
    fn from_str(text: &str) -> Result<Prefix, String> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| format!("`{address}` is not an IP address"))?;
        let Some(bits) = bits else { return Ok(Prefix::host(address)) };
        let max = Prefix::host(address).bits;
        let number = digits(bits).filter(|&bits: &u8| bits <= max);
        let bits = number.ok_or_else(|| format!("`{bits}` is not a prefix length from 0 to {max}"))?;
        Prefix::new(address, bits).ok_or(format!("{address} has bits beyond the first {bits}"))
    }
}

impl FromStr for Destination {
    type Err = String;

    /// A prefix or `*`, optionally with ports after a colon: `10.0.0.0/8`, `192.0.2.7:443`, `*:8000-8999`,
    /// `[2001:db8::/32]:443`. The error is a readable message.
    fn from_str(text: &str) -> Result<Destination, String> {
        let (prefix, ports) = match text.strip_prefix('[') {
            Some(rest) => {
                let (prefix, rest) = rest.split_once(']').ok_or("the bracket is not closed")?;
                let ports = if rest.is_empty() {
                    None
                } else {
                    Some(rest.strip_prefix(':').ok_or("after `]`, ports follow a colon")?)
                };
                (prefix, ports)
            }
            // More than one colon: an IPv6 address.
            None => match text.split_once(':') {
                Some((prefix, ports)) if !ports.contains(':') => (prefix, Some(ports)),
                _ => (text, None),
            },
        };
        let prefix = if prefix == "*" { None } else { Some(prefix.parse()?) };
        Ok(Destination { prefix, ports: ports.map_or(Ok(0..=u16::MAX), self::ports)? })
    }
}

fn ports(text: &str) -> Result<std::ops::RangeInclusive<u16>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| digits::<u16>(text).filter(|&port| port > 0);
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        _ => Err(format!("`{text}` is not a port or a range of ports")),
    }
}

/// A number written with digits alone. Rust also takes `+8`.
pub(crate) fn digits<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}
