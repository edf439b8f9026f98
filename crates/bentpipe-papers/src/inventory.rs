//! A paper's items besides numbers and claims (topologies, mechanisms, experiments, decisions), and references for
//! each.
//!
//! Each study has a table, id -> [`Seen`]; [`rows`] turns it into rows, and [`check`] tests it against the paper and
//! the repository.
//!
//! The kind of the entry determines the verdict. An item shown by other rows, or compared with an expectation, has
//! their verdict. An item without a number is `built` and names the tests and scenarios that use it. An item without
//! any reference is `missing`.

use crate::finding::Finding;
use crate::lab::Lab;
use crate::published::{Paper, with};
use crate::request::ReproduceError;
use crate::{Row, Tally, Verdict};

/// References for an item.
pub(crate) enum Seen {
    /// It is implemented. These use it, and the text says how.
    Built(&'static [Shown], &'static str),
    /// It is implemented, and these runs report their results as text. The paper prints no number for them.
    Ran(fn(&Lab<'_>) -> Result<String, ReproduceError>),
    /// Runs whose result the paper describes without a number; compared with the item's `expected`.
    Compared(fn(&Lab<'_>) -> Result<Finding, ReproduceError>),
    /// These rows show it; it has the worst of their verdicts.
    Rows(&'static [&'static str]),
    /// Shown by the rows whose id begins with this one and a slash; it has the worst of their verdicts.
    Parts(&'static str),
    /// Our decision; the text says where it is implemented, or the final choice.
    Decision(&'static str),
}

/// A user of a mechanism or a topology.
pub(crate) enum Shown {
    /// The shipped scenario with this name.
    Scenario(&'static str),
    /// A shipped scenario with this key set to this value, as by `--set`.
    Setting(&'static str, &'static str, &'static str),
    /// A test: its crate without the prefix `bentpipe-`, and its function.
    Test(&'static str, &'static str),
    /// A packet script of `crates/bentpipe-script/tests/scripts`, without its extension.
    Script(&'static str),
    /// These rows.
    Rows(&'static [&'static str]),
}

impl Shown {
    fn words(&self) -> String {
        match self {
            Shown::Scenario(name) => format!("scenarios/{name}.toml"),
            Shown::Setting(name, key, value) => format!("scenarios/{name}.toml with {key} = {value}"),
            Shown::Test(of, name) => format!("test {name} (bentpipe-{of})"),
            Shown::Script(name) => format!("packet script {name}.pkt"),
            Shown::Rows(ids) => ids.join(", "),
        }
    }
}

fn built(by: &[Shown], words: &str) -> String {
    let by = by.iter().map(Shown::words).collect::<Vec<_>>().join(", ");
    if words.is_empty() { by } else { format!("{by}; {words}") }
}

/// Id, text and details of the items that a table of [`Seen`] has to cover, in order.
fn asked(paper: &Paper) -> impl Iterator<Item = (&str, &str, Option<&str>)> {
    let items = paper.items.iter().map(|i| (i.id.as_str(), i.text.as_str(), i.detail.as_deref()));
    items.chain(paper.decisions.iter().map(|d| (d.id.as_str(), d.text.as_str(), d.reason.as_deref())))
}

/// A row for each item and each decision of the paper; `others` are the rows of tables, figures and claims.
pub(crate) fn rows(
    paper: &Paper,
    seen: &[(&str, Seen)],
    lab: &Lab<'_>,
    others: &[Row],
) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = Vec::new();
    for ((id, text, more), (known, seen)) in asked(paper).zip(seen) {
        debug_assert_eq!(id, *known, "a test checks that both lists agree");
        let row = Row::new(id, with(text, more), None, None, "");
        rows.push(match seen {
            Seen::Built(by, words) => row.judged(Verdict::Built, built(by, words)),
            Seen::Ran(runs) => row.judged(Verdict::Built, format!("run, no number printed: {}", runs(lab)?)),
            Seen::Compared(runs) => compared(paper, row, &runs(lab)?),
            Seen::Rows(ids) => row.judged(worst(ids, others), format!("shown by {}", ids.join(", "))),
            Seen::Parts(of) => {
                let parts: Vec<_> = others.iter().filter(|row| is_part(&row.id, of)).collect();
                let verdict = parts.iter().map(|row| row.verdict).max().unwrap_or(Verdict::Missing);
                row.judged(verdict, format!("shown by the rows {of}/…: {}", Tally::of(parts)))
            }
            Seen::Decision(words) => row.judged(Verdict::Decision, *words),
        });
    }
    Ok(rows)
}

/// Compares with the item's `expected`.
fn compared(paper: &Paper, row: Row, finding: &Finding) -> Row {
    let expected = paper.items.iter().find(|item| item.id == row.id).and_then(|item| item.expected.as_ref());
    let expected = expected.expect("a test checks the table against the paper");
    let ours = finding.number.is_finite().then_some(finding.number);
    Row::new(row.id, row.item, expected.value, ours, &expected.unit)
        .within(expected.low, expected.high)
        .judged(finding.within(expected.bounds()), format!("{}; allowed: {}", finding.note, expected.derivation))
}

fn is_part(id: &str, of: &str) -> bool {
    id.strip_prefix(of).is_some_and(|rest| rest.starts_with('/'))
}

/// The worst verdict of these rows; `Missing` if one of them does not exist.
fn worst(ids: &[&str], others: &[Row]) -> Verdict {
    let verdict = |id: &&str| others.iter().find(|row| row.id == **id).map_or(Verdict::Missing, |row| row.verdict);
    ids.iter().map(verdict).max().unwrap_or(Verdict::Missing)
}

#[cfg(test)]
pub(crate) use checks::check;

#[cfg(test)]
mod checks {
    use std::path::{Path, PathBuf};

    use bentpipe_study::scenario::Scenario;

    use super::*;
    use crate::published::PAPERS;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// Checks a table against its paper and the repository: it has each item and each decision once, in the paper's order
    /// and with the right kind, and all tests, files and rows that it names exist.
    pub(crate) fn check(paper: &Paper, seen: &[(&str, Seen)]) {
        let asked: Vec<_> = asked(paper).map(|(id, _, _)| id).collect();
        let answered: Vec<_> = seen.iter().map(|(id, _)| *id).collect();
        assert_eq!(asked, answered);
        for (id, seen) in seen {
            let decision = id[1..].starts_with("-Q");
            assert_eq!(matches!(seen, Seen::Decision(_)), decision, "{id}: `Seen::Decision` is for decisions only");
            match seen {
                Seen::Built(by, words) => {
                    assert!(
                        by.iter().any(|by| !matches!(by, Shown::Rows(_))),
                        "{id}: no test and no scenario is named"
                    );
                    by.iter().for_each(|by| exists(id, by));
                    mentions(id, words);
                }
                Seen::Rows(ids) => rows_exist(id, ids),
                Seen::Parts(of) => assert!(asked.contains(of), "{id}"),
                Seen::Decision(words) => {
                    assert!(!words.is_empty(), "{id}");
                    mentions(id, words);
                }
                Seen::Compared(_) => {
                    let item = paper.items.iter().find(|item| item.id == *id).expect("an item of the paper");
                    assert!(item.expected.is_some(), "{id}: nothing to compare with in expected.toml");
                }
                Seen::Ran(_) => {}
            }
        }
        for item in paper.items.iter().filter(|item| item.expected.is_some()) {
            let seen = &seen.iter().find(|(id, _)| *id == item.id).expect("each item has an entry").1;
            assert!(matches!(seen, Seen::Compared(_)), "{}: the expectation is not compared with anything", item.id);
        }
    }

    fn rows_exist(id: &str, ids: &[&str]) {
        assert!(!ids.is_empty(), "{id}");
        let stem = |row: &str| row.split('/').next().unwrap_or_default().to_owned();
        let known =
            |row: &str| PAPERS.iter().any(|paper| paper.contents().iter().any(|(known, _)| *known == stem(row)));
        ids.iter().for_each(|row| assert!(known(row), "{id} is shown by {row}, which is not a row"));
    }

    fn exists(id: &str, shown: &Shown) {
        let parse = |name: &str, sets: &[(String, String)]| {
            let path = root().join("scenarios").join(format!("{name}.toml"));
            let text =
                std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{id}: {}: {error}", path.display()));
            let scenario = Scenario::parse(&text, &path.display().to_string(), sets);
            scenario.unwrap_or_else(|errors| panic!("{id}: {}", errors.render(false)))
        };
        match shown {
            Shown::Scenario(name) => drop(parse(name, &[])),
            Shown::Setting(name, key, value) => {
                let set = parse(name, &[((*key).to_owned(), (*value).to_owned())]);
                assert_ne!(set, parse(name, &[]), "{id}: {name} already has {key} = {value}");
            }
            Shown::Test(of, name) => {
                assert!(
                    has_test(&root().join("crates").join(format!("bentpipe-{of}")), name),
                    "{id}: no test {name} in {of}"
                );
            }
            Shown::Script(name) => {
                let path = root().join("crates/bentpipe-script/tests/scripts").join(format!("{name}.pkt"));
                assert!(path.is_file(), "{id}: {}", path.display());
            }
            Shown::Rows(ids) => rows_exist(id, ids),
        }
    }

    /// True if a Rust source below the folder has a `#[test]` with this name that is not ignored.
    fn has_test(folder: &Path, name: &str) -> bool {
        let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        entries.map(|entry| entry.expect("readable").path()).any(|path| match path.extension() {
            _ if path.is_dir() => path.file_name().is_some_and(|name| name != "target") && has_test(&path, name),
            Some(ending) if ending == "rs" => declares(&std::fs::read_to_string(&path).expect("text"), name),
            _ => false,
        })
    }

    fn declares(text: &str, name: &str) -> bool {
        let start = format!("fn {name}(");
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        lines.iter().enumerate().filter(|(_, line)| line.starts_with(&start)).any(|(n, _)| {
            let before = lines[..n].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
            let attributes: Vec<_> = before.collect();
            attributes.iter().any(|line| **line == "#[test]")
                && !attributes.iter().any(|line| line.starts_with("#[ignore"))
        })
    }

    /// Checks that the rows and files named in the text exist.
    fn mentions(id: &str, words: &str) {
        let ends = |c: char| c.is_whitespace() || ",;:()`\"".contains(c);
        for word in words.split(ends).map(|word| word.trim_end_matches('.')) {
            let mut parts = word.splitn(2, '-');
            let (letter, rest) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            if letter.len() == 1 && "TMAHS".contains(letter) && rest.len() >= 3 && "NMETFCQ".contains(&rest[..1]) {
                rows_exist(id, &[word]);
            }
            if !word.contains('*')
                && ["scenarios/", "docs/", "crates/", "studies/"].iter().any(|at| word.starts_with(at))
            {
                assert!(root().join(word).exists(), "{id} names {word}, which does not exist");
            }
        }
    }

    #[test]
    #[should_panic(expected = "no test none_of_that_name")]
    fn a_test_that_is_not_there_is_found_out() {
        exists("S-M01", &Shown::Test("study", "none_of_that_name"));
    }

    #[test]
    #[should_panic(expected = "stp already has seed = 1")]
    fn a_setting_that_changes_nothing_is_found_out() {
        exists("S-M01", &Shown::Setting("stp", "seed", "1"));
    }

    #[test]
    #[should_panic(expected = "scenarios/never.toml")]
    fn a_file_that_is_not_there_is_found_out() {
        mentions("S-M01", "as in scenarios/never.toml.");
    }

    #[test]
    fn a_function_is_a_test_by_its_attribute() {
        let text =
            "#[test]\n/// Doc.\nfn one() {}\n#[inline]\nfn two() {}\n#[test]\n#[ignore = \"long\"]\nfn three() {}";
        assert_eq!(["one", "two", "three", "on"].map(|name| declares(text, name)), [true, false, false, false]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::STP;
    use crate::request::Options;

    #[test]
    fn a_row_says_what_it_is_and_fares_as_the_worst_that_shows_it() {
        let judged = |id: &str, verdict| Row::new(id, "", None, None, "").judged(verdict, "");
        let others =
            [judged("S-T01", Verdict::Match), judged("S-C02", Verdict::Shape), judged("S-F01", Verdict::Built)];
        let options = Options::default();
        let lab = Lab::new(&options, &|_, _, _| ());
        let seen = [
            ("S-N01", Seen::Rows(&["S-T01", "S-C02", "S-F01"])),
            ("S-N02", Seen::Rows(&["S-T01", "S-C99"])),
            ("S-M01", Seen::Ran(|_| Ok("seen".to_owned()))),
            ("S-M02", Seen::Rows(&["S-F01"])),
            ("S-M03", Seen::Built(&[Shown::Scenario("stp"), Shown::Rows(&["S-C01"])], "so")),
            ("S-M04", Seen::Rows(&["S-T09"])),
        ];
        let rows = rows(&STP, &seen, &lab, &others).expect("nothing runs");
        let verdicts: Vec<_> = rows.iter().map(|row| row.verdict).collect();
        let names = verdicts.iter().map(|verdict| verdict.name()).collect::<Vec<_>>();
        assert_eq!(
            names,
            ["shape", "missing", "built", "built", "built", "missing"],
            "a row that does not exist counts as missing"
        );
        assert!(rows[0].item.ends_with("; error-prone satellite link, no contention"), "{}", rows[0].item);
        assert_eq!(rows[0].why, "shown by S-T01, S-C02, S-F01");
        assert_eq!(rows[4].why, "scenarios/stp.toml, S-C01; so");
    }
}
