use super::*;

fn scenario(links: &str) -> Scenario {
    let mut text = String::from("name = \"t\"\n[[flows]]\nfrom = \"A\"\nto = \"B\"\ntype = \"udp\"\n");
    text.push_str("rate = \"1 Mbit/s\"\npacket = \"1000 B\"\n");
    for (index, line) in links.lines().filter(|line| !line.trim().is_empty()).enumerate() {
        let [from, to, delay]: [&str; 3] = line.split_whitespace().collect::<Vec<_>>().try_into().expect("three words");
        text.push_str(&format!("[[links]]\nname = \"{index}\"\nfrom = \"{from}\"\nto = \"{to}\"\n"));
        text.push_str(&format!("rate = \"1 Mbit/s\"\ndelay = \"{delay} ms\"\n"));
    }
    Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

fn found(links: &str) -> Vec<u32> {
    let scenario = scenario(links);
    numbers(&forward_path(&scenario, &scenario.flows[0]).expect("reachable"))
}

fn numbers(path: &[LinkId]) -> Vec<u32> {
    path.iter().map(|link| link.0).collect()
}

#[test]
fn fewest_hops_then_least_delay_then_order() {
    assert_eq!(found("A C 1\nC B 1\nA B 500"), [2], "one hop beats two");
    assert_eq!(found("A C 5\nC B 5\nA D 1\nD B 8"), [2, 3], "9 ms beat 10 ms");
    assert_eq!(found("A C 5\nC B 5\nA D 5\nD B 5"), [0, 1], "the first of equals");
    assert_eq!(found("A B 5\nA B 4"), [1]);
}

/// The distance of each node to `to` by Bellman and Ford.
fn literal(scenario: &Scenario, to: NodeId) -> Vec<Option<Distance>> {
    let mut distance = vec![None; scenario.nodes.len()];
    distance[to.index()] = Some((0, 0));
    for _ in &scenario.nodes {
        for link in &scenario.links {
            let (candidate, known) = (through(link, &distance), &mut distance[link.from.index()]);
            if candidate.is_some() && (known.is_none() || candidate < *known) {
                *known = candidate;
            }
        }
    }
    distance
}

/// Networks drawn at random, with some nodes that no links join.
#[test]
fn distances_are_the_literal_ones() {
    let mut state = 1_u32;
    let mut draw = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % below
    };
    let mut reached = [0; 2];
    for _ in 0..200 {
        let count = 3 + draw(6);
        let mut links = "A B 1\n".to_owned();
        for _ in 0..draw(14) {
            let (from, to, delay) = (draw(count), draw(count), 1 + draw(3));
            if from != to {
                links += &format!("n{from} n{to} {delay}\n");
            }
        }
        let scenario = scenario(&links);
        let nodes = || (0..scenario.nodes.len()).map(NodeId::from);
        for to in nodes() {
            let all = literal(&scenario, to);
            for from in nodes() {
                let found = distances(&scenario, from, to);
                assert_eq!(found[from.index()], all[from.index()], "{links}");
                let sum = |path: Path| path.iter().map(|&link| scenario[link].config.delay.as_nanos()).sum::<u64>();
                let way = path(&scenario, from, to).ok().map(|path| (path.len(), sum(path)));
                assert_eq!(way, all[from.index()], "{links}");
                reached[usize::from(way.is_some())] += 1;
            }
        }
    }
    assert!(reached.iter().all(|&count| count > 1000), "{reached:?}");
}

#[test]
fn links_lead_one_way() {
    let scenario = scenario("A B 5");
    let error = return_path(&scenario, &scenario.flows[0]).expect_err("no way back");
    assert_eq!(error, Unreachable { from: "B".into(), to: "A".into() });
}

#[test]
fn facts_by_hand() {
    let text = "
        name = \"t\"
        [[links]]
        name = \"access\"
        between = [\"A\", \"R\"]
        rate = \"10 Mbit/s\"
        delay = \"10 ms\"
        [[links]]
        name = \"sat\"
        between = [\"R\", \"B\"]
        rate = \"2 Mbit/s\"
        delay = \"255 ms\"
        queue = \"49 packets\"
        [[flows]]
        from = \"A\"
        to = \"B\"
        bytes = \"1 MB\"";
    let scenario = Scenario::parse(text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let (there, back) = flow_paths(&scenario, &scenario.flows[0]).expect("reachable");
    assert_eq!((numbers(&there), numbers(&back)), (vec![0, 2], vec![3, 1]));
    let there = facts(&scenario, &there, 1000);
    assert_eq!(there.delay, Duration::from_millis(265));
    assert_eq!(there.bottleneck, Rate::from_bits_per_second(2_000_000));
    // 49 packets of 4 ms.
    assert_eq!(there.queue, Some(Duration::from_millis(196)));
    // 2 Mbit/s * 530 ms / 8.
    assert_eq!(bandwidth_delay_product(&there, &facts(&scenario, &back, 1000)), Some(Bytes::new(132_500)));
}

/// Cells of a pair of hosts reach the port over the pair's own line. If that is slower than the port, a pair can use no more, and its
/// packets wait for the line instead of in the port's buffer.
#[test]
fn a_slow_line_to_a_port_is_the_bottleneck() {
    let of = |line: &str| {
        let text = format!(
            "name = \"t\"\n[[links]]\nname = \"port\"\nbetween = [\"A\", \"B\"]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
             framing = \"aal5\"\natm = {{ line = \"{line}\", buffer = \"100 cells\" }}\n"
        );
        let scenario = Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        [facts, mean_facts].map(|facts| {
            let facts = facts(&scenario, &[LinkId(0)], 1000);
            (facts.bottleneck.expect("a line").bits_per_second(), facts.queue)
        })
    };
    // 100 cells of 53 B at 10 Mbit/s.
    let port = (10_000_000, Some(Duration::from_micros(4240)));
    assert_eq!(of("unlimited"), [port; 2]);
    assert_eq!(of("10 Mbit/s"), [port; 2]);
    assert_eq!(of("2 Mbit/s"), [(2_000_000, None); 2]);
}

/// Where two lines are equally slow, packets wait for the first one on the way; on the way back the numbers of the links fall.
#[test]
fn of_equal_lines_the_first_on_the_path_is_the_bottleneck() {
    let link = |name: &str, between: &str, queue: u32| {
        format!(
            "[[links]]\nname = \"{name}\"\nbetween = {between}\nrate = \"2 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"{queue} packets\"\n"
        )
    };
    let links = [link("access", "[\"A\", \"R\"]", 10), link("sat", "[\"R\", \"B\"]", 20)].concat();
    let text = format!("name = \"t\"\n{links}[[flows]]\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"\n");
    let scenario = Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let (there, back) = flow_paths(&scenario, &scenario.flows[0]).expect("reachable");
    let of = |path: &[LinkId]| (facts(&scenario, path, 1000).bottleneck_link, facts(&scenario, path, 1000).queue);
    // A packet of 1000 B takes 4 ms.
    assert_eq!(of(&there), (Some(LinkId(0)), Some(Duration::from_millis(40))));
    assert_eq!(of(&back), (Some(LinkId(3)), Some(Duration::from_millis(80))));
}

#[test]
fn mean_rates_by_hand() {
    let with = |more: &str| {
        let text = format!(
            "name = \"t\"\n[[links]]\nname = \"l\"\nfrom = \"A\"\nto = \"B\"\nrate = \"20 Mbit/s\"\ndelay = \"1 ms\"\n{more}"
        );
        let scenario = Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let mean = mean_rate(&scenario.links[0].config).map(Rate::bits_per_second);
        let facts = mean_facts(&scenario, &[LinkId(0)], 1000);
        assert_eq!(facts.bottleneck.map(Rate::bits_per_second), mean);
        (mean, rate_range(&scenario.links[0].config))
    };
    assert_eq!(with(""), (Some(20_000_000), None));
    let phases = "rate = [\"40 Mbit/s\", \"60 Mbit/s\"]";
    assert_eq!(with(&format!("phases = {{ length = \"10 s\", {phases} }}")), (Some(50_000_000), None));
    // A tenth of the time is lost.
    let outage = "length = \"10 s\", outage = \"1 s\"";
    assert_eq!(with(&format!("phases = {{ {outage}, {phases} }}")), (Some(45_000_000), None));
    assert_eq!(with(&format!("phases = {{ {outage} }}")), (Some(18_000_000), None));
    let schedule = "schedule = [{ at = \"1 s\", rate = \"5 Mbit/s\" }]\n";
    assert_eq!(with(schedule), (Some(20_000_000), Some([5_000_000, 20_000_000])));
    // A second at 20 Mbit/s, three at 5.
    assert_eq!(with(&format!("{schedule}schedule_period = \"4 s\"")), (Some(8_750_000), None));
}

/// The queue at a port for cells is its buffer of 53 B each; a queue in bytes is as long as the line takes to send it.
#[test]
fn queues_in_cells_and_bytes() {
    let queue = |link: &str| {
        let text = format!(
            "name = \"t\"\n[[links]]\nname = \"l\"\nfrom = \"A\"\nto = \"B\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n{link}"
        );
        let scenario = Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        facts(&scenario, &[LinkId(0)], 1000).queue
    };
    // 1000 cells are 53 000 B, which take 424 ms.
    assert_eq!(queue("framing = \"aal5\"\natm.buffer = \"1000 cells\""), Some(Duration::from_millis(424)));
    assert_eq!(queue("framing = \"aal5\""), None);
    assert_eq!(queue("queue = \"5 kB\""), Some(Duration::from_millis(40)));
    assert_eq!(queue("queue = \"unlimited\""), None);
}

/// A path over boxes has the links of their tunnel once, between the legs, in both directions.
#[test]
fn a_tunnel_lies_between_the_legs() {
    let link = |one: &str, other: &str| {
        format!(
            "[[links]]\nname = \"{one}{other}\"\nbetween = [\"{one}\", \"{other}\"]\nrate = \"1 Mbit/s\"\ndelay = \"9 ms\"\n"
        )
    };
    let links = [link("A", "N"), link("N", "F"), link("F", "B")].concat();
    let rest = "[[gateways]]\nname = \"box\"\nshape = \"split\"\nnear = \"N\"\nfar = \"F\"\n\
                [[flows]]\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"\n";
    let scenario = Scenario::parse(&format!("name = \"t\"\n{links}{rest}"), "t.toml", &[])
        .unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(legs(&scenario.flows[0]).len(), 2);
    let (there, back) = flow_paths(&scenario, &scenario.flows[0]).expect("reachable");
    assert_eq!((numbers(&there), numbers(&back)), (vec![0, 2, 4], vec![5, 3, 1]));
}

/// Parts of the path A, C, D, B, and what takes their place at E, which it does not pass.
#[test]
fn parts_of_a_path() {
    let scenario = scenario("A C 1\nC D 1\nD B 1\nA E 1\nE B 1\nA X 1");
    let path: Path = [0, 1, 2].map(LinkId).to_vec();
    let node = |name| scenario.node(name).expect("a node");
    let up_to = |at| up_to(&scenario, path.clone(), node(at), node("A")).map(|path| numbers(&path));
    assert_eq!([up_to("C"), up_to("D"), up_to("E")], [Some(vec![0]), Some(vec![0, 1]), Some(vec![3])]);
    let from_on = |at| from_on(&scenario, path.clone(), node(at), node("B")).map(|path| numbers(&path));
    assert_eq!(
        [from_on("C"), from_on("D"), from_on("E"), from_on("X")],
        [Some(vec![1, 2]), Some(vec![2]), Some(vec![4]), None]
    );
}
