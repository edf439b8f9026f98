//! The application of an end: what it writes and when, and when it closes.

use bentpipe_engine::tcp::Input;
use bentpipe_engine::units::Time;
use bentpipe_engine::{Context, Probe};
use bentpipe_study::scenario::Workload;

use super::TcpEnd;
use crate::workload::ENDLESS;

/// What an application writes at a time to a send buffer that is limited: so many bytes on average, in whole segments.
const BLOCK: u64 = 1 << 16;

impl TcpEnd {
    pub(super) fn open<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.opened = true;
        self.plan(Time::NEVER);
        if let Some(shared) = &self.shared {
            self.connection.inherit(&mut shared.borrow_mut(), cx.now);
        }
        self.connection.handle(cx, Input::Open);
        match *self.workload {
            Workload::Bulk(bytes) if self.client => self.write(cx, bytes.get()),
            Workload::Greedy { duration } if self.client => {
                self.write(cx, ENDLESS);
                self.plan(duration.map_or(Time::NEVER, |span| self.start + span));
            }
            Workload::RequestResponse { .. } if self.client => self.ask(cx),
            Workload::Paced { .. } if self.client => self.write_paced(cx),
            _ => {}
        }
    }

    /// The application writes `bytes`. If a send buffer limits them it writes in blocks: the first one now, the others as
    /// [there is room](Self::write_on).
    pub(super) fn write<P: Probe>(&mut self, cx: &mut Context<'_, P>, bytes: u64) {
        self.unwritten += bytes;
        self.write_on(cx);
    }

    /// Writes the next block or its rest, as far as the send buffer has room. Returns whether it wrote anything. A block leaves
    /// before the next one is written, as far as the windows let it out, so it ends with a whole segment. The first one waits for
    /// the handshake.
    ///
    /// A close follows the last one, but not before the handshake: that would end the connection (RFC 9293 §3.10.4).
    pub(super) fn write_on<P: Probe>(&mut self, cx: &mut Context<'_, P>) -> bool {
        let left = self.block();
        let bytes = match self.connection.room() {
            u64::MAX => self.unwritten,
            0 => {
                self.connection.wait_for_room();
                0
            }
            _ if self.connected_at.is_none() => 0,
            room => self.unwritten.min(left).min(room),
        };
        if bytes > 0 {
            self.unwritten -= bytes;
            self.connection.handle(cx, Input::Write(bytes));
            self.close_behind(cx);
        }
        bytes > 0
    }

    /// How many bytes are left of the block of the next byte. The program
    /// writes as many bytes at a time as [`BLOCK`] says, on average and in whole segments, or as a pacer says if that is
    /// less.
    fn block(&self) -> u64 {
        let written = self.connection.written();
        let (at, block, mss) = match *self.workload {
            Workload::Paced { write, .. } if write.get() < BLOCK => (written, write.get(), 1),
            Workload::RequestResponse { request, response, .. } => {
                let message = if self.client { request } else { response };
                (message.get().saturating_sub(self.unwritten), BLOCK, self.connection.mss())
            }
            _ => (written, BLOCK, self.connection.mss()),
        };
        let edge = |block_count: u64| block_count * block / mss * mss;
        let next = at / block + 1;
        let end = if edge(next) > at { edge(next) } else { edge(next + 1) };
        end - at
    }

    /// Bytes that the application has written, whether there was room for them or not.
    pub(super) fn produced(&self) -> u64 {
        self.connection.written() + self.unwritten
    }

    pub(super) fn close_behind<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        if self.client && self.closes && self.connected_at.is_some() && self.has_written() {
            self.connection.handle(cx, Input::Close);
        }
    }

    fn ask<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.plan(Time::NEVER);
        if let Workload::RequestResponse { request, .. } = *self.workload
            && self.requests_left > 0
        {
            self.requests_left -= 1;
            self.extra_mut().responses.get_or_insert_default().ask(cx.now);
            self.write(cx, request.get());
        }
    }

    /// All responses to the requests made so far have arrived.
    pub(super) fn on_answer(&mut self, now: Time) {
        if let Some(responses) = self.extra.as_mut().and_then(|extra| extra.responses.as_mut()) {
            responses.arrived(now);
        }
    }

    /// Writes the data due by now, and plans the next write.
    fn write_paced<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        let produced = self.produced();
        let Workload::Paced { write, .. } = *self.workload else { return };
        let Some(pacer) = self.extra.as_mut().and_then(|extra| extra.pacer.as_mut()) else { return };
        let (mut due, mut next) = (0, Time::NEVER);
        while produced + due < self.to_send {
            if pacer.next() > cx.now {
                next = pacer.next();
                break;
            }
            let bytes = write.get().min(self.to_send - produced - due);
            due += bytes;
            pacer.sent(bytes as u32);
        }
        self.plan(next);
        self.write(cx, due);
    }

    /// True if all data has been written.
    fn has_written(&self) -> bool {
        match *self.workload {
            Workload::Bulk(_) | Workload::Paced { .. } => self.connection.written() >= self.to_send,
            _ => false,
        }
    }

    /// Runs the application's planned action, if it is due, and handles a change of the path.
    pub(crate) fn act<P: Probe>(&mut self, cx: &mut Context<'_, P>) {
        self.heed_path(cx.now);
        if !self.opened {
            if cx.now >= self.first_action() {
                self.open(cx);
            }
            return;
        }
        if self.next_action <= cx.now {
            match *self.workload {
                Workload::RequestResponse { .. } => self.ask(cx),
                Workload::Paced { .. } => self.write_paced(cx),
                // The time of a greedy source is over: data in flight is not waited for.
                _ => {
                    self.plan(Time::NEVER);
                    self.to_send = self.connection.acknowledged();
                    self.acked_at = Some(cx.now);
                    self.connection.handle(cx, Input::Abort);
                }
            }
        }
    }
}
