use std::cell::RefCell;
use std::collections::BTreeMap;

use super::*;
use crate::spec::Base;

const SCENARIO: &str = "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"A\", \"B\"]\nrate = \"2 Mbit/s\"\n\
    delay = \"250 ms\"\n[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"100 kB\"\n";

fn plan(rest: &str) -> Plan {
    let base = Base { text: SCENARIO.to_owned(), name: "t.toml".to_owned(), settings: Vec::new() };
    let text = format!("scenario = \"t\"\n{rest}");
    Plan::new(Spec::parse(&text, "s.toml", &|_| Ok(base.clone())).unwrap_or_else(|errors| panic!("{errors}")))
}

/// 300 points in two pieces: half of them random, with a rule that may stop them early.
fn many() -> Plan {
    plan(
        "variants = [\"sack\", \"newreno\"]\nrepetitions = 30\n[stop]\ntolerance = \"50 ms\"\nmin = 6\n\
         [[axes]]\nkey = \"links.sat.loss\"\nvalues = [\"0 %\", \"1 %\"]\n\
         [[axes]]\nkey = \"links.sat.delay\"\nfrom = \"1 ms\"\nto = \"300 ms\"\ncount = 150\n",
    )
}

/// A value for each run of every second key, and a spread that decides how soon the rule stops.
fn some(key: &Key) -> Option<Option<f64>> {
    key.scenario.is_multiple_of(2).then_some(Some((key.seed % 7) as f64 * (key.scenario % 5) as f64 * 0.02))
}

#[test]
fn a_survey_counts_what_a_sweep_would_find() {
    let all = |key: &Key| some(key).or(Some(Some(1.0)));
    let none = |_: &Key| None;
    for known in [&none as &dyn Fn(&Key) -> Option<Option<f64>>, &some, &all] {
        let mut literal = many();
        while !literal.is_waiting() && !literal.is_finished() {
            literal.next(known).expect("the points fit");
        }
        let told = RefCell::new(Vec::new());
        let found = many().survey(2, known, &|planned| told.borrow_mut().push(planned)).expect("the points fit");
        assert_eq!(found, literal.progress());
        assert_eq!(told.into_inner(), [256, 300]);
    }
    // The cases differ.
    let done = |known: &dyn Fn(&Key) -> Option<Option<f64>>| many().survey(1, known, &|_| {}).expect("they fit");
    let [nothing, part, everything] = [done(&none), done(&some), done(&all)];
    assert_eq!((nothing.done, nothing.points_done, everything.points_done), (0, 0, 300));
    assert!(
        part.points_done > 0 && part.points_done < 300 && part.done > 0 && part.at_most < nothing.at_most,
        "{part:?}"
    );
}

#[test]
fn a_survey_names_the_first_point_that_does_not_fit() {
    // Each value fits with the first one of the other axis, but a queue as a time needs a rate.
    let wrong = plan(
        "[[axes]]\nkey = \"links.sat.queue\"\nvalues = [\"50 packets\", \"60 ms\"]\n\
         [[axes]]\nkey = \"links.sat.rate\"\nvalues = [\"2 Mbit/s\", \"unlimited\"]\n",
    );
    let mut literal = Plan::new(wrong.spec().clone());
    let expected = loop {
        match literal.next(|_| None) {
            Ok(_) => assert!(!literal.is_waiting(), "a point that does not fit"),
            Err(error) => break error.to_string(),
        }
    };
    let found = wrong.survey(2, |_| None, &|_| {}).expect_err("a point that does not fit").to_string();
    assert_eq!(found, expected);
    assert!(found.starts_with("links.sat.queue = 60 ms, links.sat.rate = unlimited:\n"), "{found}");
}

#[test]
fn a_survey_reads_each_run_once() {
    let asked = RefCell::new(BTreeMap::new());
    let known = |key: &Key| {
        *asked.borrow_mut().entry(*key).or_insert(0) += 1;
        Some(Some(1.0))
    };
    plan("repetitions = 3\n[[axes]]\nkey = \"links.sat.loss\"\nvalues = [\"1 %\", \"2 %\"]\n")
        .survey(1, known, &|_| {})
        .expect("they fit");
    assert_eq!(asked.into_inner().values().collect::<Vec<_>>(), [&1; 6]);
}

/// The row of a job with this value.
fn row(job: &Job, value: Option<f64>) -> Row {
    Row { key: job.key, value, ..crate::row::tests::row(1) }
}

/// If every seed gives the same run, there is one; a single candidate that draws needs all seeds for all.
#[test]
fn without_draws_one_run_is_enough() {
    let mut same = plan("repetitions = 5\nvariants = [\"sack\", \"newreno\"]\n");
    for _ in 0..2 {
        let job = same.next(|_| None).expect("the point fits").expect("a run");
        same.completed(&job, &row(&job, Some(1.0)), |_| None);
    }
    assert!(same.is_finished());
    assert_eq!((same.repetitions(0), same.progress().done, same.progress().at_most), (Some(1), 2, 2));
    let mut drawn = plan("repetitions = 5\nvariants = [\"sack\", \"quic-cubic\"]\n");
    assert_eq!(drawn.next_batch(100, |_| None).expect("the point fits").len(), 5);
    assert_eq!(drawn.progress().at_most, 10);
}

/// Two candidates at a point that needs one run of each and at one that needs five.
#[test]
fn a_survey_counts_one_run_where_nothing_is_drawn() {
    let both = plan(
        "repetitions = 5\nvariants = [\"sack\", \"newreno\"]\n[[axes]]\nkey = \"links.sat.loss\"\nvalues = [\"0 %\", \"1 %\"]\n",
    );
    let found = both.survey(1, |_| None, &|_| {}).expect("they fit");
    assert_eq!((found.done, found.at_most, found.points_done), (0, 2 + 10, 0));
}

#[test]
fn a_batch_has_one_candidate() {
    let mut plan = plan("repetitions = 3\nvariants = [\"sack\", \"newreno\"]\n[set]\nlinks.sat.loss = \"1 %\"\n");
    let batches = [100, 2, 100].map(|max| {
        let jobs = plan.next_batch(max, |_| None).expect("the point fits");
        jobs.iter().map(|job| (job.candidate, job.repetition)).collect::<Vec<_>>()
    });
    assert_eq!(batches, [vec![(0, 0), (0, 1), (0, 2)], vec![(1, 0), (1, 1)], vec![(1, 2)]]);
}

/// The values of runs that are done already count for the stopping rule: six equal ones are known well enough.
#[test]
fn known_runs_may_be_enough() {
    let text = "repetitions = 30\n[stop]\ntolerance = \"50 ms\"\nmin = 6\n[set]\nlinks.sat.loss = \"1 %\"\n";
    let mut plan = plan(text);
    assert!(plan.next(|_| Some(Some(3.0))).expect("the point fits").is_none());
    assert_eq!((plan.repetitions(0), plan.progress().at_most), (Some(6), 6));
}
