//! The receiver's parts together, without a connection.

use super::*;
use crate::tcp::variant::AckPolicy;

const MSS: u64 = 1448;

/// Linux's receiver that has got a SYN: 64 kB of a buffer of 81 920 bytes are offered, and the window follows.
fn linux_at_syn(mss: u16) -> Receiver {
    let mut receiver = Receiver::new(&TcpConfig {
        mss,
        ack: AckPolicy::LINUX,
        receive_buffer: 21_240_000,
        first_window: Some(81_920),
        window_follows: true,
        ..TcpConfig::default()
    });
    receiver.synchronize();
    receiver
}

/// The same at the start of a download.
fn linux() -> Receiver {
    let mut receiver = linux_at_syn(MSS as u16);
    receiver.offer_window(7);
    receiver
}

/// Kernel 6.18 at the start of a download: 64 kB of a buffer of 81 920 bytes are offered, and the window follows by two segments for each
/// that comes. Six times it can, and these ACKs are no quick ones; 16 are. The others acknowledge two segments each.
#[test]
fn the_first_22_segments_are_acknowledged_one_by_one() {
    let mut receiver = linux();
    let now = Time::from_nanos(1_000_000_000);
    let acks = (0..30).filter(|n| {
        let from = 1 + n * MSS;
        receiver.on_arrival(now, (MSS, from + MSS), Some((1, Duration::from_millis(100))));
        receiver.on_data(now, from, from + MSS);
        receiver.read(now, MSS);
        let is_due = receiver.ack_is_due(now);
        if is_due {
            receiver.offer_window(7);
            receiver.acknowledged(now);
        }
        is_due
    });
    assert_eq!(acks.collect::<Vec<_>>(), [(0..22).collect::<Vec<u64>>(), vec![23, 25, 27, 29]].concat());
}

/// A window that follows the buffer is rounded up to the unit of its scale, 128 bytes here. Nobody reads, and segments are shorter than the
/// unit: the edge must not move on with each of them, but end within a unit of the buffer.
#[test]
fn short_segments_get_no_more_than_the_buffer() {
    let mut receiver = linux();
    let now = Time::from_nanos(1_000_000_000);
    let mut edge = receiver.limit();
    while receiver.rcv_nxt() < 1_000_000 && receiver.acceptable(receiver.rcv_nxt(), 100) {
        let from = receiver.rcv_nxt();
        receiver.on_arrival(now, (100, from + 100), Some((1, Duration::from_millis(100))));
        receiver.on_data(now, from, from + 100);
        receiver.offer_window(7);
        receiver.acknowledged(now);
        assert!(receiver.limit() >= edge, "what was offered stays");
        edge = receiver.limit();
    }
    assert!((81_921..81_921 + 128).contains(&receiver.rcv_nxt()), "{}", receiver.rcv_nxt());
}

/// A FIN that ends at 1001 waits for a gap to be filled. Text from 1501 on is cut there, so it ends before it begins: it does not count,
/// and is answered at once.
#[test]
fn text_beyond_a_fin_does_not_count() {
    for ack in [AckPolicy::DELAYED, AckPolicy::LINUX] {
        let mut receiver = Receiver::new(&TcpConfig { mss: 1000, ack, ..TcpConfig::default() });
        receiver.synchronize();
        for from in [1501, 1001] {
            assert_eq!(receiver.on_data(Time::ZERO, from, 1001), Fresh::None);
            assert!(receiver.ack_is_due(Time::ZERO) && receiver.beyond_gaps() == 0);
            assert_eq!(receiver.out_of_order, 0);
            receiver.acknowledged(Time::ZERO);
        }
    }
}

/// RFC 9293 §3.10.7.4 with RCV.NXT 1001 and 4000 bytes of room: a segment has to touch 1001..5001. With no room left, none does
/// but an empty one at RCV.NXT.
#[test]
fn a_segment_touches_the_window_or_not() {
    let mut receiver = Receiver::new(&TcpConfig { mss: 500, receive_buffer: 4000, ..TcpConfig::default() });
    receiver.synchronize();
    receiver.on_data(Time::ZERO, 1, 1001);
    receiver.read(Time::ZERO, 1000);
    let accepts = |receiver: &Receiver, cases: [(u64, u64); 9]| cases.map(|(seq, len)| receiver.acceptable(seq, len));
    let cases = [(500, 501), (500, 502), (1001, 1), (5000, 9), (5001, 9), (1000, 0), (1001, 0), (5000, 0), (5001, 0)];
    assert_eq!(accepts(&receiver, cases), [false, true, true, true, false, false, true, true, false]);
    receiver.on_data(Time::ZERO, 1001, 5001);
    let cases = [(5000, 1), (5000, 2), (5001, 1), (5002, 1), (5000, 0), (5001, 0), (5002, 0), (4000, 0), (1, 1)];
    assert_eq!(accepts(&receiver, cases), [false, false, false, false, false, true, false, false, false]);
}

/// A read is told of at once if it frees two segments and a quarter of the buffer.
#[test]
fn a_read_of_a_quarter_of_the_buffer_is_told() {
    let tells = |buffer: u32, bytes: u64| {
        let mut receiver = Receiver::new(&TcpConfig { mss: 500, receive_buffer: buffer, ..TcpConfig::default() });
        receiver.synchronize();
        receiver.offer_window(0);
        receiver.on_data(Time::ZERO, 1, 2001);
        receiver.offer_window(0);
        receiver.read(Time::ZERO, bytes)
    };
    let seen = [(8000, 1999), (8000, 2000), (3000, 999), (3000, 1000)].map(|(buffer, bytes)| tells(buffer, bytes));
    assert_eq!(seen, [false, true, false, true]);
}

/// A block that has grown over others takes their places (RFC 2018 §4), also if they begin or end with it.
#[test]
fn covered_blocks_are_not_reported() {
    let seen = [(100, 200), (50, 200), (100, 250), (50, 250), (101, 200), (100, 199)].map(|block| {
        let mut report = SackReport::new();
        report.negotiated(4, false);
        [(100, 200), (300, 400), block].into_iter().for_each(|block| report.remember(block));
        report.take_blocks(1, 4).iter(1).collect::<Vec<_>>()
    });
    let with = |block, covers| if covers { vec![block, (300, 400)] } else { vec![block, (300, 400), (100, 200)] };
    let blocks = [(100, 200), (50, 200), (100, 250), (50, 250), (101, 200), (100, 199)];
    let covers = [true, true, true, true, false, false];
    assert_eq!(
        seen.to_vec(),
        blocks.into_iter().zip(covers).map(|(block, covers)| with(block, covers)).collect::<Vec<_>>()
    );
}

/// A segment has room for three blocks here. A D-SACK is the first of them (RFC 2883 §4), so one of the others waits.
#[test]
fn a_duplicate_takes_the_place_of_a_block() {
    let mut report = SackReport::new();
    report.negotiated(3, true);
    [(200, 300), (400, 500), (600, 700)].into_iter().for_each(|block| report.remember(block));
    report.set_duplicate(50, 60);
    assert_eq!(report.due(), 3);
    assert_eq!(report.take_blocks(100, 4).iter(100).collect::<Vec<_>>(), [(50, 60), (600, 700), (400, 500)]);
    assert_eq!(report.due(), 3);
}

/// RFC 9293 §3.8.6.2.2: the right edge waits until it can move by a segment or half of the buffer, whichever is less.
#[test]
fn the_window_does_not_open_by_less_than_a_segment() {
    let offers = |mss, read| {
        let mut receiver = Receiver::new(&TcpConfig { mss, receive_buffer: 4000, ..TcpConfig::default() });
        receiver.synchronize();
        receiver.offer_window(0);
        receiver.on_data(Time::ZERO, 1, 3001);
        receiver.read(Time::ZERO, read);
        receiver.offer_window(0)
    };
    assert_eq!([0, 499, 500, 3000].map(|read| offers(500, read)), [1000, 1000, 1500, 4000]);
    assert_eq!([1999, 2000].map(|read| offers(3000, read)), [1000, 3000]);
}

/// What waits beyond a gap takes room if the settings say so: 1000 of 4000 bytes, until the gap is filled and all is read.
#[test]
fn data_beyond_a_gap_takes_room() {
    for (gaps_take_room, windows) in [(false, [4000, 4000]), (true, [3000, 4000])] {
        let mut receiver =
            Receiver::new(&TcpConfig { mss: 500, receive_buffer: 4000, gaps_take_room, ..TcpConfig::default() });
        receiver.synchronize();
        receiver.on_data(Time::ZERO, 501, 1501);
        let held = receiver.offer_window(0);
        receiver.on_data(Time::ZERO, 1, 501);
        receiver.read(Time::ZERO, 1500);
        assert_eq!([held, receiver.offer_window(0)], windows, "{gaps_take_room}");
    }
}

/// A FIN takes a number but no room: when all 1000 bytes before it are read, all 4000 are free again.
#[test]
fn a_fin_takes_no_room() {
    let mut receiver = Receiver::new(&TcpConfig { mss: 500, receive_buffer: 4000, ..TcpConfig::default() });
    receiver.synchronize();
    receiver.on_data(Time::ZERO, 1, 1001);
    receiver.pass_fin();
    assert_eq!(receiver.offer_window(0), 3000);
    receiver.read(Time::ZERO, 1000);
    assert_eq!(receiver.offer_window(0), 4000);
}

/// Linux: 44 segments of 1460 bytes are 64 240 bytes, as a SYN offers, or 501.9 units of 128. The first ACK offers 502 of them, as each
/// capture shows (`__tcp_select_window`). A segment of 128 bytes opens the window by 256 (`tcp_grow_window`), shorter ones do not.
#[test]
fn a_scaled_window_is_rounded_up() {
    for (scale, bytes, windows) in [(7, 127, [64_256, 64_256]), (7, 128, [64_256, 64_512])] {
        let mut receiver = linux_at_syn(1460);
        assert_eq!(receiver.offer_syn_window(65_535), 64_240);
        let first = receiver.offer_window(scale);
        receiver.on_arrival(Time::ZERO, (bytes, 1 + bytes), Some((1, Duration::from_millis(100))));
        assert_eq!([first, receiver.offer_window(scale)], windows, "{scale} {bytes}");
    }
}

/// RFC 9293 §3.8.6: a receiver should not shrink the window, not what its SYN has offered either.
#[test]
fn what_the_syn_has_offered_stays() {
    let mut receiver = Receiver::new(&TcpConfig { mss: 500, receive_buffer: 100_000, ..TcpConfig::default() });
    receiver.synchronize();
    assert_eq!(receiver.offer_syn_window(65_535), 65_535);
    receiver.resize(10_000);
    assert_eq!(receiver.offer_window(0), 65_535);
    assert_eq!(receiver.limit(), 65_536);
}

/// Linux (`tcp_cleanup_rbuf`): a read is told of if the window is at most half of the buffer and has become twice as large since it was
/// told, in however many reads. Of 4000 bytes, 3000 or 1500 are waiting.
#[test]
fn reads_that_double_the_window_are_told() {
    for (waiting, reads, before_reading, told) in [
        (3000, [999, 1], true, [false, true]),
        (3000, [500, 500], true, [false, true]),
        (3000, [500, 500], false, [false, false]),
        (3000, [1000, 0], false, [true, false]),
        (1500, [1500, 0], true, [false, false]),
        (1500, [1500, 0], false, [true, false]),
    ] {
        let ack = AckPolicy { before_reading, ..AckPolicy::DELAYED };
        let mut receiver = Receiver::new(&TcpConfig { mss: 500, receive_buffer: 4000, ack, ..TcpConfig::default() });
        receiver.synchronize();
        receiver.on_data(Time::ZERO, 1, 1 + waiting);
        receiver.offer_window(0);
        let seen = reads.map(|bytes| {
            let tells = bytes > 0 && receiver.read(Time::ZERO, bytes);
            if tells {
                receiver.offer_window(0);
            }
            tells
        });
        assert_eq!(seen, told, "{waiting} {reads:?} {before_reading}");
    }
}

/// A buffer may become smaller than what is held beyond gaps: then there is no room.
#[test]
fn a_buffer_may_be_smaller_than_what_it_holds() {
    let mut receiver =
        Receiver::new(&TcpConfig { mss: 500, receive_buffer: 4000, gaps_take_room: true, ..TcpConfig::default() });
    receiver.synchronize();
    receiver.on_data(Time::ZERO, 501, 2501);
    receiver.resize(1000);
    assert_eq!(receiver.offer_window(0), 0);
}

/// RFC 2883 §4: a duplicate of out-of-order data is reported first, and then the block that contains it. Without
/// D-SACK, only that block is.
#[test]
fn a_duplicate_beyond_a_gap_is_reported_before_its_block() {
    for (dsack, blocks) in [(true, vec![(5000, 5500), (4500, 5500)]), (false, vec![(4500, 5500)])] {
        let mut receiver = Receiver::new(&TcpConfig { mss: 500, ..TcpConfig::default() });
        receiver.synchronize();
        receiver.negotiated(4, dsack, u64::MAX);
        receiver.on_data(Time::ZERO, 1, 4000);
        for from in [4500, 5000, 5000] {
            receiver.sack_blocks(4);
            receiver.on_data(Time::ZERO, from, from + 500);
        }
        assert_eq!(receiver.sack_blocks(4).iter(4000).collect::<Vec<_>>(), blocks);
        assert_eq!(receiver.sack_blocks(4).iter(4000).collect::<Vec<_>>(), [(4500, 5500)]);
        // Nothing is reported beyond the end of the peer's stream.
        receiver.drop_beyond();
        assert!(!receiver.has_sack_blocks() && receiver.beyond_gaps() == 0);
    }
}

/// ACKs beyond a gap wait for each other, but not if the next one would have no room to report what has arrived: two blocks have changed,
/// and the segment begins a third.
#[test]
fn an_ack_leaves_before_its_blocks_are_crowded_out() {
    let compress = AckPolicy { compress: Some(crate::tcp::Compress::LINUX), ..AckPolicy::DELAYED };
    let mut receiver = Receiver::new(&TcpConfig { mss: 500, ack: compress, ..TcpConfig::default() });
    receiver.synchronize();
    receiver.negotiated(4, true, u64::MAX);
    for from in [1001, 1501, 3001, 3501] {
        assert!(!receiver.needs_ack_before(from, from + 500), "{from}");
        receiver.on_data(Time::ZERO, from, from + 500);
        if receiver.ack_is_due(Time::ZERO) {
            receiver.acknowledged(Time::ZERO);
            assert!(!receiver.needs_ack_before(6001, 6501), "nothing waits");
        }
    }
    let seen = [(4001, 4501), (2501, 3001), (2001, 2501), (501, 1001), (4501, 5001), (1, 501)];
    let needs = seen.map(|(from, end)| receiver.needs_ack_before(from, end));
    assert_eq!(needs, [false, false, false, false, true, false]);
}

/// Linux acknowledges the end of a burst once all of it is read, not a part.
#[test]
fn a_part_that_is_read_is_not_acknowledged() {
    let mut receiver = linux();
    let now = Time::from_nanos(1_000_000_000);
    receiver.on_data(now, 1, 101);
    receiver.acknowledged(now);
    receiver.acks.end_quick();
    receiver.read(now, 100);
    receiver.on_data(now, 101, 301);
    let due = [100, 100].map(|bytes| {
        receiver.read(now, bytes);
        receiver.ack_is_due(now)
    });
    assert_eq!(due, [false, true]);
}
