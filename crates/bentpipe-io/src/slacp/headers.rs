//! Compressed headers of an end's packets, on top of what the layer says of their arrival.

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
    /// Announcements whose fate is not known, by handle.
    announced: BTreeMap<u32, BaseId>,
}

impl Headers {
    /// What is carried instead of an IP packet, and perhaps an announcement besides it.
    pub(super) fn compress(&mut self, flow: u64, packet: &[u8]) -> Result<(Bytes, Option<Announcement>), EmitError> {
        if !packet.first().is_some_and(|first| matches!(first >> 4, 4 | 6)) {
            return Err(EmitError::NotInProtocol("what is neither version of IP"));
        }
        let announcement = self.compressor.compress(flow, packet, &mut self.form);
        Ok((self.form.as_slice().into(), announcement))
    }

    /// The announcement goes under this handle.
    pub(super) fn announced(&mut self, handle: u32, base: BaseId) {
        self.announced.insert(handle, base);
    }

    /// The layer has done with a handle.
    pub(super) fn released(&mut self, handle: u32, how: Released) {
        if !self.announced.is_empty()
            && let Some(base) = self.announced.remove(&handle)
        {
            self.compressor.verdict(base, how == Released::Acknowledged);
        }
    }

    /// Something has arrived; false for an announcement that is none.
    pub(super) fn learn(&mut self, bytes: &[u8]) -> bool {
        !is_base(bytes) || self.decompressor.learn(bytes).is_ok()
    }

    /// The packet that it stands for; none for an announcement.
    pub(super) fn expand(&self, bytes: &[u8], out: &mut [u8]) -> Result<Option<usize>, ExpandError> {
        self.decompressor.expand(bytes, out)
    }
}
