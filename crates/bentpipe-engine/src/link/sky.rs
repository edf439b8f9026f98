//! The effect of a link's channel on packets: losses and delays.

use alloc::boxed::Box;

use super::channel::{Channel, ChannelState};
use super::config::{LinkConfig, LossConfig};
use super::motion::{Altered, Motion};
use super::sequence::PacketSequence;
use crate::stream::TimeNoise;
use crate::units::{Duration, Probability, Time};

/// The effects of the channel, if any.
#[derive(Clone, Debug)]
pub(super) struct Sky {
    good: LossConfig,
    bad: LossConfig,
    extra_delay: Duration,
    /// The channel at the start of transmissions, and at the exit of the link: two cursors over one process.
    at_start: Channel,
    at_exit: Channel,
    noise: TimeNoise,
    sequence: Option<PacketSequence>,
    motion: Option<Box<Motion>>,
    /// When the last packet arrives.
    last_arrival: Time,
    /// When the last packet arrives that was sent with a longer delay, before a change of settings.
    behind: Time,
    last_exit: Time,
    /// Number of packets that left at `last_exit` before this one.
    same_exit: u32,
    /// The last bit error probability, with the packet length and channel state for which it was computed.
    bit_cache: Option<(u32, ChannelState, Probability)>,
}

/// What happens to a packet on its way through the sky.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meeting {
    pub(super) arrives: Time,
    pub(super) lost: bool,
    pub(super) altered: Altered,
}

/// Loss within a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) lost: bool,
    /// True if there is a bit error in the last piece of the packet, and the earlier pieces have arrived.
    pub(super) in_last_piece: bool,
}

impl Sky {
    /// Creates the sky from a link's settings, if these have any effect.
    pub(super) fn of(config: &LinkConfig, seed: u64, name: &str) -> Option<Box<Sky>> {
        let sky = Sky::new(config, seed, name);
        let loses = config.good != LossConfig::NONE || config.packet_bursts.is_some();
        (loses || !sky.at_exit.is_clear() || sky.motion.is_some()).then_some(sky)
    }

    /// The same, even if they have no effect.
    pub(super) fn new(config: &LinkConfig, seed: u64, name: &str) -> Box<Sky> {
        let channel = Channel::new(&config.channel, seed, &format!("{name}/channel"));
        Box::new(Sky {
            motion: Motion::of(config, seed, name),
            good: config.good,
            bad: config.bad,
            extra_delay: config.extra_delay.0,
            at_start: channel.clone(),
            at_exit: channel,
            noise: TimeNoise::named(seed, format_args!("{name}/loss")),
            sequence: config
                .packet_bursts
                .map(|bursts| PacketSequence::named(bursts, seed, &format!("{name}/packet-bursts"))),
            last_arrival: Time::ZERO,
            behind: Time::ZERO,
            last_exit: Time::ZERO,
            same_exit: 0,
            bit_cache: None,
        })
    }

    /// The fate of a packet that travels in pieces of `piece` bytes. One draw decides for all pieces.
    pub(super) fn draw(&mut self, exit: Time, length: u32, piece: u32) -> Loss {
        let lost = self.loses(exit, length);
        let loss = if self.at_exit.at(exit) == ChannelState::Bad { self.bad } else { self.good };
        // The last piece is hit if the draw is below that piece's own probability.
        let in_last_piece =
            lost && self.noise.at(exit.index(), self.same_exit) < loss.bit.any_of_bits(piece as u64 * 8).get();
        Loss { lost, in_last_piece }
    }

    /// Goes on behind packets that were sent with the settings of the sky `before`. The last of them arrives at `latest`,
    /// so all others arrive no earlier: together then, if the delay is shorter.
    pub(super) fn follow(&mut self, latest: Time, is_shorter: bool, before: Option<&Sky>) {
        self.last_arrival = latest;
        self.behind = if is_shorter { latest } else { Time::ZERO };
        let Some(before) = before else { return };
        (self.last_exit, self.same_exit) = (before.last_exit, before.same_exit);
        if let (Some(sequence), Some(before)) = (&mut self.sequence, &before.sequence) {
            sequence.go_on(before);
        }
    }

    /// Goes on after the `nth` packet that leaves at `exit`: those behind it are decided again.
    pub(super) fn go_back(&mut self, exit: Time, nth: u32) {
        (self.last_exit, self.same_exit) = (exit, nth);
    }

    /// When the last packet arrives, unless it is late.
    pub(super) fn last_arrival(&self) -> Time {
        self.last_arrival
    }

    /// True if any packet may overtake another, not only those that are late.
    pub(super) fn overtakes(&self) -> bool {
        self.motion.as_ref().is_some_and(|motion| motion.overtakes())
    }

    /// True if every packet leaves unchanged and in the order of arrival.
    pub(super) fn keeps_packets(&self) -> bool {
        self.motion.as_ref().is_none_or(|motion| motion.keeps_packets())
    }

    /// True if the propagation delay may differ from the link's.
    pub(super) fn moves_the_delay(&self) -> bool {
        self.motion.as_ref().is_some_and(|motion| motion.moves_the_delay())
    }

    /// The passage of a packet of `length` bytes whose transmission begins at `start` and that would arrive at
    /// `arrives`.
    #[inline]
    pub(super) fn meet(&mut self, start: Time, transmission: Duration, arrives: Time, length: u32) -> Meeting {
        let mut arrives = arrives;
        if let Some(motion) = &mut self.motion {
            arrives = motion.arrives(start + transmission, arrives);
        }
        if self.extra_delay > Duration::ZERO && self.at_start.at(start) == ChannelState::Bad {
            arrives += self.extra_delay;
        }
        let own = arrives;
        if arrives < self.last_arrival {
            // Order is preserved. After a delay caused by the channel, packets arrive no faster than the line can send
            // them. Behind a decreasing delay, they arrive together.
            let together = self.motion.is_some() || self.last_arrival == self.behind;
            arrives = if together { self.last_arrival } else { self.last_arrival + transmission };
        }
        self.last_arrival = arrives;
        let lost = self.loses(arrives, length);
        let Some(motion) = &self.motion else { return Meeting { arrives, lost, altered: Altered::NOT } };
        let (arrives, altered) = motion.alter(own, arrives, self.same_exit);
        Meeting { arrives, lost, altered }
    }

    /// Like [`Sky::meet`], for the packet that was counted `back` packets before the next one.
    pub(super) fn meet_again(
        &mut self,
        start: Time,
        transmission: Duration,
        arrives: Time,
        length: u32,
        back: u64,
    ) -> Meeting {
        let sequence = self.sequence.take();
        let mut meeting = self.meet(start, transmission, arrives, length);
        // Losses by number are of the packet, whatever changes.
        meeting.lost |= sequence.as_ref().is_some_and(|sequence| sequence.has_lost(back));
        self.sequence = sequence;
        meeting
    }

    /// Like [`Sky::loses`], for the packet that was counted `back` packets before the next one.
    pub(super) fn loses_again(&mut self, exit: Time, length: u32, back: u64) -> bool {
        let sequence = self.sequence.take();
        let lost = self.loses(exit, length) || sequence.as_ref().is_some_and(|sequence| sequence.has_lost(back));
        self.sequence = sequence;
        lost
    }

    fn loses(&mut self, exit: Time, length: u32) -> bool {
        self.same_exit = if exit == self.last_exit { self.same_exit + 1 } else { 0 };
        self.last_exit = exit;
        let state = self.at_exit.at(exit);
        // Each packet counts, even if it is lost for another reason.
        if let Some(sequence) = &mut self.sequence
            && sequence.loses_next()
        {
            return true;
        }
        let mut loss = if state == ChannelState::Bad { self.bad } else { self.good };
        if let (ChannelState::Good, Some(motion)) = (state, &mut self.motion) {
            loss.packet = motion.loss(exit).unwrap_or(loss.packet);
        }
        if loss == LossConfig::NONE {
            return false;
        }
        let by_bits = match self.bit_cache {
            Some((cached, at, p)) if cached == length && at == state => p,
            _ => {
                let p = loss.bit.any_of_bits(length as u64 * 8);
                self.bit_cache = Some((length, state, p));
                p
            }
        };
        let probability = loss.packet.get() + (1.0 - loss.packet.get()) * by_bits.get();
        self.noise.at(exit.index(), self.same_exit) < probability
    }
}
