//! Datagrams that a carrier sends besides whole frames: parts, probes of the path's MTU, and acknowledgements of the
//! peer's probes.

use bentpipe_engine::Step;
use bentpipe_engine::units::Time;

use super::{Carried, Carrier, PathChange};
use crate::path_mtu::Ask;
use crate::tunnel::{DATA_HEADER, DATA_OVERHEAD, Sealed, What};

/// Length of a datagram with an acknowledgement.
const ACK: u64 = DATA_OVERHEAD as u64 + 4;

impl Carrier {
    pub(super) fn next_part(&mut self, now: Time, out: &mut [u8]) -> Option<Sealed> {
        let length = self.cutter.write(&mut out[DATA_HEADER..])?;
        let sealed = self.tunnel.seal(now, What::Part, length, out)?;
        self.paths.current.on_sent(sealed.len);
        Some(sealed)
    }

    /// Sends parts, probes and acknowledgements of probes.
    pub(super) fn poll_path(&mut self, now: Time, out: &mut [u8]) -> Step<Carried> {
        // Without keys nothing can be sent, and what cannot be sent would be lost.
        if !self.tunnel.may_seal(now) {
            return Step::Wait(None);
        }
        if self.tunnel.allowance() >= u64::from(self.paths.current.size())
            && let Some(sealed) = self.next_part(now, out)
        {
            return Step::Do(Carried::Send(sealed));
        }
        while self.tunnel.allowance() >= ACK
            && let Some(id) = self.acks.pop_front()
        {
            out[DATA_HEADER..DATA_HEADER + 4].copy_from_slice(&id.to_le_bytes());
            if let Some(sealed) = self.tunnel.seal(now, What::Ack, 4, out) {
                return Step::Do(Carried::Send(sealed));
            }
        }
        // A path that may not be the peer's is not searched.
        if self.endpoint.is_none() || self.tunnel.allowance() < u64::MAX {
            return Step::Wait(None);
        }
        loop {
            match self.paths.current.poll(now) {
                Step::Wait(until) => return Step::Wait(until),
                Step::Do(Ask::Probe { id, size }) => {
                    let length = usize::from(size) - DATA_OVERHEAD;
                    let payload = &mut out[DATA_HEADER..DATA_HEADER + length];
                    payload.fill(0);
                    payload[..4].copy_from_slice(&id.to_le_bytes());
                    if let Some(sealed) = self.tunnel.seal(now, What::Probe, length, out) {
                        return Step::Do(Carried::Send(sealed));
                    }
                }
                Step::Do(Ask::Changed { black_hole, .. }) => {
                    if let Some(endpoint) = self.endpoint.as_mut().filter(|_| black_hole) {
                        self.past.black_holes += 1;
                        endpoint.on_path_change();
                    }
                    let (mtu, max_packet) = (self.path_mtu(), self.max_packet());
                    return Step::Do(Carried::PathMtu(PathChange { mtu, max_packet, black_hole }));
                }
            }
        }
    }
}
