//! s2n-quic's CUBIC with a switch for its pacer. The pacer acts only by the earliest departure time that the congestion
//! control reports; without one, s2n-quic sends as soon as the window allows.

use s2n_quic::provider::congestion_controller::{
    CongestionController, Cubic, Endpoint, PathInfo, Publisher, RandomGenerator, RttEstimator, Timestamp,
};

type Inner = <Cubic as Endpoint>::CongestionController;

/// Makes controls with or without pacing.
#[derive(Clone, Copy, Debug)]
pub struct Switched {
    pub is_paced: bool,
}

impl Endpoint for Switched {
    type CongestionController = Control;

    fn new_congestion_controller(&mut self, path: PathInfo) -> Control {
        Control { is_paced: self.is_paced, inner: Cubic::default().new_congestion_controller(path) }
    }
}

#[derive(Clone, Debug)]
pub struct Control {
    is_paced: bool,
    inner: Inner,
}

impl CongestionController for Control {
    type PacketInfo = <Inner as CongestionController>::PacketInfo;

    fn earliest_departure_time(&self) -> Option<Timestamp> {
        self.inner.earliest_departure_time().filter(|_| self.is_paced)
    }

    fn congestion_window(&self) -> u32 {
        self.inner.congestion_window()
    }

    fn bytes_in_flight(&self) -> u32 {
        self.inner.bytes_in_flight()
    }

    fn is_congestion_limited(&self) -> bool {
        self.inner.is_congestion_limited()
    }

    fn requires_fast_retransmission(&self) -> bool {
        self.inner.requires_fast_retransmission()
    }

    fn send_quantum(&self) -> Option<usize> {
        self.inner.send_quantum()
    }

    fn on_packet_sent<P: Publisher>(
        &mut self,
        sent: Timestamp,
        bytes: usize,
        app_limited: Option<bool>,
        rtt: &RttEstimator,
        publisher: &mut P,
    ) -> Self::PacketInfo {
        self.inner.on_packet_sent(sent, bytes, app_limited, rtt, publisher)
    }

    fn on_rtt_update<P: Publisher>(&mut self, sent: Timestamp, now: Timestamp, rtt: &RttEstimator, publisher: &mut P) {
        self.inner.on_rtt_update(sent, now, rtt, publisher);
    }

    fn on_ack<P: Publisher>(
        &mut self,
        newest_sent: Timestamp,
        bytes: usize,
        newest: Self::PacketInfo,
        rtt: &RttEstimator,
        random: &mut dyn RandomGenerator,
        now: Timestamp,
        publisher: &mut P,
    ) {
        self.inner.on_ack(newest_sent, bytes, newest, rtt, random, now, publisher);
    }

    fn on_packet_lost<P: Publisher>(
        &mut self,
        bytes: u32,
        packet: Self::PacketInfo,
        persistent: bool,
        new_burst: bool,
        random: &mut dyn RandomGenerator,
        now: Timestamp,
        publisher: &mut P,
    ) {
        self.inner.on_packet_lost(bytes, packet, persistent, new_burst, random, now, publisher);
    }

    fn on_explicit_congestion<P: Publisher>(&mut self, count: u64, now: Timestamp, publisher: &mut P) {
        self.inner.on_explicit_congestion(count, now, publisher);
    }

    fn on_mtu_update<P: Publisher>(&mut self, max_datagram_size: u16, publisher: &mut P) {
        self.inner.on_mtu_update(max_datagram_size, publisher);
    }

    fn on_packet_discarded<P: Publisher>(&mut self, bytes: usize, publisher: &mut P) {
        self.inner.on_packet_discarded(bytes, publisher);
    }
}
