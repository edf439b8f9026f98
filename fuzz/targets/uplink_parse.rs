//! What clients may send into an uplink's device, between what servers do: bytes of any kind, and segments with right
//! checksums and any header. The machine never panics, never spins, keeps to its memory, and what it sends is whole.

use arbitrary::{Arbitrary, Unstructured};
use bentpipe_engine::Step;
use bentpipe_engine::gateway::UplinkSender;
use bentpipe_engine::mux::Reason;
use bentpipe_engine::tcp::variant::VARIANTS;
use bentpipe_engine::tcp::{TcpConfig, Variant};
use bentpipe_engine::units::{Duration, Rate, Time};
use bentpipe_engine::wire::ip;
use bentpipe_gateway::{ConnectionId, Heard, Uplink, UplinkConfig, Uplinked};

const MEMORY: u64 = 400_000;
/// Steps at one instant: windows and budgets are small, so more is a loop.
const STEPS: usize = 20_000;

#[derive(Debug, Arbitrary)]
enum Act {
    Bytes([u8; 64], u8),
    Segment { v6: bool, port: u8, seq: i16, ack: i16, flags: u8, window: u16, options: [u8; 12], len: u8, payload: u8 },
    Syn { v6: bool, port: u8, mss: u16 },
    Connected(u8),
    Failed(u8, bool),
    Write(u8, u16),
    Read(u8, u16),
    Close(u8),
    Abort(u8),
    Later(u16),
    Drain,
}

/// A segment's header as it may be: numbers, flags, window.
struct Header {
    seq: u32,
    ack: u32,
    flags: u8,
    window: u16,
}

/// A segment from 10.1.0.2 (or fd01::2) to the server, around the sequence numbers 0.
fn packet(v6: bool, port: u8, header: &Header, options: &[u8], payload: usize) -> Vec<u8> {
    let Header { seq, ack, flags, window } = *header;
    let addresses = match v6 {
        false => ip::Addresses::new([10, 1, 0, 2].into(), [10, 2, 0, 2].into()),
        true => ip::Addresses::new([0xfd01, 0, 0, 0, 0, 0, 0, 2].into(), [0xfd02, 0, 0, 0, 0, 0, 0, 2].into()),
    };
    let addresses = addresses.expect("of one version");
    let mut tcp = vec![4, port, 0, 80];
    tcp.extend(seq.to_be_bytes());
    tcp.extend(ack.to_be_bytes());
    tcp.extend([((20 + options.len()) as u8 / 4) << 4, flags]);
    tcp.extend(window.to_be_bytes());
    tcp.extend([0; 4]);
    tcp.extend(options);
    tcp.resize(tcp.len() + payload, 7);
    let sum = addresses.pseudo_header(ip::TCP, tcp.len()).bytes(&tcp).finish();
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    let mut whole = vec![0; addresses.header_len()];
    ip::emit(&addresses, ip::TCP, tcp.len(), &mut whole).expect("there is room");
    whole.extend(tcp);
    whole
}

struct World {
    now: Time,
    machine: Uplink,
    ids: Vec<ConnectionId>,
    /// Our numbers as the client would see them, to be acknowledged.
    iss: u32,
    out: Vec<u8>,
}

impl World {
    fn settle(&mut self) {
        for _ in 0..STEPS {
            match self.machine.poll(self.now, &mut self.out) {
                Step::Do(Uplinked::Send(length)) => {
                    let sent = ip::parse(&self.out[..length]).expect("what is sent is whole");
                    let bytes = &self.out[sent.payload];
                    self.iss = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
                }
                Step::Do(Uplinked::Connect(id, _)) => self.ids.push(id),
                Step::Do(Uplinked::Closed(id)) => self.machine.flushed(id),
                Step::Do(_) => {}
                Step::Wait(until) => {
                    assert!(until.is_none_or(|until| until > self.now), "it waits for what is to come");
                    assert!(self.machine.stats().memory <= MEMORY, "{:?}", self.machine.stats());
                    return;
                }
            }
        }
        panic!("no end at {:?}: {:?}", self.now, self.machine.stats());
    }

    fn act(&mut self, act: &Act) {
        let (now, machine) = (self.now, &mut self.machine);
        let id = |n: &u8| self.ids.get(usize::from(*n) % self.ids.len().max(1)).copied().unwrap_or(ConnectionId(9));
        match act {
            Act::Bytes(bytes, length) => {
                machine.receive(now, &bytes[..usize::from(length % 65)]);
            }
            Act::Segment { v6, port, seq, ack, flags, window, options, len, payload } => {
                let options = &options[..usize::from(len % 4) * 4];
                let ack = self.iss.wrapping_add(*ack as u32);
                let header = Header { seq: *seq as u32, ack, flags: *flags, window: *window };
                machine.receive(now, &packet(*v6, *port, &header, options, usize::from(*payload)));
            }
            Act::Syn { v6, port, mss } => {
                let mss = mss.to_be_bytes();
                let options = [2, 4, mss[0], mss[1], 1, 3, 3, 7];
                let header = Header { seq: 0, ack: 0, flags: 2, window: 60_000 };
                let heard = machine.receive(now, &packet(*v6, *port, &header, &options, 0));
                assert_ne!(heard, Heard::Malformed);
            }
            Act::Connected(n) => machine.connected(now, id(n)),
            Act::Failed(n, late) => {
                machine.failed(now, id(n), if *late { Reason::TimedOut } else { Reason::Refused });
            }
            Act::Write(n, length) => {
                let length = machine.room(id(n)).min(usize::from(*length));
                assert_eq!(machine.write(now, id(n), &vec![1; length]), length);
            }
            Act::Read(n, length) => {
                machine.read(now, id(n), &mut vec![0; usize::from(*length)]);
            }
            Act::Close(n) => machine.close(now, id(n)),
            Act::Abort(n) => machine.abort(now, id(n)),
            Act::Later(millis) => self.now += Duration::from_millis(u64::from(*millis)),
            Act::Drain => {
                machine.drain();
            }
        }
    }
}

/// Answers how many connections were opened.
pub(crate) fn run(data: &[u8]) -> u64 {
    let mut input = Unstructured::new(data);
    let Ok((row, early_accept)) = <(u8, bool)>::arbitrary(&mut input) else { return 0 };
    let (.., row) = VARIANTS[usize::from(row) % VARIANTS.len()];
    let config = UplinkConfig {
        sender: UplinkSender {
            tcp: TcpConfig { timestamps: true, variant: Variant { sack: true, ..row }, ..TcpConfig::default() },
            window: Some(50_000),
            rate: Rate::from_bits_per_second(10_000_000).expect("not zero"),
            round_trip: Duration::from_millis(40),
            mtu: 1500,
        },
        early_accept,
        max_streams: 5,
        memory: MEMORY,
    };
    let mut world =
        World { now: Time::ZERO, machine: Uplink::new(config), ids: Vec::new(), iss: 0, out: vec![0; 1 << 16] };
    while let Ok(act) = Act::arbitrary(&mut input) {
        world.act(&act);
        world.settle();
        if input.is_empty() {
            break;
        }
    }
    world.machine.abort_all(world.now);
    world.settle();
    // Connections in TIME-WAIT too are gone in the end, and nothing is left of any.
    world.now += Duration::from_secs(3 * 3600);
    for _ in 0..10 {
        world.settle();
        world.now += Duration::from_secs(100);
    }
    let stats = world.machine.stats();
    assert_eq!((stats.open, stats.memory), (0, 0), "{stats:?}");
    stats.total
}
