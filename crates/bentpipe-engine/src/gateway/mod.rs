//! What gateways over a satellite link are made of besides their machines: the settings of the layer that follow from
//! the link, the sizes of what goes over it, how much a connection may hold, and the sender and the pacer of `uplink`.
//!
//! The gateway program and the simulator both take them from here, so a gateway in virtual time is the one that moves real
//! bytes. Sockets, encryption and the tunnel's handshake are the program's.

mod holding;
mod pacer;
mod satellite;
mod sizes;
mod uplink;

pub use holding::{CONNECTION, MAX_UNSENT, MIN_UNSENT, Memory, ROOM, packet_memory, queue_room};
pub use pacer::Pacer;
pub use satellite::{Layer, Satellite};
pub use sizes::{
    DATA_HEADER, DATA_OVERHEAD, FRAME_OVERHEAD, INTEGRITY, line_overhead, max_packet, max_payload, udp_overhead,
};
pub use uplink::{UplinkSender, kernel_pacing};
