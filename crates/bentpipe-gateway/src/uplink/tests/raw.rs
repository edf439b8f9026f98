//! A client that sends any segments that a test chooses, valid or not.

use super::*;

/// The fields of a segment to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) port: u16,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: Flags,
    pub(super) echo: Option<u32>,
    pub(super) len: u32,
}

impl Said {
    pub(super) fn of(packet: &[u8]) -> Said {
        let ip = ip::parse(packet).expect("what is sent is whole");
        let bytes = &packet[ip.payload];
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let header = usize::from(bytes[12] >> 4) * 4;
        let ports = ip::Ports::peek(bytes).expect("it is whole");
        let translation = tcp::Translation::new(ip.addresses.reversed(), ports.reversed(), 0);
        let (segment, _) = translation.parse(bytes, tcp::Near::default()).expect("it is whole");
        Said {
            port: ports.destination,
            seq: word(4),
            ack: word(8),
            flags: segment.flags,
            echo: segment.timestamps.map(|timestamps| timestamps.echo),
            len: (bytes.len() - header) as u32,
        }
    }

    /// The number after the last one that it takes.
    pub(super) fn end(&self) -> u32 {
        let controls = u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN));
        self.seq.wrapping_add(self.len + controls)
    }
}

/// A segment of the client, with a valid checksum.
pub(super) fn segment(
    port: u16,
    numbers: (u32, u32),
    flags: Flags,
    timestamps: Option<(u32, u32)>,
    window: u16,
    payload: &[u8],
) -> Vec<u8> {
    segment_from((CLIENT.0, port), numbers, flags, timestamps, window, payload)
}

/// A segment of any host, with a valid checksum.
pub(super) fn segment_from(
    (source, port): ([u8; 4], u16),
    (seq, ack): (u32, u32),
    flags: Flags,
    timestamps: Option<(u32, u32)>,
    window: u16,
    payload: &[u8],
) -> Vec<u8> {
    let addresses = ip::Addresses::new(source.into(), SERVER.0.into()).expect("of one version");
    let mut options = Vec::new();
    if flags.has(Flags::SYN) {
        options.extend([2, 4, 1460u16.to_be_bytes()[0], 1460u16.to_be_bytes()[1], 1, 3, 3, 7]);
    }
    if let Some((value, echo)) = timestamps {
        options.extend([1, 1, 8, 10]);
        options.extend(value.to_be_bytes());
        options.extend(echo.to_be_bytes());
    }
    let mut bytes = Vec::new();
    bytes.extend(port.to_be_bytes());
    bytes.extend(SERVER.1.to_be_bytes());
    bytes.extend(seq.to_be_bytes());
    bytes.extend(ack.to_be_bytes());
    bytes.extend([((20 + options.len()) as u8 / 4) << 4, flags.bits()]);
    bytes.extend(window.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(options);
    bytes.extend(payload);
    let sum = addresses.pseudo_header(ip::TCP, bytes.len()).bytes(&bytes).finish();
    bytes[16..18].copy_from_slice(&sum.to_be_bytes());
    let mut packet = vec![0; addresses.header_len()];
    ip::emit(&addresses, ip::TCP, bytes.len(), &mut packet).expect("there is room");
    packet.extend(bytes);
    packet
}

/// One end of a connection, without any logic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw {
    pub(super) host: [u8; 4],
    pub(super) port: u16,
    /// Its next number, and the next number that it expects.
    pub(super) next: u32,
    pub(super) peer: u32,
    /// The TSval of its next segment, and its TSecr.
    pub(super) clock: Option<u32>,
    pub(super) echo: u32,
    pub(super) window: u16,
}

impl Raw {
    pub(super) fn new(port: u16, isn: u32, clock: Option<u32>) -> Raw {
        Raw { host: CLIENT.0, port, next: isn, peer: 0, clock, echo: 0, window: 60_000 }
    }

    pub(super) fn packet(&self, flags: Flags, payload: &[u8]) -> Vec<u8> {
        let ack = if flags.has(Flags::ACK) { self.peer } else { 0 };
        let timestamps = self.clock.map(|clock| (clock, self.echo));
        segment_from((self.host, self.port), (self.next, ack), flags, timestamps, self.window, payload)
    }

    /// Sends a segment, and advances its number.
    pub(super) fn send(&mut self, world: &mut World, flags: Flags, payload: &[u8]) -> Heard {
        let heard = world.hear(&self.packet(flags, payload));
        let controls = u32::from(flags.has(Flags::SYN)) + u32::from(flags.has(Flags::FIN));
        self.next = self.next.wrapping_add(payload.len() as u32 + controls);
        heard
    }

    /// The segments sent to it from the `from`th packet on.
    pub(super) fn heard(&self, world: &World, from: usize) -> Vec<Said> {
        let all = world.sent[from..].iter().map(|(_, packet)| Said::of(packet));
        all.filter(|said| said.port == self.port).collect()
    }

    /// Opens: the server accepts at once.
    pub(super) fn open(&mut self, world: &mut World) -> ConnectionId {
        let from = world.sent.len();
        assert_eq!(self.send(world, Flags::SYN, b""), Heard::Taken);
        let Some(&Uplinked::Connect(id, _)) = world.said.last() else { panic!("{:?}", world.said) };
        world.machine.connected(world.now, id);
        world.poll();
        let [answer] = self.heard(world, from)[..] else { panic!("one answer") };
        assert_eq!((answer.flags, answer.ack), (Flags::SYN | Flags::ACK, self.next));
        self.peer = answer.end();
        self.send(world, Flags::ACK, b"");
        id
    }

    /// The server ends, then this client: the gateway's end is in TIME-WAIT.
    pub(super) fn close_last(&mut self, world: &mut World, id: ConnectionId) {
        let from = world.sent.len();
        world.machine.close(world.now, id);
        world.poll();
        let fin = *self.heard(world, from).last().expect("a FIN");
        assert!(fin.flags.has(Flags::FIN), "{fin:?}");
        self.peer = fin.end();
        self.send(world, Flags::FIN | Flags::ACK, b"");
        let last = *self.heard(world, from).last().expect("an ACK");
        assert_eq!((last.flags, last.seq, last.ack), (Flags::ACK, self.peer, self.next));
        assert_eq!(world.said.last(), Some(&Uplinked::Closed(id)));
    }
}
