//! The effect of a link's channel on packets: losses and delays.

use super::channel::{Channel, ChannelState};
use super::config::{LinkConfig, LossConfig};
use super::sequence::PacketSequence;
use crate::stream::TimeNoise;
use crate::units::{Duration, Probability, Time};

/// The effects of the channel, if any.
#[derive(Clone, Debug)]
pub(super) struct Sky {
    good: LossConfig,
    bad: LossConfig,
    extra_delay: Duration,
    /// The channel at the start of transmissions and at the exit of the link: two cursors over one process.
    at_start: Channel,
    at_exit: Channel,
    noise: TimeNoise,
    sequence: Option<PacketSequence>,
    /// When the last packet arrives.
    last_arrival: Time,
    last_exit: Time,
    /// Packets that left at `last_exit` before this one.
    same_exit: u32,
    /// Packet length and state of the last bit error probability, and the probability.
    bit_cache: Option<(u32, ChannelState, Probability)>,
}

/// The loss within a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) lost: bool,
    /// A bit error in the last piece of the packet; the pieces before it have arrived.
    pub(super) in_last_piece: bool,
}

impl Sky {
    /// Creates it from a link's settings, if they have any effect.
    pub(super) fn of(config: &LinkConfig, seed: u64, name: &str) -> Option<Box<Sky>> {
        let channel = Channel::new(&config.channel, seed, &format!("{name}/channel"));
        let loses = config.good != LossConfig::NONE || config.packet_bursts.is_some();
        (loses || !channel.is_clear()).then(|| {
            Box::new(Sky {
                good: config.good,
                bad: config.bad,
                extra_delay: config.extra_delay.0,
                at_start: channel.clone(),
                at_exit: channel,
                noise: TimeNoise::named(seed, &format!("{name}/loss")),
                sequence: config
                    .packet_bursts
                    .map(|bursts| PacketSequence::named(bursts, seed, &format!("{name}/packet-bursts"))),
                last_arrival: Time::ZERO,
                last_exit: Time::ZERO,
                same_exit: 0,
                bit_cache: None,
            })
        })
    }

    /// The fate of a packet that travels in pieces of `piece` bytes, with one draw for all.
    pub(super) fn draw(&mut self, exit: Time, length: u32, piece: u32) -> Loss {
        let lost = self.loses(exit, length);
        let loss = if self.at_exit.at(exit) == ChannelState::Bad { self.bad } else { self.good };
        // The last piece is hit if the draw is below its own probability.
        let in_last_piece =
            lost && self.noise.at(exit.index(), self.same_exit) < loss.bit.any_of_bits(piece as u64 * 8).get();
        Loss { lost, in_last_piece }
    }

    /// When a packet of `length` bytes arrives that is begun at `start` and would arrive at `arrives`, and whether it is
    /// lost.
    #[inline]
    pub(super) fn meet(&mut self, start: Time, transmission: Duration, arrives: Time, length: u32) -> (Time, bool) {
        let mut arrives = arrives;
        if self.extra_delay > Duration::ZERO && self.at_start.at(start) == ChannelState::Bad {
            arrives += self.extra_delay;
        }
        // Order is kept, and packets after a delayed one arrive no faster than the line could send them.
        if arrives < self.last_arrival {
            arrives = self.last_arrival + transmission;
        }
        self.last_arrival = arrives;
        (arrives, self.loses(arrives, length))
    }

    fn loses(&mut self, exit: Time, length: u32) -> bool {
        self.same_exit = if exit == self.last_exit { self.same_exit + 1 } else { 0 };
        self.last_exit = exit;
        let state = self.at_exit.at(exit);
        // Each packet counts, even if it is lost anyway.
        if let Some(sequence) = &mut self.sequence
            && sequence.loses_next()
        {
            return true;
        }
        let loss = if state == ChannelState::Bad { self.bad } else { self.good };
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
