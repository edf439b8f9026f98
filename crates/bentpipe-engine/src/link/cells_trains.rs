//! Processing of cells: many rounds at once where no decision is due, otherwise cell by cell.

use super::*;

impl<P: Wire> CellPort<P> {
    /// Processes all whole rounds that end by `now` and need no decision. Returns true if there was one.
    pub(super) fn rounds(&mut self, now: Fine) -> bool {
        let last = *self.active.last().expect("some train is active");
        // If all cells of a packet arrive at once, packets arrive one after the other, and each is a separate round.
        let turn = if self.spacing == 0 { 1 } else { self.active.len() };
        let mut rounds = match self.spacing {
            0 => u64::MAX,
            _ if self.next_of(last) > now => return false,
            spacing => (now - self.next_of(last)) / spacing + 1,
        };
        let first = self.next_of(self.active[0]);
        let mut entering = 0;
        for &vc in &self.active[..turn] {
            let channel = &mut self.channels[vc as usize];
            let train = channel.train.as_ref().expect("active");
            if train.fate == Fate::Fresh {
                return false;
            }
            // The last cell needs a decision.
            rounds = rounds.min((train.left - 1) as u64);
            if matches!(train.fate, Fate::Whole | Fate::Broken) {
                entering += 1;
                if let (Some(buffer), Sharing::PerChannel) = (self.config.buffer, self.config.sharing) {
                    channel.expire(first);
                    rounds = rounds.min(buffer.saturating_sub(channel.waiting) as u64);
                }
            }
        }
        if let (Some(buffer), Sharing::Shared) = (self.config.buffer, self.config.sharing)
            && entering > 0
        {
            rounds = rounds.min(((buffer.saturating_sub(self.waiting_in_all(first))) / entering) as u64);
        }
        if rounds == 0 {
            return false;
        }
        // One round cell by cell, then all rounds equal to it.
        let busy_before = self.busy_until;
        let load = entering as u64 * self.cell;
        let mut busy = self.busy_until;
        let mut min_slack = Some(Fine::MAX);
        let mut first_begins = None;
        for &vc in &self.active[..turn] {
            let train = self.channels[vc as usize].train.as_ref().expect("active");
            if !matches!(train.fate, Fate::Whole | Fate::Broken) {
                continue;
            }
            min_slack = min_slack.and_then(|min| Some(min.min(busy.checked_sub(train.next)?)));
            let begins = busy.max(train.next);
            first_begins.get_or_insert((train.next, begins));
            busy = begins + self.cell;
        }
        // Never idle: transmissions are back to back, and this channel's are `load` apart. Idle between cells, or
        // loaded exactly like the lines: the next round equals this one. Otherwise, only this round is known.
        let distance = match (min_slack, first_begins) {
            (Some(slack), _) => {
                if let Some(slower) = self.spacing.checked_sub(load)
                    && let Some(idle_after) = slack.checked_div(slower)
                {
                    rounds = rounds.min(idle_after + 1);
                }
                load
            }
            (None, Some((next, begins))) if busy.max(next + self.spacing) == begins + self.spacing => self.spacing,
            _ => {
                rounds = 1;
                self.spacing
            }
        };
        self.take_rounds(rounds, turn, distance, busy_before);
        if entering > 0 {
            self.busy_until = busy + (rounds - 1) * distance;
        }
        true
    }

    /// Advances the first `turn` trains by this many rounds, with cells `distance` apart.
    fn take_rounds(&mut self, rounds: u64, turn: usize, distance: Fine, mut busy: Fine) {
        let per_channel = self.config.buffer.is_some() && self.config.sharing == Sharing::PerChannel;
        let count = rounds as u32;
        for &vc in &self.active[..turn] {
            let channel = &mut self.channels[vc as usize];
            let train = channel.train.as_mut().expect("active");
            let arrival = train.next;
            train.left -= count;
            train.next += rounds * self.spacing;
            self.cells.offered += rounds;
            if matches!(train.fate, Fate::Whole | Fate::Broken) {
                let begins = busy.max(arrival);
                busy = begins + self.cell;
                train.entered_cells += count;
                if per_channel {
                    channel.wait(begins, distance, count);
                }
            } else {
                self.cells.dropped += rounds;
            }
        }
    }

    /// Processes the next cell of the first active channel.
    pub(super) fn one_cell(&mut self, vc: u32) {
        let at = self.next_of(vc);
        let waiting = match self.config.sharing {
            Sharing::Shared => self.waiting_in_all(at),
            Sharing::PerChannel if self.config.buffer.is_some() => {
                self.channels[vc as usize].expire(at);
                self.channels[vc as usize].waiting
            }
            Sharing::PerChannel => 0,
        };
        let idle = self.busy_until <= at;
        let has_room = idle || self.config.buffer.is_none_or(|buffer| waiting < buffer);
        let too_full = self.config.early_discard.is_some_and(|threshold| waiting > threshold);
        let partial = self.config.partial_discard;
        let train = self.channels[vc as usize].train.as_mut().expect("active");
        train.left -= 1;
        train.next += self.spacing;
        let last = train.left == 0;
        if train.fate == Fate::Fresh {
            train.fate = if too_full { Fate::Refused } else { Fate::Whole };
        }
        let tried = match train.fate {
            Fate::Whole | Fate::Broken => true,
            Fate::Tail => last,
            Fate::Fresh | Fate::Refused => false,
        };
        let enters = tried && has_room;
        if tried && !has_room && train.fate == Fate::Whole {
            train.fate = if partial { Fate::Tail } else { Fate::Broken };
        }
        self.cells.offered += 1;
        self.cells.dropped += !enters as u64;
        if enters {
            train.entered_cells += 1;
            let begins = self.busy_until.max(at);
            self.busy_until = begins + self.cell;
            if self.config.buffer.is_some() && self.config.sharing == Sharing::PerChannel {
                self.channels[vc as usize].wait(begins, 0, 1);
            }
        }
        if last {
            self.end_train(vc, at, enters);
        } else {
            self.reorder();
        }
    }

    /// Re-sorts the first active channel after it has advanced by a cell.
    fn reorder(&mut self) {
        for at in 1..self.active.len() {
            let (this, next) = (self.active[at - 1], self.active[at]);
            if (self.next_of(this), this) < (self.next_of(next), next) {
                return;
            }
            self.active.swap(at - 1, at);
        }
    }

    /// Handles the last cell of the first active channel; `entered` says whether it was accepted.
    fn end_train(&mut self, vc: u32, at: Fine, entered: bool) {
        self.active.remove(0);
        let channel = &mut self.channels[vc as usize];
        let Some(train) = channel.train.take() else { return };
        let next = channel.behind.pop_front();
        // A packet that follows the rest of an incomplete one fails the CRC together with it. If none of its own cells
        // were sent, that rest affects the next packet.
        let spoilt = if train.entered_cells > 0 { channel.spoilt.take() } else { None };
        let reason = match train.fate {
            Fate::Refused => Some(DropReason::Early),
            Fate::Whole => spoilt,
            _ => Some(DropReason::QueueFull),
        };
        if train.entered_cells > 0 && !entered {
            channel.spoilt = Some(DropReason::QueueFull);
        }
        self.cells.wasted += if reason.is_some() { train.entered_cells as u64 } else { 0 };
        match reason {
            None | Some(DropReason::Channel) => self.send(vc, train, reason),
            Some(reason) => self.refused.push_back((train.packet, reason)),
        }
        if let Some(packet) = next {
            self.begin(vc, packet, at);
        }
    }

    /// Sends the packet together with the cell that was added last.
    fn send(&mut self, vc: u32, train: Train<P>, mut lost: Option<DropReason>) {
        let begun = self.epoch + Duration::from_ticks((self.busy_until - self.cell) >> FINE_BITS);
        let arrives = self.coarse(self.busy_until) + self.delay;
        if let Some(sky) = &mut self.sky {
            let loss = sky.draw(arrives, train.total * cell::CELL as u32, cell::CELL as u32);
            lost = lost.or(loss.lost.then_some(DropReason::Channel));
            if loss.in_last_piece && train.total > 1 {
                self.channels[vc as usize].spoilt = Some(DropReason::Channel);
            }
        }
        self.in_flight.push_back(InFlight { arrives, begun, packet: train.packet, lost });
    }
}
