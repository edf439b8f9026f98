//! The numbers of ends: two for each connection, then one for the destination of each spoofed flow, then two for each
//! link layer.

use bentpipe_engine::network::EndId;
use bentpipe_engine::probe::Who;
use bentpipe_study::scenario::ConnectionId;

/// The end that opens a connection.
#[inline(always)]
pub(crate) const fn opener(connection: ConnectionId) -> EndId {
    EndId(2 * connection.0)
}

/// The other end.
#[inline(always)]
pub(crate) const fn listener(connection: ConnectionId) -> EndId {
    EndId(2 * connection.0 + 1)
}

/// The connection of an end.
#[inline(always)]
pub(crate) const fn connection(end: EndId) -> ConnectionId {
    ConnectionId(end.0 / 2)
}

/// True for the end that opens its connection.
#[inline(always)]
pub(crate) const fn opens(end: EndId) -> bool {
    end.0.is_multiple_of(2)
}

/// The other end of the connection.
#[inline(always)]
pub(crate) const fn peer(end: EndId) -> EndId {
    EndId(end.0 ^ 1)
}

/// The number by which observers know an end.
#[inline(always)]
pub(crate) const fn who(end: EndId) -> Who {
    Who(end.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ends_for_each_connection() {
        for number in [ConnectionId(0), ConnectionId(1), ConnectionId(7)] {
            let ends = [opener(number), listener(number)];
            assert_eq!(ends.map(connection), [number; 2]);
            assert_eq!(ends.map(opens), [true, false]);
            assert_eq!(ends.map(peer), [ends[1], ends[0]]);
        }
    }
}
