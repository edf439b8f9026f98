//! A QUIC connection, as values.

use bentpipe_engine::units::{Bytes, Duration, Probability};

use super::Workload;

/// The congestion control of a QUIC sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuicControl {
    /// quinn's CUBIC: slow start until the first loss.
    Cubic,
    /// quinn's NewReno.
    Reno,
    /// quinn's BBR: BBR's window, paced like every quinn window.
    Bbr,
    /// The engine's CUBIC with HyStart, as in Linux.
    LinuxCubic,
    /// The engine's RFC 9438 with HyStart++.
    Rfc9438,
    /// bentpipe's own: a window that random losses do not change, see `bentpipe_sim`'s `quic::steady`.
    Steady,
}

impl QuicControl {
    /// The words for all of them.
    pub const WORDS: &'static [&'static str] = &["cubic", "reno", "bbr", "linux-cubic", "cubic-rfc9438", "steady"];

    /// All of them, in the same order.
    pub const ALL: [QuicControl; 6] = [
        QuicControl::Cubic,
        QuicControl::Reno,
        QuicControl::Bbr,
        QuicControl::LinuxCubic,
        QuicControl::Rfc9438,
        QuicControl::Steady,
    ];

    /// The word for this control.
    pub fn word(self) -> &'static str {
        QuicControl::WORDS[QuicControl::ALL.iter().position(|known| *known == self).unwrap_or(0)]
    }

    /// The control with this word.
    pub fn named(word: &str) -> Option<QuicControl> {
        let position = QuicControl::WORDS.iter().position(|known| *known == word)?;
        Some(QuicControl::ALL[position])
    }
}

/// How often the sender asks its peer to acknowledge (draft-ietf-quic-ack-frequency).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// Packets that get one ACK.
    pub every: u32,
    /// Max delay of an ACK; `None`: the peer's own, 25 ms.
    pub delay: Option<Duration>,
    /// True: the peer follows it from its first ACK, as an earlier connection has told it. False: a frame tells it.
    pub at_once: bool,
}

impl AckFrequency {
    /// The ACK delay unless another is requested (RFC 9000 §18.2).
    pub const USUAL_DELAY: Duration = Duration::from_millis(25);
}

/// A QUIC connection with equal ends, and its workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuicFlow {
    /// Its workload.
    pub workload: Workload,
    /// The congestion control of both ends.
    pub congestion_control: QuicControl,
    /// True if the client has a ticket of an earlier connection, and sends data at once (RFC 9001 §4.6.1).
    pub zero_rtt: bool,
    /// Number of streams among which the data is divided.
    pub streams: u16,
    /// Initial congestion window; `None`: the control's own.
    pub initial_window: Option<Bytes>,
    /// The assumed round trip before the first measurement; `None`: quinn's 333 ms (RFC 9002 §6.2.2).
    pub initial_rtt: Option<Duration>,
    /// False: packets leave as soon as the window allows.
    pub pacing: bool,
    /// True if the receiving application takes data in any order.
    pub unordered: bool,
    /// Repair symbols of a code over the data, as a share of it; `None`: no code.
    pub repair: Option<Probability>,
    /// Receive window of the connection and of each stream; `None`: see [`QuicFlow::window`].
    pub receive_window: Option<Bytes>,
    /// Maximum data written and not acknowledged; `None`: see [`QuicFlow::window`].
    pub send_window: Option<Bytes>,
    /// Payload of a full UDP datagram; `None`: 1200 bytes, from which quinn searches upwards (RFC 8899).
    pub datagram: Option<u16>,
    /// What the sender asks of its peer's ACKs; `None`: nothing.
    pub ack_frequency: Option<AckFrequency>,
    /// True if both ends send SCONE packets and receivers follow the advice in them.
    pub scone: bool,
    /// Time without packets after which the connection ends.
    pub idle_timeout: Duration,
    /// False: packets keep their lengths and their 16 bytes of tag, but are not encrypted.
    pub encryption: bool,
}

impl QuicFlow {
    /// IPv4 and UDP headers, bytes.
    pub const UDP_HEADERS: u32 = 28;
    /// The minimum UDP payload that a path must carry, and the size of a datagram with an Initial packet (RFC 9000
    /// §14).
    pub(crate) const MIN_DATAGRAM: u16 = 1200;
    /// The maximum UDP payload that the path MTU search tries: quinn's, which is 1500 minus the headers of IPv6 and
    /// UDP.
    pub const MAX_PROBED: u16 = 1452;
    /// Bytes of a connection ID.
    pub const CONNECTION_ID: u32 = 8;
    /// The maximum idle timeout that quinn offers.
    pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
    /// Minimum window: quinn's default for a stream, 100 Mbit/s for 100 ms.
    pub const MIN_WINDOW: u64 = 1_250_000;

    /// A connection with quinn's defaults.
    pub fn new(workload: Workload) -> Self {
        QuicFlow {
            workload,
            congestion_control: QuicControl::Cubic,
            zero_rtt: false,
            streams: 1,
            initial_window: None,
            initial_rtt: None,
            pacing: true,
            unordered: false,
            repair: None,
            receive_window: None,
            send_window: None,
            datagram: None,
            ack_frequency: None,
            scone: false,
            idle_timeout: QuicFlow::IDLE_TIMEOUT,
            encryption: true,
        }
    }

    /// The maximum UDP payload that the connection may send.
    pub fn max_datagram(&self) -> u16 {
        self.datagram.unwrap_or(QuicFlow::MAX_PROBED)
    }

    /// Bytes of a full packet that cannot be stream data: the short header's flags, a connection ID, the minimum packet
    /// number (RFC 9000 §17.3.1), the tag (RFC 9001 §5.3), and the type and stream of a STREAM frame without offset and
    /// length (§19.8).
    pub(crate) const fn min_overhead() -> u32 {
        1 + QuicFlow::CONNECTION_ID + 1 + 16 + 2
    }

    /// A window that is no limit on a path that holds `path` bytes, in flight and in its queue.
    ///
    /// Slow start sends up to twice the amount that the path holds before it learns of a loss. While a hole in the data
    /// is being repaired, the application reads nothing. A repair that is lost again takes further round trips, and
    /// each may bring another window. The result allows for four such round trips.
    pub fn window(path: Bytes) -> Bytes {
        Bytes::new(path.get().saturating_mul(8).max(QuicFlow::MIN_WINDOW))
    }
}
