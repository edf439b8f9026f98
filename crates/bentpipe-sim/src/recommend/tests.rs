use super::*;

fn scenario(loss: &str) -> Scenario {
    let text = format!(
        r#"
        name = "t"
        time_limit = "4000 s"
        [tcp]
        variant = "sack"
        [[links]]
        name = "internet"
        between = ["server", "gateway"]
        rate = "1 Gbit/s"
        delay = "10 ms"
        [[links]]
        name = "sat"
        between = ["gateway", "terminal"]
        rate = "10 Mbit/s"
        delay = "280 ms"
        queue = "600 ms"
        {loss}
        [[links]]
        name = "lan"
        between = ["terminal", "client"]
        rate = "1 Gbit/s"
        delay = "1 ms"
        [[flows]]
        name = "download"
        from = "server"
        to = "client"
        bytes = "5 MB"
        "#
    );
    Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

fn options(reps: u32) -> Options {
    Options { reps, flip_reps: 0, margin: 0.05, threads: 2, stop: || false }
}

fn ask(scenario: &Scenario) -> Recommendation {
    recommend(scenario, &options(6), &|_, _, _| ()).expect("a bare path with a transfer")
}

#[test]
fn loss_calls_for_help_and_the_simplest_that_helps_is_chosen() {
    let lossy = ask(&scenario("loss = \"2 %\""));
    let verdict = lossy.verdict.clone().expect("transfers end");
    assert_ne!(verdict.system, System::Plain, "{lossy:?}");
    let plain = &lossy.candidates[0];
    let gain = verdict.gains.iter().find(|gain| gain.over == System::Plain);
    // Either the formulas say that plain TCP is hopeless, or the runs say that it is slower.
    assert!(plain.hopeless || gain.is_some_and(|gain| gain.low > 2.0), "{lossy:?}");
    let limit = lossy.limit_s.expect("a bulk transfer has a limit");
    assert!(lossy.candidates.iter().flat_map(|c| c.times_s.iter().flatten()).all(|&time| time >= limit));
}

/// Bad times in which next to nothing is lost are no outages: the hosts as they are do as well as without them, and are run.
#[test]
fn bad_times_that_lose_little_are_no_outages() {
    let estimate = |loss: &str| {
        let scenario = scenario(loss);
        let ground = Ground::of(&scenario).expect("a bare path");
        estimate::estimate(&scenario, &ground, System::Plain).expect("within the formulas")
    };
    let channel =
        |times: &str, loss: &str| estimate(&format!("gilbert_elliott = {{ {times}, loss_bad = \"{loss}\" }}"));
    let (fast, slow) = ("good = \"10 ms\", bad = \"10 ms\"", "good = \"500 ms\", bad = \"300 ms\"");
    // 8 segments are sent in 10 ms: in one of 1200 bad times one is lost. The transfer takes some 350.
    assert!((channel(fast, "0.01 %") / estimate("") - 1.0).abs() < 0.1);
    assert!((channel(fast, "0 %") / estimate("") - 1.0).abs() < 1e-9);
    // Of some 240 segments, one in ten is lost: each bad time is an outage, as if all were lost.
    assert!((channel(slow, "10 %") / channel(slow, "100 %") - 1.0).abs() < 1e-6);
    assert!(channel(slow, "10 %") > 1.5 * estimate(""));
    assert!(channel(fast, "100 %") > HOPELESS * estimate(""));
    assert!(
        !ask(&scenario("gilbert_elliott = { good = \"10 ms\", bad = \"10 ms\", loss_bad = \"0.01 %\" }")).candidates[0]
            .hopeless
    );
}

/// A search of unknown length shows the runs of each point.
#[test]
fn the_search_for_changes_tells_its_runs() {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    static STOPPED: AtomicBool = AtomicBool::new(false);
    let options = Options { flip_reps: 2, stop: || STOPPED.load(Ordering::Relaxed), ..options(2) };
    let told = Mutex::new(Vec::new());
    let progress = |stage: Stage, done: usize, of: usize| {
        STOPPED.store(stage != Stage::Choice, Ordering::Relaxed);
        told.lock().expect("no panic").push((stage, done, of));
    };
    let found = recommend(&scenario(""), &options, &progress).expect("a bare path with a transfer");
    let told = told.into_inner().expect("no panic");
    assert!(told.contains(&(Stage::Changes { search: 2, of: 6 }, 1, 10)), "{told:?}");
    assert!(found.interrupted && !found.searched && found.flips.is_empty(), "{found:?}");
}

/// A delay or losses that a schedule sets are not varied, because the link's own value has no effect.
#[test]
fn what_a_schedule_sets_is_not_varied() {
    let held = |steps: &str| {
        let moving = format!("schedule = [{{ at = \"1 s\", {steps} }}]");
        let world = scenario(&moving);
        flip::held(&world, &Ground::of(&world).expect("bare"))
    };
    assert_eq!(held("rate = \"5 Mbit/s\""), []);
    assert_eq!(held("delay = \"200 ms\""), [Dimension::Delay]);
    assert_eq!(held("loss = \"1 %\""), [Dimension::Loss]);
    let options = Options { flip_reps: 1, ..options(1) };
    let searches = std::sync::Mutex::new(std::collections::BTreeSet::new());
    let progress = |stage: Stage, _: usize, _: usize| {
        if let Stage::Changes { of, .. } = stage {
            searches.lock().expect("no panic").insert(of);
        }
    };
    let world = scenario("schedule = [{ at = \"1 s\", delay = \"200 ms\" }]");
    let found = recommend(&world, &options, &progress).expect("a bare path with a transfer");
    assert_eq!((found.held, searches.into_inner().expect("no panic")), (vec![Dimension::Delay], [4].into()));
}

#[test]
fn every_system_carries_the_transfer() {
    // Split flows under a layer too.
    for world in [scenario(""), scenario("loss = \"1 %\"")] {
        let ground = Ground::of(&world).expect("bare");
        for system in System::ALL {
            let with = ground.with(&world, system).expect("it fits");
            let result = run_with(&with, 1, &mut NoProbe, Timers::Lazy, |_| true).expect("it runs");
            let flow = &result.flows[0];
            assert_eq!((flow.delivered, flow.aborted), (5_000_000, None), "{system}");
            let legs = if matches!(system, System::Uplink | System::Split) { 2 } else { 0 };
            assert_eq!(flow.legs.len(), legs, "{system}");
            // What is recommended can be written down, read back, and is the same.
            let again = Scenario::parse(&with.to_toml(), "again.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
            assert_eq!(again.to_toml(), with.to_toml(), "{system}");
        }
    }
}

/// 99.5 % of the line, on slow lines as well: of 2999 bit/s these are 2984.005.
#[test]
fn boxes_are_told_a_little_less_than_the_line_has() {
    for (line, told) in [("10 Mbit/s", 9_950_000), ("2400 bit/s", 2388), ("2999 bit/s", 2984)] {
        let sets = ["links.sat/forward.rate", "links.sat/backward.rate"].map(|key| (key.to_owned(), line.to_owned()));
        let world =
            Scenario::parse(&scenario("").to_toml(), "t.toml", &sets).unwrap_or_else(|errors| panic!("{errors}"));
        let ground = Ground::of(&world).expect("bare");
        let with = |system| ground.with(&world, system).expect("it fits").gateways;
        let rates = with(System::Link).pairs[0].satellite.map(|box_| box_.rate.bits_per_second());
        assert_eq!(rates, [told; 2], "{line}");
        assert_eq!(with(System::Uplink).uplinks[0].sender.rate.bits_per_second(), told, "{line}");
    }
}

#[test]
fn what_is_not_bare_is_refused() {
    let world = scenario("");
    let ground = Ground::of(&world).expect("bare");
    for (system, word) in [(System::Link, "gateway"), (System::Uplink, "gateway")] {
        let with = ground.with(&world, system).expect("it fits");
        let error = Ground::of(&with).expect_err("something is there").to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn a_host_at_the_satellite_has_no_gateway() {
    let text = "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"280 \
                ms\"\nqueue = \"600 ms\"\n[[flows]]\nfrom = \"a\"\nto = \"b\"\nbytes = \"1 MB\"\n";
    let world = Scenario::parse(text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let answer = ask(&world);
    let unfit: Vec<_> = answer.candidates.iter().map(|candidate| candidate.unfit.is_some()).collect();
    assert_eq!(unfit, [false, false, true, false, true]);
    // Nothing is drawn on this path.
    assert!(answer.deterministic && answer.candidates.iter().all(|candidate| candidate.times_s.len() <= 1));
    assert!(matches!(answer.verdict.map(|verdict| verdict.system), Some(System::Plain | System::Bbr | System::Link)));
}

#[test]
fn the_same_on_any_number_of_threads() {
    let world = scenario("loss = \"1 %\"");
    let ask = |threads| recommend(&world, &Options { threads, ..options(4) }, &|_, _, _| ()).expect("it fits");
    assert_eq!(ask(1), ask(3));
}

/// Ctrl-C after some number of questions: of the runs made so far only those of whole replications count, so that pairs have the same
/// fades; and a run that was cut off is no transfer that did not finish.
#[test]
fn an_interrupted_answer_has_whole_replications_only() {
    static LEFT: AtomicUsize = AtomicUsize::new(0);
    fn stop() -> bool {
        LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
    }
    let sets = [("flows.download.bytes".to_owned(), "200 kB".to_owned())];
    let text = scenario("loss = \"2 %\"").to_toml();
    let world = Scenario::parse(&text, "t.toml", &sets).unwrap_or_else(|errors| panic!("{errors}"));
    let whole = ask(&world);
    let mut lengths = Vec::new();
    for questions in (0..60).step_by(4) {
        LEFT.store(questions, Ordering::Relaxed);
        let part = recommend(&world, &Options { threads: 1, stop, ..options(6) }, &|_, _, _| ()).expect("it fits");
        let replications = part.candidates[0].times_s.len();
        lengths.push(replications);
        for (part, whole) in part.candidates.iter().zip(&whole.candidates) {
            assert_eq!(part.times_s[..], whole.times_s[..replications], "{questions}: {}", part.system);
        }
    }
    lengths.dedup();
    assert!(lengths.len() > 3 && lengths.is_sorted(), "{lengths:?}");
}

/// The path of [`scenario`] with more or other lines.
fn ground(changes: &[(&str, &str)]) -> Result<(Scenario, Ground), Unfit> {
    let mut text = scenario("").to_toml();
    for (from, to) in changes {
        assert!(text.contains(from), "{from} in\n{text}");
        text = text.replacen(from, to, 1);
    }
    let world = Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    Ground::of(&world).map(|ground| (world, ground))
}

#[test]
fn what_is_on_the_path_already_is_named() {
    let refused = |more: &str| {
        let flow = "[[flows]]";
        ground(&[(flow, &format!("{more}{flow}"))]).map(|_| ()).expect_err("it is not bare").to_string()
    };
    let layer = refused(
        "[[layers]]\nname = \"arq\"\nover = [\"sat/forward\", \"sat/backward\"]\nchannels = [{ name = \"c\", transmissions = \"unlimited\", queue = \"unlimited\" }]\n\n",
    );
    assert!(layer.starts_with("the layer `arq` is already on the path"), "{layer}");
    let split = refused(
        "[[flows]]\nname = \"other\"\nfrom = \"server\"\nto = \"client\"\nbytes = \"1 kB\"\nsplit = [{ at = \"gateway\" }]\n\n",
    );
    assert!(split.starts_with("the flow `other` is already split"), "{split}");
}

/// S-LACP needs a link back over the satellite, and carries packets.
#[test]
fn links_that_boxes_cannot_use() {
    let unfit = |changes: &[(&str, &str)]| {
        let (world, ground) = ground(changes).expect("bare");
        [System::Uplink, System::Link, System::Split].map(|system| ground.with(&world, system).err())
    };
    // The link back begins at the terminal, and ends elsewhere.
    let elsewhere = "name = \"sat/backward\"\nfrom = \"terminal\"\nto = \"relay\"";
    let onward = "[[links]]\nname = \"onward\"\nfrom = \"relay\"\nto = \"gateway\"\nrate = \"unlimited\"\ndelay = \"1 ms\"\n\n[[flows]]";
    let back = ("name = \"sat/backward\"\nfrom = \"terminal\"\nto = \"gateway\"", elsewhere);
    assert_eq!(unfit(&[back, ("[[flows]]", onward)]), [const { Some(Unfit::OneWay) }; 3]);
    // Shorter packets than a gateway's file may have.
    let short =
        |mtu: u32| unfit(&[("name = \"sat/backward\"\n", &format!("name = \"sat/backward\"\nmtu = \"{mtu} B\"\n"))]);
    for mtu in [68, 1279] {
        let refused = format!("the satellite link takes packets of {mtu} B, and a gateway needs 1280 B");
        assert_eq!(short(mtu), [(); 3].map(|()| Some(Unfit::Refused(refused.clone()))));
    }
    assert_eq!(short(1280), [const { None }; 3]);
    let text = "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"0 ms\"\n\
                [[flows]]\nfrom = \"a\"\nto = \"b\"\nbytes = \"1 MB\"\n";
    let world = Scenario::parse(text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let link = Ground::of(&world).expect("bare").with(&world, System::Link);
    assert_eq!(link.err(), Some(Unfit::Refused("the satellite link has no delay".to_owned())));
    let text = "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"280 ms\"\nframing = \"aal5\"\n\
                [[flows]]\nfrom = \"a\"\nto = \"b\"\nbytes = \"1 MB\"\n";
    let world = Scenario::parse(text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let ground = Ground::of(&world).expect("bare");
    assert_eq!(ground.with(&world, System::Link).err(), Some(Unfit::Cells));
}

/// A transfer of another transport is no transfer to recommend for.
#[test]
fn the_first_tcp_transfer_counts() {
    let quic = "[[flows]]\nname = \"other\"\nfrom = \"server\"\nto = \"client\"\nbytes = \"1 kB\"\ntype = \"quic\"\n\n[[flows]]";
    let (world, ground) = ground(&[("[[flows]]", quic)]).expect("bare");
    assert_eq!((world.flows.len(), world[ground.flow].name.as_str()), (2, "download"));
}

/// The box is before the satellite link, and its window is what the path behind it holds: 560.04 ms of delays and of an ACK of 40 or 52 B
/// on the way back, 2 ms behind the link, and 1.2 ms for a segment of 1500 B make 704 kB at 10 Mbit/s, 469.4 segments.
#[test]
fn a_box_at_the_uplink_fills_the_path_behind_it() {
    let (world, ground) = ground(&[]).expect("bare");
    let with = ground.with(&world, System::Uplink).expect("it fits");
    let uplink = &with.gateways.uplinks[0];
    let names = uplink.over.map(|link| with[link].name.clone());
    assert_eq!((&with[uplink.at], names), ("gateway", ["sat/forward".to_owned(), "sat/backward".to_owned()]));
    assert_eq!(uplink.sender.tcp.variant.startup, bentpipe_engine::tcp::variant::Startup::FixedWindow(470));
}

/// A tunnel's datagrams are as long as the shorter of the two links takes.
#[test]
fn boxes_know_the_mtu_of_the_links() {
    let (world, ground) =
        ground(&[("name = \"sat/backward\"", "name = \"sat/backward\"\nmtu = \"1400 B\"")]).expect("bare");
    let with = |system| ground.with(&world, system).expect("it fits").gateways;
    assert_eq!(with(System::Link).pairs[0].satellite.map(|box_| box_.path_mtu), [1400; 2]);
    // The near box, which opens the tunnel, is where the data arrives.
    assert_eq!(with(System::Link).pairs[0].nodes.map(|node| &world[node]), ["terminal", "gateway"]);
    assert_eq!(with(System::Uplink).uplinks[0].sender.mtu, 1400);
}

#[test]
fn an_estimate_near_the_runs_is_sound() {
    let candidate = |estimate| Candidate {
        system: System::Plain,
        unfit: None,
        estimate_s: Some(estimate),
        limit_s: None,
        hopeless: false,
        times_s: vec![Some(10.0)],
    };
    let sound = [6.9, 7.1, 12.9, 13.1].map(|estimate| candidate(estimate).sound_estimate_s().is_some());
    assert_eq!(sound, [false, true, true, false]);
}

/// Other seeds of the scenario meet other losses, and what the formulas call hopeless is not run.
#[test]
fn runs_have_the_seeds_of_the_scenario() {
    let ask = |seed: &str| {
        let sets =
            [("flows.download.bytes", "3 MB"), ("seed", seed)].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let text = scenario("loss = \"20 %\"").to_toml();
        let world = Scenario::parse(&text, "t.toml", &sets).unwrap_or_else(|errors| panic!("{errors}"));
        recommend(&world, &options(2), &|_, _, _| ()).expect("it fits")
    };
    let [one, two] = ["1", "2"].map(ask);
    let min = one.candidates.iter().filter_map(|candidate| candidate.estimate_s).fold(f64::INFINITY, f64::min);
    for (one, two) in one.candidates.iter().zip(&two.candidates) {
        let is_hopeless = one.estimate_s.is_some_and(|estimate| estimate > HOPELESS * min);
        assert_eq!((one.hopeless, one.times_s.len()), (is_hopeless, if is_hopeless { 0 } else { 2 }), "{one:?}");
        // The second run of seed 1 is the first of seed 2.
        assert_eq!(one.times_s.get(1), two.times_s.first(), "{}", one.system);
    }
    assert!(one.candidates[0].hopeless, "{:?}", one.candidates[0]);
}
