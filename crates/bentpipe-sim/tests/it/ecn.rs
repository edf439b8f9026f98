//! ECN (RFC 3168) over links whose queues mark.

use bentpipe_engine::NoProbe;
use bentpipe_sim::{RunResult, run};
use bentpipe_study::scenario::Scenario;

/// One flow of 4 MB over 10 Mbit/s and 40 ms; the queue, and the flow's settings.
fn play(queue: &str, tcp: &str) -> RunResult {
    let text = format!(
        "name = \"ecn\"\ntime_limit = \"100 s\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"10 Mbit/s\"\ndelay = \
         \"20 ms\"\nforward.queue = {queue}\n[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"4 MB\"\ntcp = {{ {tcp} \
         }}\n"
    );
    let scenario =
        Scenario::parse(&text, "ecn.toml", &[]).unwrap_or_else(|errors| panic!("{}\n{text}", errors.render(false)));
    assert_eq!(Scenario::parse(&scenario.to_toml(), "again", &[]).as_ref(), Ok(&scenario));
    run(&scenario, 1, &mut NoProbe).expect("it runs")
}

const QUEUES: [&str; 3] = [
    "{ limit = \"unlimited\", discipline = \"codel\", marking = true }",
    "{ limit = \"unlimited\", discipline = \"fq-codel\", marking = true }",
    // An upper threshold that the queue does not reach.
    "{ limit = \"unlimited\", discipline = \"red\", min_threshold = \"5 packets\", max_threshold = \"2000 packets\", max_probability = \
     \"100 %\", marking = true }",
];

/// Packets that the queue would drop are marked: nothing is lost, each mark reaches the receiver, and the sender reduces its window at most
/// once per round trip. If the hosts have no ECN, the same queue drops.
#[test]
fn queues_mark_instead_of_dropping() {
    for queue in QUEUES {
        let marked = play(queue, "variant = \"sack\", ecn = true");
        let (flow, link) = (&marked.flows[0], &marked.links[0]);
        assert_eq!((flow.delivered, link.dropped(), flow.stats.retransmits), (4_000_000, 0, 0), "{queue}");
        assert!(link.marked > 0, "{queue}");
        assert_eq!(flow.receiver_stats.marks_received, link.marked, "{queue}");
        let reductions = flow.stats.ecn_reductions;
        // 4 MB take 3.3 s, which are at most 83 round trips of 40 ms and more.
        assert!((1..=83).contains(&reductions), "{queue}: {reductions}");
        let dropped = play(queue, "variant = \"sack\"");
        let link = &dropped.links[0];
        assert!(link.marked == 0 && link.dropped_early > 0, "{queue}: {link:?}");
    }
}

/// Both ends need ECN. A receiver that only accepts it is enough; one without it is not.
#[test]
fn both_ends_need_it() {
    for (receiver, marks) in [("\"accept\"", true), ("false", false)] {
        let result = play(QUEUES[0], &format!("variant = \"sack\", ecn = true, receiver = {{ ecn = {receiver} }}"));
        assert_eq!(result.links[0].marked > 0, marks, "{receiver}");
    }
}

/// With ABE, a mark reduces the window to 0.8 instead of a half: the same queue marks more often, and the line is idle less.
#[test]
fn abe_reduces_less() {
    let goodput = |tcp: &str| {
        let result = play(QUEUES[0], tcp);
        (result.flows[0].received_at.expect("it arrives"), result.flows[0].stats.ecn_reductions)
    };
    let (half, fewer) = goodput("variant = \"sack\", ecn = true");
    let (most, more) = goodput("variant = \"sack\", ecn = true, abe = true");
    assert!(most <= half && more > fewer, "{most:?} {more} beside {half:?} {fewer}");
}

/// Every control takes marks, in every row with SACK or without.
#[test]
fn every_variant_finishes() {
    for (name, ..) in bentpipe_engine::tcp::variant::VARIANTS {
        let result = play(QUEUES[1], &format!("variant = \"{name}\", ecn = true"));
        assert_eq!((result.flows[0].delivered, result.flows[0].aborted), (4_000_000, None), "{name}");
    }
}

/// Marking without a queue that chooses packets is refused.
#[test]
fn drop_tail_does_not_mark() {
    let text = "name = \"x\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nqueue = { limit \
                = \"9 packets\", marking = true }\n[[flows]]\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"\n";
    let error = Scenario::parse(text, "ecn.toml", &[]).expect_err("it is wrong").render(false);
    assert!(error.contains("applies only to RED and CoDel"), "{error}");
}

/// A capture at the receiver has the marks in its IP headers: data is ECT(0), or CE if the queue marked it.
#[test]
fn captures_have_the_marks() {
    use bentpipe_sim::record::{Pcap, Snap, Tap};
    let text = format!(
        "name = \"ecn\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\nforward.queue = {}\n\
         [[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"4 MB\"\ntcp = {{ variant = \"sack\", ecn = true }}\n",
        QUEUES[0]
    );
    let scenario = Scenario::parse(&text, "ecn.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.pcapng");
    let mut pcap = Pcap::create(&path, &scenario, &Tap::find(&scenario, "B").expect("a host"), Snap::Headers, "")
        .expect("writable");
    let result = run(&scenario, 1, &mut pcap).expect("it runs");
    pcap.finish().expect("written");
    let bytes = std::fs::read(&path).expect("readable");
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes")) as usize;
    // Enhanced packet blocks: the IPv4 header follows 28 bytes, its second byte has the ECN field, its last four the destination.
    let (mut at, mut fields) = (0, [0_u64; 4]);
    while at < bytes.len() {
        if word(at) == 6 && bytes[at + 28 + 16..at + 28 + 20] == [10, 0, 2, 1] {
            fields[usize::from(bytes[at + 29] & 3)] += 1;
            // The headers are captured, with at most 40 B of TCP's options, and none of the data.
            assert!((40..=80).contains(&word(at + 20)) && word(at + 24) >= word(at + 20));
        }
        at += word(at + 4);
    }
    let [plain, ect1, ect0, ce] = fields;
    assert_eq!((ect1, ce), (0, result.links[0].marked));
    // SYN, ACKs and FIN are not ECT (RFC 3168 §6.1.1 and §6.1.4); data is.
    assert!(ce > 0 && ect0 + ce >= 4_000_000 / 1460 && (1..10).contains(&plain), "{fields:?}");
}
