//! How a connection opens (RFC 9293 §3.5), and option negotiation.

use super::{Duplex, NO_SCALE, Pending, Role, State, Verdict};
use crate::machine::Context;
use crate::probe::Probe;
use crate::tcp::config::Handshake;
use crate::tcp::ecn::{EcnEcho, EcnMode, EcnUse};
use crate::tcp::receiver::{Fresh, Receiver};
use crate::tcp::segment::{FIRST_BYTE, Flags, MAX_SACK_BLOCKS, Segment};
use crate::tcp::sending::{Protocol, SendingHalf};
use crate::units::Time;

impl<S: SendingHalf> Duplex<S> {
    pub(super) fn on_open<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        if self.state != State::Closed {
            return;
        }
        if self.config.shortcuts.handshake == Handshake::None {
            self.synchronize_without_options();
            self.establish(cx, self.config.mss);
            return;
        }
        self.enter(cx, if self.role == Role::Active { State::SynSent } else { State::Listen });
    }

    /// Handles a SYN in LISTEN (RFC 9293 §3.10.7.2).
    pub(super) fn on_first_syn<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) -> Verdict {
        if self.config.shortcuts.handshake == Handshake::OneWay {
            self.synchronize_without_options();
            self.sender.skip_syn();
            self.receiver.on_bare_syn(cx.now);
            self.establish(cx, self.config.mss);
            return Verdict::Synchronized(Fresh::None);
        }
        self.take_syn(cx.now, segment);
        let mss = self.effective_mss(segment.syn.mss);
        self.receiver.begin_window(mss);
        self.sender.set_peer_mss(mss);
        self.sender.update_window(segment);
        let fresh = self.keep_text_of_syn(segment);
        self.enter(cx, State::SynReceived);
        Verdict::Synchronized(fresh)
    }

    /// Handles the peer's SYN, its ACK or both in SYN-SENT (RFC 9293 §3.10.7.3).
    pub(super) fn on_answer_to_syn<P: Probe>(&mut self, cx: &mut Context<'_, P>, segment: &Segment) -> Verdict {
        let acks_syn = segment.flags.has(Flags::ACK);
        if self.config.shortcuts.handshake == Handshake::OneWay && acks_syn {
            self.synchronize_without_options();
            self.sender.update_window(segment);
            self.sender.on_ack(cx, segment, true, None);
            self.establish(cx, self.config.mss);
            return Verdict::Synchronized(Fresh::None);
        }
        self.take_syn(cx.now, segment);
        let mss = self.effective_mss(segment.syn.mss);
        self.sender.update_window(segment);
        let fresh = self.keep_text_of_syn(segment);
        // This precedes the ACK: the first pacing rate is computed from the window in bytes.
        self.sender.set_peer_mss(mss);
        if acks_syn {
            let sample = self.sample(cx.now, segment);
            self.sender.on_ack(cx, segment, true, sample);
            self.receiver.acknowledge_syn();
            self.establish(cx, mss);
            self.sender.take_syn_ack(segment);
            self.on_end_of_stream(cx);
        } else {
            // The SYNs have crossed: ours is sent again, with an ACK.
            self.sender.resend_syn();
            self.enter(cx, State::SynReceived);
        }
        Verdict::Synchronized(fresh)
    }

    /// RFC 9293 §3.10.7.2: other controls and text of a SYN are "queued for processing later", when the handshake is done.
    fn keep_text_of_syn(&mut self, segment: &Segment) -> Fresh {
        let end = FIRST_BYTE + segment.len as u64;
        let fresh = if segment.len > 0 { self.receiver.keep_until_open(end) } else { Fresh::None };
        if segment.flags.has(Flags::FIN) && end <= self.receiver.limit() {
            self.kept.peer_fin = Some(end);
        }
        fresh
    }

    /// Takes the options and the sequence number of the peer's SYN.
    fn take_syn(&mut self, now: Time, segment: &Segment) {
        self.receiver.synchronize();
        let ours = &self.config;
        self.kept.sack = ours.variant.sack && (segment.syn.sack_permitted || S::PROTOCOL == Protocol::Stp);
        self.kept.timestamps = ours.timestamps && segment.timestamps.is_some();
        let mode = if S::PROTOCOL == Protocol::Tcp { ours.ecn.agrees(segment) } else { EcnMode::Off };
        self.ecn = EcnEcho::negotiated(mode, segment, ours.ecn_option);
        self.kept.scaled = ours.window_scaling && segment.syn.window_scale.is_some();
        self.kept.rcv_scale = if self.kept.scaled { self.offered_scale() } else { NO_SCALE };
        let limit = if self.kept.scaled { u64::MAX } else { S::PROTOCOL.window_limit() };
        self.receiver.negotiated(self.sack_blocks(self.kept.sack), self.config.dsack, limit);
        self.has_extras = self.kept.timestamps || mode != EcnMode::Off;
        if let Some(timestamps) = segment.timestamps {
            (self.kept.ts_recent, self.kept.ts_recent_at) = (timestamps.value, now);
        }
    }

    /// Opens without options: both ends are assumed to have the same settings, with unscaled windows.
    fn synchronize_without_options(&mut self) {
        self.receiver.synchronize();
        self.kept.sack = self.config.variant.sack;
        self.ecn.mode = match self.config.ecn {
            EcnUse::On if S::PROTOCOL == Protocol::Tcp => EcnMode::Classic,
            EcnUse::Accurate if S::PROTOCOL == Protocol::Tcp => EcnMode::Accurate,
            _ => EcnMode::Off,
        };
        self.has_extras = self.ecn.mode != EcnMode::Off;
        self.receiver.negotiated(self.sack_blocks(self.kept.sack), self.config.dsack, u64::MAX);
    }

    fn sack_blocks(&self, agreed: bool) -> usize {
        // The timestamps use 12 of the 40 bytes of options (RFC 2018 §3).
        let room = if self.kept.timestamps { MAX_SACK_BLOCKS - 1 } else { MAX_SACK_BLOCKS };
        if agreed { room.min(self.config.sack_blocks as usize) } else { 0 }
    }

    /// The smallest shift that can express the whole buffer (RFC 7323 §2.2). A window that follows the buffer is 0.625 of
    /// its memory, which the shift must express in Linux (`tcp_select_initial_window`).
    pub(super) fn offered_scale(&self) -> u8 {
        let buffer = match self.config.first_window.is_some() && self.config.window_follows {
            true => (u64::from(self.config.receive_buffer) * 8 / 5).min(u32::MAX.into()) as u32,
            false => self.config.receive_buffer,
        };
        (0..14).find(|shift| buffer >> shift <= u16::MAX as u32).unwrap_or(14)
    }

    /// Maximum payload beside the options that every segment carries. The MSS option does not count options (RFC 6691
    /// §2), so they are subtracted from what we send. SACK blocks come and go, and are subtracted when a segment is
    /// chosen.
    fn effective_mss(&self, peer: Option<u16>) -> u16 {
        self.config.mss_to(peer).saturating_sub(if self.kept.timestamps { 12 } else { 0 }).max(1)
    }

    pub(super) fn establish<P: Probe>(&mut self, cx: &mut Context<'_, P>, mss: u16) {
        self.sender.established(mss, self.config.variant.initial_window, self.kept.sack);
        let is_passive = self.state == State::SynReceived;
        self.sender.use_ecn(self.ecn.mode, is_passive, self.config.ecn_control);
        if is_passive && self.ecn.saw_plain_syn {
            self.sender.send_not_ect();
        }
        self.tell_round_trip();
        self.receiver.begin_tuning(cx.now);
        self.enter(cx, State::Established);
        if self.sender.is_closed() {
            self.enter(cx, State::FinWait1);
        }
        self.pending.set(Pending::CONNECTED);
        if self.receiver.open(cx.now) {
            self.pending.set(Pending::READABLE);
        }
    }

    /// Tells the receiver the round trip of the handshake.
    pub(super) fn tell_round_trip(&mut self) {
        if let Some(rtt) = self.sender.srtt() {
            self.receiver.on_round_trip(rtt);
        }
    }

    /// True if the SYN-ACK of a passive connection is still unanswered and the connection keeps listening, as a
    /// listener of Linux does.
    pub(super) fn listens_on(&self) -> bool {
        let is_passive = self.state == State::SynReceived && self.role == Role::Passive;
        is_passive && !self.sender.is_closed() && self.config.rto.max_syn_ack_retries.is_some()
    }

    /// Returns to LISTEN: forgets the peer, keeps the data that the user has written.
    pub(super) fn relisten<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.sender.relisten();
        self.receiver = Receiver::new(&self.config);
        (self.kept.sack, self.kept.timestamps, self.kept.scaled, self.kept.rcv_scale) = (false, false, false, NO_SCALE);
        (self.ecn, self.has_extras) = (EcnEcho::default(), false);
        (self.kept.ts_recent, self.kept.last_ack_sent, self.kept.peer_fin) = (0, 0, None);
        self.enter(cx, State::Listen);
    }
}
