//! Limits worked out by hand, and the closed form against a walk.

use bentpipe_engine::link::{ChannelConfig, Distribution, ExtraDelay, PacketBursts};
use bentpipe_engine::units::Probability;

use super::*;

fn link(bits: u64, millis: u64) -> LinkConfig {
    LinkConfig::clean(Rate::from_bits_per_second(bits), Duration::from_millis(millis))
}

const SIZE: SegmentSize = SegmentSize { payload: 960, headers: 40 };

#[test]
fn a_single_line_by_hand() {
    // 1 kB at 1 Mbit/s is 8 ms: three of them and a last one of 140 B, 1.12 ms, after 100 ms of propagation.
    let link = link(1_000_000, 100);
    assert_eq!(transfer_time(&[&link], Bytes::new(3 * 960 + 100), SIZE), Duration::from_micros(125_120));
    assert_eq!(transfer_time(&[&link], Bytes::new(100), SIZE), Duration::from_micros(101_120));
}

#[test]
fn a_tandem_by_hand() {
    let (fast, slow) = (link(10_000_000, 10), link(2_000_000, 255));
    // Ten equal packets: 0.8 ms over the fast line, 10 * 4 ms over the slow one, 265 ms.
    let ten = Bytes::new(9600);
    assert_eq!(transfer_time(&[&fast, &slow], ten, SIZE), Duration::from_micros(265_000 + 800 + 40_000));
    // The other way round: 10 * 4 ms, then the last 0.8 ms. The same by symmetry.
    assert_eq!(transfer_time(&[&slow, &fast], ten, SIZE), Duration::from_micros(265_000 + 800 + 40_000));
    // A short last packet (40 B of payload, 80 B: 0.32 ms and 0.064 ms) waits behind the ninth on the slow line:
    // 0.8 + 9 * 4 + 0.32. Over slow then fast it arrives at 9 * 4 + 0.32, but the ninth holds the fast line until
    // 9 * 4 + 0.8, so 36 + 0.8 + 0.064.
    let short = Bytes::new(9 * 960 + 40);
    assert_eq!(transfer_time(&[&fast, &slow], short, SIZE), Duration::from_micros(265_000 + 800 + 36_000 + 320));
    assert_eq!(transfer_time(&[&slow, &fast], short, SIZE), Duration::from_micros(265_000 + 36_000 + 800 + 64));
}

/// The formula against packets that are walked one by one.
#[test]
fn the_closed_form_is_the_walk() {
    let walk = |rates: &[u64], count: u64, last: f64| {
        let mut free = vec![0.0f64; rates.len()];
        let mut at = 0.0;
        for packet in 0..count {
            let bytes = if packet + 1 == count { last } else { 1000.0 };
            at = 0.0;
            for (line, rate) in free.iter_mut().zip(rates) {
                at = f64::max(at, *line) + bytes * 8.0 / *rate as f64;
                *line = at;
            }
        }
        at
    };
    for rates in [[1, 2, 3], [3, 2, 1], [2, 1, 3], [2, 3, 1], [7, 7, 7]] {
        let rates = rates.map(|rate| rate * 100_000);
        let links = rates.map(|rate| link(rate, 0));
        let links: Vec<_> = links.iter().collect();
        for (count, last) in [(1, 50), (2, 50), (2, 1000), (7, 41), (20, 999)] {
            let closed = pipe_time(&links, count, 1000, last).as_secs_f64();
            assert!((closed - walk(&rates, count, last as f64)).abs() < 1e-8, "{rates:?} {count} {last}");
        }
    }
}

#[test]
fn cells_take_what_aal5_adds() {
    use bentpipe_engine::link::CellConfig;
    let mut link = link(149_760_000, 0);
    link.cells = Some(CellConfig::OPEN);
    // 9180 bytes are 192 cells of 53 bytes.
    let size = SegmentSize { payload: 9140, headers: 40 };
    let expected = 149_760_000.0 * 9140.0 / (192.0 * 53.0);
    assert!((goodput(&[&link], size).expect("a rate") - expected).abs() < 1e-3);
    link.cells = Some(CellConfig { line: Rate::from_bits_per_second(74_880_000), ..CellConfig::OPEN });
    assert!((goodput(&[&link], size).expect("a rate") - expected / 2.0).abs() < 1e-3);
    link.good.bit = Probability::new(1e-6).expect("in range");
    // A bit in 81408 wrong with 1e-6: 1-(1-1e-6)^81408.
    assert!((mean_loss(&link, 9180) - 0.0781824).abs() < 1e-6);
}

#[test]
fn goodput_by_hand() {
    let (fast, mut slow) = (link(10_000_000, 10), link(2_000_000, 255));
    // 2 Mbit/s * 960/1000.
    assert!((goodput(&[&fast, &slow], SIZE).expect("a rate") - 1_920_000.0).abs() < 1e-6);
    // 10 % lost behind the slow line; what is lost before it leaves the line no idler.
    slow.good.packet = Probability::new(0.1).expect("in range");
    assert!((goodput(&[&fast, &slow], SIZE).expect("a rate") - 1_728_000.0).abs() < 1e-6);
    let mut lossy = link(10_000_000, 10);
    lossy.good.packet = Probability::new(0.1).expect("in range");
    slow.good.packet = Probability::ZERO;
    assert!((goodput(&[&lossy, &slow], SIZE).expect("a rate") - 1_920_000.0).abs() < 1e-6);
    assert_eq!(goodput(&[&LinkConfig::clean(None, Duration::ZERO)], SIZE), None);
}

/// The far leg opens when the SYN comes by.
#[test]
fn legs_open_at_once() {
    let (short, long) =
        (LinkConfig::clean(None, Duration::from_millis(20)), LinkConfig::clean(None, Duration::from_millis(250)));
    let one = |link| (vec![link], vec![link]);
    let ms = |legs: &[Way<'_>]| -> Vec<_> {
        open_times(legs, HEADERS).iter().map(|open| open.as_nanos() / 1_000_000).collect()
    };
    assert_eq!(ms(&[(vec![&short, &long], vec![&long, &short])]), [540]);
    assert_eq!(ms(&[one(&short), one(&long)]), [40, 20 + 500]);
    assert_eq!(ms(&[one(&long), one(&short)]), [500, 250 + 40]);
}

/// What waits for a leg to open has passed the one before: 8760 B, six full segments, leave a line of 72 kbit/s within a second, and wait
/// for the far leg, which is open after 1 + 2000 ms and takes 1000 ms. The other way round, the near leg is the last to open.
#[test]
fn data_comes_to_a_leg_before_it_opens() {
    let (slow, far) = ("rate = \"72 kbit/s\"; delay = \"1 ms\"", "rate = \"unlimited\"; delay = \"1 s\"");
    let secs = |first: &str, second: &str| {
        let split =
            flow("bytes = \"8760 B\"\nsplit = [{ at = \"R\" }]\ntcp = { profile = \"rfc\", timestamps = false }");
        let time = limit_of(&format!("{}{}{split}", joins("A", "R", first), joins("R", "B", second))).time;
        (time.expect("it ends").as_secs_f64() * 1000.0).round() / 1000.0
    };
    // 40 B of the SYN take 4.4 ms.
    assert_eq!(secs(slow, far), 0.005 + 3.0);
    assert_eq!(secs(far, slow), 2.0 + 1.0 + 1.0 + 0.001);
}

#[test]
fn mean_loss_by_hand() {
    let s = Duration::from_secs;
    let mut link = link(2_000_000, 255);
    // Gaps of 5.5 s and bursts of 0.5 s on average: bad for 1/12 of the time.
    link.channel = ChannelConfig::OnOff {
        gap: Distribution::Uniform(s(1), s(10)),
        burst: Distribution::Fixed(Duration::from_millis(500)),
    };
    link.bad.packet = Probability::new(0.6).expect("in range");
    link.extra_delay = ExtraDelay(s(1));
    assert!((mean_loss(&link, 1000) - 0.05).abs() < 1e-12);
    // One bit in 8000 wrong with 1e-6: 1-(1-1e-6)^8000 = 0.0079680891...
    link.channel = ChannelConfig::Clear;
    link.good.bit = Probability::new(1e-6).expect("in range");
    assert!((mean_loss(&link, 1000) - 0.0079680891).abs() < 1e-8);
    // After an arrival a loss with 0.01, after a loss with 0.3: p/(p+1-b).
    let probability = |value| Probability::new(value).expect("in range");
    link.good.bit = Probability::ZERO;
    let start = probability(0.01);
    link.packet_bursts = Some(PacketBursts::Conditional { start, again: probability(0.3) });
    assert!((mean_loss(&link, 1000) - 0.01 / 0.71).abs() < 1e-12);
    link.packet_bursts = Some(PacketBursts::Conditional { start, again: Probability::ZERO });
    assert!((mean_loss(&link, 1000) - 0.01).abs() < 1e-12);
    // Five lost for every 99 that arrive; beside 10 % of the rest.
    link.packet_bursts = Some(PacketBursts::Runs { start, length: 5 });
    link.good.packet = probability(0.1);
    assert!((mean_loss(&link, 1000) - (1.0 - 0.9 * 99.0 / 104.0)).abs() < 1e-12);
}

/// Time and goodput of a transfer over a line that changes are one bound.
#[test]
fn a_transfer_over_a_schedule_has_one_limit() {
    let limit = |link: &str, flow: &str| {
        let text = format!(
            "name = \"t\"\n[[links]]\nname = \"l\"\nbetween = [\"A\", \"B\"]\nrate = \"20 Mbit/s\"\ndelay = \"1 ms\"\n{link}\n\
             [[flows]]\nfrom = \"A\"\nto = \"B\"\n{flow}"
        );
        let scenario = Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        flow_limit(&scenario, &scenario.flows[0]).expect("a path").expect("a connection")
    };
    let bulk = "bytes = \"10 MB\"";
    let schedule = "schedule = [{ at = \"1 ms\", rate = \"5 Mbit/s\" }]";
    let over = limit(schedule, bulk);
    let (time, goodput) = (over.time.expect("an end").as_secs_f64(), over.goodput.expect("a rate"));
    assert_eq!(goodput, 80e6 / time);
    assert!(goodput < 5e6 && over.long_run.is_some_and(|rate| rate > 15e6), "{over:?}");
    // A second of 20 Mbit/s, three of 5: a transfer in the first one is faster than the mean.
    let repeats = limit(&format!("{schedule}\nschedule_period = \"4 s\"").replace("1 ms", "1 s"), "bytes = \"1 MB\"");
    assert!(repeats.goodput.is_some_and(|rate| rate > 10e6), "{repeats:?}");
    // Without a change, or without an end, it is the line's.
    let plain = limit("", bulk);
    assert_eq!(plain.goodput, plain.long_run);
    let endless = limit(schedule, "greedy = true");
    assert_eq!((endless.time, endless.goodput), (None, endless.long_run));
}

/// Losses of a schedule or a trace replace those of the link, so the lowest of them counts: 10 Mbit/s of which 1460 of 1500 B are data.
#[test]
fn losses_that_change_limit_by_the_lowest() {
    let goodput = |losses: &str| {
        let line = format!("rate = \"10 Mbit/s\"\n{losses}");
        short_flow(&line, "greedy = true\ntcp = { profile = \"rfc\", timestamps = false }").goodput.expect("a rate")
    };
    let whole = 10e6 * 1460.0 / 1500.0;
    for (losses, passes) in [
        ("loss = \"50 %\"", 0.5),
        ("loss = \"50 %\"\nschedule = [{ at = \"1 s\", loss = \"0 %\" }]", 1.0),
        ("loss_trace = { values = [[\"0 s\", \"25 %\"], [\"1 s\", \"12.5 %\"]] }", 0.875),
    ] {
        assert!((goodput(losses) - whole * passes).abs() < 1.0, "{losses}: {}", goodput(losses));
    }
}

/// The mean over the period: a second of 25 % and one of 12.5 %. What does not repeat has none, so the first value counts.
#[test]
fn losses_that_change_have_a_mean() {
    let of = |losses: &str| {
        let line = joins("A", "B", &format!("rate = \"10 Mbit/s\"; delay = \"0 ms\"; {losses}"));
        mean_loss(&parsed(&format!("{line}{}", flow("greedy = true"))).links[0].config, 1500)
    };
    assert_eq!(of("loss_trace = { values = [[\"0 s\", \"25 %\"], [\"1 s\", \"12.5 %\"]] }"), 0.1875);
    assert_eq!(of("loss = \"50 %\"; schedule = [{ at = \"1 s\", loss = \"0 %\" }]"), 0.5);
    assert_eq!(of("loss = \"50 %\"; schedule = [{ at = \"1 s\", loss = \"0 %\" }]; schedule_period = \"4 s\""), 0.125);
}

/// An opportunity each ms, for 100 ms, then a pause of 900 ms. 146 kB are 100 segments of 1500 B, so the 100 opportunities of a period
/// carry them. At the start that takes 100 ms; from 50 ms on, the rest leaves in the next period.
#[test]
fn a_transfer_shorter_than_a_trace() {
    let times: Vec<String> = (1..=100).chain([1000]).map(|at: u32| at.to_string()).collect();
    let limit = |start: &str, bytes: &str| {
        let text = format!(
            "name = \"trace\"\n[[links]]\nname = \"sat\"\nbetween = [\"a\", \"b\"]\ndelay = \"1 ms\"\nrate_trace = [{}]\n\
             [[flows]]\nname = \"data\"\nfrom = \"a\"\nto = \"b\"\nstart = \"{start}\"\nbytes = \"{bytes}\"\n",
            times.join(", ")
        );
        let scenario = Scenario::parse(&text, "trace.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        flow_limit(&scenario, &scenario.flows[0]).expect("connected").expect("TCP").time
    };
    assert_eq!(limit("0 s", "146 kB"), Some(Duration::from_millis(101)));
    // From 50 ms on: 51 of this period, with the one at 1000 ms 52, and 48 of the next one.
    assert_eq!(limit("50 ms", "146 kB"), Some(Duration::from_millis(1048 - 50 + 1)));
}

/// A line whose rate changes, between hosts that are no time apart.
fn short_flow(line: &str, flow: &str) -> Limit {
    let text = format!(
        "name = \"t\"\n[[links]]\nname = \"l\"\nbetween = [\"A\", \"B\"]\ndelay = \"0 ms\"\n{line}\n\
         [[flows]]\nfrom = \"A\"\nto = \"B\"\n{flow}\n"
    );
    let scenario = Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    flow_limit(&scenario, &scenario.flows[0]).expect("a path").expect("a connection")
}

/// A transfer that fits a burst is as fast as the burst, whatever the line's mean is: SYN and SYN-ACK of 40 B take 32 us each at 10 Mbit/s,
/// a segment of 1500 B takes 1.2 ms.
#[test]
fn a_short_transfer_fits_a_burst() {
    let tdma = "rate = \"10 Mbit/s\"\ntdma = { frame = \"32 ms\", bursts = [[\"4 ms\", \"3 ms\"]] }";
    let limit = short_flow(tdma, "bytes = \"1460 B\"");
    assert_eq!(limit.time, Some(Duration::from_micros(1264)));
    assert_eq!(limit.goodput, Some(1460.0 * 8.0 / 1264e-6));
}

/// Opportunities of a trace may come at once, so a transfer shorter than a period has no limit; the mean rate is none.
#[test]
fn the_mean_does_not_limit_a_short_transfer() {
    let trace = "rate_trace = [1, 1, 1, 100]";
    let ask = "request_response = { request = \"1 B\", response = \"1460 B\", count = 1 }";
    let limit = short_flow(trace, ask);
    assert_eq!((limit.time, limit.goodput), (Some(Duration::ZERO), None));
    assert!(limit.long_run.is_some_and(|rate| rate < 500e3), "{limit:?}");
    // Twice the answer in a known time.
    let tdma = "rate = \"10 Mbit/s\"\ntdma = { frame = \"32 ms\", bursts = [[\"4 ms\", \"3 ms\"]] }";
    let limit = short_flow(tdma, &ask.replace("count = 1", "count = 2"));
    assert_eq!(limit.goodput, limit.time.map(|time| 2.0 * 1460.0 * 8.0 / time.as_secs_f64()));
}

/// A burst of 100 ms at 10 Mbit/s each second, over 0 ms. A response of 48 180 B, 33 full segments, takes 39.6 ms of a burst and 396 ms
/// at the mean rate.
#[test]
fn each_response_may_fall_into_a_burst() {
    let tdma = "rate = \"10 Mbit/s\"\nbackward.tdma = { frame = \"1 s\", bursts = [[\"0 s\", \"100 ms\"]] }";
    let secs = |response: &str, think: &str, count: u32| {
        let asks = format!("{{ request = \"1 B\", response = \"{response}\", think = \"{think}\", count = {count} }}");
        let time = short_flow(tdma, &format!("request_response = {asks}")).time.expect("it ends").as_secs_f64();
        (time * 100.0).round() / 100.0
    };
    // A response each second: 50 in bursts, of 0.04 s, and 49 pauses.
    assert_eq!(secs("48180 B", "950 ms", 50), 48.53);
    // Without pauses, what counts is that the mean carries 50 times 0.396 s, of which a second may come early.
    assert_eq!(secs("48180 B", "0 s", 50), 18.8);
    // A long response takes the mean's time, 25 times 0.396 s, less a period; the pauses count besides.
    assert_eq!(secs("1204500 B", "10 s", 3), 3.0 * 8.9 + 20.0);
}

fn parsed(text: &str) -> Scenario {
    Scenario::parse(&format!("name = \"t\"\n{text}"), "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

fn limit_of(text: &str) -> Limit {
    let scenario = parsed(text);
    flow_limit(&scenario, &scenario.flows[0]).expect("a path").expect("a connection")
}

/// A link between two nodes, with its settings separated by semicolons.
fn joins(one: &str, other: &str, settings: &str) -> String {
    let settings = settings.replace("; ", "\n");
    format!("[[links]]\nname = \"{one}{other}\"\nbetween = [\"{one}\", \"{other}\"]\n{settings}\n")
}

fn flow(settings: &str) -> String {
    format!("[[flows]]\nname = \"f\"\nfrom = \"A\"\nto = \"B\"\n{settings}\n")
}

/// Over 10 ms each way, and lines that take no time: the SYN, the SYN-ACK and the data take 30 ms.
#[test]
fn what_precedes_and_follows_the_data() {
    let line = joins("A", "B", "rate = \"unlimited\"; delay = \"10 ms\"");
    let ms =
        |settings: &str| limit_of(&format!("{line}{}", flow(settings))).time.map(|time| time.as_nanos() / 1_000_000);
    assert_eq!(ms("bytes = \"1 MB\""), Some(30));
    assert_eq!(ms("bytes = \"1 MB\"\ntcp.shortcuts.handshake = \"none\""), Some(10));
    assert_eq!(ms("paced = { rate = \"1 Mbit/s\", bytes = \"1 MB\" }"), Some(30));
    // Three requests with their responses, and a pause between them: 20 + 3 * 20 + 2 * 1000.
    let asks = "request_response = { request = \"1 kB\", response = \"1 kB\", count = 3, think = \"1 s\" }";
    assert_eq!(ms(asks), Some(2080));
}

/// Responses come over the way back: of 1500 B 1460 are data. Only that way counts, too, for whether the rate changes.
#[test]
fn responses_are_limited_by_the_way_back() {
    let asks = flow("request_response = { request = \"1 B\", response = \"14600 B\", count = 1 }");
    let lines =
        |there: &str, back: &str| joins("A", "B", &format!("delay = \"1 ms\"; forward.{there}; backward.{back}"));
    let near = |limit: &Limit, rate: f64| limit.goodput.is_some_and(|found| (found / rate - 1.0).abs() < 1e-9);
    let slow_back = limit_of(&format!("{}{asks}", lines("rate = \"10 Mbit/s\"", "rate = \"1 Mbit/s\"")));
    assert!(near(&slow_back, 1e6 * 1460.0 / 1500.0) && slow_back.narrowest == Some(LinkId(1)), "{slow_back:?}");
    let bursts = "rate = \"10 Mbit/s\"; forward.tdma = { frame = \"32 ms\", bursts = [[\"0 ms\", \"16 ms\"]] }";
    let changes_there = limit_of(&format!("{}{asks}", lines(bursts, "rate = \"1 Mbit/s\"")));
    assert!(near(&changes_there, 1e6 * 1460.0 / 1500.0), "{changes_there:?}");
}

/// Each leg of a split connection has its own limit, and the lower one is the flow's, whichever leg it is.
#[test]
fn the_slower_leg_limits_a_split_flow() {
    let split = flow("bytes = \"1 MB\"\nsplit = [{ at = \"R\" }]");
    let limit =
        |first: &str, second: &str| limit_of(&format!("{}{}{split}", joins("A", "R", first), joins("R", "B", second)));
    let (fast, slow) = ("rate = \"10 Mbit/s\"; delay = \"1 ms\"", "rate = \"2 Mbit/s\"; delay = \"1 ms\"");
    for (first, second, link) in [(fast, slow, 2), (slow, fast, 0)] {
        let limit = limit(first, second);
        assert!(limit.goodput.is_some_and(|rate| (rate - 2e6 * 1460.0 / 1500.0).abs() < 1e-3), "{limit:?}");
        assert_eq!(limit.narrowest, Some(LinkId(link)));
    }
    // Two lines that become faster, one of them too late: 1 000 000 B in 685 segments with 40 B each of headers take 8.2192 s at 1 Mbit/s.
    let soon = "rate = \"2 Mbit/s\"; delay = \"0 ms\"; schedule = [{ at = \"1 ms\", rate = \"10 Mbit/s\" }]";
    let late = "rate = \"1 Mbit/s\"; delay = \"0 ms\"; schedule = [{ at = \"100 s\", rate = \"10 Mbit/s\" }]";
    for (first, second) in [(soon, late), (late, soon)] {
        assert_eq!(limit(first, second).time, Some(Duration::from_micros(8_219_200)));
    }
}

/// 1.46 MB in 1000 segments are 1.5 MB on the line. They reach it after 100 ms: 0.9 s at 8 Mbit/s carry 900 kB, and 600 kB take 4.8 s at 1
/// Mbit/s.
#[test]
fn data_reaches_a_scheduled_line_after_the_links_before_it() {
    let before = joins("A", "R", "rate = \"unlimited\"; delay = \"100 ms\"");
    let line =
        joins("R", "B", "rate = \"8 Mbit/s\"; delay = \"0 ms\"; schedule = [{ at = \"1 s\", rate = \"1 Mbit/s\" }]");
    let limit = limit_of(&format!("{before}{line}{}", flow("bytes = \"1460 kB\"")));
    assert_eq!(limit.time, Some(Duration::from_millis(100 + 900 + 4800)));
}

/// Of legs with unequal segments the slower one counts, with the delay of all: 1920 B are two segments of 1000 B, which take 16 ms at 1
/// Mbit/s, or four of 520 B, which take 16.64 ms.
#[test]
fn legs_with_segments_of_their_own() {
    let (near, far) = (link(1_000_000, 10), link(1_000_000, 250));
    let (large, small) = (SegmentSize { payload: 960, headers: 40 }, SegmentSize { payload: 480, headers: 40 });
    let time = transfer_over_legs(&[&[&near], &[&far]], Bytes::new(1920), &[large, small]);
    assert_eq!(time, Duration::from_micros(260_000 + 4 * 4160));
    let time = transfer_over_legs(&[&[&far], &[&near]], Bytes::new(1920), &[small, large]);
    assert_eq!(time, Duration::from_micros(260_000 + 4 * 4160));
}

/// The smaller MSS counts, less 12 B of timestamps if both ends have them (RFC 6691). ns-2's lengths have none.
#[test]
fn segments_between_two_ends() {
    let end = |mss: u16, timestamps: bool| {
        let flow = crate::scenario::TcpFlow::new("rfc", "sack", Workload::Bulk(Bytes::new(1)))
            .expect("they are in the tables");
        TcpConfig { mss, timestamps, ..flow.sender }
    };
    let size = |a: &TcpConfig, b: &TcpConfig| {
        let SegmentSize { payload, headers } = SegmentSize::between(a, b);
        (payload, headers)
    };
    assert_eq!(size(&end(1460, true), &end(1000, true)), (988, 52));
    assert_eq!(size(&end(1000, true), &end(1460, true)), (988, 52));
    assert_eq!(size(&end(1460, true), &end(1460, false)), (1460, 40));
    assert_eq!(size(&end(1460, false), &end(1460, true)), (1460, 40));
    let mut ns2 = end(1460, true);
    ns2.shortcuts.ns2_lengths = true;
    assert_eq!(size(&ns2, &end(1460, true)), (1460, 40));
}

/// A tunnel's datagram of 1500 B has up to 1405 B of streams behind 28 B of IPv4 and UDP, 25 of the tunnel, 20 of S-LACP and at least one
/// of the multiplexer: of 536 B that is 536 * 74 / 1405 = 28 B, less than the 40 of a segment of their own. Of 1460 B it would be 76.
#[test]
fn a_tunnel_joins_short_segments() {
    let scenario = |mss: &str| {
        let line = joins("N", "F", "rate = \"10 Mbit/s\"; backward.rate = \"20 Mbit/s\"; delay = \"300 ms\"");
        let hosts = [
            joins("A", "N", "rate = \"unlimited\"; delay = \"1 ms\""),
            joins("F", "B", "rate = \"unlimited\"; delay = \"2 ms\""),
        ];
        let pair = "[[gateways]]\nname = \"box\"\nshape = \"split\"\nnear = \"N\"\nfar = \"F\"\n";
        let data =
            flow(&format!("bytes = \"53600 B\"\ntcp = {{ profile = \"rfc\", mss = \"{mss}\", timestamps = false }}"));
        limit_of(&format!("{line}{}{pair}{data}", hosts.concat()))
    };
    let near = |found: Option<f64>, rate: f64| found.is_some_and(|found| (found / rate - 1.0).abs() < 1e-9);
    let short = scenario("536 B");
    assert!(near(short.goodput, 10e6 * 536.0 / 564.0), "{short:?}");
    // 100 segments over one path of 303 ms, without a handshake.
    assert_eq!(short.time, Some(Duration::from_nanos(303_000_000 + 100 * 564 * 800)));
    assert!(near(scenario("1460 B").goodput, 10e6 * 1460.0 / 1500.0));
}

/// Where a cell port's line is slower than the port, each virtual channel has a line of its own: the link does not limit several flows
/// together. A faster one changes nothing.
#[test]
fn a_line_of_a_virtual_channel() {
    let cells = |atm: &str| {
        let line = format!("rate = \"149.76 Mbit/s\"; delay = \"1 ms\"; framing = \"aal5\"{atm}");
        limit_of(&format!("{}{}", joins("A", "B", &line), flow("greedy = true")))
    };
    let (port, slow, fast) = (cells(""), cells("; atm.line = \"10 Mbit/s\""), cells("; atm.line = \"622.08 Mbit/s\""));
    assert_eq!((port.narrowest, slow.narrowest, fast.narrowest), (Some(LinkId(0)), None, None));
    assert_eq!(port.goodput, fast.goodput);
    assert!(slow.goodput < port.goodput);
}

/// With a burst that never ends, everything is lost once one has begun, and nothing if none can.
#[test]
fn a_burst_without_an_end() {
    let probability = |value| Probability::new(value).expect("in range");
    let mut link = link(2_000_000, 255);
    for (start, lost) in [(0.0, 0.0), (0.01, 1.0)] {
        link.packet_bursts = Some(PacketBursts::Conditional { start: probability(start), again: Probability::ONE });
        assert_eq!(mean_loss(&link, 1000), lost);
    }
}
