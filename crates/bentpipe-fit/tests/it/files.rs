//! The same capture as other programs write it: file formats, link layers, offloads, without its beginning. The figures stay.

use bentpipe_fit::{Estimate, Fit, Transfer, fit};

use crate::captures::{capture, path as over};

/// A packet from its IP header on: nanoseconds, the captured bytes, and its length on the line.
pub(crate) type Packet = (u64, Vec<u8>, u32);

/// 4 MB overflow a queue of 300 packets. Returns the packets, and how many it dropped. With an initial window of ten segments two of these
/// are the last ones of the transfer. A capture at the client cannot tell of them: nothing later arrives before they are sent again.
pub(crate) fn packets(host: &str) -> (Vec<Packet>, u64) {
    packets_of(&over((20.0, 240), "initial_window = 11", "forward.queue = \"300 packets\"", "4 MB"), host)
}

fn packets_of(scenario: &str, host: &str) -> (Vec<Packet>, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.pcapng");
    let drops = capture(scenario, 1, host, &path);
    let bytes = std::fs::read(&path).expect("readable");
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let (mut at, mut packets) = (0, Vec::new());
    while at < bytes.len() {
        if word(at) == 6 {
            let time = u64::from(word(at + 12)) << 32 | u64::from(word(at + 16));
            let captured = word(at + 20) as usize;
            packets.push((time, bytes[at + 28..at + 28 + captured].to_vec(), word(at + 24)));
        }
        at += word(at + 4) as usize;
    }
    (packets, drops.iter().map(|drops| drops.queue_full).sum())
}

/// A pcap with a header of the link layer before each packet; in nanoseconds and big-endian, or in microseconds and little-endian.
pub(crate) fn pcap(packets: &[Packet], link_type: u32, link: &[u8], nanos: bool) -> Vec<u8> {
    let four = |value: u32| if nanos { value.to_be_bytes() } else { value.to_le_bytes() };
    let two = |value: u16| if nanos { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut bytes = four(if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }).to_vec();
    bytes.extend([two(2), two(4)].concat());
    bytes.extend([four(0), four(0), four(262_144), four(link_type)].concat());
    for (time, packet, length) in packets {
        let fraction = (time % 1_000_000_000) as u32 / if nanos { 1 } else { 1000 };
        let more = link.len() as u32;
        bytes.extend([four((time / 1_000_000_000) as u32), four(fraction)].concat());
        bytes.extend([four(packet.len() as u32 + more), four(length + more)].concat());
        bytes.extend(link);
        bytes.extend(packet);
    }
    bytes
}

pub(crate) fn of(bytes: &[u8]) -> Transfer {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), bytes).expect("writable");
    match fit(file.path()) {
        Ok(Fit::Transfer(transfer)) => transfer,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn check(fit: &Transfer, dropped: u64, what: &str) {
    assert_eq!((fit.queue_losses, fit.losses.lost, fit.mss), (dropped, 0, 1460), "{what}");
    assert!(matches!(fit.rate, Estimate::Measured { .. }) && fit.rate.allows(20e6), "{what}: {:?}", fit.rate);
    assert!(fit.queue_bytes.allows(450e3), "{what}: {:?}", fit.queue_bytes);
}

#[test]
fn formats_and_link_layers() {
    let (packets, dropped) = packets("server");
    let ethernet = [&[0; 12][..], &[8, 0]].concat();
    let vlans = [&[0; 12][..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0]].concat();
    let cooked = [&[0; 14][..], &[8, 0]].concat();
    let cooked_2 = [&[8, 0][..], &[0; 18]].concat();
    // The frames end with a frame check sequence of two 16-bit words, says the upper half of the last one.
    let with_check = (0x2400_0001, ethernet.clone());
    for (link_type, link) in [(101, vec![]), (1, ethernet), (1, vlans), (113, cooked), (276, cooked_2), with_check] {
        for nanos in [false, true] {
            let bytes = pcap(&packets, link_type, &link, nanos);
            check(&of(&bytes), dropped, &format!("link type {link_type} {link:?}, nanoseconds {nanos}"));
        }
    }
}

/// A segment has 12 bytes of timestamps, and so 1448 of data: without the SYNs 1460 is the longest segment, not 1448.
#[test]
fn a_capture_that_begins_in_the_middle() {
    for host in ["server", "client"] {
        let (packets, dropped) = packets(host);
        // Both begin before the queue overflows.
        for first in [3, packets.len() / 4] {
            let fit = of(&pcap(&packets[first..], 101, &[], true));
            check(&fit, dropped, &format!("from packet {first} at the {host}"));
            // Acknowledgements of what was sent before the capture are not missing from it.
            let noted = |what: &str| fit.notes.iter().any(|note| note.contains(what));
            assert!(noted("the handshake was not captured") && !noted("bytes were acknowledged"), "{:?}", fit.notes);
            assert!(!noted("longer than a segment"), "{:?}", fit.notes);
        }
    }
}

/// CUBIC keeps the queue of 100 ms half full. Without the beginning of the capture, the path seemed to be longer by half the queue, the
/// queue to be half as long, and its losses to be the link's.
#[test]
fn a_queue_that_is_never_empty() {
    let scenario = over((10.0, 40), "receive_buffer = \"2000 kB\"", "forward.queue = \"100 ms\"", "3 MB");
    for host in ["server", "client"] {
        let (packets, _) = packets_of(&scenario, host);
        let whole = of(&pcap(&packets, 101, &[], true));
        assert!(matches!(whole.base_round_trip, Estimate::Measured { .. }), "{host}: {:?}", whole.base_round_trip);
        // The first begins in slow start, and the next two within the recovery that ends it: all acknowledgements are below the first
        // data for a while.
        for percent in [15, 20, 22, 30, 50] {
            let later = of(&pcap(&packets[packets.len() * percent / 100..], 101, &[], true));
            for (what, estimate, truth) in [
                ("base", &later.base_round_trip, 0.1),
                ("wait", &later.queue_time, 0.1),
                ("queue", &later.queue_bytes, 125e3),
                ("losses", &later.losses.probability, 0.0),
                ("rate", &later.rate, 10e6),
            ] {
                assert!(estimate.allows(truth), "{what} at the {host} from {percent} %: {estimate:?}");
            }
            let kinds = (&later.base_round_trip, &later.queue_time);
            assert!(matches!(kinds, (Estimate::AtMost { .. }, Estimate::AtLeast { .. })), "{host}: {kinds:?}");
        }
    }
}

/// Joins up to `most` data packets in a row that follow within a millisecond, as a receiver's offload does, at the time of the last.
pub(crate) fn joined(packets: &[Packet], most: u32) -> Vec<Packet> {
    let word = |bytes: &[u8], at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let header = |packet: &[u8]| 20 + usize::from(packet[32] >> 4) * 4;
    let mut result: Vec<Packet> = Vec::new();
    let mut count = 0;
    for (time, packet, length) in packets {
        let data = *length as usize - header(packet);
        if let Some((last, before, long)) = result.last_mut() {
            let held = *long as usize - header(before);
            let follows =
                word(before, 24).wrapping_add(held as u32) == word(packet, 24) && before[20..24] == packet[20..24];
            if data > 0 && held > 0 && follows && count < most && time - *last < 1_000_000 {
                (*last, *long, count) = (*time, *long + data as u32, count + 1);
                before[2..4].copy_from_slice(&(*long as u16).to_be_bytes());
                continue;
            }
        }
        count = 1;
        result.push((*time, packet.clone(), *length));
    }
    result
}

/// Arrivals are seen when the last of up to four came: times are right to three segments, 4.5 kB, and the interval has two.
#[test]
fn a_receiver_that_joins_segments() {
    let (packets, dropped) = packets("client");
    let few = joined(&packets, 4);
    assert!(few.len() < packets.len());
    let fit = of(&pcap(&few, 101, &[], true));
    assert!(matches!(fit.rate, Estimate::Measured { .. }) && fit.rate.allows(20e6), "{:?}", fit.rate);
    let Estimate::Measured { low, high, .. } = fit.queue_bytes else { panic!("{:?}", fit.queue_bytes) };
    assert!(low - 4.5e3 < 450e3 && 450e3 < high + 4.5e3, "{:?}", fit.queue_bytes);
    assert_eq!((fit.queue_losses, fit.losses.lost), (dropped, 0));
}
