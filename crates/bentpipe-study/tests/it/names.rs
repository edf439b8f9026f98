//! Names of entries under `--set`.

use bentpipe_study::scenario::{NodeId, Scenario};

/// An entry that `--set` replaces keeps its name, unless the new value has one.
#[test]
fn a_replaced_entry_keeps_its_name() {
    let text = "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n\
                [[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"\n";
    let set = |key: &str, value: &str| {
        let sets = [(key.to_owned(), value.to_owned())];
        Scenario::parse(text, "t.toml", &sets).unwrap_or_else(|errors| panic!("{errors}"))
    };
    let flow = "{ from = \"B\", to = \"A\", greedy = true }";
    for key in ["flows.data", "flows.0"] {
        let changed = set(key, flow);
        assert_eq!((changed.flows[0].name.as_str(), changed.flows[0].from), ("data", NodeId(1)));
    }
    assert_eq!(set("flows.data", &flow.replace("from", "name = \"other\", from")).flows[0].name, "other");
    let link = "{ between = [\"A\", \"B\"], rate = \"2 Mbit/s\", delay = \"1 ms\" }";
    assert_eq!(set("links.sat", link).links[0].name, "sat/forward");
}

/// `--set` takes the name that an unnamed flow gets.
#[test]
fn an_unnamed_flow_answers_to_its_default_name() {
    let text = "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n\
                [[flows]]\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"\n";
    let sets = [("flows.flow-1.from".to_owned(), "B".to_owned()), ("flows.flow-1.to".to_owned(), "A".to_owned())];
    let scenario = Scenario::parse(text, "t.toml", &sets).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!((scenario.flows[0].name.as_str(), scenario.flows[0].from), ("flow-1", NodeId(1)));
}
