//! A blind attacker who sends arbitrary segments in any host's name. The state that this creates is bounded and expires; the
//! connections of others survive.

use bentpipe_engine::stream::Stream;

use super::raw::{Raw, Said, segment, segment_from};
use super::*;

const MINUTE: Duration = Duration::from_secs(60);
/// TIME-WAIT of [`config`]: the minimum.
const TIME_WAIT: Duration = Duration::from_secs(5);

/// A random number below `max`.
fn below(guess: &mut Stream, max: u64) -> u64 {
    (guess.uniform() * max as f64) as u64
}

/// A random 32-bit number.
fn number(guess: &mut Stream) -> u32 {
    below(guess, 1 << 32) as u32
}

fn at_rest(world: &World) -> bool {
    let stats = world.machine.stats();
    (stats.open, stats.memory, world.machine.held()) == (0, 0, 0)
}

/// Runs in steps until the machine holds nothing. Returns how long that took.
fn until_at_rest(world: &mut World, step: Duration, max: Duration) -> Duration {
    let from = world.now;
    while !at_rest(world) {
        assert!(world.now < from + max, "{:?} after {:?}", world.machine.stats(), world.now.saturating_since(from));
        world.run(world.now + step);
    }
    world.now.saturating_since(from)
}

/// While the server is being contacted, nothing has been sent to the client: only a sender with its number is accepted as the client.
#[test]
fn a_guess_ends_no_connection_that_is_being_opened() {
    let (mut world, mut client) = (World::new(config()), Raw::new(40_000, 5000, Some(7)));
    client.send(&mut world, Flags::SYN, b"");
    let id = world.wish();
    for next in [0, 4999, 5000, 5002, 5001 + 60_000, 5001u32.wrapping_sub(1 << 31)] {
        assert_eq!(Raw { next, ..client }.send(&mut world, Flags::RST, b""), Heard::Taken);
        // Nor does another SYN replace the first one.
        Raw { next: next.wrapping_add(9), ..client }.send(&mut world, Flags::SYN, b"");
    }
    assert_eq!((world.wish(), world.machine.stats().open), (id, 1));
    world.machine.connected(world.now, id);
    world.poll();
    let [answer] = client.heard(&world, 0)[..] else { panic!("one answer") };
    assert_eq!((answer.flags, answer.ack), (Flags::SYN | Flags::ACK, 5001));
    // In SYN-RECEIVED it is the connection that looks at the number.
    for next in [0, 5000, 5002, 70_000] {
        Raw { next, ..client }.send(&mut world, Flags::RST, b"");
    }
    client.peer = answer.end();
    client.send(&mut world, Flags::ACK, b"");
    assert_eq!(world.machine.stats().open, 1);

    let (mut world, mut client) = (World::new(config()), Raw::new(40_000, 5000, Some(7)));
    client.send(&mut world, Flags::SYN, b"");
    let id = world.wish();
    client.send(&mut world, Flags::RST, b"");
    assert_eq!(world.said.last(), Some(&Uplinked::Reset(id)), "its own reset counts");
    assert!(at_rest(&world));
}

/// A flood of SYNs from one source takes its quota of places; they are free again after 30 s, whether the servers accept or are
/// silent. The driver is told of each that is evicted or expires.
#[test]
fn half_open_connections_expire() {
    for accepted in [false, true] {
        let mut world = World::new(config());
        for port in 1000..1300 {
            Raw::new(port, u32::from(port) * 977, None).send(&mut world, Flags::SYN, b"");
        }
        let stats = world.machine.stats();
        // Of 100 connections 50 may be half open, and 16 of one source.
        assert_eq!((stats.open, stats.refused, stats.failed, world.machine.held()), (16, 0, 284, 16));
        assert!(stats.memory <= config().memory);
        let asked = |said: &Uplinked| if let Uplinked::Connect(id, _) = said { Some(*id) } else { None };
        let ids: Vec<_> = world.said.iter().filter_map(asked).collect();
        if accepted {
            ids.iter().for_each(|&id| world.machine.connected(world.now, id));
        }
        let took = until_at_rest(&mut world, Duration::from_secs(1), MINUTE.saturating_mul(6));
        assert!(took >= Duration::from_secs(29) && took <= Duration::from_secs(32), "{took:?}");
        let of_reset = |said: &Uplinked| if let Uplinked::Reset(id) = said { Some(*id) } else { None };
        let mut reset: Vec<_> = world.said.iter().filter_map(of_reset).collect();
        reset.sort();
        assert_eq!(reset, ids, "the driver hears of each");
        // The client was silent, or the server was.
        let expected = if accepted { (16, 284) } else { (0, 300) };
        assert_eq!((world.machine.stats().silent, world.machine.stats().failed), expected);
    }
}

/// SYNs of 8192 sources at once to silent servers: another client's connection is still accepted.
#[test]
fn spoofed_syns_keep_nobody_out() {
    let mut world = World::new(UplinkConfig { max_streams: 16_384, memory: 256 << 20, ..config() });
    for n in 0..8192u32 {
        let source = (0x0b00_0000 + n).to_be_bytes();
        let syn = segment_from((source, 1000), (n, 0), Flags::SYN, None, 1000, b"");
        assert_eq!(world.hear(&syn), Heard::Taken);
    }
    let stats = world.machine.stats();
    assert_eq!((stats.open, stats.refused, stats.failed), (4096, 0, 4096), "half of the memory is for open ones");
    world.said.clear();
    let mut client = Raw::new(40_000, 5000, Some(7));
    client.open(&mut world);
    assert_eq!(world.machine.stats().refused, 0);
}

/// A genuine client during a flood keeps its place.
#[test]
fn a_flood_harms_no_open_connection() {
    let (mut world, mut client) = (World::new(config()), Raw::new(40_000, 5000, Some(7)));
    let id = client.open(&mut world);
    for port in 1000..1300 {
        Raw::new(port, u32::from(port) * 977, None).send(&mut world, Flags::SYN, b"");
    }
    client.clock = Some(8);
    client.send(&mut world, Flags::ACK, b"hello");
    let mut got = [0; 5];
    assert_eq!((world.machine.read(world.now, id, &mut got), &got), (5, b"hello"));
}

/// The client's FIN again and again, as from a client that receives nothing, or spoofed with any number.
#[test]
fn fins_do_not_extend_time_wait_for_ever() {
    for stray in [false, true] {
        let (mut world, mut client) = (World::new(config()), Raw::new(40_000, 5000, Some(7)));
        let id = client.open(&mut world);
        client.close_last(&mut world, id);
        let (from, mut answers) = (world.now, 0);
        client.next -= 1;
        while !at_rest(&world) {
            let by = if stray { answers * 65_537 + 1_000_000 } else { 0 };
            let before = world.sent.len();
            Raw { next: client.next.wrapping_add(by), ..client }.send(&mut world, Flags::FIN | Flags::ACK, b"");
            answers += (world.sent.len() - before) as u32;
            world.run(world.now + Duration::from_secs(1));
            assert!(world.now < from + TIME_WAIT.saturating_mul(5), "it has no end");
        }
        assert!(answers >= 5, "until then it is acknowledged: {answers}");
    }
}

/// If there are too many connections in TIME-WAIT for a new one, the oldest is evicted.
#[test]
fn time_wait_keeps_nobody_out() {
    let mut world = World::new(UplinkConfig { max_streams: 10, ..config() });
    let mut clients: Vec<Raw> = (0..40).map(|n| Raw::new(1000 + n, 5000, Some(7))).collect();
    for client in &mut clients {
        let id = client.open(&mut world);
        client.close_last(&mut world, id);
        world.now += Duration::from_millis(10);
        assert!(world.machine.held() <= 20);
    }
    assert_eq!(world.machine.stats().refused, 0);
    // The last ones still exist, the first ones do not.
    let heard = |world: &mut World, client: &Raw| {
        Raw { next: client.next - 1, ..*client }.send(world, Flags::FIN | Flags::ACK, b"")
    };
    assert_eq!(heard(&mut world, &clients[39]), Heard::Taken);
    assert_eq!(heard(&mut world, &clients[0]), Heard::Pass);
    until_at_rest(&mut world, Duration::from_secs(1), TIME_WAIT.saturating_mul(5));
}

/// Data is left, the server has ended, and the client is gone: retransmissions end (RFC 9293 §3.8.3).
#[test]
fn orphans_end() {
    let (mut world, mut client) = (World::new(config()), Raw::new(40_000, 5000, Some(7)));
    let id = client.open(&mut world);
    assert_eq!(world.machine.write(world.now, id, &[7; 10_000]), 10_000);
    world.machine.close(world.now, id);
    // 15 repetitions, backed off from a second to a minute.
    let took = until_at_rest(&mut world, MINUTE, MINUTE.saturating_mul(15));
    assert!(took >= Duration::from_secs(100), "{took:?}");
    assert_eq!(world.said.last(), Some(&Uplinked::Reset(id)));
}

/// Data is left, the server has ended, and the client advertises a zero window for ever.
#[test]
fn orphans_end_though_the_client_answers_probes() {
    let (mut world, mut client) = (World::new(config()), Raw::new(40_000, 5000, Some(7)));
    let id = client.open(&mut world);
    client.window = 0;
    client.send(&mut world, Flags::ACK, b"");
    assert_eq!(world.machine.write(world.now, id, &[7; 10_000]), 10_000);
    world.machine.close(world.now, id);
    let from = world.now;
    while !at_rest(&world) {
        assert!(world.now < from + Duration::from_secs(2 * 3600 + 6 * 60), "{:?}", world.machine.stats());
        world.run(world.now + Duration::from_secs(20));
        client.clock = client.clock.map(|clock| clock + 20_000);
        client.send(&mut world, Flags::ACK, b"");
    }
    assert!(world.now >= from + Duration::from_secs(2 * 3600 + 4 * 60), "{:?}", world.now);
    assert_eq!(world.said.last(), Some(&Uplinked::Reset(id)));
}

/// Scans without the client's numbers do not keep a dead connection alive. The client's keepalives do.
#[test]
fn only_the_client_keeps_its_connection() {
    for alive in [false, true] {
        let (mut world, mut client) = (World::new(config()), Raw::new(40_000, 5000, Some(7)));
        let id = client.open(&mut world);
        let mut guess = Stream::named(1, "scan");
        let from = world.now;
        while world.now < from + Duration::from_secs(6 * 3600) {
            world.run(world.now + MINUTE.saturating_mul(10));
            if at_rest(&world) {
                break;
            }
            for flags in [Flags::SYN, Flags::RST, Flags::FIN | Flags::ACK, Flags::ACK, Flags::FIN] {
                let numbers = (number(&mut guess), number(&mut guess));
                world.hear(&segment(40_000, numbers, flags, None, 1000, b""));
            }
            if alive {
                // A keep-alive repeats the last number that was acknowledged (RFC 9293 §3.8.4).
                client.clock = client.clock.map(|clock| clock + 600_000);
                Raw { next: client.next - 1, ..client }.send(&mut world, Flags::ACK, b"");
            }
        }
        let lasted = world.now.saturating_since(from);
        assert_eq!(at_rest(&world), !alive, "{lasted:?}");
        if !alive {
            assert!(lasted <= Duration::from_secs(2 * 3600 + 20 * 60), "{lasted:?}");
            assert_eq!(world.said.last(), Some(&Uplinked::Reset(id)));
        }
    }
}

/// A transfer in both directions, during every kind of scan in the names of the two clients and others.
fn scanned(seed: u64) {
    let mut guess = Stream::named(seed, "scan");
    let mut below = move |max: u64| below(&mut guess, max);
    let (mut world, mut client, id) = open(config());
    let bytes: Vec<u8> = (0..200_000u32).map(|n| (n / 251) as u8 ^ n as u8).collect();
    let (mut down, mut up, mut got_down, mut got_up) = (0, 0, Vec::<u8>::new(), Vec::<u8>::new());
    let mut scratch = [0; 4096];
    let mut max_held = 0;
    for _ in 0..4000 {
        for _ in 0..4 {
            let port = if below(2) == 0 { CLIENT.1 } else { 30_000 + below(400) as u16 };
            let flags = [Flags::SYN, Flags::FIN, Flags::RST, Flags::ACK][below(4) as usize]
                | [Flags::NONE, Flags::ACK, Flags::PSH, Flags::FIN, Flags::SYN][below(5) as usize];
            let timestamps = (below(2) == 0).then(|| (below(1 << 32) as u32, below(1 << 32) as u32));
            let numbers = (below(1 << 32) as u32, below(1 << 32) as u32);
            let payload = &[0xee; 20][..below(21) as usize];
            world.hear(&segment(port, numbers, flags, timestamps, below(1 << 16) as u16, payload));
        }
        // Servers accept one third of the connections and refuse another third.
        for said in std::mem::take(&mut world.said) {
            if let Uplinked::Connect(id, _) = said {
                match below(3) {
                    0 => world.machine.connected(world.now, id),
                    1 => world.machine.failed(world.now, id, Reason::Refused),
                    _ => {}
                }
            }
        }
        down += world.machine.write(world.now, id, &bytes[down..(down + 500).min(bytes.len())]);
        up += client.user(world.now, |end, cx| end.write(cx, &bytes[up..(up + 500).min(bytes.len())]).expect("open"));
        world.now += Duration::from_millis(2);
        let from = world.sent.len();
        world.poll();
        // Packets to others are ignored.
        for (_, packet) in &world.sent[from..] {
            if Said::of(packet).port == CLIENT.1 {
                client.user(world.now, |end, cx| end.receive(cx, packet)).expect("it is whole");
            }
        }
        while let Some(packet) = client.packet(world.now) {
            world.hear(&packet);
        }
        let count = client.user(world.now, |end, cx| end.read(cx, &mut scratch));
        got_down.extend(&scratch[..count]);
        let count = world.machine.read(world.now, id, &mut scratch);
        got_up.extend(&scratch[..count]);
        max_held = max_held.max(world.machine.held());
        assert!(world.machine.stats().memory <= config().memory);
        assert_eq!(client.0.outcome(), None, "seed {seed}: it lives");
    }
    assert!(max_held <= 200, "{max_held}");
    assert!(got_down == bytes && got_up == bytes, "seed {seed}: {} and {} bytes", got_down.len(), got_up.len());
    world.machine.abort(world.now, id);
    until_at_rest(&mut world, MINUTE, MINUTE.saturating_mul(6));
}

#[test]
fn scans_harm_nobody() {
    (0..8).for_each(scanned);
}

/// A SYN's payload is counted if it is held.
#[test]
fn long_syns_are_counted() {
    let mut world = World::new(config());
    for port in 1000..1100 {
        Raw::new(port, 5000, None).send(&mut world, Flags::SYN, &[7; 60_000]);
    }
    let stats = world.machine.stats();
    assert!(stats.memory >= stats.open * 60_000 && stats.memory <= config().memory, "{stats:?}");
}

/// SYNs of ever new hosts arrive faster than they can be refused. The resets that wait take bounded memory, and do not hold up an open
/// connection for long.
#[test]
fn refused_syns_leave_few_resets() {
    let mut world = World::new(UplinkConfig { max_streams: 1, ..config() });
    let mut client = Raw::new(40_000, 5000, Some(7));
    let id = client.open(&mut world);
    world.run(world.now + Duration::from_secs(1));
    let from = world.sent.len();
    for n in 0..10_000u32 {
        let source = (0x0b00_0000 + n).to_be_bytes();
        let syn = segment_from((source, 1000), (n, 0), Flags::SYN, None, 1000, b"");
        assert_eq!(world.machine.receive(world.now, &syn), Heard::Taken);
    }
    assert_eq!(world.machine.stats().refused, 10_000);
    assert_eq!(world.machine.write(world.now, id, b"hello"), 5);
    let begun = world.now;
    world.run(begun + Duration::from_secs(1));
    let said = |(at, packet): &(Time, Vec<u8>)| (*at, Said::of(packet));
    let sent: Vec<_> = world.sent[from..].iter().map(said).collect();
    let resets = sent.iter().filter(|(_, said)| said.flags.has(Flags::RST)).count();
    assert!((1..=256).contains(&resets), "{resets}");
    // 256 resets of 40 bytes take 8 ms of the line.
    let (at, _) = sent.iter().find(|(_, said)| said.len == 5).expect("the data is sent");
    assert!(*at <= begun + Duration::from_millis(10), "{:?}", at.saturating_since(begun));
}
