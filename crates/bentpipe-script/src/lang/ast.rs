//! The syntax tree of a script. Times are in microseconds, as in packetdrill.

use bentpipe_engine::wire::tcp::MarkedOrder;

/// A whole script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// `--name=value` at the top.
    pub settings: Vec<Setting>,
    /// The events in order.
    pub events: Vec<Event>,
}

/// `--name=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its position.
    pub line: u32,
    /// The name without dashes.
    pub name: String,
    /// What follows the equals sign, without quotes; `None` without one.
    pub value: Option<String>,
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Where it starts.
    pub line: u32,
    /// When it happens.
    pub when: When,
    /// What happens.
    pub action: Action,
}

/// The time of an event, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Since the start of the script.
    At(i64),
    /// Since the previous event.
    After(i64),
    /// Between two instants since the start.
    Between(i64, i64),
    /// Between two instants since the previous event.
    AfterBetween(i64, i64),
    /// At any time.
    Any,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A packet that the script sends to the host.
    Inbound(Packet),
    /// A packet that the host is expected to send.
    Outbound(Packet),
    /// A system call.
    Call(Call),
    /// A shell command.
    Command(String),
    /// Python.
    Code(String),
}

/// A packet, with the IP header fields that the script gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// ECN bits: 0 to 3.
    pub ecn: Option<u8>,
    /// The whole type-of-service byte or traffic class.
    pub tos: Option<u8>,
    /// Time to live or hop limit.
    pub ttl: Option<u8>,
    /// Source and destination port, if the script names them.
    pub ports: Option<(u16, u16)>,
    /// The rest.
    pub body: Body,
}

/// The content of a packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// A TCP segment.
    Tcp(Tcp),
    /// An ICMP message about one of the host's packets.
    Icmp(Icmp),
}

/// Bits of a TCP header's flags.
pub mod flag {
    /// No more data.
    pub const FIN: u16 = 0x01;
    /// Synchronize.
    pub const SYN: u16 = 0x02;
    /// Reset.
    pub const RST: u16 = 0x04;
    /// Push.
    pub const PSH: u16 = 0x08;
    /// The acknowledgement number is valid.
    pub const ACK: u16 = 0x10;
    /// The urgent pointer is valid.
    pub const URG: u16 = 0x20;
    /// A mark has come (RFC 3168).
    pub const ECE: u16 = 0x40;
    /// The window was reduced (RFC 3168).
    pub const CWR: u16 = 0x80;
    /// Accurate ECN (RFC 9768).
    pub const AE: u16 = 0x100;
}

/// A TCP segment as written.
#[derive(Clone, Debug, PartialEq)]
pub struct Tcp {
    /// Bits of the header ([`flag`]).
    pub flags: u16,
    /// Sequence number; `None` for `...`.
    pub seq: Option<u32>,
    /// The sequence number is absolute, not relative to the initial one.
    pub is_absolute: bool,
    /// Bytes of payload.
    pub len: u32,
    /// Acknowledgement number.
    pub ack: Option<u32>,
    /// The window as in the header.
    pub window: Option<u16>,
    /// Urgent pointer.
    pub urgent: Option<u16>,
    /// The options; `None` for `<...>`.
    pub options: Option<Vec<TcpOption>>,
}

/// An option of TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpOption {
    /// Kind 1.
    Nop,
    /// Kind 0.
    Eol,
    /// Kind 2.
    Mss(u16),
    /// Kind 3.
    WindowScale(u8),
    /// Kind 4.
    SackPermitted,
    /// Kind 5: the blocks' edges.
    Sack(Vec<(u32, u32)>),
    /// Kind 8.
    Timestamps(u32, u32),
    /// Kinds 172 and 174: the counters of accurate ECN in their order.
    Marked(MarkedOrder, Vec<u32>),
    /// Any other: kind and body. Shown as in the script.
    Other(u8, Vec<u8>),
}

/// What scripts call the counters of accurate ECN, in this order.
pub(crate) fn counter_names(order: MarkedOrder) -> [&'static str; 3] {
    match order {
        MarkedOrder::Ect0First => ["e0b", "ceb", "e1b"],
        MarkedOrder::Ect1First => ["e1b", "ceb", "e0b"],
    }
}

/// An ICMP message, of either version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icmp {
    /// Its type's name.
    pub kind: String,
    /// Its code's name.
    pub code: Option<String>,
    /// The reported MTU.
    pub mtu: Option<u32>,
    /// The sequence number of the quoted segment.
    pub quoted: Option<u32>,
}

/// A system call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// When it returns, if it blocks: in microseconds, with the same origin as the event's
    /// own time.
    pub until: Option<i64>,
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<Expr>,
    /// Its expected result.
    pub result: Expr,
    /// Its expected error.
    pub errno: Option<String>,
}

/// An argument or result of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// `...`.
    Any,
    /// A number.
    Int(i64),
    /// A symbol.
    Word(String),
    /// A string.
    Text(String),
    /// `[ ]`.
    List(Vec<Expr>),
    /// `{ }`.
    Struct(Vec<Expr>),
    /// `name(arguments)`.
    Of(String, Vec<Expr>),
    /// `field=value`.
    Field(Box<Expr>, Box<Expr>),
    /// `a | b`.
    Or(Vec<Expr>),
}
