//! The quotations in this repository, each against its RFC.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::check::{all, digests};
use super::digest::{Digest, Fault};
use super::sections::{divide, name, number, words};
use super::sources::{Quotation, find};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn quotations_are_verbatim() {
    let (checked, faults) = all(&root()).expect("the repository can be read");
    assert!(faults.is_empty(), "{} of {checked} quotations:\n{}", faults.len(), faults.join("\n"));
    // Should they no longer be found, nothing would be checked: there were 180 when this was written.
    assert!(checked > 150, "{checked}");
}

/// Digests of texts that nothing cites, or that differ from the text named in README.md.
#[test]
fn digests_are_those_of_the_readme() {
    let readme = fs::read_to_string(root().join("validation/rfc/README.md")).expect("it is there");
    let rows = readme.lines().filter_map(|line| {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [rfc, .., text] = cells[..] else { return None };
        Some((rfc.parse().ok()?, text.trim_matches('`').to_owned()))
    });
    let listed: BTreeSet<(u32, String)> = rows.collect();
    let have: BTreeSet<_> =
        digests(&root()).expect("they are whole").into_values().map(|digest| (digest.rfc, digest.text)).collect();
    assert_eq!(listed, have);
}

const TEXT: &str = "\
                          A PROTOCOL

   1.  Introduction
   1.1.  Terms
   2.  Specification
   Appendix A.  Examples

1.  Introduction

   Senders MUST wait. They are in a three-
   way handshake and/
   or gone.

1.1.  Terms

   A \"segment\" is `whole`:

   2.  is no section, for what stands in a list

RFC 9999                      A Protocol                   November 2026
Author                      Standards Track                     [Page 1]

   (3) nor is this one.

2.  Specification

   <SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK>. The receiver of a segment
   SHOULD answer it at once.

Appendix A.  Examples

   There are none here today.
";

#[test]
fn texts_are_divided_and_cleaned() {
    let sections = divide(TEXT);
    let numbers: Vec<_> = sections.iter().map(|(number, _)| name(number)).collect();
    assert_eq!(numbers, ["", "1", "1.1", "2", "A"]);
    let of = |at: usize| sections[at].1.join(" ");
    assert_eq!(of(1), "1 Introduction Senders MUST wait They are in a three-way handshake and/or gone");
    assert_eq!(of(2), "1.1 Terms A segment is whole 2 is no section for what stands in a list 3 nor is this one");
    assert_eq!(of(3).split(' ').nth(2), Some("<SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK>"));
    assert_eq!(words("a - b <- c"), ["a", "-", "b", "<-", "c"]);
    assert_eq!(words("set x <-\ny, out-\nof-order"), ["set", "x", "<-", "y", "out-of-order"]);
    assert_eq!(words("It MUST (MUST-21) be able, MUST-x (SHLD-\n17)."), ["It", "MUST", "be", "able", "MUST-x"]);
    assert_eq!(number("A.1").map(|number| name(&number)), Some("A.1".into()));
    assert_eq!((number("1..2"), number("0.1"), number("AB")), (None, None, None));
}

#[test]
fn one_word_makes_the_difference() {
    let digest = Digest::of(9999, TEXT);
    let check = |section: &str, text: &str| digest.check(&[number(section).expect("a number")], text);
    let altered = |words: &str, elsewhere: &[&str]| {
        Err(Fault::Altered(words.into(), elsewhere.iter().map(|&name| name.to_owned()).collect()))
    };
    assert_eq!(check("2", "The receiver of a segment SHOULD answer it at once."), Ok(()));
    assert_eq!(check("2", "The receiver of a segment SHOULD answer it in time."), altered("SHOULD answer it in", &[]));
    assert_eq!(check("2", "The receiver of a segment MUST answer it"), altered("of a segment MUST", &[]));
    assert_eq!(check("2", "receiver of the segment"), altered("receiver of the segment", &[]));
    assert_eq!(check("2", "The receiver [...] SHOULD answer it at once"), Ok(()));
    assert_eq!(check("2", "The receiver SHOULD answer it at once"), altered("The receiver SHOULD answer", &[]));
    assert_eq!(check("2", "The receiver answers"), altered("receiver answers", &[]));
    assert_eq!(check("2", "receiver"), Err(Fault::TooShort("receiver".into())));
    assert_eq!(check("2", "a three-way handshake and/or gone"), altered("a three-way handshake and/or", &["1"]));
    // A section has its subsections.
    // A sentence's first letter is small inside of ours.
    assert_eq!(check("1", "a 'segment' is whole"), Ok(()));
    assert_eq!(check("1", "a 'Segment' is whole"), altered("a Segment is whole", &[]));
    assert_eq!(check("1", "A 'segment' is whole"), Ok(()));
    assert_eq!(check("1.1", "Senders MUST wait"), altered("Senders MUST", &["1"]));
    assert_eq!(check("3", "Senders MUST wait"), Err(Fault::NoSection));
    assert_eq!(check("A", "There are none here"), Ok(()));
    assert_eq!(Digest::from_bytes(&digest.to_bytes()).expect("it is whole"), digest);
    assert!(Digest::from_bytes(&digest.to_bytes()[..200]).is_err());
}

#[test]
fn quotations_are_found_where_they_stand() {
    let found = |file: &str, content: &str| -> Vec<(usize, String, String)> {
        let all = find(Path::new(file), content).into_iter();
        let of = |q: &Quotation| q.sections.iter().map(|section| name(section)).collect::<Vec<_>>().join("+");
        all.map(|q| (q.line, format!("{} {}", q.rfc, of(&q)), q.text)).collect()
    };
    let row = |line, at: &str, text: &str| (line, at.to_owned(), text.to_owned());
    let rust = [
        "",
        "    //= RFC 9293 §3.6.1, §3.4: \"one",
        "    //= and\" and \"two",
        "    //= three\", as minei §5 has it",
        "    let x = \"RFC 9293 §1: 'four'\";",
        "    // RFC 793 §1 says so. Of that, \"five\" is ours. RFC 793 §2: \"six\"",
        "    /// RFC 5382 §5, \"seven\"",
    ]
    .join("\n");
    assert_eq!(
        found("a.rs", &rust),
        [
            row(2, "9293 3.6.1+3.4", "one\n and"),
            row(3, "9293 3.6.1+3.4", "two\n three"),
            row(6, "793 2", "six"),
            row(7, "5382 5", "seven")
        ]
    );
    assert_eq!(found("a.pkt", "// RFC 6298 §5.5: \"one\"\n// \"two\"\n+0 x\n// RFC 6298 §1: \"three\"\n").len(), 2);
    assert_eq!(
        found("rfc2018.md", "| §4 | \"one\" |\n\nRFC 793 §A.1: \"two\"\n\n\"three\"\n"),
        [row(1, "2018 4", "one"), row(3, "793 A.1", "two")]
    );
    assert_eq!(found("slacp.md", "| §4 | \"one\" |\n"), []);
}
