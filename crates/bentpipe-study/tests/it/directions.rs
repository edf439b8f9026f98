//! Links with settings of their own in a direction: settings without effect are reported.

use bentpipe_study::scenario::Scenario;

use crate::mistakes::{SOUND, errors};

/// The sound scenario with settings of both directions.
fn with_directions() -> String {
    SOUND.replacen(
        "[[flows]]",
        "[links.forward]\nrate = \"3 Mbit/s\"\n\n[links.backward]\nrate = \"1 Mbit/s\"\n\n[[flows]]",
        1,
    )
}

#[test]
fn a_key_that_both_directions_replace() {
    let text = with_directions();
    let (_, warnings) = Scenario::parse_with_warnings(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    insta::assert_snapshot!(warnings);
    insta::assert_snapshot!(errors(&text, &[("links.sat.rate", "5 Mbit/s")]));
    // A part of a table, too.
    let queues = text
        .replace("1 Mbit/s\"\n", "1 Mbit/s\"\nqueue = \"5 packets\"\n")
        .replace("3 Mbit/s\"\n", "3 Mbit/s\"\nqueue = \"5 packets\"\n");
    let errors = errors(&queues, &[("links.sat.queue.limit", "50 packets")]);
    assert_eq!(errors.0.len(), 1, "{errors}");
    assert!(errors.0[0].message.starts_with("`links.sat.queue` has no effect"), "{errors}");
    // A trace takes the place of a rate.
    let trace = text.replace("rate = \"3 Mbit/s\"", "rate_trace = [1, 2, 3]");
    let (_, warnings) =
        Scenario::parse_with_warnings(&trace, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(warnings.0.len(), 1, "{warnings}");
}

#[test]
fn an_override_that_one_direction_replaces() {
    let text = with_directions().replace("[links.backward]\nrate = \"1 Mbit/s\"\n", "");
    let read = |sets: &[(&str, &str)]| {
        let sets: Vec<_> = sets.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        Scenario::parse_with_warnings(&text, "t.toml", &sets).unwrap_or_else(|errors| panic!("{errors}"))
    };
    assert!(read(&[]).1.0.is_empty(), "it is what directions are for");
    assert!(read(&[("links.sat.delay", "5 ms")]).1.0.is_empty());
    insta::assert_snapshot!(read(&[("links.sat.rate", "5 Mbit/s")]).1);
}

#[test]
fn one_message_for_a_name_that_is_there_twice() {
    let again = "[[links]]\nname = \"sat\"\nbetween = [\"SN2\", \"SN3\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
    let errors = errors(&(SOUND.to_owned() + again), &[]);
    let [error] = &errors.0[..] else { panic!("{errors}") };
    assert_eq!((error.key.as_str(), error.line), ("links.sat.name", 19), "{errors}");
}

#[test]
fn the_directions_of_a_link_are_suggested() {
    let whole = Scenario::parse(SOUND, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).to_toml();
    let errors = errors(&whole, &[("links.sat.delay", "5 ms")]);
    assert_eq!(errors.0[0].help.as_deref(), Some("did you mean `sat/forward` or `sat/backward`?"), "{errors}");
}
