//! Header compression at one end, based on the layer's reports of what arrived.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{Announcement, BaseId, Compressor, Decompressor, ExpandError, is_base};
use crate::slacp::Released;
use crate::wire::EmitError;

/// Both directions of an end.
#[derive(Debug, Default)]
pub struct Headers {
    compressor: Compressor,
    decompressor: Decompressor,
    form: Vec<u8>,
    /// Announcements with unknown fate, by handle.
    announced: BTreeMap<u32, BaseId>,
}

impl Headers {
    /// The compressed form of an IP packet, and possibly an announcement to send with it.
    ///
    /// # Errors
    /// Fails if it is not a packet of IPv4 or IPv6.
    pub fn compress(&mut self, flow: u64, packet: &[u8]) -> Result<(&[u8], Option<Announcement>), EmitError> {
        if !packet.first().is_some_and(|first| matches!(first >> 4, 4 | 6)) {
            return Err(EmitError::NotInProtocol("packets that are neither IPv4 nor IPv6"));
        }
        let announcement = self.compressor.compress(flow, packet, &mut self.form);
        Ok((&self.form, announcement))
    }

    /// Stores the handle of the announcement.
    pub fn announced(&mut self, handle: u32, base: BaseId) {
        self.announced.insert(handle, base);
    }

    /// Called when the layer releases a handle; `how` says whether the announcement arrived.
    pub fn released(&mut self, handle: u32, how: Released) {
        if !self.announced.is_empty()
            && let Some(base) = self.announced.remove(&handle)
        {
            self.compressor.verdict(base, how == Released::Acknowledged);
        }
    }

    /// Memory of the state of all flows, bytes.
    pub fn memory(&self) -> u64 {
        self.compressor.memory() + self.decompressor.memory()
    }

    /// Handles an arrival; false for an invalid announcement.
    pub fn learn(&mut self, bytes: &[u8]) -> bool {
        !is_base(bytes) || self.decompressor.learn(bytes).is_ok()
    }

    /// The length of the expanded packet in `out`; `None` for an announcement.
    ///
    /// # Errors
    /// Returns [`ExpandError`] if the message is malformed, refers to an unknown base, or does not fit `out`.
    pub fn expand(&self, bytes: &[u8], out: &mut [u8]) -> Result<Option<usize>, ExpandError> {
        self.decompressor.expand(bytes, out)
    }
}
