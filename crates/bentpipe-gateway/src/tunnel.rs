//! The tunnel between two gateways: only the peer can read or write its datagrams.
//!
//! It has no clock and no socket: the driver supplies both. The handshake is Noise IK (revision 34) over X25519,
//! ChaCha20-Poly1305 and BLAKE2s, by the crate `snow`: one round trip, both ends identified by static keys, and new
//! keys every two minutes. Data is encrypted under its keys by `ring`, with ChaCha20-Poly1305 or AES-256-GCM. Why
//! `snow`: QUIC (rustls in quinn-proto) brings unwanted congestion control and certificates; boringtun's handshake is
//! bound to WireGuard's wire format and to IP packets; `snow` is only the handshake, is maintained, and leaves the
//! numbering of datagrams to its user.
//!
//! The rest follows WireGuard (Donenfeld 2017). The 64-bit number of each datagram is its nonce, and a window refuses
//! replays. MACs and cookies protect the handshake (`guard`). Either end may begin the handshake, and each answers only
//! its peer. The peer may roam: its address is that of the last authentic datagram, but only a limited number of bytes
//! is sent there until the peer has answered from it (`machine::reach`).
//!
//! The ends also agree on whether both remember the same link. Each end's memory has a number, which changes when the
//! end restarts or gives up the other end. A link restarts at both ends or at neither.
//!
//! The ends tell each other what they carry, streams or packets. If that differs, no session begins.
//!
//! Not implemented: post-quantum keys, other than a preshared one.
//!
//! Reading order: [`PrivateKey`] and [`PublicKey`]; `packet` (the bytes); `guard` (the checks before the handshake);
//! `noise` (the handshake); [`Cipher`]; `replay`; `session` (one set of keys); [`Tunnel`].

mod carries;
mod cipher;
mod guard;
mod keys;
mod machine;
mod noise;
mod packet;
mod replay;
mod session;

pub use carries::Carries;
pub use cipher::Cipher;
pub use keys::{KeyError, PresharedKey, PrivateKey, PublicKey};
#[cfg(test)]
pub(crate) use machine::seed_draws;
pub use machine::{Event, Heard, Note, Sealed, Todo, Tunnel, TunnelConfig, TunnelStats};
pub use packet::{DATA_HEADER, DATA_OVERHEAD, Kind, What, classify};

#[cfg(test)]
mod tests;
