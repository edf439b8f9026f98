//! Links that move: each key at its place, and traces from files.

use bentpipe_engine::link::{Change, Codel, Discipline, Distribution, QueueLimit, Reorder, Track};
use bentpipe_engine::units::{Bytes, Duration, Probability};
use bentpipe_study::scenario::Scenario;

use super::language::{EVERYTHING, ms, parse};

/// What moves: each key at its place, in the engine's units.
#[test]
fn what_moves_arrives() {
    let scenario = parse(EVERYTHING);
    let config = |name: &str| &scenario.links.iter().find(|link| link.name == name).expect("a link").config;
    let leo = config("leo/forward");
    let moves = leo.moves.as_ref().expect("a schedule");
    let rate = moves.rate.as_ref().expect("rates");
    let change = |at, over, value| Change { at: ms(at), over: ms(over), value };
    assert_eq!(rate.initial(), 40_000_000);
    assert_eq!(rate.changes(), [change(3000, 0, 0), change(3100, 0, 30_000_000), change(5000, 2000, 50_000_000)]);
    assert_eq!(rate.period(), Some(ms(15_000)));
    // 3 s at 40, 0.1 s at 0, 1.9 s at 30, 2 s at 40 on the mean, 8 s at 50: 657 Mbit in 15 s.
    assert_eq!(leo.rate.map(|rate| rate.bits_per_second()), Some(43_800_000));
    let loss = moves.loss.as_ref().expect("losses");
    assert_eq!(loss.changes(), [change(5000, 1000, Track::ONE / 50), change(7000, 0, 0)]);
    let delay = moves.delay.as_ref().expect("delays");
    let ticks = |micros| Duration::from_micros(micros).as_ticks();
    let delays = [change(0, 0, ticks(20_000)), change(10, 0, ticks(31_500)), change(30, 0, ticks(7000))];
    assert_eq!((delay.changes(), delay.period()), (&delays[..], Some(ms(1000))));
    let queue = moves.queue.as_ref().expect("queues");
    let limits: Vec<_> = queue.changes().iter().map(|change| moves.limits[change.value as usize]).collect();
    assert_eq!(limits, [QueueLimit::Packets(40), QueueLimit::Bytes(Bytes::new(64_000))]);
    let jitter = leo.jitter.expect("jitter");
    assert_eq!(jitter.delay, Distribution::Normal { mean: ms(4), deviation: ms(1) });
    assert_eq!((jitter.correlation.get(), jitter.every, jitter.reorder), (0.8, ms(2), true));
    let back = config("leo/backward").jitter.expect("jitter");
    let pareto = Distribution::Pareto { min: ms(1), mean: Duration::from_micros(2500) };
    assert_eq!((back.delay, back.every, back.reorder), (pareto, ms(1), false));
    assert_eq!((leo.duplicate.get(), leo.corrupt.get()), (0.005, 1e-4));
    assert_eq!(leo.reorder, Some(Reorder { probability: Probability::new(0.01).expect("in range"), delay: ms(5) }));
    let phases = config("meo/forward").phases.expect("phases");
    assert_eq!(
        (phases.length, phases.first, phases.outage, phases.loss),
        (ms(15_000), ms(12_000), ms(80), Track::ONE / 2)
    );
    assert_eq!(phases.delay, Some((ms(60), ms(70))));
    let lossy = config("lossy/forward").moves.as_ref().expect("a trace");
    let codel = Codel { target: ms(6), interval: ms(120) };
    assert_eq!(config("lossy/forward").queue.discipline, Discipline::FqCodel(codel));
    let loss = lossy.loss.as_ref().expect("losses");
    assert_eq!(
        (loss.initial(), loss.period()),
        (Track::ONE / 100, Some(ms(2000))),
        "the last value holds for 1 s, too"
    );
    assert_eq!(lossy.delay.as_ref().map(|delay| (delay.initial(), delay.period())), Some((ticks(65_000), None)));
}

/// An emulation needs no flows; such a scenario reads back, too.
#[test]
fn a_scenario_without_flows_reads_back() {
    let links = "name = \"links\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"1 Mbit/s\"\ndelay = \"9 ms\"\n";
    let scenario = parse(links);
    assert!(scenario.flows.is_empty());
    assert_eq!(parse(&scenario.to_toml()), scenario);
}

/// The first value of a trace holds from the start, wherever its time is; written and read again, it still does.
#[test]
fn a_trace_that_begins_late_reads_back() {
    for trace in [
        "rate = \"1 Mbit/s\"\ndelay = \"9 ms\"\ndelay_trace = { values = [[\"30 ms\", \"7 ms\"]], period = \"1 s\" }",
        "rate = \"1 Mbit/s\"\ndelay = \"9 ms\"\nloss_trace = { values = [[\"30 ms\", 0.5], [\"60 ms\", 0]] }",
        "delay = \"9 ms\"\nrate_trace = { values = [[\"30 ms\", \"2 Mbit/s\"], [\"60 ms\", \"1 Mbit/s\"]] }",
    ] {
        let link = "name = \"late\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\n";
        let scenario = parse(&format!("{link}{trace}\n"));
        let moves = scenario.links[0].config.moves.as_ref().expect("a trace");
        let track = moves.delay.as_ref().or(moves.loss.as_ref()).or(moves.rate.as_ref()).expect("a track");
        assert_eq!((track.initial(), track.changes()[0].at), (track.changes()[0].value, ms(30)), "{trace}");
        let written = scenario.to_toml();
        assert_eq!(parse(&written), scenario, "{written}");
    }
}

/// A trace of delays or losses from a file, and the errors of wrong ones.
#[test]
fn a_series_of_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("moving.toml");
    let scenario = |trace: &str, content: &str| {
        std::fs::write(folder.path().join("sky.txt"), content).expect("it is written");
        let text = format!(
            "name = \"moving\"\n[[links]]\nname = \"sat\"\nfrom = \"A\"\nto = \"B\"\nrate = \"1 Mbit/s\"\n\
             delay = \"30 ms\"\n{trace}\n[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\ntype = \"udp\"\n\
             rate = \"1 Mbit/s\"\npacket = \"1000 B\"\n"
        );
        std::fs::write(&file, text).expect("it is written");
        Scenario::load(&file, &[])
    };
    let values = |trace: &str, content: &str| {
        let read = scenario(trace, content).unwrap_or_else(|errors| panic!("{errors}"));
        let moves = read.links[0].config.moves.clone().expect("a trace");
        let track = moves.delay.clone().or(moves.loss.clone()).expect("a track");
        let of = |change: &Change| (change.at.as_nanos() / 1000, change.value);
        (track.changes().iter().map(of).collect::<Vec<_>>(), track.period())
    };
    let ticks = |micros| Duration::from_micros(micros).as_ticks();
    let csv = "# recorded\ntime_s, delay_ms\n0,20\n0.5, 7.25\n2,30\n";
    let delays = vec![(0, ticks(20_000)), (500_000, ticks(7250)), (2_000_000, ticks(30_000))];
    assert_eq!(values("delay_trace = \"sky.txt\"", csv), (delays.clone(), Some(ms(3500))));
    // A byte order mark, as by Excel, is no part of the first column's name.
    assert_eq!(values("delay_trace = \"sky.txt\"", &format!("\u{feff}{}", &csv[11..])), (delays, Some(ms(3500))));
    let lines = "{ file = \"sky.txt\", interval = \"10 ms\" }";
    let plain = vec![(0, ticks(12_000)), (10_000, ticks(68_000))];
    assert_eq!(values(&format!("delay_trace = {lines}"), "12\n68\n"), (plain, Some(ms(20))));
    let losses = vec![(0, Track::ONE / 100), (10_000, 0)];
    assert_eq!(values(&format!("loss_trace = {lines}"), "1 %\n0\n"), (losses, Some(ms(20))));
    let inline = "delay_trace = { interval = \"10 ms\", text = \"\"\"\n12 68\n7\n\"\"\" }";
    assert_eq!(
        values(inline, "").0.iter().map(|value| value.1).collect::<Vec<_>>(),
        [12, 68, 7].map(|ms| ticks(ms * 1000))
    );
    // A single value lasts for the interval; without one, a second.
    assert_eq!(values(&format!("delay_trace = {lines}"), "12\n"), (vec![(0, ticks(12_000))], Some(ms(10))));
    assert_eq!(values("delay_trace = \"sky.txt\"", "time_s,delay_ms\n0,12\n").1, Some(ms(1000)));
    let said = |trace: &str, content: &str| scenario(trace, content).expect_err("it is wrong").to_string();
    let both = "delay_trace = { values = [[\"0 s\", \"1 ms\"]], interval = \"10 ms\" }";
    assert!(said(both, "").contains("does not fit here"));
    let csv = "delay_trace = \"sky.txt\"";
    assert!(said(csv, "time_s,loss\n0,1\n").contains("the trace has other columns"));
    assert!(said(csv, "time_s,delay_ms\n").contains("the trace has no values"));
    assert!(said(csv, "time_s,delay_ms\n1,5\n0,6\n").contains("a time is earlier than the previous one"));
    assert!(said(csv, "time_s,delay_ms\n1\n").contains("the line does not have two columns"));
    assert!(said(csv, "time_s,delay_ms\n1,fast\n").contains("sky.txt:2:1"));
    assert!(said("delay_trace = \"no.txt\"", "").contains("cannot be read"));
    assert!(said("loss_trace = \"sky.txt\"", "time_s,loss\n0,101 %\n").contains("sky.txt:2:1"));
    let short = "delay_trace = { values = [[\"0 s\", \"1 ms\"], [\"1 s\", \"2 ms\"]], period = \"500 ms\" }";
    assert!(said(short, "").contains("a time is after the period"));
    let slow = "delay_trace = { file = \"sky.txt\", interval = \"10 us\" }";
    assert!(said(slow, "1\n").contains("interval` is too short"));
    let long = "delay_trace = { file = \"sky.txt\", interval = \"60000000 s\" }";
    assert!(said(long, "1 2\n").contains("the trace is too long: `120000000 s` is more than 100000000 s"));
    assert!(scenario(long, "1\n").is_ok());
    assert!(
        said("delay_trace = { period = \"1 s\" }", "").contains("must have exactly one of `file`, `text` and `values`")
    );
}

/// At the period a trace or a schedule starts again, so a value of that instant never holds, unless it is the one that begins the period.
/// Recordings may have a last sample there; who writes a change there has made a mistake.
#[test]
fn a_value_at_the_period_never_holds() {
    let read = |more: &str| {
        let text = format!(
            "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"1 Mbit/s\"\ndelay = \"9 ms\"\n{more}\n\
             [[flows]]\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"\n"
        );
        Scenario::parse_with_warnings(&text, "t.toml", &[])
            .map(|(_, warnings)| warnings.to_string())
            .map_err(|errors| errors.to_string())
    };
    let values = |last: &str, period: &str| {
        read(&format!("delay_trace = {{ values = [[\"0 s\", \"20 ms\"], [\"1 s\", \"{last}\"]]{period} }}"))
    };
    let said = values("30 ms", ", period = \"1 s\"").expect("a trace");
    assert!(
        said.contains("t.toml:7:") && said.contains("the value never holds: at 1 s the trace starts again"),
        "{said}"
    );
    assert_eq!(values("20 ms", ", period = \"1 s\"").as_deref(), Ok(""), "it holds from then on anyway");
    assert_eq!(values("30 ms", "").as_deref(), Ok(""), "by default it holds for a second");
    let schedule = |last: &str| {
        read(&format!(
            "schedule = [{{ at = \"1 s\", delay = \"5 ms\" }}, {{ at = \"2 s\", delay = \"{last}\" }}]\nschedule_period = \"2 s\""
        ))
    };
    let said = schedule("7 ms").expect_err("a mistake");
    assert!(said.contains("t.toml:7:") && said.contains("at `schedule_period` the schedule starts again"), "{said}");
    assert_eq!(schedule("9 ms").as_deref(), Ok(""));
}

/// Of two steps of a setting at one instant, only the second holds. A ramp may begin with a step or end with one.
#[test]
fn a_step_at_the_instant_of_another_never_holds() {
    let read = |changes: &str| {
        let text = format!(
            "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"1 Mbit/s\"\ndelay = \"9 ms\"\n\
             schedule = [{changes}]\n[[flows]]\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"\n"
        );
        Scenario::parse(&text, "t.toml", &[]).map(|_| ()).map_err(|errors| errors.to_string())
    };
    let step = "{ at = \"1 s\", delay = \"5 ms\" }";
    let said = read(&format!("{step}, {{ at = \"1 s\", delay = \"7 ms\" }}")).expect_err("a mistake");
    assert!(said.contains("t.toml:7:") && said.contains("the change never holds"), "{said}");
    for other in ["{ at = \"1 s\", over = \"2 s\", delay = \"7 ms\" }", "{ at = \"1 s\", rate = \"2 Mbit/s\" }"] {
        assert_eq!(read(&format!("{step}, {other}")), Ok(()), "{other}");
    }
    let ramp = "{ at = \"0 s\", over = \"1 s\", delay = \"7 ms\" }";
    assert_eq!(read(&format!("{ramp}, {step}")), Ok(()));
}

/// 1.5 MB with headers: 1 MB in the first second at 8 Mbit/s, the rest in 4 s at 1 Mbit/s, and 100 ms on the way. The mean rate would
/// allow less.
#[test]
fn a_scheduled_line_bounds_the_time() {
    let scenario = parse(
        "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"8 Mbit/s\"\ndelay = \"100 ms\"\n\
         schedule = [{ at = \"1 s\", rate = \"1 Mbit/s\" }]\n\
         [[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"1460 kB\"\n",
    );
    let limit = bentpipe_study::limit::flow_limit(&scenario, &scenario.flows[0]).expect("a path").expect("TCP");
    assert_eq!(limit.time, Some(ms(5100)));
}

/// A direction's own `rate_trace` goes before a `rate` of both; its mean is what limits and queues count with.
#[test]
fn a_rate_from_a_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
    let scenario = |trace: &str| {
        let text = format!(
            "name = \"t\"\n[tcp]\nprofile = \"rfc\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"1 \
             Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"100 ms\"\nforward.{trace}\n[[flows]]\nname = \"f\"\nfrom = \
             \"A\"\nto = \"B\"\nbytes = \"1 MB\"\n"
        );
        file("t.toml", &text);
        Scenario::load(folder.path().join("t.toml"), &[])
    };
    // 1500 bytes at 1, 1 and 4 ms: 9 Mbit/s; a file may end without a newline, and in another system's, and begin with a byte order mark.
    file("up.trace", "\u{feff}1\r\n1\n\n4");
    let read = scenario("rate_trace = \"up.trace\"").unwrap_or_else(|errors| panic!("{errors}"));
    let [forward, backward] = [0, 1].map(|index: usize| &read.links[index].config);
    assert_eq!(forward.rate_trace.as_ref().map(|trace| trace.millis().to_vec()), Some(vec![1, 1, 4]));
    assert_eq!(forward.rate.map(|rate| rate.bits_per_second()), Some(9_000_000));
    assert_eq!(forward.queue.limit, QueueLimit::Bytes(Bytes::new(112_500)));
    assert_eq!((&backward.rate_trace, backward.rate.map(|rate| rate.bits_per_second())), (&None, Some(1_000_000)));
    // Written out it needs no file.
    assert_eq!(parse(&read.to_toml()), read);
    let limit = bentpipe_study::limit::flow_limit(&read, &read.flows[0]).expect("a path").expect("TCP");
    // 9 Mbit/s, of each 1500 bytes 1460 (or 1448 with timestamps) of payload.
    assert!(limit.long_run.is_some_and(|rate| rate > 8.6e6 && rate < 8.8e6), "{limit:?}");

    let wrong = |text: &str| {
        file("bad.trace", text);
        let errors = scenario("rate_trace = \"bad.trace\"").expect_err("it is wrong").0;
        assert_eq!(errors.len(), 1, "{errors:?}");
        let error = &errors[0];
        assert!(error.source.ends_with("bad.trace") && error.key == "links.sat.forward.rate_trace", "{error:?}");
        assert!(error.expected.is_some(), "{error:?}");
        (error.line, error.message.clone())
    };
    assert_eq!(wrong("1\n5\n4\n"), (3, "a time is earlier than the previous one".into()));
    assert_eq!(wrong("1\n2.5\n"), (2, "`2.5` is not a time in milliseconds".into()));
    file("bad.trace", "time_s,rate_mbps\n0,1\n");
    let said = scenario("rate_trace = \"bad.trace\"").expect_err("rates are no times").to_string();
    assert!(said.contains("rate_trace = { file = \"bad.trace\" }"), "{said}");
    assert_eq!(wrong("+1\n"), (1, "`+1` is not a time in milliseconds".into()));
    assert_eq!(wrong("0\n0\n"), (2, "the trace ends at 0 ms, so it has no length".into()));
    assert_eq!(wrong("\n2000000000\n"), (2, "a time is later than 1 000 000 000 ms".into()));
    assert_eq!(wrong(""), (1, "the trace has no times".into()));

    let said = |trace: &str| {
        let errors = scenario(trace).expect_err("it is wrong").0;
        errors.iter().map(|error| format!("{}: {}", error.key, error.message)).collect::<Vec<_>>().join("; ")
    };
    assert!(said("rate_trace = \"none.trace\"").contains("none.trace` cannot be read"));
    assert!(said("rate_trace = [3, 2]").contains("forward.rate_trace.1: a time is earlier"));
    assert!(said("rate_trace = []").contains("the trace has no times"));
    assert!(said("rate_trace = 5").contains("forward.rate_trace"));
    let both = "rate = \"2 Mbit/s\"\nforward.rate_trace = [5]";
    assert!(said(both).contains("`rate` and `rate_trace` exclude each other"));
    let cells = "rate_trace = [5]\nforward.framing = \"aal5\"";
    assert!(said(cells).contains("cells follow no trace"), "{}", said(cells));
    let rates =
        "rate_trace = { values = [[\"0 s\", \"1 Mbit/s\"], [\"1 s\", \"2 Mbit/s\"]] }\nforward.framing = \"aal5\"";
    assert!(said(rates).contains("forward.rate_trace: a link in cells does not change"), "{}", said(rates));
}
