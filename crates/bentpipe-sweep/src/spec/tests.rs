use super::*;

const SCENARIO: &str = "name = \"t\"\nseed = 5\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"2 Mbit/s\"\n\
    delay = \"250 ms\"\n[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"100 kB\"\n";

fn parse(text: &str) -> Result<Spec, ScenarioErrors> {
    Spec::parse(text, "sweeps/t.toml", &|name| match name {
        "small" => Ok(Base { text: SCENARIO.to_owned(), name: "small.toml".to_owned(), settings: Vec::new() }),
        other => Err(format!("`{other}` cannot be read")),
    })
}

fn spec(rest: &str) -> Spec {
    parse(&format!("scenario = \"small\"\n{rest}")).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Line, key and message of each mistake, and the expected value.
fn mistakes(rest: &str) -> Vec<(usize, String, String, String)> {
    let errors = parse(&format!("scenario = \"small\"\n{rest}")).expect_err("a mistake");
    let all = errors.0.into_iter();
    all.map(|error| {
        assert_eq!(error.source, "sweeps/t.toml", "{error}");
        (error.line, error.key, error.message, error.expected.unwrap_or_default())
    })
    .collect()
}

fn one(rest: &str) -> (usize, String, String, String) {
    let mut all = mistakes(rest);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[test]
fn defaults() {
    let spec = spec("");
    assert_eq!((spec.name.as_str(), spec.seed, spec.repetitions, spec.stop), ("t", 5, 20, None));
    assert_eq!((spec.candidates.len(), spec.candidates[0].name.as_str(), spec.baseline), (1, "scenario", 0));
    assert_eq!((spec.axes.len(), spec.design), (0, Design::Grid));
}

#[test]
fn a_whole_file() {
    let spec = spec(
        "variants = [\"sack\", \"newreno\"]\nbaseline = \"newreno\"\nseed = 9\nrepetitions = 100\noutput = \"out\"\n\
         [set]\n\"links.sat.delay\" = \"40 ms\"\nflows.data.bytes = \"1 MB\"\n\
         [[axes]]\nkey = \"links.sat.loss\"\nvalues = [\"0 %\", 0.01]\n\
         [[axes]]\nkey = \"links.sat.rate\"\nfrom = \"1 Mbit/s\"\nto = \"4 Mbit/s\"\ncount = 3\nscale = \"log\"\n\
         [stop]\ntolerance = \"2 %\"\nmin = 8\n",
    );
    assert_eq!((spec.seed, spec.repetitions, spec.baseline, spec.output.as_deref()), (9, 100, 1, Some("out")));
    assert_eq!(spec.stop, Some(Stop { tolerance: crate::stop::Tolerance::Share(0.02), min: 8 }));
    let values = |axis: &Axis| match &axis.values {
        Values::List(list) => list.clone(),
        Values::Between(_) => panic!("a list"),
    };
    assert_eq!(values(&spec.axes[0]), ["0 %", "0.01"]);
    assert_eq!(values(&spec.axes[1]), ["1 Mbit/s", "2 Mbit/s", "4 Mbit/s"]);
    let sets = spec.sets(&["0 %".to_owned(), "2 Mbit/s".to_owned()]);
    let sets: Vec<_> = sets.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(
        sets,
        ["links.sat.delay=40 ms", "flows.data.bytes=1 MB", "links.sat.loss=0 %", "links.sat.rate=2 Mbit/s"]
    );
    assert_eq!(spec.scenarios(&["0 %".to_owned(), "2 Mbit/s".to_owned()]).expect("they fit").len(), 2);
}

/// The scenario's flow ends, but not with these values.
#[test]
fn what_is_compared_follows_from_the_values() {
    assert_eq!(spec("").measure, Measure::SlowestTimeS);
    assert_eq!(spec("[set]\nflows.data.greedy = true\n").measure, Measure::GoodputBitS);
    let axis = "[[axes]]\nkey = \"flows.data.greedy\"\nvalues = [{ duration = \"9 s\" }, { duration = \"20 s\" }]\n";
    assert_eq!(spec(axis).measure, Measure::GoodputBitS);
}

/// A scenario refuses a bare 1 as a probability.
#[test]
fn a_range_may_end_at_certainty() {
    let ends = |from: &str, to: &str| {
        let axis = format!("[[axes]]\nkey = \"links.sat.loss\"\nfrom = \"{from}\"\nto = \"{to}\"\ncount = 2\n");
        let spec = spec(&axis);
        let loss =
            |value: &str| spec.scenarios(&[value.to_owned()]).expect("it fits")[0].links[0].config.good.packet.get();
        let Values::List(values) = &spec.axes[0].values else { panic!("a list") };
        values.iter().map(|value| loss(value)).collect::<Vec<_>>()
    };
    assert_eq!((ends("90 %", "100 %"), ends("100 %", "0 %")), (vec![0.9, 1.0], vec![1.0, 0.0]));
}

#[test]
fn mistakes_have_their_place() {
    let (line, key, message, expected) = one("[[axes]]\nkey = \"links.sat.los\"\nvalues = [\"1 %\", \"2 %\"]\n");
    assert_eq!((line, key.as_str()), (3, "links.sat.los"));
    assert!(message.contains("no key `los`") && expected.contains("loss"), "{message} {expected}");
    // The second value is the wrong one.
    let (line, key, message, _) = one("[[axes]]\nkey = \"links.sat.loss\"\nvalues = [\n\"1 %\",\n\"2 s\",\n]\n");
    assert_eq!((line, key.as_str()), (6, "links.sat.loss"));
    assert!(message.contains("not a unit of probability"), "{message}");
    let (line, key, _, expected) = one("[set]\n\"links.sat.delay\" = 40\n");
    assert_eq!((line, key.as_str()), (3, "links.sat.delay"));
    assert!(expected.contains("a duration"), "{expected}");
    let (line, key, message, _) = one("variants = [\"sack\", \"nwreno\"]\n");
    assert_eq!((line, key.as_str()), (2, "variants"));
    assert!(message.contains("nwreno"), "{message}");
    let (line, _, message, expected) = one("variants = [\"sack\"]\nbaseline = \"reno\"\n");
    assert_eq!((line, message.as_str(), expected.as_str()), (3, "nothing is called \"reno\"", "one of \"sack\""));
    let (_, key, message, _) = one("[[axes]]\nkey = \"seed\"\nvalues = [1, 2]\n");
    assert!(key == "axes.key" && message.contains("draws its seeds"), "{key} {message}");
    let (line, key, ..) = one("[stop]\ntolerance = \"0 s\"\n");
    assert_eq!((line, key.as_str()), (3, "stop.tolerance"));
    let (_, _, message, expected) = one("[stop]\ntolerance = \"1 Mbit/s\"\n");
    assert!(message.contains("not in the unit of") && expected.contains("time"), "{message} {expected}");
}

#[test]
fn a_scenario_is_no_sweep_and_a_sweep_no_scenario() {
    let errors = parse(SCENARIO).expect_err("a scenario");
    let [error] = errors.0.as_slice() else { panic!("one mistake: {errors}") };
    assert_eq!((error.line, error.message.as_str()), (3, "this is a scenario, not a sweep file"));
    assert!(error.help.as_deref().is_some_and(|help| help.contains("scenario = \"FILE\"")), "{error}");
    let errors = Scenario::parse("seed = 3\nscenario = \"geo\"\n", "sweep.toml", &[]).expect_err("a sweep");
    let [error] = errors.0.as_slice() else { panic!("one mistake: {errors}") };
    assert_eq!((error.line, error.message.as_str()), (2, "this is a sweep file, not a scenario"));
    // What lacks all of them is a document of the wanted kind with a mistake.
    let errors = Scenario::parse("name = \"x\"\n", "x.toml", &[]).expect_err("no links");
    let lacks_links = |error: &&ScenarioError| error.message == "the scenario needs `links`";
    let error = errors.0.iter().find(lacks_links).unwrap_or_else(|| panic!("{errors}"));
    assert_eq!(error.expected.as_deref(), Some("at least one [[links]]"));
}

#[test]
fn transports_are_variants() {
    let (line, key, message, expected) = one("[[transports]]\nname = \"quic\"\n");
    assert_eq!((line, key.as_str()), (2, "transports"));
    assert!(message.contains("`variants`") && expected.contains("variants = ["), "{message} {expected}");
    let spec = spec("variants = [\"sack\", \"mine\"]\n[set.variants.mine]\nbase = \"sack\"\ninitial_window = 4\n");
    assert_eq!(spec.candidates[1].name, "mine");
}

#[test]
fn impossible_files() {
    let message = |rest: &str| one(rest).2;
    assert!(message("design = \"latin-hypercube\"\n").contains("needs `points`"));
    assert!(message("points = 10\n").contains("only for a latin hypercube"));
    assert!(message("[[axes]]\nkey = \"links.sat.loss\"\n").contains("needs `values`"));
    assert!(message("[[axes]]\nkey = \"links.sat.loss\"\nfrom = \"0 %\"\nto = \"1 %\"\n").contains("needs `count`"));
    assert!(message("variants = [\"sack\", \"sack\"]\n").contains("there twice"));
    assert!(message("variants = []\n").contains("is empty"));
    let axis = "[[axes]]\nkey = \"links.sat.loss\"\nvalues = [\"1 %\"]\n";
    assert!(message(&format!("{axis}{axis}")).contains("another axis"));
    let other = "[[axes]]\nkey = \"links.sat.delay\"\nvalues = [\"1 ms\", \"2 ms\"]\n";
    assert!(message(&format!("design = \"list\"\n{axis}{other}")).contains("1 values and `links.sat.delay` 2"));
    let many = "repetitions = 1000000\n[[axes]]\nkey = \"links.sat.delay\"\nvalues = [\"1 ms\", \"2 ms\"]\n";
    assert!(message(many).contains("are 2000000 runs"));
    assert!(message("repetition = 3\n").contains("no key `repetition`"));
    let missing = parse("scenario = \"absent\"\n").expect_err("no file");
    assert!(missing.0[0].message.contains("`absent`") && missing.0[0].line == 1, "{missing}");
}

/// Thousands of axes took minutes, for nothing: each was tried with the values of all others.
#[test]
fn there_are_as_many_axes_and_settings_as_can_be_checked() {
    let axes = |count: usize| -> String {
        let axis = |n: usize| format!("[[axes]]\nkey = \"variants.v{n}.base\"\nvalues = [\"sack\"]\n");
        (0..count).map(axis).collect()
    };
    assert_eq!(spec(&axes(64)).axes.len(), 64);
    // Not one mistake for each axis, and at the first that is too many: three lines each, after that of the scenario.
    let (line, key, message, expected) = one(&axes(5000));
    assert_eq!((line, key.as_str(), message.as_str()), (2 + 64 * 3, "axes.64", "the sweep has 5000 axes"));
    assert!(expected.starts_with("at most 64 axes"), "{expected}");
    let set = |count: usize| -> String {
        let keys: String = (0..count).map(|n| format!("variants.v{n}.base = \"sack\"\n")).collect();
        format!("[set]\n{keys}")
    };
    assert_eq!(spec(&set(256)).settings.len(), 256);
    let (line, key, message, expected) = one(&set(5000));
    assert_eq!((line, key.as_str(), message.as_str()), (2, "set", "`set` sets 5000 keys"));
    assert!(expected.starts_with("at most 256 keys"), "{expected}");
}

/// From 1 to 3 in six steps: 1, 1.4, 1.8, 2.2, 2.6 and 3. A list keeps them all, because its axes go together.
#[test]
fn a_grid_runs_each_point_once() {
    let values = |design: &str, values: &str| {
        let text = format!("design = \"{design}\"\n[[axes]]\nkey = \"flows.data.count\"\n{values}\n");
        match &spec(&text).axes[0].values {
            Values::List(list) => list.join(" "),
            Values::Between(_) => panic!("a list"),
        }
    };
    let range = "from = 1\nto = 3\ncount = 6";
    assert_eq!(values("grid", range), "1 2 3");
    assert_eq!(values("list", range), "1 1 2 2 3 3");
    assert_eq!(values("grid", "values = [3, 1, 3]"), "3 1");
}

/// As many points and runs as are allowed, and one more.
#[test]
fn amounts_end_where_they_say() {
    let delays =
        |count: u32| format!("[[axes]]\nkey = \"links.sat.delay\"\nfrom = \"1 ms\"\nto = \"9 s\"\ncount = {count}\n");
    let losses =
        |count: u32| format!("[[axes]]\nkey = \"links.sat.loss\"\nfrom = \"0 %\"\nto = \"1 %\"\ncount = {count}\n");
    assert_eq!(spec("repetitions = 1000000\n").repetitions, 1_000_000);
    let (_, _, message, expected) = one(&format!("repetitions = 1\n{}{}", delays(101), losses(1000)));
    assert_eq!((message.as_str(), expected.as_str()), ("the axes make 101000 points", "at most 100000 points"));
}

/// The caller's settings come first, so that those of the file replace them.
#[test]
fn settings_of_a_file_follow_those_of_its_scenario() {
    let setting = |key: &str, value: &str| Setting { key: key.to_owned(), value: value.to_owned() };
    let find = |_: &str| {
        let settings = vec![setting("links.sat.delay", "1 ms")];
        Ok(Base { text: SCENARIO.to_owned(), name: "small.toml".to_owned(), settings })
    };
    let text = "scenario = \"small\"\n[set]\n\"links.sat.delay\" = \"40 ms\"\n";
    let spec = Spec::parse(text, "t.toml", &find).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(spec.settings, [setting("links.sat.delay", "1 ms"), setting("links.sat.delay", "40 ms")]);
    let delay = spec.scenarios(&[]).expect("they fit")[0].links[0].config.delay;
    assert_eq!(delay.as_nanos(), 40_000_000);
}

/// A text that looks like a number stays a text.
#[test]
fn texts_keep_their_quotes_where_they_need_them() {
    let spec = spec("[[axes]]\nkey = \"description\"\nvalues = [\"5\", \"five\"]\n");
    let Values::List(values) = &spec.axes[0].values else { panic!("a list") };
    assert_eq!(*values, ["\"5\"", "five"]);
    assert_eq!(spec.scenarios(&values[..1]).expect("it is a text")[0].description, "5");
}

/// The wrong end of a range has its own place.
#[test]
fn the_ends_of_a_range_have_their_places() {
    let range = |from: &str, to: &str| {
        let (line, key, ..) =
            one(&format!("[[axes]]\nkey = \"links.sat.mtu\"\nfrom = \"{from}\"\nto = \"{to}\"\ncount = 2\n"));
        (line, key)
    };
    assert_eq!(range("1 B", "1500 B"), (4, "links.sat.mtu".to_owned()));
    assert_eq!(range("1500 B", "70000 B"), (5, "links.sat.mtu".to_owned()));
}

#[test]
fn endless_flows_are_compared_by_rates() {
    let find = |_: &str| {
        let text = SCENARIO.replace("bytes = \"100 kB\"", "greedy = true");
        Ok(Base { text, name: "small.toml".to_owned(), settings: Vec::new() })
    };
    let read = |tolerance: &str| {
        let text = format!("scenario = \"small\"\n[stop]\ntolerance = \"{tolerance}\"\n");
        Spec::parse(&text, "t.toml", &find).map(drop).map_err(|errors| errors.0[0].expected.clone().unwrap_or_default())
    };
    assert_eq!(read("50 ms"), Err("a rate or a share: no flow ends, so goodput is compared".to_owned()));
    assert_eq!((read("50 kbit/s"), read("1 %")), (Ok(()), Ok(())));
}

/// A folder with the name of a shipped scenario does not hide it.
#[test]
fn a_folder_is_no_scenario() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("small")).expect("writable");
    std::fs::write(folder.path().join("s.toml"), "scenario = \"small\"\n").expect("writable");
    let spec = Spec::load(&folder.path().join("s.toml"), &|name| (name == "small").then_some(SCENARIO));
    assert_eq!(spec.unwrap_or_else(|errors| panic!("{errors}")).scenario_name, "small.toml");
}
