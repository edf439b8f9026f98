//! A source and a sink of datagrams.

use bentpipe_engine::Step;
use bentpipe_engine::units::Time;
use bentpipe_study::scenario::{ConnectionId, UdpFlow};

use crate::delays::Delays;
use crate::pacer::Pacer;
use crate::packet::{Parcel, Store};

/// A sink of datagrams.
#[derive(Clone, Debug, Default)]
pub(crate) struct UdpSink {
    /// Bytes, including headers.
    pub(crate) bytes: u64,
    pub(crate) delays: Delays,
    /// When the first and the last datagram arrived.
    pub(crate) arrivals: Option<(Time, Time)>,
}

/// A source of datagrams at a constant rate, or on and off.
#[derive(Clone, Debug)]
pub(crate) struct UdpSource {
    connection: ConnectionId,
    packet: u32,
    pacer: Pacer,
    stop: Time,
    pub(crate) sent: u64,
}

impl UdpSource {
    pub(crate) fn new(config: &UdpFlow, connection: ConnectionId, start: Time, seed: u64, name: &str) -> Self {
        UdpSource {
            connection,
            packet: config.packet,
            pacer: Pacer::new(config.rate, config.pattern, start, seed, name),
            stop: config.stop.map_or(Time::NEVER, |span| Time::ZERO + span),
            sent: 0,
        }
    }

    pub(crate) fn first_action(&self) -> Time {
        self.pacer.next()
    }

    pub(crate) fn poll(&mut self, now: Time, packets: &mut Store) -> Step<Parcel> {
        let next = self.pacer.next();
        if next >= self.stop {
            return Step::Wait(None);
        }
        if next > now {
            return Step::Wait(Some(next));
        }
        let parcel = packets.put_datagram(self.connection, self.packet, self.sent, now);
        self.sent += 1;
        self.pacer.sent(self.packet);
        Step::Do(parcel)
    }
}
