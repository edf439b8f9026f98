//! The settings of the machine, the values derived for a connection, and the counters.

use bentpipe_engine::tcp::variant::Startup;
use bentpipe_engine::tcp::{TcpConfig, TcpStats};
use bentpipe_engine::units::{Duration, Rate};
use bentpipe_io::Endpoint;

/// Stray segments and retransmissions of the last FIN arrive within a few round trips; the client's port has no other user.
const MIN_TIME_WAIT: Duration = Duration::from_secs(5);
/// The smallest size of each of a connection's buffers, bytes.
pub(super) const MIN_BUFFER: usize = 16 << 10;

/// The settings of the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct UplinkConfig {
    /// The row of the sender, and all other settings. The settings below can reduce segments, the receive buffer and TIME-WAIT, and
    /// raise the first timeout.
    pub tcp: TcpConfig,
    /// A connection's window in bytes: of rows whose window is fixed instead of theirs, of others as a clamp. `None`
    /// leaves the row as it is.
    pub window: Option<u64>,
    /// What goes to the clients keeps to this, headers of IP included.
    pub rate: Rate,
    /// There and back.
    pub round_trip: Duration,
    /// The longest IP packet that the way to the clients takes.
    pub mtu: u16,
    /// Whether clients are answered before the server has accepted.
    pub early_accept: bool,
    /// Connections that may be open at a time.
    pub max_streams: u32,
    /// Bytes that all buffers together may take.
    pub memory: u64,
}

impl UplinkConfig {
    /// The most half-open connections: half of all places, and half of the memory, are reserved for open ones.
    pub(super) fn max_half_open(&self) -> usize {
        let room = self.memory / 2 / (2 * MIN_BUFFER as u64);
        usize::try_from(room.min(u64::from(self.max_streams) / 2)).unwrap_or(usize::MAX).max(1)
    }

    /// The settings of a connection whose client takes segments of `peer_mss`.
    pub(super) fn settings(&self, is_v6: bool, peer_mss: Option<u16>) -> TcpConfig {
        let UplinkConfig { mut tcp, window, rate, round_trip, mtu, .. } = *self;
        let headers = if is_v6 { 60 } else { 40 };
        tcp.mss = tcp.mss.min(mtu.saturating_sub(headers)).max(1);
        if let Some(window) = window {
            // Windows are told in segments: of the length that this client will get.
            let options = if tcp.timestamps { 12 } else { 0 };
            let mss = tcp.mss.min(peer_mss.unwrap_or(536)).saturating_sub(options).max(1);
            let segments = u32::try_from(window.div_ceil(u64::from(mss))).unwrap_or(u32::MAX).max(1);
            match &mut tcp.variant.startup {
                Startup::FixedWindow(fixed) => *fixed = segments,
                Startup::SlowStart => tcp.window_clamp = Some(segments),
            }
        }
        // What a client may send ahead: two bandwidth-delay products, should its link be as fast as ours.
        let buffer = (2 * rate.bytes_in_floor(round_trip)).max(256 << 10);
        tcp.receive_buffer = tcp.receive_buffer.min(u32::try_from(buffer).unwrap_or(u32::MAX));
        tcp.rto.initial = tcp.rto.initial.max(round_trip.saturating_mul(2)).min(tcp.rto.max);
        tcp.time_wait = tcp.time_wait.min(MIN_TIME_WAIT.max(round_trip.saturating_mul(4)));
        tcp
    }

    /// The send buffer for a client: two windows, so that the second is there when the first is acknowledged.
    pub(super) fn send_buffer(&self) -> usize {
        let bdp = self.rate.bytes_in_floor(self.round_trip);
        let own = match self.tcp.variant.startup {
            Startup::FixedWindow(segments) => u64::from(segments) * u64::from(self.tcp.mss),
            Startup::SlowStart => bdp,
        };
        (2 * self.window.unwrap_or(own).max(bdp)).max(128 << 10) as usize
    }
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UplinkStats {
    /// Connections that are open or being opened.
    pub open: u64,
    /// Connections begun by a SYN that was taken.
    pub total: u64,
    /// Connections that the server accepted.
    pub connected: u64,
    /// Connections that it did not.
    pub failed: u64,
    /// Connections refused for want of descriptors, of memory, or because there were too many.
    pub refused: u64,
    /// Connections that were reset, by the client, or because it was gone.
    pub reset: u64,
    /// Connections given up because nothing was heard of the client.
    pub silent: u64,
    /// Packets of connections that are none of ours, which passed.
    pub passed: u64,
    /// Packets that were damaged.
    pub malformed: u64,
    /// Packets sent, and their bytes.
    pub packets: u64,
    /// Bytes of them, headers included.
    pub bytes: u64,
    /// Segments that take sequence space, and those of them that were sent before.
    pub segments: u64,
    /// Repetitions.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Packets of clients that found no memory.
    pub no_room: u64,
    /// Bytes that buffers take.
    pub memory: u64,
}

impl UplinkStats {
    /// Adds what a connection counted.
    pub(super) fn add(&mut self, endpoint: &Endpoint) {
        let TcpStats { data_segments, retransmits, timeouts, .. } = endpoint.connection().stats();
        self.segments += data_segments;
        self.retransmits += retransmits;
        self.timeouts += timeouts;
        self.no_room += endpoint.no_room();
    }
}
