//! Text of a user: each is a scenario or a list of mistakes, and a scenario that is written out reads back as itself.

use bentpipe_study::scenario::Scenario;

/// Any bytes; what is not UTF-8 is no file that an editor writes.
pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Scenario::parse(text, "fuzz.toml", &[]) {
        Ok(scenario) => {
            let written = scenario.to_toml();
            let again = Scenario::parse(&written, "again.toml", &[]).unwrap_or_else(|errors| {
                panic!("what is written cannot be read:\n{}\n{written}", errors.render(false))
            });
            assert_eq!(again, scenario, "{written}");
            for variant in scenario.variant_names() {
                scenario.with_variant(variant).expect("one of its own names");
            }
        }
        Err(errors) => {
            assert!(!errors.0.is_empty(), "refused without a reason");
            let _ = errors.render(false);
        }
    }
}
