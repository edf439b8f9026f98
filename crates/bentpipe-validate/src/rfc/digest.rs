//! Hashes of runs of words: made from texts, written to files, used to check quotations against sections.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use sha2::{Digest as _, Sha256};

use super::sections::{self, Number};

const FIRST_LINE: &str = "bentpipe RFC digest 1";
/// Bytes of a hash. A run that is absent passes by chance once in 2^24 divided by the runs of the section.
const BYTES: usize = 3;
type Hash = [u8; BYTES];
/// Words per run: quotations of two or three words use runs of two, longer ones runs of four.
pub(super) const RUNS: [usize; 2] = [2, 4];

/// The runs of an RFC, by section.
#[derive(Debug, PartialEq)]
pub(super) struct Digest {
    pub(super) rfc: u32,
    /// SHA-256 of the text, in hexadecimal digits.
    pub(super) text: String,
    sections: Vec<(Number, [BTreeSet<Hash>; RUNS.len()])>,
}

/// An error in a quotation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The RFC has no such section.
    NoSection,
    /// A piece has too few words to check.
    TooShort(String),
    /// These words are not in the section; the sections that have them.
    Altered(String, Vec<String>),
}

fn hash(run: &[String]) -> Hash {
    let whole = Sha256::digest(run.join(" "));
    whole[..BYTES].try_into().expect("SHA-256 is longer")
}

/// The run with the case of its first letter swapped.
fn other_case(run: &[String]) -> Vec<String> {
    let mut run = run.to_vec();
    if let Some(first) = run[0].chars().next().filter(char::is_ascii_alphabetic) {
        let other = if first.is_ascii_uppercase() { first.to_ascii_lowercase() } else { first.to_ascii_uppercase() };
        run[0].replace_range(..1, &other.to_string());
    }
    run
}

impl Digest {
    /// Digests a text.
    pub(super) fn of(rfc: u32, text: &str) -> Digest {
        let runs = |words: &[String]| RUNS.map(|n| words.windows(n).map(hash).collect());
        let sections = sections::divide(text).into_iter().map(|(number, words)| (number, runs(&words))).collect();
        let text = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
        Digest { rfc, text, sections }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{FIRST_LINE}\n{}\n{}\n", self.rfc, self.text).into_bytes();
        for (number, runs) in &self.sections {
            let counts = runs.each_ref().map(|set| set.len().to_string()).join(" ");
            bytes.extend(format!("§{} {counts}\n", sections::name(number)).bytes());
            runs.iter().flatten().for_each(|hash| bytes.extend(hash));
        }
        bytes
    }

    pub(super) fn from_bytes(mut bytes: &[u8]) -> Result<Digest> {
        let line = |bytes: &mut &[u8]| -> Result<String> {
            let end = bytes.iter().position(|&byte| byte == b'\n').context("a line is not terminated")?;
            let line = std::str::from_utf8(&bytes[..end])?.to_owned();
            *bytes = &bytes[end + 1..];
            Ok(line)
        };
        ensure!(line(&mut bytes)? == FIRST_LINE, "not a digest of an RFC");
        let rfc = line(&mut bytes)?.parse().context("the RFC's number")?;
        let text = line(&mut bytes)?;
        let mut sections = Vec::new();
        while !bytes.is_empty() {
            let head = line(&mut bytes)?;
            let (name, counts) = head.strip_prefix('§').and_then(|head| head.split_once(' ')).context("a section")?;
            let number = if name.is_empty() { Number::new() } else { sections::number(name).context("its number")? };
            let counts = counts.split(' ').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
            ensure!(counts.len() == RUNS.len(), "counts of §{name}");
            let mut runs: [BTreeSet<Hash>; RUNS.len()] = Default::default();
            for (count, set) in counts.into_iter().zip(&mut runs) {
                let (have, rest) = bytes.split_at_checked(count * BYTES).context("the file is truncated")?;
                *set = have.chunks_exact(BYTES).map(|hash| hash.try_into().expect("of this length")).collect();
                bytes = rest;
            }
            sections.push((number, runs));
        }
        Ok(Digest { rfc, text, sections })
    }

    /// Checks that each piece of the quotation, between elisions, is in one of the sections or their subsections.
    pub(super) fn check(&self, named: &[Number], quotation: &str) -> Result<(), Fault> {
        let is_named = |number: &Number| named.iter().any(|named| number.starts_with(named));
        if named.iter().any(|named| !self.sections.iter().any(|(number, _)| number.starts_with(named))) {
            return Err(Fault::NoSection);
        }
        for piece in quotation.split("[...]") {
            let words = sections::words(piece);
            // A label, as in "(2) [...] a) If", has no case to swap.
            if words.iter().all(|word| word.chars().count() == 1) {
                continue;
            }
            let Some(at) = RUNS.iter().rposition(|&n| n <= words.len()) else {
                return Err(Fault::TooShort(words.join(" ")));
            };
            for (nth, run) in words.windows(RUNS[at]).enumerate() {
                let mut hashes = vec![hash(run)];
                // The first word may begin a sentence in one place and be inside one in the other.
                hashes.extend((nth == 0).then(|| hash(&other_case(run))));
                let has = |(_, runs): &&(Number, [BTreeSet<Hash>; RUNS.len()])| {
                    hashes.iter().any(|hash| runs[at].contains(hash))
                };
                let has: Vec<_> = self.sections.iter().filter(has).collect();
                if !has.iter().any(|(number, _)| is_named(number)) {
                    let elsewhere = has.iter().map(|(number, _)| sections::name(number)).collect();
                    return Err(Fault::Altered(run.join(" "), elsewhere));
                }
            }
        }
        Ok(())
    }

    /// Sections as text.
    pub(super) fn len(&self) -> usize {
        self.sections.len()
    }
}

/// Digests each `rfcN.txt` of the folder `texts` into `out`, and prints a line for each.
pub(crate) fn make(texts: &Path, out: &Path) -> Result<bool> {
    let mut found = Vec::new();
    for entry in fs::read_dir(texts).with_context(|| format!("{}", texts.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(rfc) = name.strip_prefix("rfc").and_then(|name| name.strip_suffix(".txt")) {
            found.push((rfc.parse::<u32>().with_context(|| name.clone())?, path));
        }
    }
    found.sort();
    if found.is_empty() {
        bail!("{}: no file is named rfcN.txt", texts.display());
    }
    for (rfc, path) in found {
        let text = fs::read(&path).with_context(|| format!("{}", path.display()))?;
        let text = String::from_utf8_lossy(&text);
        // "Request for Comments: 9293"; the oldest say "RFC:  793".
        let says = |start: &str| {
            let number = text.split_once(start).map(|(_, rest)| rest.trim_start());
            number.is_some_and(|rest| rest.split(|c: char| !c.is_ascii_digit()).next() == Some(&rfc.to_string()))
        };
        ensure!(says("Request for Comments:") || says("RFC:"), "{}: not RFC {rfc}", path.display());
        let digest = Digest::of(rfc, &text);
        let bytes = digest.to_bytes();
        println!("rfc{rfc}: {} sections, {} bytes, SHA-256 {}", digest.len(), bytes.len(), digest.text);
        fs::write(out.join(format!("rfc{rfc}.digest")), bytes)?;
    }
    Ok(true)
}
