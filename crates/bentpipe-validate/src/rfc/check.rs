//! All quotations of the repository, each against its RFC.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::digest::{Digest, Fault};
use super::sections::name;
use super::sources::{Quotation, find};

/// RFCs that may be quoted without a digest, and why.
const NOT_CHECKED: &[(u32, &str)] = &[
    (9406, READ),
    (9438, READ),
    (
        9768,
        "the text could not be had: quotations are those of draft-ietf-tcpm-accurate-ecn-34, from which it was made",
    ),
    (9937, READ),
    (9959, READ),
];

/// The text was read, and the quotations were compared with it by eye. The RFC editor's file, of which a digest could be made, was not at
/// hand.
const READ: &str = "the RFC editor's file could not be had: quotations were compared by eye with the RFC as tex2e/rfc-translater has it";

/// Where quotations occur: folders and file name endings.
const SOURCES: [(&str, &[&str]); 4] =
    [("crates", &["rs", "pkt"]), ("fuzz", &["rs"]), ("docs/specs", &["md"]), ("validation/conformance", &["toml"])];

/// Files under `folder` that may contain quotations.
fn files(folder: &Path, ends: &[&str], found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                files(&path, ends, found)?;
            }
        } else if path.extension().is_some_and(|end| ends.iter().any(|wanted| end == *wanted)) {
            found.push(path);
        }
    }
    Ok(())
}

/// The digests of the repository, by RFC.
pub(super) fn digests(root: &Path) -> Result<BTreeMap<u32, Digest>> {
    let mut found = Vec::new();
    files(&root.join("validation/rfc"), &["digest"], &mut found)?;
    let read = |path: &PathBuf| -> Result<(u32, Digest)> {
        let digest = Digest::from_bytes(&fs::read(path)?).with_context(|| format!("{}", path.display()))?;
        Ok((digest.rfc, digest))
    };
    found.iter().map(read).collect()
}

/// Describes the error in a quotation; `None` if it is right.
fn judge(digests: &BTreeMap<u32, Digest>, quotation: &Quotation) -> Option<String> {
    let Quotation { rfc, sections, text, .. } = quotation;
    if NOT_CHECKED.iter().any(|(number, _)| number == rfc) {
        return None;
    }
    let Some(digest) = digests.get(rfc) else {
        return Some(format!("RFC {rfc} has no digest in validation/rfc, and is not named in NOT_CHECKED"));
    };
    let named = sections.iter().map(|section| format!("§{}", name(section))).collect::<Vec<_>>().join(", ");
    Some(match digest.check(sections, text).err()? {
        Fault::NoSection => format!("RFC {rfc} has no {named}"),
        Fault::TooShort(words) => format!("\"{words}\" is too short to look up: remove the quotation marks"),
        Fault::Altered(words, elsewhere) if elsewhere.is_empty() => {
            format!("RFC {rfc} does not say \"{words}\", in {named} or elsewhere")
        }
        Fault::Altered(words, elsewhere) => {
            format!("RFC {rfc} {named} does not say \"{words}\", §{} does", elsewhere.join(", §"))
        }
    })
}

/// The number of quotations, and their errors.
///
/// # Errors
/// Fails if a file cannot be read or a digest is malformed.
pub(super) fn all(root: &Path) -> Result<(usize, Vec<String>)> {
    let (digests, mut sources, mut checked, mut faults) = (digests(root)?, Vec::new(), 0, Vec::new());
    for (folder, ends) in SOURCES {
        files(&root.join(folder), ends, &mut sources)?;
    }
    sources.sort();
    for path in sources {
        let content = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        for quotation in find(&path, &content) {
            checked += 1;
            if let Some(fault) = judge(&digests, &quotation) {
                faults.push(format!("{shown}:{}: {fault}", quotation.line));
            }
        }
    }
    Ok((checked, faults))
}

/// Prints the errors in the quotations of the repository at `root`; returns true if there
/// are none.
///
/// # Errors
/// As [`all`].
pub(crate) fn check(root: &Path) -> Result<bool> {
    let (checked, faults) = all(root)?;
    faults.iter().for_each(|fault| println!("{fault}"));
    println!("{} of {checked} quotations differ from the RFC", faults.len());
    for (rfc, why) in NOT_CHECKED {
        println!("RFC {rfc} is not checked: {why}");
    }
    Ok(faults.is_empty())
}
