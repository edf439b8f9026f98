//! The erasure code of a block: packets to symbols, and back. `docs/specs/slacp.md` has the format.
//!
//! The low-rate form of the code is always used, because there symbol i does not depend on the number of symbols.

mod locator;

use reed_solomon_simd::engine::DefaultEngine;
use reed_solomon_simd::rate::{LowRateDecoder, LowRateEncoder, RateDecoder, RateEncoder};

use bentpipe_engine::slacp::PROTECTED_HEADER;

use super::Held;
use locator::ShortEngine;

const HEADER: usize = PROTECTED_HEADER as usize;

/// Builds the code's tables, 8.4 MiB, once per process. So the first repair frame and the first recovery do not have to
/// wait for them, and a process's memory does not grow at the first loss.
pub(super) fn prepare() {
    let _ = ShortEngine::new();
}

/// Writes a packet as a symbol of `len` bytes.
fn write(packet: &Held, len: usize, symbol: &mut Vec<u8>) {
    symbol.clear();
    symbol.extend((packet.bytes.len() as u16).to_be_bytes());
    symbol.extend(packet.behind.to_be_bytes());
    symbol.extend_from_slice(&packet.bytes);
    symbol.resize(len, 0);
}

/// The packet in a symbol; `None` if it holds none.
fn packet(symbol: &[u8]) -> Option<Held> {
    let (header, rest) = symbol.split_first_chunk::<HEADER>()?;
    let len = usize::from(u16::from_be_bytes([header[0], header[1]]));
    let (packet, padding) = rest.split_at_checked(len)?;
    let behind = u16::from_be_bytes([header[2], header[3]]);
    padding.iter().all(|&byte| byte == 0).then(|| Held { bytes: packet.into(), behind })
}

/// The first `repairs` repair symbols of a block, each of `len` bytes, an even number.
pub(super) fn encode<'a>(block: impl ExactSizeIterator<Item = &'a Held>, len: usize, repairs: usize) -> Vec<Vec<u8>> {
    let engine = DefaultEngine::new();
    let mut encoder = LowRateEncoder::new(block.len(), repairs, len, engine, None).expect("up to 128 of each, even");
    let mut symbol = Vec::with_capacity(len);
    for packet in block {
        write(packet, len, &mut symbol);
        encoder.add_original_shard(&symbol).expect("as many as announced, of that length");
    }
    encoder.encode().expect("all are there").recovery_iter().map(<[u8]>::to_vec).collect()
}

/// The packets of a block of `count` that are missing in `there`, each with its index; `None` if there are too few
/// symbols, or if they were not made from packets.
pub(super) fn decode<'a>(
    count: usize,
    len: usize,
    there: impl Iterator<Item = (usize, &'a Held)>,
    repairs: impl Iterator<Item = (usize, &'a Vec<u8>)>,
) -> Option<Vec<(usize, Held)>> {
    let repairs: Vec<_> = repairs.collect();
    if let (1, [(_, symbol)]) = (count, &repairs[..]) {
        // A polynomial through one packet has that packet as its value everywhere.
        return Some(vec![(0, packet(symbol)?)]);
    }
    let highest = repairs.iter().map(|&(index, _)| index).max()?;
    let mut decoder = LowRateDecoder::new(count, highest + 1, len, ShortEngine::new(), None).ok()?;
    let mut symbol = Vec::with_capacity(len);
    for (index, packet) in there {
        if packet.bytes.len() + HEADER > len {
            return None;
        }
        write(packet, len, &mut symbol);
        decoder.add_original_shard(index, &symbol).ok()?;
    }
    for (index, symbol) in repairs {
        decoder.add_recovery_shard(index, symbol).ok()?;
    }
    let restored = decoder.decode().ok()?;
    restored.restored_original_iter().map(|(index, symbol)| Some((index, packet(symbol)?))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block(count: usize, seed: u8) -> Vec<Held> {
        let byte = |n: usize, at: usize| (n * 31 + at * 7) as u8 ^ seed;
        let packet = |n: usize| (0..1 + n * 13 % 90).map(|at| byte(n, at)).collect::<Vec<u8>>();
        (0..count).map(|n| Held { bytes: packet(n)[..].into(), behind: n as u16 }).collect()
    }

    #[test]
    fn index_i_means_the_same() {
        for count in [1, 2, 3, 10, 20, 33, 127, 128] {
            let block = block(count, 3);
            let all = encode(block.iter(), 96, 128);
            for repairs in [1, 2, 5, 16, 31, 64, 100, 127] {
                assert_eq!(encode(block.iter(), 96, repairs), all[..repairs], "{count} {repairs}");
            }
        }
    }

    /// Changing the code would separate link ends that run different versions.
    #[test]
    fn the_code_stays_what_it_is() {
        let packets = [&b"first"[..], b"second", b"the third"];
        let block: Vec<_> = packets.map(|bytes| Held { bytes: bytes.into(), behind: 1 }).into_iter().collect();
        let symbols = encode(block.iter(), 14, 2);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(
            symbols.iter().map(|symbol| hex(symbol)).collect::<Vec<_>>(),
            ["b5815828f25b3bf597b919b21d00", "f35f199503e787f901d89f179c00"]
        );
    }

    #[test]
    fn of_one_packet_each_symbol_is_the_packet() {
        let block = block(1, 9);
        for (at, symbol) in encode(block.iter(), 96, 128).iter().enumerate() {
            let decoded = decode(1, 96, [].into_iter(), [(at, symbol)].into_iter());
            assert_eq!((packet(symbol).as_ref(), decoded), (Some(&block[0]), Some(vec![(0, block[0].clone())])));
        }
    }

    #[test]
    fn what_is_no_packet_is_refused() {
        assert!(packet(&[0, 5, 0, 0, 1, 2, 3, 4]).is_none(), "longer than its symbol");
        assert!(packet(&[0, 3, 0, 0, 1, 2, 3, 4]).is_none(), "padding that is not zero");
        assert!(packet(&[0, 3]).is_none());
        assert_eq!(*packet(&[0, 3, 1, 2, 1, 2, 3, 0]).expect("whole").bytes, [1, 2, 3]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Any `count` symbols of a block restore the block.
        #[test]
        fn any_are_enough(count in 1usize..=128, seed: u8, keys in prop::collection::vec(any::<u32>(), 256)) {
            let block = block(count, seed);
            let repairs = encode(block.iter(), 96, 128);
            // This many of all symbols, in random order.
            let mut order: Vec<usize> = (0..count + 128).collect();
            order.sort_by_key(|&at| keys[at]);
            order.truncate(count);
            let there = order.iter().filter(|&&at| at < count).map(|&at| (at, &block[at]));
            let symbols = order.iter().filter(|&&at| at >= count).map(|&at| (at - count, &repairs[at - count]));
            let missing: Vec<usize> = (0..count).filter(|at| !order.contains(at)).collect();
            let decoded = decode(count, 96, there.clone(), symbols.clone()).unwrap_or_default();
            prop_assert_eq!(decoded.iter().map(|(at, _)| *at).collect::<Vec<_>>(), missing.clone());
            for (at, packet) in &decoded {
                prop_assert_eq!(packet, &block[*at]);
            }
            if missing.len() > 1 {
                prop_assert!(decode(count, 96, there, symbols.skip(1)).is_none(), "one too few");
            }
        }
    }
}
