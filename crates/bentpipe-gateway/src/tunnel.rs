//! The tunnel between two gateways: datagrams that only the peer can read, and that only the peer can have written.
//!
//! No clock and no socket: whoever drives it brings both. The handshake is Noise IK (revision 34) over X25519,
//! ChaCha20-Poly1305 and BLAKE2s by the crate `snow`: one round trip, both ends known to each other by static keys, new
//! keys every two minutes. Data is encrypted under its keys by `ring`, with ChaCha20-Poly1305 or AES-256-GCM. Why `snow`: QUIC
//! (rustls in quinn-proto) brings its own congestion control and certificates where we want neither; boringtun's noise is
//! bound to WireGuard's wire and to IP packets; `snow` is the handshake and nothing else, is maintained, and lets us number
//! the datagrams ourselves.
//!
//! Around it, as WireGuard (Donenfeld 2017) has it: a number of 64 bits on each datagram is its nonce, and a window
//! refuses replays; macs and cookies stand before the handshake (`guard`); either end may begin, and answers nobody but
//! its peer. Addresses follow the peer: the last authentic datagram says where it is.
//!
//! The ends also agree on whether the link above still is the one that both remember: each end's memory has a number,
//! and an end that was restarted, or that had given the other up, has another. A link begins anew at both ends or at none.
//!
//! Not here: post-quantum keys, but for a preshared one.
//!
//! Reading order: [`PrivateKey`] and [`PublicKey`], `packet` the bytes, `guard` who gets to the handshake, `noise` the
//! handshake, [`Cipher`], `replay`, `session` one set of keys, [`Tunnel`].

mod cipher;
mod guard;
mod keys;
mod machine;
mod noise;
mod packet;
mod replay;
mod session;

pub use cipher::Cipher;
pub use keys::{KeyError, PresharedKey, PrivateKey, PublicKey};
pub use machine::{Event, Heard, Note, Sealed, Todo, Tunnel, TunnelConfig, TunnelStats};
pub use packet::{DATA_HEADER, DATA_OVERHEAD, Kind, What, classify};

#[cfg(test)]
mod tests;
