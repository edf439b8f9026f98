//! A SYN to an existing connection: it may replace one in TIME-WAIT (RFC 9293 §3.6.1, RFC 6191 §2), and has no effect otherwise.

use super::raw::{Raw, Said};
use super::*;

const ISN: u32 = 0xffff_ff00;
const CLOCK: u32 = 0x7fff_fff0;

/// A connection in TIME-WAIT, and its client, which has sent up to its FIN.
fn waiting(clock: Option<u32>) -> (World, Raw) {
    let (mut world, mut client) = (World::new(config()), Raw::new(40_000, ISN, clock));
    let id = client.open(&mut world);
    client.send(&mut world, Flags::ACK, b"hello");
    let mut got = [0; 5];
    assert_eq!(world.machine.read(world.now, id, &mut got), 5);
    client.close_last(&mut world, id);
    world.said.clear();
    (world, client)
}

fn connects(world: &World) -> usize {
    world.said.iter().filter(|said| matches!(said, Uplinked::Connect(..))).count()
}

/// Whether a new SYN, this far after the old connection's last number and timestamp, opens a new one. If not, checks that the old
/// one has answered and is unchanged.
fn reopens(clock: Option<u32>, seq: i32, later: Option<i32>) -> bool {
    let (mut world, mut old) = waiting(clock);
    world.now += Duration::from_millis(10);
    // The FIN has the number before the next one.
    let isn = old.next.wrapping_sub(1).wrapping_add_signed(seq);
    let new_clock = later.map(|later| clock.unwrap_or(CLOCK).wrapping_add_signed(later));
    let from = world.sent.len();
    let mut new = Raw::new(old.port, isn, new_clock);
    assert_eq!(new.send(&mut world, Flags::SYN, b""), Heard::Taken);
    if connects(&world) == 1 {
        assert_eq!(new.heard(&world, from), [], "the server is asked first");
        return true;
    }
    // The answer is <SEQ=SND.NXT><ACK=RCV.NXT><CTL=ACK>.
    let [Said { flags: Flags::ACK, seq, ack, .. }] = new.heard(&world, from)[..] else { panic!("{:?}", world.sent) };
    assert_eq!((seq, ack), (old.peer, old.next));
    // The client's FIN is still acknowledged.
    old.next = old.next.wrapping_sub(1);
    let from = world.sent.len();
    old.send(&mut world, Flags::FIN | Flags::ACK, b"");
    assert_eq!(old.heard(&world, from).len(), 1);
    false
}

//= RFC 6191 §2: "If the previous incarnation of the connection used Timestamps"
#[test]
fn after_timestamps_a_later_timestamp_reopens() {
    for seq in [-100_000, -1, 0, 1, 100_000] {
        assert!(reopens(Some(CLOCK), seq, Some(1)), "{seq}: later");
        assert!(!reopens(Some(CLOCK), seq, Some(-1)), "{seq}: earlier");
        // The same timestamp, or none: the number decides.
        assert_eq!(reopens(Some(CLOCK), seq, Some(0)), seq > 0, "{seq}: the same");
        assert_eq!(reopens(Some(CLOCK), seq, None), seq > 0, "{seq}: none");
    }
}

//= RFC 6191 §2: "If the previous incarnation of the connection did not use Timestamps"
#[test]
fn without_timestamps_the_number_decides() {
    for seq in [-100_000, -1, 0, 1, 100_000] {
        assert_eq!(reopens(None, seq, None), seq > 0, "{seq}");
        assert!(reopens(None, seq, Some(0)), "{seq}: timestamps are new");
    }
}

//= RFC 9293 §3.6.1: "assigns its initial sequence number for the new connection to be larger than the largest sequence
//= number it used on the previous connection incarnation"
#[test]
fn our_number_goes_on_above_the_last_one() {
    let (mut world, mut client) = (World::new(config()), Raw::new(40_000, ISN, Some(CLOCK)));
    let id = client.open(&mut world);
    // 30 kB in 30 ms: the clock of 4 us has counted to 7500.
    let mut to_send = 30_000;
    while to_send > 0 {
        let size = to_send.min(world.machine.room(id));
        assert!(size > 0, "it is acknowledged at once");
        to_send -= world.machine.write(world.now, id, &vec![7; size]);
        let from = world.sent.len();
        world.run(world.now + Duration::from_millis(15));
        client.peer = client.heard(&world, from).last().expect("data").end();
        client.clock = client.clock.map(|clock| clock + 1);
        client.send(&mut world, Flags::ACK, b"");
    }
    client.close_last(&mut world, id);
    let old = client;
    client.clock = client.clock.map(|clock| clock + 10);
    world.said.clear();
    let id = client.open(&mut world);
    let iss = client.peer.wrapping_sub(1);
    let above = iss.wrapping_sub(old.peer) as i32;
    assert!(above > 0, "{above}");
    // The new connection carries data.
    assert_eq!(world.machine.write(world.now, id, b"again"), 5);
    let from = world.sent.len();
    world.run(world.now + Duration::from_millis(15));
    assert_eq!(client.heard(&world, from)[0].len, 5);
}

#[test]
fn a_damaged_syn_ends_no_time_wait() {
    let (mut world, old) = waiting(Some(CLOCK));
    let mut syn = Raw { clock: Some(CLOCK + 100), ..old }.packet(Flags::SYN, b"");
    syn[25] ^= 1;
    assert_eq!(world.hear(&syn), Heard::Malformed);
    assert_eq!((world.machine.stats().memory, connects(&world)), (2, 0), "it is still there");
}

/// While the gateway drains, new connections pass directly, even those that would replace old ones.
#[test]
fn nothing_is_reopened_while_draining() {
    let (mut world, old) = waiting(Some(CLOCK));
    world.machine.drain();
    let mut new = Raw { clock: Some(CLOCK + 100), ..old };
    assert_eq!(new.send(&mut world, Flags::SYN, b""), Heard::Pass);
    assert_eq!((connects(&world), world.machine.stats().memory), (0, 0));
    new.peer = 77;
    assert_eq!(new.send(&mut world, Flags::ACK, b"hello"), Heard::Pass, "what follows goes the same way");
}

//= RFC 9293 §3.10.7.4: "RFC 5961 recommends that in these synchronized states, if the SYN bit is set, irrespective of the
//= sequence number, TCP endpoints MUST send a 'challenge ACK' to the remote peer"
#[test]
fn elsewhere_a_syn_goes_to_the_connection() {
    for (ours_closes, clock) in [(false, None), (true, None), (false, Some(CLOCK)), (true, Some(CLOCK))] {
        let later = |by: u32| clock.map(|clock| clock + by);
        let (mut world, mut client) = (World::new(config()), Raw::new(40_000, ISN, clock));
        let id = client.open(&mut world);
        if ours_closes {
            let from = world.sent.len();
            world.machine.close(world.now, id);
            world.poll();
            client.peer = client.heard(&world, from)[0].end();
            client.send(&mut world, Flags::ACK, b"");
        }
        world.said.clear();
        for seq in [1, 1000, 1 << 31, 0xffff_ff00] {
            let from = world.sent.len();
            let mut syn = Raw { next: client.next.wrapping_add(seq), clock: later(50), ..client };
            syn.send(&mut world, Flags::SYN, b"");
            let said: Vec<_> = client.heard(&world, from).iter().map(|said| (said.flags, said.seq, said.ack)).collect();
            assert_eq!(said, [(Flags::ACK, client.peer, client.next)], "{seq}");
        }
        assert_eq!(world.said, []);
        client.clock = later(60);
        client.send(&mut world, Flags::ACK, b"alive");
        let mut got = [0; 5];
        assert_eq!(world.machine.read(world.now, id, &mut got), 5);
    }
}

/// A client resets its connection and connects again from the same port. The box reads all of that in one turn, so nothing is polled in
/// between. The server's connection is reset before the next one opens, whose numbers are above those of data in flight.
#[test]
fn a_reset_and_a_syn_in_one_turn_reopen() {
    let (mut world, mut client) = (World::new(config()), Raw::new(40_000, ISN, Some(CLOCK)));
    let id = client.open(&mut world);
    assert_eq!(world.machine.write(world.now, id, &[7; 1000]), 1000);
    world.poll();
    world.said.clear();
    for (flags, payload) in [(Flags::ACK, &b"hello"[..]), (Flags::RST | Flags::ACK, b"")] {
        assert_eq!(world.machine.receive(world.now, &client.packet(flags, payload)), Heard::Taken);
        client.next = client.next.wrapping_add(payload.len() as u32);
    }
    let mut new = Raw::new(client.port, client.next.wrapping_add(7), Some(CLOCK));
    let from = world.sent.len();
    assert_eq!(new.send(&mut world, Flags::SYN, b""), Heard::Taken);
    assert_eq!(new.heard(&world, from), [], "the server is asked first");
    let told: Vec<_> = world.said.iter().filter(|said| !matches!(said, Uplinked::Ready(_))).collect();
    let [Uplinked::Reset(old), Uplinked::Connect(next, _)] = told[..] else { panic!("{:?}", world.said) };
    assert!(*old == id && *next != id);
    world.machine.connected(world.now, *next);
    world.poll();
    let [Said { flags, seq, ack, .. }] = new.heard(&world, from)[..] else { panic!("{:?}", world.sent) };
    assert_eq!((flags, ack), (Flags::SYN | Flags::ACK, new.next));
    assert!(seq.wrapping_sub(client.peer) as i32 >= 1000, "{seq} {}", client.peer);
    assert_eq!(world.machine.stats().reset, 1);
}
