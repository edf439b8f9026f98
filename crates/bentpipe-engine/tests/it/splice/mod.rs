//! A split connection: data arrives complete, in order and once on any path; closes and resets pass across; the buffer is bounded.

mod chain;

use self::chain::{Act, Chain, Path};
use bentpipe_engine::splice::{Broken, Leg};
use bentpipe_engine::tcp::variant::VARIANTS;
use bentpipe_engine::tcp::{Abort, RtoConfig, State, TcpConfig, Variant};
use bentpipe_engine::units::{Duration, Time};
use proptest::prelude::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Time {
    Time::ZERO + ms(millis)
}

fn clean(delay: u64) -> Path {
    Path { delay: ms(delay), jitter: Duration::ZERO, loss: 0.0, dies: None }
}

fn small(buffer: u32) -> TcpConfig {
    TcpConfig { mss: 1000, receive_buffer: buffer, time_wait: Duration::from_secs(600), ..TcpConfig::default() }
}

/// 20 ms and 250 ms without loss, buffers of 64 kB.
fn calm(plan: Vec<(Time, usize, Act)>) -> Chain {
    Chain::new([small(64_000); 4], [clean(20), clean(250)], [None; 2], plan, 1, Time::ZERO)
}

const CLIENT: usize = 0;
const SERVER: usize = 1;
const LONG: u64 = 1_000_000;

#[test]
fn the_server_hears_what_the_client_says_and_answers() {
    let mut chain = calm(vec![
        (at(0), CLIENT, Act::Write(300_000)),
        (at(5000), CLIENT, Act::Close),
        (at(9000), SERVER, Act::Write(200_000)),
        (at(20_000), SERVER, Act::Close),
    ]);
    chain.run(at(15_000));
    // Half closed: the client has closed its direction, and the server continues.
    assert!(chain.hosts[SERVER].peer_closed && !chain.hosts[CLIENT].peer_closed, "{}", chain.describe());
    assert_eq!(chain.hosts[SERVER].connection.received(), 300_000);
    assert_eq!(chain.hosts[CLIENT].connection.received(), 200_000, "{}", chain.describe());
    chain.run(at(LONG));
    assert_eq!(chain.hosts.each_ref().map(|host| host.ended), [Some(Ok(())); 2], "{}", chain.describe());
    assert_eq!(chain.splice_ended, Some(Ok(())));
}

#[test]
fn the_server_may_close_first() {
    let mut chain = calm(vec![
        (at(1000), SERVER, Act::Write(50_000)),
        (at(1500), SERVER, Act::Close),
        (at(4000), CLIENT, Act::Write(10_000)),
        (at(6000), CLIENT, Act::Close),
    ]);
    chain.run(at(LONG));
    assert_eq!(chain.hosts[CLIENT].connection.received(), 50_000);
    assert_eq!(chain.hosts[SERVER].connection.received(), 10_000);
    assert_eq!(chain.splice_ended, Some(Ok(())), "{}", chain.describe());
}

#[test]
fn a_close_before_the_far_leg_is_open_waits_for_it() {
    // The client's FIN is there after 60 ms, the far leg opens after 520 ms.
    let mut chain =
        calm(vec![(at(0), CLIENT, Act::Write(10)), (at(41), CLIENT, Act::Close), (at(9000), SERVER, Act::Close)]);
    chain.run(at(LONG));
    assert_eq!(chain.hosts[SERVER].connection.received(), 10);
    assert!(chain.hosts[SERVER].peer_closed);
    assert_eq!(chain.splice_ended, Some(Ok(())), "{}", chain.describe());
}

#[test]
fn a_reset_passes_across_either_way() {
    for (who, leg) in [(CLIENT, Leg::Near), (SERVER, Leg::Far)] {
        let mut chain = calm(vec![(at(0), CLIENT, Act::Write(1000)), (at(3000), who, Act::Abort)]);
        chain.run(at(LONG));
        assert_eq!(chain.hosts[1 - who].ended, Some(Err(Abort::Reset)), "{}", chain.describe());
        assert_eq!(chain.splice_ended, Some(Err(Broken { leg, abort: Abort::Reset })));
    }
}

/// A reset during the handshake returns the near leg to LISTEN, but its far leg has already been opened.
#[test]
fn a_reset_of_the_handshake_breaks_the_splice() {
    let mut chain = calm(vec![(at(1), CLIENT, Act::Abort)]);
    chain.run(at(LONG));
    assert_eq!(chain.splice_ended, Some(Err(Broken { leg: Leg::Near, abort: Abort::Reset })), "{}", chain.describe());
}

/// The client's host dies after its SYN. In Linux the end of the near leg then listens again, but the splice serves one connection, and its
/// far leg must not stay open for nobody.
#[test]
fn a_client_that_dies_in_the_handshake_breaks_the_splice() {
    for asks_first in [false, true] {
        let linux = TcpConfig { rto: RtoConfig::LINUX, ..small(64_000) };
        let dead = Path { dies: Some(at(1)), ..clean(20) };
        let configs = [small(64_000), linux, small(64_000), small(64_000)];
        let mut chain = Chain::new(configs, [dead, clean(250)], [None; 2], Vec::new(), 1, Time::ZERO);
        if asks_first {
            chain = chain.asking_first();
        }
        chain.run(at(LONG));
        let broken = Broken { leg: Leg::Near, abort: Abort::RetriesExhausted };
        assert_eq!(chain.splice_ended, Some(Err(broken)), "{}", chain.describe());
        assert_eq!(chain.hosts[SERVER].ended, Some(Err(Abort::Reset)), "{}", chain.describe());
    }
}

#[test]
fn a_refusal_reaches_the_client() {
    // The server's host answers a SYN to a closed port with a reset.
    let mut chain = calm(vec![(at(0), SERVER, Act::Close), (at(0), SERVER, Act::Abort)]);
    chain.run(at(LONG));
    assert_eq!(chain.hosts[CLIENT].ended, Some(Err(Abort::Reset)), "{}", chain.describe());
    assert_eq!(chain.splice_ended, Some(Err(Broken { leg: Leg::Far, abort: Abort::Refused })));
}

#[test]
fn a_dead_server_resets_the_client() {
    let dead = Path { dies: Some(at(2000)), ..clean(250) };
    let plan = vec![(at(0), CLIENT, Act::Write(500_000))];
    let mut chain = Chain::new([small(64_000); 4], [clean(20), dead], [None; 2], plan, 1, Time::ZERO);
    chain.run(at(LONG * 10));
    assert_eq!(chain.hosts[CLIENT].ended, Some(Err(Abort::Reset)), "{}", chain.describe());
    assert_eq!(chain.splice_ended, Some(Err(Broken { leg: Leg::Far, abort: Abort::RetriesExhausted })));
    // No more data was accepted than the splice's buffer and the server's window hold.
    assert!(chain.splice.leg(Leg::Near).received() <= 500_000);
    assert!(chain.splice.buffered(Leg::Near) <= 64_000);
}

#[test]
fn the_gateway_may_give_up() {
    let mut chain = calm(vec![(at(0), CLIENT, Act::Write(1000)), (at(3000), CLIENT, Act::AbortSplice)]);
    chain.run(at(LONG));
    assert_eq!(chain.hosts.each_ref().map(|host| host.ended), [Some(Err(Abort::Reset)); 2], "{}", chain.describe());
    assert_eq!(chain.splice_ended, Some(Err(Broken { leg: Leg::Near, abort: Abort::Local })));
}

/// The client's host dies with data of the server under way, which has closed. Linux gives up data that no program waits for after 102 s,
/// other data after 15 minutes. As long as the client has not closed, the splice waits for it.
#[test]
fn a_leg_is_given_up_sooner_only_once_both_ends_have_closed() {
    let linux = TcpConfig { rto: RtoConfig::LINUX, ..small(64_000) };
    for client_closes in [false, true] {
        let dead = Path { dies: Some(at(4000)), ..clean(20) };
        let mut plan = vec![(at(4000), SERVER, Act::Write(1000)), (at(4000), SERVER, Act::Close)];
        plan.extend(client_closes.then_some((at(3500), CLIENT, Act::Close)));
        let configs = [small(64_000), linux, linux, small(64_000)];
        let mut chain = Chain::new(configs, [dead, clean(250)], [None; 2], plan, 1, Time::ZERO);
        for (seconds, is_over) in [(100, false), (300, client_closes), (900, client_closes), (1500, true)] {
            chain.run(at(1000 * seconds));
            let broken = is_over.then_some(Err(Broken { leg: Leg::Near, abort: Abort::RetriesExhausted }));
            assert_eq!(chain.splice_ended, broken, "{client_closes} {seconds} s: {}", chain.describe());
        }
    }
}

/// 40 ms to the splice and back, 500 ms to the server. The first request waits for both.
#[test]
fn the_client_is_answered_when_the_server_has_accepted() {
    for (asks_first, open_at) in [(false, 40), (true, 540)] {
        let mut chain = calm(Vec::new());
        if asks_first {
            chain = chain.asking_first();
        }
        chain.run(at(open_at - 1));
        assert_eq!(chain.hosts[CLIENT].connection.state(), State::SynSent, "{asks_first}");
        chain.run(at(open_at));
        assert_eq!(chain.hosts[CLIENT].connection.state(), State::Established, "{asks_first}");
    }
}

#[test]
fn a_client_who_waits_for_the_server_hears_of_a_refusal_and_nothing_of_silence() {
    let mut chain = calm(vec![(at(0), SERVER, Act::Close), (at(0), SERVER, Act::Abort)]).asking_first();
    chain.run(at(LONG));
    assert_eq!(chain.hosts[CLIENT].ended, Some(Err(Abort::Refused)), "{}", chain.describe());
    assert_eq!(chain.splice_ended, Some(Err(Broken { leg: Leg::Far, abort: Abort::Refused })));
    let dead = Path { dies: Some(at(0)), ..clean(250) };
    let mut chain = Chain::new([small(64_000); 4], [clean(20), dead], [None; 2], Vec::new(), 1, Time::ZERO);
    chain = chain.asking_first();
    chain.run(at(LONG * 10));
    assert_eq!(chain.hosts[CLIENT].ended, Some(Err(Abort::RetriesExhausted)), "{}", chain.describe());
    assert_eq!(chain.splice_ended, Some(Err(Broken { leg: Leg::Far, abort: Abort::RetriesExhausted })));
}

/// One turn per millisecond: no two segments of data leave closer together. Other segments need no turn.
#[test]
fn data_leaves_in_turns() {
    let mut chain = calm(vec![(at(0), CLIENT, Act::Write(300_000)), (at(0), SERVER, Act::Write(300_000))]);
    chain = chain.in_turns(Leg::Far);
    chain.run(at(LONG));
    assert_eq!(chain.hosts[SERVER].connection.received(), 300_000, "{}", chain.describe());
    assert_eq!(chain.hosts[CLIENT].connection.received(), 300_000, "{}", chain.describe());
    assert!(chain.turns.len() >= 300, "{}", chain.turns.len());
    assert!(chain.turns.windows(2).all(|pair| pair[1] >= pair[0] + ms(1)), "{:?}", chain.turns);
}

#[test]
fn a_slow_server_holds_the_client_back() {
    let plan = vec![(at(0), CLIENT, Act::Write(400_000))];
    let slow = [None, Some((1000, ms(100)))];
    let mut chain = Chain::new([small(8000); 4], [clean(5), clean(5)], slow, plan, 1, Time::ZERO);
    chain.run(at(5000));
    // 50 reads of 1000 B; server, splice and path hold 8000 B each.
    let acked = chain.hosts[CLIENT].connection.acknowledged();
    assert!((50_000..50_000 + 2 * 8000 + 1000).contains(&acked), "{acked} {}", chain.describe());
}

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    paths: [(u64, u64, f64); 2],
    variants: [usize; 4],
    buffers: [u32; 4],
    slow: [Option<(u64, u64)>; 2],
    plan: Vec<(u64, usize, u64)>,
    closes: [u64; 2],
    asks_first: bool,
    in_turns: Option<bool>,
}

fn case() -> impl Strategy<Value = Case> {
    let path = || (1..400u64, prop_oneof![Just(0u64), 0..300u64], prop_oneof![Just(0.0), 0.0..0.3]);
    let buffer = || 3000..60_000u32;
    let slow = || prop::option::of((1..5000u64, 1..300u64));
    let rows = VARIANTS.len();
    (
        any::<u64>(),
        [path(), path()],
        [0..rows, 0..rows, 0..rows, 0..rows],
        [buffer(), buffer(), buffer(), buffer()],
        [slow(), slow()],
        prop::collection::vec((0..20_000u64, 0..2usize, 1..40_000u64), 0..10),
        [0..30_000u64, 0..30_000u64],
        (any::<bool>(), any::<Option<bool>>()),
    )
        .prop_map(|(seed, paths, variants, buffers, slow, plan, closes, (asks_first, in_turns))| Case {
            seed,
            paths,
            variants,
            buffers,
            slow,
            plan,
            closes,
            asks_first,
            in_turns,
        })
}

fn chain(case: &Case, more: impl IntoIterator<Item = (Time, usize, Act)>) -> Chain {
    let mut plan: Vec<_> = case.plan.iter().map(|&(when, n, bytes)| (at(when), n, Act::Write(bytes))).collect();
    plan.extend(more);
    let configs = std::array::from_fn(|n| TcpConfig {
        variant: Variant { initial_window: 3, ..VARIANTS[case.variants[n]].2 },
        ..small(case.buffers[n])
    });
    let path = |(delay, jitter, loss)| Path { delay: ms(delay), jitter: ms(jitter), loss, dies: None };
    let slow = case.slow.map(|slow| slow.map(|(bytes, every)| (bytes, ms(every))));
    let mut chain = Chain::new(configs, case.paths.map(path), slow, plan, case.seed, at(60_000));
    if case.asks_first {
        chain = chain.asking_first();
    }
    match case.in_turns {
        Some(is_near) => chain.in_turns(if is_near { Leg::Near } else { Leg::Far }),
        None => chain,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Both ways, under loss and reordering on both legs, with any rows of the table and small buffers.
    #[test]
    fn whole_in_order_and_once(case in case()) {
        let mut chain = chain(&case, (0..2).map(|n| (at(case.closes[n]), n, Act::Close)));
        chain.run(at(1_000_000_000));
        for n in 0..2 {
            prop_assert_eq!(chain.hosts[n].ended, Some(Ok(())), "{}", chain.describe());
            prop_assert_eq!(chain.hosts[n].connection.received(), chain.hosts[1 - n].written, "{}", chain.describe());
            prop_assert!(chain.hosts[n].peer_closed);
        }
        prop_assert_eq!(chain.splice_ended, Some(Ok(())), "{}", chain.describe());
    }

    /// Whichever end aborts, and whenever: the other side ends too, and so does the splice.
    #[test]
    fn a_break_leaves_nothing_behind(case in case(), when in 0..40_000u64, who in 0..3usize) {
        let act = if who == 2 { (at(when), 0, Act::AbortSplice) } else { (at(when), who, Act::Abort) };
        // An end that still has something to send notices the abort even if the first reset was lost: a peer that has forgotten the
        // connection answers the next segment with another reset.
        let late = [45_000, 600_000].into_iter().flat_map(|ms| [0, 1].map(|who| (at(ms), who, Act::Write(1))));
        let mut chain = chain(&case, [act].into_iter().chain(late));
        chain.run(at(1_000_000_000));
        // A server that no SYN has reached has nothing to notice and keeps listening.
        let ended = chain.hosts.each_ref().map(|host| host.ended.is_some() || host.connection.state() == State::Listen);
        prop_assert_eq!(ended, [true; 2], "{}", chain.describe());
        // A client that aborts before it has sent its SYN has no effect: the splice keeps listening.
        let untouched = chain.describe().contains("near Listen");
        prop_assert!(chain.splice_ended.is_some() || untouched, "{}", chain.describe());
    }
}
