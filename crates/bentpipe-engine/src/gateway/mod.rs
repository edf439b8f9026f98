//! What gateways over a satellite link consist of, besides their machines: the layer settings that follow from the
//! link, the sizes of packets on it, how much memory a connection may hold, and the sender and pacer of `uplink`.
//!
//! The gateway program and the simulator share this code, so a gateway in virtual time is the same one that moves real
//! bytes. Sockets, encryption and the tunnel's handshake belong to the program.

mod holding;
mod pacer;
mod satellite;
mod sizes;
mod uplink;

pub use holding::{CONNECTION, MAX_UNSENT, MIN_UNSENT, Memory, ROOM, packet_memory, queue_room};
pub use pacer::Pacer;
pub use satellite::{Layer, Satellite};
pub use sizes::{
    DATA_HEADER, DATA_OVERHEAD, FRAME_OVERHEAD, INTEGRITY, datagram, line_overhead, max_packet, max_payload,
    udp_overhead,
};
pub use uplink::{PATIENCE, UplinkSender, kernel_pacing, limit_timeouts, max_timeout};
