//! Bytes from the line: each string is a frame of S-LACP or an error, and a frame is written again to the bit.

use bentpipe_engine::wire::slacp::{Integrity, Near, emit, parse};

/// The CRC of the last four bytes made right, bit by bit: the way there that shares nothing with the code under test.
fn mend(frame: &mut [u8]) {
    let Some((text, sum)) = frame.split_last_chunk_mut::<4>() else { return };
    let mut crc = u32::MAX;
    for &byte in text.iter() {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    *sum = (!crc).to_be_bytes();
}

/// Settings, then the frame.
pub(crate) fn run(data: &[u8]) {
    let Some((&[setting, channels], rest)) = data.split_first_chunk() else { return };
    let Some((numbers, frame)) = rest.split_first_chunk::<12>() else { return };
    let number = |at: usize| {
        let low = u32::from_be_bytes([numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]]);
        u64::from(low) << (setting >> 1 & 0x1f)
    };
    let packet = number(8);
    let packet = |channel| (channel <= channels).then_some(packet);
    let near = Near { received: number(0), next: number(4), packet };
    let mut frame = frame.to_vec();
    let integrity = if setting & 0x40 == 0 { Integrity::Crc } else { Integrity::Below };
    if setting & 1 == 0 && integrity == Integrity::Crc {
        mend(&mut frame);
    }
    let Ok(parsed) = parse(&frame, &near, integrity) else { return };
    let mut again = vec![0; frame.len()];
    let length = emit(&parsed.frame, parsed.time, &[&frame[parsed.body.clone()]], integrity, &mut again);
    assert_eq!((length, &again), (Ok(frame.len()), &frame), "{parsed:?}");
    assert_eq!(parse(&again, &near, integrity).as_ref(), Ok(&parsed));
    if integrity == Integrity::Below {
        return;
    }
    // A bit that the input chooses is flipped: that is found.
    let bit = usize::from(channels) * 31 % (8 * frame.len());
    frame[bit / 8] ^= 1 << (bit % 8);
    assert!(parse(&frame, &near, integrity).is_err(), "bit {bit} of {parsed:?}");
}
