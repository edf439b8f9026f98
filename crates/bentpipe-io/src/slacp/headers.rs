//! Header compression of an end's packets, based on the layer's reports of their arrival.

use std::collections::BTreeMap;

use bentpipe_engine::compression::{Announcement, BaseId, Compressor, Decompressor, ExpandError, is_base};
use bentpipe_engine::slacp::Released;
use bentpipe_engine::wire::EmitError;

use super::Bytes;

#[derive(Debug, Default)]
pub(super) struct Headers {
    compressor: Compressor,
    decompressor: Decompressor,
    form: Vec<u8>,
    /// Announcements with unknown fate, by handle.
    announced: BTreeMap<u32, BaseId>,
}

impl Headers {
    /// The compressed form of an IP packet, and possibly an announcement to send with it.
    pub(super) fn compress(&mut self, flow: u64, packet: &[u8]) -> Result<(Bytes, Option<Announcement>), EmitError> {
        if !packet.first().is_some_and(|first| matches!(first >> 4, 4 | 6)) {
            return Err(EmitError::NotInProtocol("packets that are neither IPv4 nor IPv6"));
        }
        let announcement = self.compressor.compress(flow, packet, &mut self.form);
        Ok((self.form.as_slice().into(), announcement))
    }

    /// Stores the handle of the announcement.
    pub(super) fn announced(&mut self, handle: u32, base: BaseId) {
        self.announced.insert(handle, base);
    }

    /// Handles the layer's release of a handle.
    pub(super) fn released(&mut self, handle: u32, how: Released) {
        if !self.announced.is_empty()
            && let Some(base) = self.announced.remove(&handle)
        {
            self.compressor.verdict(base, how == Released::Acknowledged);
        }
    }

    /// Handles an arrival; false for an invalid announcement.
    pub(super) fn learn(&mut self, bytes: &[u8]) -> bool {
        !is_base(bytes) || self.decompressor.learn(bytes).is_ok()
    }

    /// The expanded packet; empty for an announcement.
    pub(super) fn expand(&self, bytes: &[u8], out: &mut [u8]) -> Result<Option<usize>, ExpandError> {
        self.decompressor.expand(bytes, out)
    }
}
