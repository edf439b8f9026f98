//! One end of a link layer in virtual time: the engine's machine, and the packets behind its handles and numbers.

use std::collections::{BTreeMap, VecDeque};

use bentpipe_engine::gateway::{self, Layer};
use bentpipe_engine::slacp::classify::Rule;
use bentpipe_engine::slacp::{End, Frame};
use bentpipe_engine::slots::Slots;
use bentpipe_engine::units::{Duration, Time};

use crate::boxes::Above;
use crate::holding::Holding;
use crate::packet::Parcel;

/// The time that a box takes to pass a packet to the kernel of its hosts: 124 and 150 segments took 0.28 and 0.30 ms (`tcp_probe` at a host
/// behind a box, a build of profile `dev`).
const PASSING: Duration = Duration::from_nanos(2100);

/// An end, with the driver's state for it.
#[derive(Clone, Debug)]
pub(crate) struct LayerEnd {
    pub(crate) end: End,
    pub(crate) above: Above,
    /// True while it is polled: packets that enter meanwhile wait for the next poll.
    pub(crate) is_polled: bool,
    /// Until when the box passes on packets; it reads no others before, since it is a single thread.
    pub(crate) busy: Time,
    /// Packets that wait for that.
    pub(crate) unread: Vec<Parcel>,
    /// Overhead of a frame on the line, bytes.
    pub(crate) overhead: u32,
    /// Maximum packet length.
    pub(crate) mtu: u32,
    /// Number of packets that were too long.
    pub(crate) too_long: u64,
    pub(crate) rules: Vec<(Rule, u8)>,
    pub(crate) default_channel: u8,
    /// The memory of packets, if the end belongs to a box.
    pub(crate) holding: Option<Holding>,
    /// Packets by handle, not by their slot in the store: the far end is done with a packet before its copy is released
    /// here, and by then the slot may have been reused.
    held: Vec<Held>,
    free_handles: Vec<u32>,
    /// The packets sent, by channel.
    sent: Vec<Sent>,
    /// The number of frames per packet, by channel; and the packets of several frames, by id.
    segments: Vec<u8>,
    parts: BTreeMap<u64, Part>,
    packets: u64,
}

/// A packet that the machine knows by its handle.
#[derive(Clone, Copy, Debug)]
struct Held {
    parcel: Parcel,
    /// Its length in the layer.
    len: u32,
    /// A unique id: handles are reused while the far end may still wait for a frame of the previous packet.
    id: u64,
}

/// A packet with frames in flight.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Number of frames that the far end has neither delivered nor skipped.
    left: u8,
    /// True if a frame was skipped, so that the packet is lost.
    broken: bool,
}

/// What the fate of a frame means for its packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Taken {
    /// Other frames of the packet are still pending.
    InPart,
    Whole(Parcel),
    Broken(Parcel),
}

/// Packets from their first transmission until the far end has delivered or skipped them. They are stored here and not
/// in frames, because a packet recovered by an erasure code was not in any frame that arrived.
#[derive(Clone, Debug, Default)]
struct Sent {
    first: u64,
    /// Each packet, with the distance back to the previous packet of its flow.
    packets: VecDeque<Option<(Held, u32)>>,
}

impl LayerEnd {
    /// An end whose channels have these numbers of frames per packet.
    pub(crate) fn new(end: End, mtu: u32, rules: (Vec<(Rule, u8)>, u8), segments: Vec<u8>) -> Self {
        LayerEnd {
            end,
            above: Above::Flows,
            is_polled: false,
            busy: Time::ZERO,
            unread: Vec::new(),
            overhead: 0,
            mtu,
            too_long: 0,
            rules: rules.0,
            default_channel: rules.1,
            holding: None,
            held: Vec::new(),
            free_handles: Vec::new(),
            sent: vec![Sent::default(); segments.len()],
            segments,
            parts: BTreeMap::new(),
            packets: 0,
        }
    }

    /// An end of a gateway's tunnel, for packets of at most `max_packet` bytes, which together take at most `memory`
    /// bytes.
    pub(crate) fn of_box(layer: Layer, max_packet: u32, memory: u64, above: Above) -> Self {
        let Layer { config, rules, default_channel, .. } = layer;
        let segments = vec![1; config.channels.len()];
        let end = LayerEnd::new(End::new(&config), max_packet, (rules, default_channel), segments);
        LayerEnd { above, overhead: gateway::line_overhead(false), holding: Some(Holding::new(memory)), ..end }
    }

    /// Limits a channel's queue so that its next packet takes no more memory than there is.
    pub(crate) fn limit_queue(&mut self, channel: u8) {
        if let Some(holding) = &self.holding {
            holding.limit_queue(&mut self.end, channel, channel == self.default_channel, self.mtu);
        }
    }

    /// True if there is memory for a frame.
    pub(crate) fn has_room(&self, frame: &Frame) -> bool {
        self.holding.as_ref().is_none_or(|holding| holding.has_room(frame, &self.end))
    }

    /// Records that a packet has arrived.
    pub(crate) fn arrive(&mut self, channel: u8, seq: u64, len: u32) {
        if let Some(holding) = &mut self.holding {
            holding.arrive(channel, seq, len);
        }
    }

    /// Records that an arrived packet is delivered.
    pub(crate) fn deliver(&mut self, now: Time, channel: u8, seq: u64) {
        if matches!(self.above, Above::Packets(_)) {
            self.busy = self.busy.max(now) + PASSING;
        }
        if let Some(holding) = &mut self.holding {
            holding.deliver(channel, seq);
        }
    }

    /// Stores a packet that has this length in the layer. Returns its handle.
    pub(crate) fn hold(&mut self, parcel: Parcel, len: u32) -> u32 {
        if let Some(holding) = &mut self.holding {
            holding.give(len);
        }
        let parcel = Held { parcel, len, id: self.packets };
        self.packets += 1;
        match self.free_handles.pop() {
            Some(handle) => {
                self.held[handle as usize] = parcel;
                handle
            }
            None => {
                self.held.push(parcel);
                self.held.len() as u32 - 1
            }
        }
    }

    /// Releases a handle with which the machine is done. Returns its packet.
    pub(crate) fn let_go(&mut self, handle: u32) -> Parcel {
        self.free_handles.push(handle);
        let Held { parcel, len, .. } = self.held[handle as usize];
        if let Some(holding) = &mut self.holding {
            holding.release(len);
        }
        parcel
    }

    /// Called when a data frame is sent with the packet of this handle.
    pub(crate) fn on_sent(&mut self, frame: &Frame, handle: u32) {
        if let Frame::Data { channel, seq, behind, .. } = *frame {
            let held = self.held[handle as usize];
            let sent = &mut self.sent[channel as usize];
            // Any other number is a retransmission.
            if seq == sent.first + sent.packets.len() as u64 {
                sent.packets.push_back(Some((held, behind)));
                let left = self.segments[channel as usize];
                if left > 1 {
                    self.parts.entry(held.id).or_insert(Part { left, broken: false });
                }
            }
        }
    }

    /// The length of a packet that the far end requests, and the distance back to the previous packet of its flow.
    pub(crate) fn look_up(&self, channel: u8, seq: u64) -> Option<(u32, u32)> {
        let sent = &self.sent[channel as usize];
        (*sent.packets.get(seq.checked_sub(sent.first)? as usize)?).map(|(held, behind)| (held.len, behind))
    }

    /// Records that the far end is done with a frame, which it skipped or delivered.
    pub(crate) fn take(&mut self, channel: u8, seq: u64, skipped: bool) -> Option<Taken> {
        let sent = &mut self.sent[channel as usize];
        let (Held { parcel, id, .. }, _) = sent.packets.get_mut(seq.checked_sub(sent.first)? as usize)?.take()?;
        while let Some(None) = sent.packets.front() {
            sent.packets.pop_front();
            sent.first += 1;
        }
        let mut broken = skipped;
        if let Some(part) = self.parts.get_mut(&id) {
            part.left -= 1;
            part.broken |= skipped;
            broken = part.broken;
            if part.left > 0 {
                return Some(Taken::InPart);
            }
            self.parts.remove(&id);
        }
        Some(if broken { Taken::Broken(parcel) } else { Taken::Whole(parcel) })
    }
}

/// The frames in flight.
#[derive(Debug, Default)]
pub(crate) struct Frames(Slots<Frame>);

impl Frames {
    pub(crate) fn keep(&mut self, frame: Frame) -> u32 {
        self.0.keep(frame)
    }

    /// Makes a second frame with the same content, which arrives separately.
    pub(crate) fn copy(&mut self, slot: u32) -> u32 {
        let frame = self.0.get(slot).cloned().expect("a frame in flight");
        self.keep(frame)
    }

    pub(crate) fn take(&mut self, slot: u32) -> Frame {
        self.0.take(slot).expect("a frame is taken once")
    }
}
