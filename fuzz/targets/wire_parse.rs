//! Bytes from the network: each string is a packet or an error, and what was read can be written and read again.

use bentpipe_engine::wire::ip::{self, Addresses, Ports};
use bentpipe_engine::wire::seq::{Numbering, SeqNumber};
use bentpipe_engine::wire::tcp::{HEADER, Near, Translation};
use bentpipe_engine::wire::{ipv4, ipv6, udp};

/// The first byte says what the rest is taken for.
pub(crate) fn run(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else { return };
    match kind % 4 {
        0 => whole_packet(rest),
        1 => segment(rest, false),
        // With the checksum made right: the options are reached by all inputs, not by one in 65536.
        2 => segment(rest, true),
        _ => headers(rest),
    }
}

fn addresses(v6: bool) -> Addresses {
    let (a, b) = if v6 { ("2001:db8::1", "2001:db8::2") } else { ("192.0.2.1", "192.0.2.2") };
    let parse = |text: &str| text.parse().expect("an address");
    Addresses::new(parse(a), parse(b)).expect("of one version")
}

fn headers(packet: &[u8]) {
    let mut out = [0; 128];
    if let Ok((header, payload)) = ipv4::parse(packet) {
        let length = ipv4::emit(&header, payload.len(), &mut out).expect("a header fits");
        // Options are stepped over, so only the header without them is the same again.
        assert!(length <= payload.start);
    }
    if let Ok((header, payload)) = ipv6::parse(packet) {
        let length = ipv6::emit(&header, payload.len(), &mut out).expect("a header fits");
        assert_eq!(length, payload.start);
    }
    let _ = udp::parse(&addresses(false), packet);
    let _ = Ports::peek(packet);
}

fn whole_packet(bytes: &[u8]) {
    let Ok(packet) = ip::parse(bytes) else { return };
    let payload = &bytes[packet.payload];
    let _ = udp::parse(&packet.addresses, payload);
    if let Ok(ports) = Ports::peek(payload) {
        let translation = Translation::new(packet.addresses.reversed(), ports.reversed(), 7);
        let _ = translation.parse(payload, Near::default());
    }
}

/// A segment of a connection whose numbers and scales come from the input too.
fn segment(data: &[u8], mend: bool) {
    let Some((setting, bytes)) = data.split_at_checked(14) else { return };
    let number = |at: usize| u32::from_le_bytes([setting[at], setting[at + 1], setting[at + 2], setting[at + 3]]);
    let scale = |byte: u8| (byte & 0x80 != 0).then_some((byte & 0x0f).min(14));
    let ours = addresses(setting[0] & 1 != 0);
    let mut translation = Translation::new(ours, Ports { source: 80, destination: 1234 }, number(0));
    if setting[12] & 0x40 != 0 {
        translation.irs = Some(Numbering(SeqNumber(number(4))));
        (translation.our_scale, translation.peer_scale) = (scale(setting[12]), scale(setting[13]));
    }
    let near = Near { rcv_nxt: number(8) as u64, snd_una: (number(8) as u64) << 3 };
    let mut bytes = bytes.to_vec();
    if mend && bytes.len() >= HEADER {
        bytes[16..18].fill(0);
        let sum = ours.reversed().pseudo_header(ip::TCP, bytes.len()).bytes(&bytes).finish();
        bytes[16..18].copy_from_slice(&sum.to_be_bytes());
    }
    let before = translation;
    let Ok((segment, payload)) = translation.parse(&bytes, near) else { return };
    assert_eq!(payload.len(), usize::from(segment.len));
    let _ = (segment.end(), segment.options_len());

    // The peer writes the same segment, and it reads back as itself.
    let mut peer = Translation::new(ours.reversed(), Ports { source: 1234, destination: 80 }, 0);
    if let Some(irs) = translation.irs {
        peer.iss = irs;
    }
    peer.irs = Some(translation.iss);
    (peer.our_scale, peer.peer_scale) = (before.peer_scale, before.our_scale);
    let mut out = vec![0; 60 + payload.len()];
    // Options in an order of the sender's own can take more room than ours, never more than 40 bytes of it: then the
    // error says so.
    let Ok(length) = peer.emit(&segment, &[&bytes[payload]], &mut out) else { return };
    let (read, _) = before.parse(&out[..length], near).expect("what we write can be read");
    assert_eq!(read, segment);
}
