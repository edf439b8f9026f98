//! Headers of hosts and forms of the peer: what is expanded is what was compressed, whatever the packets are, and a peer
//! that says anything at all does no harm.

use bentpipe_engine::compression::{Announcement, Compressor, Decompressor};
use bentpipe_engine::wire::checksum::Checksum;

/// Makes a packet regular where it can be: lengths, and the checksum of IPv4.
fn mend(packet: &mut [u8]) {
    let total = packet.len();
    let (ip, protocol) = match packet.first().map(|first| first >> 4) {
        Some(4) if total >= 28 => {
            packet[0] = 0x45;
            packet[6] &= 0x40;
            packet[7] = 0;
            packet[2..4].copy_from_slice(&(total as u16).to_be_bytes());
            packet[10..12].fill(0);
            let sum = Checksum::new().bytes(&packet[..20]).finish();
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            (20, packet[9])
        }
        Some(6) if total >= 48 => {
            packet[4..6].copy_from_slice(&(total as u16 - 40).to_be_bytes());
            (40, packet[6])
        }
        _ => return,
    };
    if protocol == 17 {
        packet[ip + 4..ip + 6].copy_from_slice(&((total - ip) as u16).to_be_bytes());
    }
}

/// Steps: what to do, how much of the input it takes, and that. Answers how many packets became shorter.
pub(crate) fn run(data: &[u8]) -> usize {
    let (mut compressor, mut decompressor, mut victim) =
        (Compressor::default(), Decompressor::default(), Decompressor::default());
    let (mut form, mut out, mut shorter) = (Vec::new(), [0; 400], 0);
    // What the next packet is a change of.
    let mut packet = Vec::new();
    let mut rest = data;
    while let [step, length, more @ ..] = rest {
        let (bytes, next) = more.split_at(usize::from(*length).min(more.len()));
        rest = next;
        match step % 4 {
            0 => packet = bytes.to_vec(),
            1 => bytes.as_chunks::<2>().0.iter().for_each(|[at, value]| {
                let at = usize::from(*at);
                if at < packet.len() {
                    packet[at] = *value;
                }
            }),
            2 => {
                let _ = victim.learn(bytes);
                let _ = victim.expand(bytes, &mut out);
            }
            _ => {}
        }
        if step % 4 == 2 {
            continue;
        }
        if step & 4 != 0 {
            mend(&mut packet);
        }
        if !packet.first().is_some_and(|first| matches!(first >> 4, 4 | 6)) {
            continue;
        }
        for _ in 0..=step >> 4 {
            let announcement = compressor.compress(u64::from(step >> 3 & 1), &packet, &mut form);
            let length = decompressor.expand(&form, &mut out).expect("its base is known").expect("it is a packet");
            assert_eq!(out[..length], packet);
            shorter += usize::from(form.len() < packet.len());
            let _ = victim.expand(&form, &mut out[..100]);
            if let Some(Announcement { base, message }) = announcement {
                let arrives = length % 3 != 0;
                if arrives {
                    decompressor.learn(&message).expect("it is a base");
                }
                compressor.verdict(base, arrives);
            }
        }
    }
    shorter
}
