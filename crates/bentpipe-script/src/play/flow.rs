//! A pair of ports, and the translation between the script's numbers and this run's.

use std::collections::{BTreeMap, VecDeque};

use crate::lang::ast::{Tcp, TcpOption};
use crate::wire::{Seen, flag, show_flags};

/// Packets between one pair of ports.
#[derive(Debug)]
pub(super) struct Flow {
    /// The host's port, the peer's.
    pub(super) local: u16,
    pub(super) remote: u16,
    /// Ports as the script names them, seen from the peer.
    pub(super) script_ports: Option<(u16, u16)>,
    /// It started while nobody listened.
    pub(super) is_closed_port: bool,
    /// The host's initial sequence number, which the script calls 0.
    isn: Option<u32>,
    /// The peer's, unchanged in the script.
    pub(super) peer_isn: Option<u32>,
    /// Sent by the host, not compared yet.
    pub(super) queue: VecDeque<(i64, Seen)>,
    /// The host's timestamps, by the script's values.
    stamps: BTreeMap<u32, u32>,
    /// The first pair: the script's value, and the one the host sent.
    pub(super) first_stamp: Option<(u32, u32)>,
    /// Window scale offered by the host in this run, by the host in the script, and by the peer.
    scale: Option<u8>,
    script_scale: Option<u8>,
    peer_scale: Option<u8>,
    /// Position of the host's FIN in the script; the number that acknowledges the peer's FIN.
    pub(super) fin_at: Option<u32>,
    pub(super) peer_fin: Option<u32>,
    /// The MSS in the host's SYN.
    mss: u16,
    /// The first host sequence number that the peer has not acknowledged, in the script's numbers.
    pub(super) last_quoted: u32,
}

impl Flow {
    pub(super) fn new(local: u16, remote: u16, script_ports: Option<(u16, u16)>) -> Self {
        Flow {
            local,
            remote,
            script_ports,
            is_closed_port: false,
            isn: None,
            peer_isn: None,
            queue: VecDeque::new(),
            stamps: BTreeMap::new(),
            first_stamp: None,
            scale: None,
            script_scale: None,
            peer_scale: None,
            fin_at: None,
            peer_fin: None,
            mss: 536,
            last_quoted: 0,
        }
    }

    /// A host number of this run, from the script's.
    pub(super) fn ours(&self, script: u32) -> u32 {
        script.wrapping_add(self.isn.unwrap_or(0))
    }

    /// A number in the script's numbers.
    pub(super) fn script(&self, ours: u32) -> u32 {
        ours.wrapping_sub(self.isn.unwrap_or(0))
    }

    /// An option of the peer in this run's numbers, because it refers to the host's data and timestamps.
    pub(super) fn option_in(&self, option: &TcpOption) -> TcpOption {
        match option {
            TcpOption::Sack(blocks) => {
                TcpOption::Sack(blocks.iter().map(|(start, end)| (self.ours(*start), self.ours(*end))).collect())
            }
            TcpOption::Timestamps(value, echo) => TcpOption::Timestamps(*value, self.stamp(*echo)),
            other => other.clone(),
        }
    }

    /// The host's timestamp for the script's value.
    fn stamp(&self, script: u32) -> u32 {
        if let Some(live) = self.stamps.get(&script) {
            return *live;
        }
        match self.first_stamp {
            Some((first, live)) if script != 0 => live.wrapping_add(script.wrapping_sub(first)),
            _ => script,
        }
    }

    pub(super) fn note_received(&mut self, tcp: &Tcp) {
        if tcp.flags & flag::SYN != 0 {
            self.peer_scale = tcp.options.iter().flatten().find_map(scale_of);
        }
        if let (Some(seq), true) = (tcp.seq, tcp.flags & flag::FIN != 0) {
            self.peer_fin = Some(seq.wrapping_add(tcp.len + 1));
        }
        if let Some(ack) = tcp.ack {
            self.last_quoted = ack;
        }
    }

    pub(super) fn note_sent(&mut self, seen: &Seen) {
        if seen.has(flag::SYN) {
            self.isn = Some(seen.seq);
            self.scale = seen.options.iter().find_map(scale_of);
            let mss = seen.options.iter().find_map(|option| match option {
                TcpOption::Mss(mss) => Some(*mss),
                _ => None,
            });
            self.mss = mss.unwrap_or(536).max(1);
        }
    }

    /// Stores the script's numbers for a matched packet.
    pub(super) fn learn(&mut self, tcp: &Tcp, seen: &Seen) {
        if let (Some(seq), true) = (tcp.seq, seen.has(flag::FIN)) {
            self.fin_at = Some(seq.wrapping_add(tcp.len));
        }
        if tcp.flags & flag::SYN != 0 {
            self.script_scale = tcp.options.iter().flatten().find_map(scale_of);
        }
        if let (Some(script), Some(live)) =
            (tcp.options.iter().flatten().find_map(value_of), seen.options.iter().find_map(value_of))
        {
            self.stamps.insert(script, live);
            self.first_stamp.get_or_insert((script, live));
        }
    }

    /// True if the host's windows are scaled by a shift that the script does not give.
    pub(super) fn has_untold_scale(&self) -> bool {
        self.scale.is_some() && self.script_scale.is_none() && self.peer_scale.is_some()
    }

    /// The shift of the host's windows in this run.
    pub(super) fn live_scale(&self) -> u32 {
        u32::from(self.scale.unwrap_or(0))
    }

    /// The shifts of the host's windows in the run and in the script. 0 in a SYN, or if one side does not scale.
    pub(super) fn scales(&self, is_syn: bool) -> (u32, u32) {
        match (self.scale, self.script_scale, self.peer_scale) {
            (Some(live), Some(script), Some(_)) if !is_syn => (u32::from(live), u32::from(script)),
            _ => (0, 0),
        }
    }

    /// Size in bytes of a full segment to the host.
    pub(super) fn segment(&self) -> u64 {
        self.mss.into()
    }

    /// Takes the next packet; full segments are joined up to the length that the script expects.
    pub(super) fn take(&mut self, tcp: &Tcp, strict: bool) -> (i64, Seen) {
        let (at, mut seen) = self.queue.pop_front().expect("the caller has looked");
        while !strict
            && !seen.payload.is_empty()
            && !seen.has(flag::FIN)
            && let Some((_, next)) = self.queue.front()
            && next.seq == seen.seq.wrapping_add(seen.payload.len() as u32)
            && next.ack == seen.ack
            && !next.payload.is_empty()
            && seen.payload.len() + next.payload.len() <= tcp.len as usize
            && (next.flags | seen.flags) & (flag::SYN | flag::RST) == 0
        {
            let (_, next) = self.queue.pop_front().expect("it is there");
            seen.payload.extend(next.payload);
            seen.flags |= next.flags;
        }
        (at, seen)
    }

    fn body(&self, seen: &Seen, seq: u32, ack: u32, options: &[TcpOption]) -> String {
        let len = seen.payload.len() as u32;
        let mut text = format!("{} {}:{}({len})", show_flags(seen.flags), seq, seq.wrapping_add(len));
        if seen.has(flag::ACK) {
            text += &format!(" ack {ack}");
        }
        text += &format!(" win {}", seen.window);
        if !options.is_empty() {
            let options: Vec<String> = options.iter().map(TcpOption::to_string).collect();
            text += &format!(" <{}>", options.join(","));
        }
        text
    }

    /// A packet from the host in the script's language.
    pub(super) fn show(&self, seen: &Seen) -> String {
        self.body(seen, self.script(seen.seq), seen.ack, &seen.options)
    }

    /// A packet from the peer in the script's language.
    pub(super) fn show_incoming(&self, seen: &Seen) -> String {
        self.body(seen, seen.seq, self.script(seen.ack), &seen.options)
    }
}

fn scale_of(option: &TcpOption) -> Option<u8> {
    match option {
        // RFC 7323 §2.3: a larger shift means 14.
        TcpOption::WindowScale(shift) => Some((*shift).min(14)),
        _ => None,
    }
}

fn value_of(option: &TcpOption) -> Option<u32> {
    match option {
        TcpOption::Timestamps(value, _) => Some(*value),
        _ => None,
    }
}
