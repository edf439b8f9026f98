//! The scenarios of the repository: each can be read, written and read again, and those of the papers have the papers' values.

use std::path::{Path, PathBuf};

use bentpipe_engine::link::{ChannelConfig, Distribution, ExtraDelay, QueueLimit};
use bentpipe_engine::tcp::variant::{Exit, Growth, PartialAckTimer, PipeForm, Recovery};
use bentpipe_engine::tcp::{Daass, RttClock, SsthreshBase, TcpConfig};
use bentpipe_engine::units::{Bytes, Duration, Probability, Rate};
use bentpipe_study::limit::flow_limit;
use bentpipe_study::scenario::{FlowKind, Scenario, TcpFlow, Workload};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn load(name: &str, sets: &[(&str, &str)]) -> Scenario {
    let sets: Vec<_> = sets.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    Scenario::load(folder().join(name).with_extension("toml"), &sets).unwrap_or_else(|errors| panic!("{errors}"))
}

fn tcp(scenario: &Scenario, index: usize) -> &TcpFlow {
    match &scenario.flows[index].kind {
        FlowKind::Tcp(tcp) => tcp,
        FlowKind::Stp(_) | FlowKind::Quic(_) | FlowKind::Udp(_) => panic!("a TCP flow"),
    }
}

fn all() -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder())
        .expect("the folder is there")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert!(names.len() >= 9, "{names:?}");
    names
}

#[test]
fn each_reads_back_as_itself() {
    for name in all() {
        let scenario = load(&name, &[]);
        assert_eq!(scenario.name, name);
        let quic = Scenario::QUIC_VARIANTS.iter().copied();
        for variant in scenario.variant_names().into_iter().chain(quic).map(str::to_owned).chain([String::new()]) {
            let scenario =
                if variant.is_empty() { scenario.clone() } else { scenario.with_variant(&variant).expect("a variant") };
            let text = scenario.to_toml();
            let again = Scenario::parse(&text, "resolved.toml", &[])
                .unwrap_or_else(|errors| panic!("{name}: {errors}\n{text}"));
            assert_eq!(again, scenario, "{name} {variant}\n{text}");
            assert_eq!(again.to_toml(), text);
        }
    }
}

#[test]
fn each_says_where_its_numbers_come_from() {
    for name in all() {
        let text = std::fs::read_to_string(folder().join(&name).with_extension("toml")).expect("readable");
        for line in text.lines() {
            let quantity = line.split('#').next().unwrap_or("");
            let has_number = ["rate =", "delay =", "bytes =", "packet =", "queue =", "loss ="]
                .iter()
                .any(|key| quantity.contains(key));
            let is_sourced = line.contains('#')
                || text.lines().take_while(|l| *l != line).last().is_some_and(|l| l.starts_with('#'));
            assert!(!has_number || is_sourced, "{name}: {line}");
        }
    }
}

#[test]
fn transat_is_the_papers_world() {
    let scenario = load("transat", &[]);
    assert_eq!(scenario.nodes, ["H1", "SN1", "SN2", "H2"]);
    let names: Vec<_> = scenario.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names[2..4], ["sat/forward", "sat/backward"]);
    let sat = &scenario.links[2].config;
    assert_eq!((sat.rate, sat.delay), (Rate::from_bits_per_second(2_000_000), Duration::from_millis(255)));
    assert_eq!(sat.queue.limit, QueueLimit::Packets(49));
    assert_eq!(scenario.links[3].config.queue.limit, QueueLimit::Unlimited);

    let flow = tcp(&scenario, 0);
    assert_eq!(flow.workload, Workload::Bulk(Bytes::new(1_000_320)));
    let TcpConfig { mss, variant, rto, window_clamp, initial_ssthresh, shortcuts, .. } = flow.sender;
    assert_eq!((mss, variant.initial_window, variant.growth), (960, 1, Growth::PerAck));
    let newreno = Recovery::Inflate { exit: Exit::Recover, deflate: false, timer: PartialAckTimer::SlowButSteady };
    assert_eq!((variant.recovery, variant.limited_transmit, variant.sack), (newreno, false, false));
    assert_eq!((rto.initial, rto.min), (Duration::from_secs(6), Duration::from_secs(1)));
    assert!(matches!(rto.clock, RttClock::Ticks { tick, .. } if tick == Duration::from_millis(500)));
    assert_eq!((window_clamp, initial_ssthresh), (Some(300), Some(300)));
    assert_eq!(shortcuts.ssthresh_base, SsthreshBase::WholeWindow);
    assert!(shortcuts.ns2_inflate_always && shortcuts.ns2_delayed_syn_ack);

    let enhanced = scenario.with_variant("enh").expect("in the file");
    let TcpConfig { variant, ack, .. } = tcp(&enhanced, 0).receiver;
    assert_eq!((variant.recovery, variant.initial_window), (Recovery::Pipe(PipeForm::Ns2), 4));
    assert_eq!(variant.dup_thresh.window_fraction, Some(10));
    assert!(variant.sack && variant.limited_transmit);
    assert_eq!((ack.delay, ack.every, ack.daass), (Duration::from_millis(200), 2, Daass::FirstSegments(10)));

    // Scaling off is one override, and the threshold follows the clamp as in ns-2.
    let off = load("transat", &[("tcp.window_clamp", "62 segments")]);
    assert_eq!(tcp(&off, 0).sender.initial_ssthresh, Some(62));
}

#[test]
fn transat_bursts_fall_on_data_only() {
    let scenario = load("transat-slacp", &[]);
    let ms = Duration::from_millis;
    let forward = &scenario.links[2].config;
    let length = Distribution::ExponentialClipped { mean: ms(150), min: ms(100), max: ms(500) };
    assert_eq!(
        forward.channel,
        ChannelConfig::OnOff { gap: Distribution::Uniform(ms(1000), ms(10_000)), burst: length }
    );
    assert_eq!((forward.bad.packet, forward.extra_delay), (Probability::new(0.25).unwrap(), ExtraDelay(ms(550))));
    assert_eq!(forward.queue.limit, QueueLimit::Packets(49));
    assert_eq!(scenario.links[3].config.channel, ChannelConfig::Clear);
    let table5 = load("transat-slacp", &[("links.sat.forward.bursts.loss", "1 %")]);
    assert_eq!(table5.links[2].config.bad.packet, Probability::new(0.01).unwrap());
    assert_eq!(load("transat-bursts", &[]).links[2].config.bad.packet, Probability::ONE);
}

#[test]
fn transat_cross_traffic_comes_after_tcp() {
    let scenario = load("transat-four-flows", &[]);
    let names: Vec<_> = scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["data-1", "data-2", "data-3", "data-4", "cbr"]);
    assert_eq!(tcp(&scenario, 3).workload, Workload::Bulk(Bytes::new(250_560)));
    let FlowKind::Udp(cbr) = &scenario.flows[4].kind else { panic!("UDP") };
    assert_eq!((cbr.rate.bits_per_second(), cbr.packet), (800_000, 1000));
    assert_eq!(scenario.flows[4].from, scenario.node("H1").unwrap());
}

/// Table 1, row 1 of the paper: no variant is faster than physics, and the fastest is within a factor of two of it.
#[test]
fn the_limit_lies_below_the_published_times() {
    let scenario = load("transat", &[]);
    let limit = flow_limit(&scenario, &scenario.flows[0]).unwrap().unwrap().time.unwrap().as_secs_f64();
    // 1042 packets of 4 ms, 275 ms there, two more line times of 0.8 ms; handshake 2 (275 ms + 40 B over three lines).
    assert!((limit - (1042.0 * 0.004 + 0.275 + 0.0016 + 2.0 * (0.275 + 0.00016 + 0.000064))).abs() < 1e-6, "{limit}");
    assert!(limit < 8.26 && limit > 8.26 / 2.0, "Enhanced TCP takes 8.26 s");
}

/// Round trips of the examples are the ones their comments promise.
#[test]
fn examples_have_the_round_trips_they_promise() {
    for (name, millis) in [("geo", 600), ("geo-bursts", 600), ("leo", 40), ("request-response", 600)] {
        let scenario = load(name, &[]);
        let total = scenario.links.iter().fold(Duration::ZERO, |sum, link| sum + link.config.delay);
        assert_eq!(total, Duration::from_millis(millis), "{name}");
    }
    // 20 Mbit/s for 600 ms.
    assert_eq!(load("geo", &[]).links[2].config.queue.limit, QueueLimit::Bytes(Bytes::new(1_500_000)));
}
