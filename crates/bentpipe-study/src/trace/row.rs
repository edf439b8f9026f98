//! The columns of an event table: one row per event; an event fills the columns that apply to it.

use bentpipe_engine::probe::{DropReason, Event, QuicPacket};
use bentpipe_engine::tcp::{Segment, State};
use bentpipe_engine::units::Time;

use crate::table::{Cell, Kind};

/// A column. All but the first three may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name in the file.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Its description, with the unit.
    pub meaning: &'static str,
}

const fn column(name: &'static str, kind: Kind, meaning: &'static str) -> Column {
    Column { name, kind, meaning }
}

/// Declares the table once: positions by name, and the list that [`COLUMNS`] shows.
macro_rules! table {
    ($($position:ident $kind:ident $meaning:literal;)*) => {
        #[expect(non_camel_case_types, reason = "spelled as the columns are")]
        #[derive(Clone, Copy)]
        enum At { $($position),* }

        /// The columns, in order.
        pub const COLUMNS: &[Column] = &[$(column(stringify!($position), Kind::$kind, $meaning)),*];
    };
}

table! {
    time_ns Integer "Time since the start of the run, nanoseconds.";
    who Text "Where the event happened: FLOW/sender, FLOW/receiver, or a link.";
    event Text "Kind of event: state, sent, received, window, rtt, recovery, recovered, timeout, spurious-timeout, \
                mark-echoed, queue, marked, dropped.";
    seq Integer "sent, received: sequence number relative to the SYN, which is 0; QUIC: packet number. recovery, timeout, \
                 mark-echoed: snd_una.";
    ack Integer "sent, received: acknowledgement number, relative to the peer's SYN; QUIC: the largest packet number acknowledged. \
                 recovery: the number that ends it.";
    len Integer "sent, received: payload, bytes; QUIC: data of streams.";
    flags Text "sent, received: control bits; S, F, R, P, E for ECE, W for CWR, and . for ACK. QUIC: the type of packet, initial, \
                0-rtt, handshake, 1-rtt.";
    window Integer "sent, received: advertised window, bytes.";
    sack Text "sent, received: SACK blocks as first-end, relative to the SYN, end exclusive, separated by spaces.";
    retransmission Integer "sent: 1 if the first byte was sent before, otherwise 0.";
    stream Integer "sent, received, QUIC: the stream of the first data in the packet.";
    offset Integer "sent, received, QUIC: offset of that data in its stream, bytes.";
    cwnd Integer "window: congestion window, bytes, inflation included.";
    ssthresh Integer "window: slow start threshold, bytes; empty while it is unlimited.";
    flight Integer "window: bytes sent and not yet acknowledged.";
    rtt_ns Integer "rtt: RTT sample, nanoseconds.";
    rto_ns Integer "rtt: resulting retransmission timeout without backoff, nanoseconds.";
    backoffs Integer "timeout: number of consecutive timeouts.";
    queue_packets Integer "queue: packets already waiting when a packet arrives.";
    queue_bytes Integer "queue: bytes already waiting when a packet arrives.";
    average Real "queue: RED's average queue, packets; empty without RED.";
    reason Text "dropped: queue-full, early (RED, CoDel and others), channel, listed (drop list), or too-long (MTU).";
    from Text "state: previous state, as RFC 9293 spells it.";
    to Text "state: new state.";
}

/// One row; its cells are in the order of [`COLUMNS`].
pub type Row<'a> = [Cell<'a>; COLUMNS.len()];

/// A count of nanoseconds, bytes or packets. Values above 2^63 mean "unlimited" and leave the cell empty.
fn integer(value: impl TryInto<i64>) -> Cell<'static> {
    value.try_into().map_or(Cell::Empty, Cell::Integer)
}

fn text(value: &str) -> Cell<'_> {
    Cell::Text(value.into())
}

/// The row of an event of the machine called `who`.
pub fn row<'a>(now: Time, who: &'a str, event: &Event) -> Row<'a> {
    const EMPTY: Cell<'static> = Cell::Empty;
    let mut row: Row<'a> = [EMPTY; COLUMNS.len()];
    let mut set = |at: At, cell| row[at as usize] = cell;
    set(At::time_ns, integer(now.as_nanos()));
    set(At::who, text(who));
    set(At::event, text(name(event)));
    match event {
        Event::State { from, to } => {
            set(At::from, text(state(*from)));
            set(At::to, text(state(*to)));
        }
        Event::Sent { segment, retransmission } => {
            set(At::retransmission, integer(u8::from(*retransmission)));
            segment_cells(segment, set);
        }
        Event::Received { segment } => segment_cells(segment, set),
        Event::QuicSent(packet) => {
            set(At::retransmission, integer(u8::from(packet.repeats)));
            quic_cells(packet, set);
        }
        Event::QuicReceived(packet) => quic_cells(packet, set),
        Event::Window { cwnd, ssthresh, flight } => {
            set(At::cwnd, integer(*cwnd));
            set(At::ssthresh, integer(*ssthresh));
            set(At::flight, integer(*flight));
        }
        Event::Rtt { sample, rto } => {
            set(At::rtt_ns, integer(sample.as_nanos()));
            set(At::rto_ns, integer(rto.as_nanos()));
        }
        Event::RecoveryEntered { snd_una, recover } => {
            set(At::seq, integer(*snd_una));
            set(At::ack, integer(*recover));
        }
        Event::Timeout { snd_una, backoffs } => {
            set(At::seq, integer(*snd_una));
            set(At::backoffs, integer(*backoffs));
        }
        Event::MarkEchoed { snd_una } => set(At::seq, integer(*snd_una)),
        Event::RecoveryLeft | Event::SpuriousTimeout | Event::Marked => {}
        Event::Queue { packets, bytes, average } => {
            set(At::queue_packets, integer(*packets));
            set(At::queue_bytes, integer(*bytes));
            set(At::average, average.map_or(Cell::Empty, Cell::Real));
        }
        Event::Dropped { reason } => set(At::reason, text(drop_reason(*reason))),
    }
    row
}

fn segment_cells<'a>(segment: &Segment, mut set: impl FnMut(At, Cell<'a>)) {
    set(At::seq, integer(segment.seq));
    set(At::ack, integer(segment.ack));
    set(At::len, integer(segment.len));
    set(At::flags, Cell::Text(format!("{:?}", segment.flags).into()));
    set(At::window, integer(segment.window));
    if !segment.sack.is_empty() {
        let blocks: Vec<_> = segment.sack.iter(segment.ack).map(|(start, end)| format!("{start}-{end}")).collect();
        set(At::sack, Cell::Text(blocks.join(" ").into()));
    }
}

fn quic_cells<'a>(packet: &QuicPacket, mut set: impl FnMut(At, Cell<'a>)) {
    set(At::seq, integer(packet.number));
    if let Some(largest) = packet.acknowledges {
        set(At::ack, integer(largest));
    }
    set(At::len, integer(packet.data));
    set(At::flags, text(packet.kind.word()));
    if let Some((stream, offset)) = packet.at {
        set(At::stream, integer(stream));
        set(At::offset, integer(offset));
    }
}

fn name(event: &Event) -> &'static str {
    match event {
        Event::State { .. } => "state",
        Event::Sent { .. } | Event::QuicSent(_) => "sent",
        Event::Received { .. } | Event::QuicReceived(_) => "received",
        Event::Window { .. } => "window",
        Event::Rtt { .. } => "rtt",
        Event::RecoveryEntered { .. } => "recovery",
        Event::RecoveryLeft => "recovered",
        Event::Timeout { .. } => "timeout",
        Event::SpuriousTimeout => "spurious-timeout",
        Event::MarkEchoed { .. } => "mark-echoed",
        Event::Marked => "marked",
        Event::Queue { .. } => "queue",
        Event::Dropped { .. } => "dropped",
    }
}

fn drop_reason(reason: DropReason) -> &'static str {
    match reason {
        DropReason::QueueFull => "queue-full",
        DropReason::Early => "early",
        DropReason::Channel => "channel",
        DropReason::Listed => "listed",
        DropReason::TooLong => "too-long",
    }
}

fn state(state: State) -> &'static str {
    match state {
        State::Closed => "CLOSED",
        State::Listen => "LISTEN",
        State::SynSent => "SYN-SENT",
        State::SynReceived => "SYN-RECEIVED",
        State::Established => "ESTABLISHED",
        State::FinWait1 => "FIN-WAIT-1",
        State::FinWait2 => "FIN-WAIT-2",
        State::CloseWait => "CLOSE-WAIT",
        State::Closing => "CLOSING",
        State::LastAck => "LAST-ACK",
        State::TimeWait => "TIME-WAIT",
    }
}
