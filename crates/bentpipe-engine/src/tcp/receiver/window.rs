//! The window that the receiver offers (RFC 9293 §3.8.6).

use crate::tcp::config::TcpConfig;
use crate::tcp::segment::FIRST_BYTE;

/// The receive buffer, and the advertised part of it. Each call passes `rcv_nxt`.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfferedWindow {
    /// The user has read the data up to here.
    read: u64,
    buffer: u64,
    /// Limit of the offered window, if the window follows the buffer as data arrives.
    lead: u64,
    /// The maximum window that the header can express.
    max: u64,
    /// Right edge of the window last offered. It never moves back (RFC 9293 §3.8.6).
    edge: u64,
    /// The advertised right edge: `edge`, rounded down by the shift `scale`.
    told: u64,
    scale: u8,
    mss: u16,
    /// A window opening smaller than this is not offered (RFC 9293 §3.8.6.2.2).
    min_opening: u64,
    /// Reading causes a window update only if it doubles an offered window of at most half of the buffer.
    doubles: bool,
    /// Bytes held beyond gaps, if they take room from the window.
    held: u64,
    holds: bool,
    /// The `rcv_nxt` for which `told` is up to date.
    told_at: u64,
}

/// The smallest window opening that is offered, with windows of at most `max_window` bytes.
fn min_opening(max_window: u64, mss: u16) -> u64 {
    u64::from(mss).min(max_window / 2)
}

/// The first window offered if the window follows the buffer: whole segments, up to this (Linux: half of tcp_rmem[1]).
const FIRST_LEAD: u64 = 65_536;
/// Whole segments of `mss` bytes, or what there is room for if that is less than one.
fn first_lead(buffer: u64, mss: u16) -> u64 {
    let (space, mss) = (buffer.min(FIRST_LEAD), u64::from(mss));
    if space > mss { space / mss * mss } else { space }
}

/// Not a valid `rcv_nxt`: the offered window must be computed.
const UNKNOWN: u64 = u64::MAX;

impl OfferedWindow {
    pub(super) fn new(config: &TcpConfig) -> Self {
        let first = config.first_window.unwrap_or(u32::MAX);
        let (buffer, mss) = (u64::from(first.min(config.receive_buffer)), config.mss);
        let follows = config.first_window.is_some() && config.window_follows;
        let lead = if follows { first_lead(buffer, mss) } else { u64::MAX };
        OfferedWindow {
            read: FIRST_BYTE,
            buffer,
            lead,
            max: u64::MAX,
            edge: 0,
            told: 0,
            scale: 0,
            mss,
            min_opening: min_opening(buffer.min(lead), mss),
            doubles: config.ack.before_reading,
            held: 0,
            holds: config.gaps_take_room,
            told_at: UNKNOWN,
        }
    }

    /// Changes the number of bytes held beyond gaps: `more` are added, `less` removed.
    pub(super) fn hold(&mut self, more: u64, less: u64) {
        if self.holds {
            self.held = self.held + more - less;
            self.told_at = UNKNOWN;
        }
    }

    /// One past the last byte that there is room for, at most `lead` bytes after `rcv_nxt`.
    #[inline(always)]
    fn wanted(&self, rcv_nxt: u64) -> u64 {
        (self.read + self.room()).min(rcv_nxt.saturating_add(self.lead))
    }

    /// The part of the buffer that is not taken by data beyond gaps.
    #[inline(always)]
    fn room(&self) -> u64 {
        self.buffer - self.held.min(self.buffer)
    }

    /// If the window follows the buffer: takes `bytes` of data that arrive while `rcv_nxt` is expected, which occupy the buffer until they
    /// are read, and opens the window by up to twice as much. Returns true if the window has grown.
    pub(super) fn follow(&mut self, rcv_nxt: u64, bytes: u64) -> bool {
        let left = self.free(rcv_nxt).saturating_sub(bytes).saturating_sub(self.lead);
        self.lead = self.lead.saturating_add(left.min(2 * bytes));
        self.min_opening = min_opening(self.max_offer(), self.mss);
        self.told_at = UNKNOWN;
        left > 0
    }

    /// Begins with whole segments of `mss` bytes, if the window follows the buffer: those of a SYN-ACK have options (Linux,
    /// `tcp_openreq_init_rwin`).
    pub(super) fn begin(&mut self, mss: u16) {
        if self.lead < u64::MAX {
            self.lead = first_lead(self.buffer, mss);
        }
    }

    /// Sets the maximum window that the handshake has agreed on, `max` bytes.
    pub(super) fn set_max(&mut self, max: u64) {
        self.max = max;
        self.told_at = UNKNOWN;
    }

    /// The largest window that may be offered now.
    pub(super) fn max_offer(&self) -> u64 {
        self.buffer.min(self.lead)
    }

    pub(super) fn buffer(&self) -> u64 {
        self.buffer
    }

    /// Bytes offered from `rcv_nxt` on.
    pub(super) fn offered(&self, rcv_nxt: u64) -> u64 {
        self.told.saturating_sub(rcv_nxt)
    }

    /// True if the user has read all.
    pub(super) fn is_all_read(&self, rcv_nxt: u64) -> bool {
        self.read >= rcv_nxt
    }

    /// True if more than half of the buffer is taken.
    pub(super) fn is_half_taken(&self, rcv_nxt: u64) -> bool {
        2 * self.free(rcv_nxt) < self.buffer
    }

    /// True if the window is smaller now than before the `pending` unacknowledged bytes arrived. A window that does not
    /// follow the buffer never is: Linux allots twice its size to it (SO_RCVBUF), so it does not shrink until half of
    /// that is occupied.
    pub(super) fn shrinks(&self, rcv_nxt: u64, pending: u64) -> bool {
        let follows = self.lead < u64::MAX;
        follows && self.free(rcv_nxt).min(self.lead).min(self.max) < self.offered(rcv_nxt) + pending
    }

    fn free(&self, rcv_nxt: u64) -> u64 {
        self.room().saturating_sub(rcv_nxt.saturating_sub(self.read))
    }

    /// Accounts for the FIN, which uses a sequence number but is never read.
    pub(super) fn pass_fin(&mut self) {
        self.read += 1;
        self.told_at = UNKNOWN;
    }

    /// Records that the user has read `bytes`. Returns true if a window update must be sent now: if the window was
    /// smaller than a segment and opens by one (RFC 9293 §3.8.6.2.2), or if this read alone has freed two segments and
    /// a quarter of the buffer. With `doubles`, the rule described there replaces the second condition.
    #[inline(always)]
    pub(super) fn read(&mut self, rcv_nxt: u64, bytes: u64) -> bool {
        self.read = (self.read + bytes).min(rcv_nxt);
        self.told_at = UNKNOWN;
        let mss = self.mss as u64;
        let frees_much = if self.doubles {
            let told = self.told.saturating_sub(rcv_nxt);
            2 * told <= self.buffer.min(self.max)
                && self.wanted(rcv_nxt).max(self.edge).saturating_sub(rcv_nxt) >= 2 * told
        } else {
            bytes >= (2 * mss).max(self.buffer / 4)
        };
        if self.told >= rcv_nxt + mss && !frees_much {
            return false;
        }
        self.opens(rcv_nxt)
    }

    /// Advertises the window if it has opened enough. Returns true if it has.
    #[inline(never)]
    fn opens(&mut self, rcv_nxt: u64) -> bool {
        let wanted = self.wanted(rcv_nxt).max(self.edge);
        let window = wanted.saturating_sub(rcv_nxt).min(self.max);
        let tell = rcv_nxt + ((window >> self.scale) << self.scale) >= self.told + self.min_opening;
        if tell {
            self.edge = wanted;
        }
        tell
    }

    /// Enlarges the buffer; later ACKs announce it.
    pub(super) fn grow(&mut self, buffer: u64) {
        self.buffer = buffer;
        self.min_opening = min_opening(buffer.min(self.lead), self.mss);
        self.told_at = UNKNOWN;
    }

    /// Changes the size of the buffer. Returns true if a window update must be sent, as in [`Self::read`].
    pub(super) fn resize(&mut self, rcv_nxt: u64, buffer: u64) -> bool {
        self.grow(buffer);
        // Before the peer's SYN there is no peer to notify.
        rcv_nxt > 0 && self.read(rcv_nxt, 0)
    }

    /// The window to offer, in multiples that a shift of `scale` can express: rounded up if the window follows the buffer
    /// (Linux, `__tcp_select_window`), and down otherwise.
    #[inline(always)]
    pub(super) fn offer(&mut self, rcv_nxt: u64, scale: u8) -> u32 {
        if rcv_nxt == self.told_at && scale == self.scale {
            return (self.told - rcv_nxt) as u32;
        }
        let wanted = self.wanted(rcv_nxt);
        let follows = self.lead < u64::MAX;
        // Small openings are held back, but not by Linux if windows are scaled. An advertised edge never moves back.
        let min_opening = if follows && scale > 0 { 0 } else { self.min_opening };
        if wanted >= self.edge + min_opening {
            self.edge = wanted;
        }
        if follows {
            let more = (1 << scale) - 1;
            let rounded = rcv_nxt + ((self.edge.saturating_sub(rcv_nxt) + more) >> scale << scale);
            // Segments shorter than the unit would move the edge on and on while nobody reads.
            self.edge = rounded.min(self.edge.max(self.read + self.buffer + more));
        }
        let window = (self.edge.saturating_sub(rcv_nxt).min(self.max) >> scale) << scale;
        (self.told, self.scale, self.told_at) = (rcv_nxt + window, scale, rcv_nxt);
        window as u32
    }

    /// The window of a SYN, at most `limit`, since it is not scaled (RFC 7323 §2.2). The next segment offers the rest.
    pub(super) fn offer_in_syn(&mut self, limit: u64) -> u32 {
        let window = self.buffer.min(self.lead).min(limit);
        self.edge = FIRST_BYTE + window;
        (self.told, self.told_at) = (self.edge, UNKNOWN);
        window as u32
    }

    /// One past the last byte that fits the buffer or the offered window.
    #[inline(always)]
    pub(super) fn limit(&self) -> u64 {
        (self.read + self.buffer).max(self.edge)
    }

    /// True if everything before `end` fits the buffer or the offered window.
    #[inline(always)]
    pub(super) fn has_room_to(&self, end: u64) -> bool {
        end <= self.edge || end <= self.read + self.buffer
    }

    /// RFC 9293 §3.10.7.4, first check: true if a segment is in the window.
    #[inline(always)]
    pub(super) fn accepts(&self, rcv_nxt: u64, seq: u64, sequence_len: u64) -> bool {
        if sequence_len == 0 {
            // A Linux probe lies one byte below: it gets an answer because the segment is not acceptable.
            return self.holds(rcv_nxt, seq);
        }
        // Nothing fits a zero window, but the ACK of a probe counts and the probe needs an answer.
        let limit = self.limit();
        limit > rcv_nxt && seq < limit && seq + sequence_len > rcv_nxt
    }

    /// True if `seq` is in the window, or is the next expected number.
    #[inline(always)]
    pub(super) fn holds(&self, rcv_nxt: u64, seq: u64) -> bool {
        seq == rcv_nxt || (seq > rcv_nxt && seq < self.limit())
    }
}
