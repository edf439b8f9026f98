//! Bytes on the line around a frame of the layer: IP, UDP and tunnel headers.

use crate::wire::mux;
use crate::wire::slacp::Integrity;

/// The tunnel's tag authenticates frames, so they need no CRC.
pub const INTEGRITY: Integrity = Integrity::Below;

/// Bytes before the payload of a data datagram of the tunnel: its type, the receiver's index and the datagram's number.
pub const DATA_HEADER: usize = 1 + 4 + 4;
/// Bytes of the tag behind the encrypted payload.
const TAG: usize = 16;
/// Bytes that a data datagram of the tunnel has besides its payload.
pub const DATA_OVERHEAD: usize = DATA_HEADER + TAG;

/// Bytes that an S-LACP frame adds to the longest packet: the header of a repair frame, and the additional bytes that
/// its symbol protects, rounded up to even.
pub const FRAME_OVERHEAD: u16 = (20 + INTEGRITY.trailer() + 4 + 1) as u16;

/// Bytes of the IP and UDP headers around a datagram (RFC 791, RFC 8200, RFC 768).
pub const fn udp_overhead(over_ipv6: bool) -> u16 {
    if over_ipv6 { 48 } else { 28 }
}

/// The longest packet that fits a path of this MTU.
pub const fn max_packet(path_mtu: u16, over_ipv6: bool) -> u16 {
    path_mtu - udp_overhead(over_ipv6) - DATA_OVERHEAD as u16 - FRAME_OVERHEAD
}

/// The longest payload of a message of the multiplexer in such a packet.
pub const fn max_payload(max_packet: u16) -> u32 {
    max_packet as u32 - mux::MAX_DATA_HEADER as u32
}

/// Bytes that a frame takes on the line besides its own, as [`SlacpConfig::overhead`] counts them. The CRC that the
/// machine counts is subtracted, because it is absent here.
///
/// [`SlacpConfig::overhead`]: crate::slacp::SlacpConfig::overhead
pub const fn line_overhead(over_ipv6: bool) -> u32 {
    udp_overhead(over_ipv6) as u32 + DATA_OVERHEAD as u32 - (Integrity::Crc.trailer() - INTEGRITY.trailer()) as u32
}

/// The UDP payload of a datagram whose frame takes so many bytes on the line, with this overhead ([`line_overhead`]).
pub const fn datagram(on_line: u32, overhead: u32) -> u32 {
    on_line - overhead + DATA_OVERHEAD as u32 - (Integrity::Crc.trailer() - INTEGRITY.trailer()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sums of `docs/explanation/gateway.md`: 28 bytes of IPv4 and UDP, 25 of the tunnel, 20 of S-LACP.
    #[test]
    fn a_packet_of_1500_bytes_by_hand() {
        assert_eq!(max_packet(1500, false), 1500 - 28 - 25 - 25);
        assert_eq!(max_payload(max_packet(1500, false)), 1422 - 17);
        // 73 bytes around a packet: 24 of a data frame with its CRC, and this.
        assert_eq!(line_overhead(false), 73 - 24);
        assert_eq!(line_overhead(true), 93 - 24);
    }
}
