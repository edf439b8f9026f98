//! Captures as tools and hosts make them: IPv6, short snap lengths, offloads up to 64 kB and more, clocks that step, one direction alone.

use bentpipe_fit::{Estimate, Transfer, fit};

use crate::files::{Packet, check, joined, of, packets, pcap};

/// The error's text, without the name of the file.
fn refused(bytes: &[u8]) -> String {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), bytes).expect("writable");
    let message = fit(file.path()).expect_err("no figures").to_string();
    let name = format!("{}: ", file.path().display());
    message.strip_prefix(&name).unwrap_or_else(|| panic!("{message} does not name the file")).to_owned()
}

fn noted(fit: &Transfer, what: &str) -> bool {
    fit.notes.iter().any(|note| note.contains(what))
}

/// The packet with IPv6's header instead of IPv4's.
fn v6((time, packet, length): &Packet) -> Packet {
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend((*length as u16 - 20).to_be_bytes());
    bytes.extend([6, 64]);
    for address in [&packet[12..16], &packet[16..20]] {
        bytes.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(address);
    }
    bytes.extend(&packet[20..]);
    (*time, bytes, length + 20)
}

#[test]
fn ipv6() {
    let (packets, dropped) = packets("server");
    let fit = of(&pcap(&packets.iter().map(v6).collect::<Vec<_>>(), 101, &[], true));
    assert!(fit.from.starts_with("[2001:db8::"), "{}", fit.from);
    assert_eq!((fit.queue_losses, fit.losses.lost), (dropped, 0));
    // Each packet is 20 bytes longer than on the link: 1.4 % of both.
    assert!(fit.rate.allows(20e6 * 1520.0 / 1500.0), "{:?}", fit.rate);
    assert!(fit.queue_bytes.allows(456e3), "{:?}", fit.queue_bytes);
}

/// Cuts packets of Ethernet as `tcpdump -s` does.
fn snapped(packets: &[Packet], snaplen: usize) -> Vec<u8> {
    let cut = |(time, packet, length): &Packet| (*time, packet[..packet.len().min(snaplen - 14)].to_vec(), *length);
    pcap(&packets.iter().map(cut).collect::<Vec<_>>(), 1, &[&[0; 12][..], &[8, 0]].concat(), true)
}

/// 66 bytes are Ethernet's, IPv4's and TCP's headers with timestamps, and no SACK block. 94 have the longest options.
#[test]
fn a_capture_that_cuts_options() {
    for host in ["server", "client"] {
        let (packets, dropped) = packets(host);
        let whole = of(&snapped(&packets, 94));
        check(&whole, dropped, host);
        assert!(!noted(&whole, "cut off"), "{:?}", whole.notes);
        let fit = of(&snapped(&packets, 66));
        assert!(noted(&fit, "capture 94 bytes or more of each"), "{:?}", fit.notes);
        assert!(fit.rate.allows(20e6) && fit.queue_bytes.allows(450e3), "{host}: {:?} {:?}", fit.rate, fit.queue_bytes);
    }
    let (packets, _) = packets("server");
    assert_eq!(
        refused(&snapped(&packets, 53)),
        "every TCP packet is cut off within its headers: capture 128 bytes or more of each"
    );
}

/// Packets as a host with offloads captures them: 44 segments are 64 kB, and 100 are more than the length field of IP holds, which is 0
/// then.
#[test]
fn packets_of_64_kilobytes_and_more() {
    for host in ["server", "client"] {
        let (packets, dropped) = packets(host);
        for most in [44, 100] {
            let mut few = joined(&packets, most);
            for (_, packet, length) in &mut few {
                let field = u16::try_from(*length).unwrap_or(0);
                packet[2..4].copy_from_slice(&field.to_be_bytes());
            }
            let fit = of(&pcap(&few, 101, &[], true));
            let what = format!("{most} segments at the {host}");
            assert!(noted(&fit, "offloads join them"), "{what}: {:?}", fit.notes);
            assert!(fit.rate.allows(20e6), "{what}: {:?}", fit.rate);
            assert_eq!(fit.bytes, 4_000_000, "{what}");
            let Estimate::Measured { low, high, .. } = fit.queue_bytes else { panic!("{what}: {:?}", fit.queue_bytes) };
            assert!(low - 4.5e3 < 450e3 && 450e3 < high + 4.5e3, "{what}: {:?}", fit.queue_bytes);
            assert_eq!((fit.queue_losses, fit.losses.lost), (dropped, 0), "{what}");
        }
    }
}

/// A card with several queues passes packets on out of order: every fiftieth is behind the next one.
#[test]
fn packets_out_of_order() {
    for host in ["server", "client"] {
        let (mut packets, dropped) = packets(host);
        let mut swapped = 0;
        for at in (50..packets.len() - 1).step_by(50) {
            // Not packets of the same instant, such as data and its ACK at the client: their times do not tell the order.
            if (1..1_000_000).contains(&(packets[at + 1].0 - packets[at].0)) {
                packets.swap(at, at + 1);
                swapped += 1;
            }
        }
        assert!(swapped > 20, "{swapped}");
        let fit = of(&pcap(&packets, 101, &[], true));
        assert!(noted(&fit, "before that of the packet before"), "{:?}", fit.notes);
        check(&fit, dropped, host);
    }
}

#[test]
fn a_clock_that_was_set_back() {
    let (mut packets, _) = packets("server");
    let half = packets.len() / 2;
    packets[half..].iter_mut().for_each(|packet| packet.0 -= 1_000_000_000);
    let message = refused(&pcap(&packets, 101, &[], true));
    assert!(message.starts_with("the times of its packets go back by 1.000 s"), "{message}");
    assert!(message.contains(": expected packets in order of time"), "{message}");
}

#[test]
fn one_direction_alone() {
    let (packets, _) = packets("server");
    let from = |address: &[u8]| {
        let kept: Vec<Packet> = packets.iter().filter(|(_, packet, _)| &packet[12..16] == address).cloned().collect();
        pcap(&kept, 101, &[], true)
    };
    let sender = packets[0].1[16..20].to_vec();
    let receiver = packets[0].1[12..16].to_vec();
    let both = [refused(&from(&sender)), refused(&from(&receiver))];
    let has = |what: &str| both.iter().filter(|message| message.contains(what)).count();
    assert_eq!(has("none of its acknowledgements was captured: capture both directions"), 1, "{both:?}");
    assert_eq!(
        has("expected TCP packets with data; those of the capture have none: capture both directions"),
        1,
        "{both:?}"
    );
}

#[test]
fn empty_and_compressed_files() {
    assert_eq!(refused(b""), "the file is empty: expected a capture (pcap, pcapng) or a log of `ping -D`");
    for (start, tool) in [
        (&[0x1f, 0x8b, 8, 0][..], "gzip"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
        (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz"),
    ] {
        assert_eq!(refused(start), format!("the file is compressed: unpack it first (`{tool} -d`)"));
    }
}

/// A pcap that ends within a packet, and one that ends within its header.
#[test]
fn a_pcap_that_ends_early() {
    let (packets, dropped) = packets("server");
    let bytes = pcap(&packets, 101, &[], true);
    let fit = of(&bytes[..bytes.len() - 7]);
    assert!(noted(&fit, "on the file has no whole packet; what is before it was used"), "{:?}", fit.notes);
    // The last drop may be acknowledged by the packet that is missing.
    assert!((dropped - 1..=dropped).contains(&fit.queue_losses), "{} of {dropped}", fit.queue_losses);
    assert_eq!(refused(&bytes[..20]), "byte 0: the file ends within its header");
    assert!(matches!(of(&bytes).rate, Estimate::Measured { .. }));
}
