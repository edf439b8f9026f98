//! `bentpipe script`: packetdrill scripts against the engine's TCP.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use bentpipe_script::expect::{Expectations, Outcome, Tally};
use bentpipe_script::host::Profile;
use bentpipe_script::{Options, Verdict, run};
use serde_json::{Value, json};

use crate::args::{Host, Script};
use crate::failure::{End, Failure};
use crate::output;

pub(crate) fn script(args: &Script) -> Result<End, Failure> {
    if args.expect.is_empty() { play(args) } else { conformance(args) }
}

/// All scripts below a folder, or the file itself, in order.
fn scripts(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let found = below(path)?;
    if found.is_empty() {
        return Err(Failure::usage(format!("{}: no file in this folder ends in .pkt", path.display()), None));
    }
    Ok(found)
}

fn below(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error| Failure::usage(format!("{}: {error}", path.display()), None);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let kind = entry.file_type().map_err(unreadable)?;
        let path = entry.path();
        let is_script = path.extension().is_some_and(|end| end == "pkt");
        // Links to folders are not followed: a tree may link to its own root. Without its file, a link is reported when it is read.
        if kind.is_dir() {
            found.extend(below(&path)?);
        } else if is_script && (kind.is_file() || kind.is_symlink() && !path.is_dir()) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display()), None))?;
    // Comments may have another encoding.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn play(args: &Script) -> Result<End, Failure> {
    let profile = match args.profile {
        Host::Linux => Profile::Linux,
        Host::FreeBsd => Profile::FreeBsd,
        Host::Rfc => Profile::Rfc,
    };
    let mut options = Options::new(profile);
    if !args.defined.is_empty() {
        options.defined.clone_from(&args.defined);
    }
    let (mut mistakes, mut has_failed, mut records) = (Vec::new(), false, Vec::new());
    for path in &args.files {
        for path in scripts(path)? {
            let shown = path.display();
            let played = match run(&read(&path)?, &options) {
                Ok(played) => played,
                Err(mistake) => {
                    mistakes.push(format!("{shown}:{mistake}"));
                    continue;
                }
            };
            has_failed |= matches!(played.verdict, Verdict::Fails(_));
            if args.json {
                let mut record = verdict_json(&path, &played.verdict);
                if args.verbose {
                    record["packets"] = json!(played.packets);
                }
                records.push(record);
                continue;
            }
            let mut text = String::new();
            if args.verbose {
                for packet in &played.packets {
                    let _ = writeln!(text, "    {packet}");
                }
            }
            let _ = match &played.verdict {
                Verdict::Passes => writeln!(text, "passes       {shown}"),
                Verdict::Unsupported(features) => writeln!(text, "unsupported  {shown}: {}", features.join(", ")),
                Verdict::Fails(difference) => writeln!(
                    text,
                    "fails        {shown}:{}\n    expected: {}\n    got:      {}",
                    difference.line, difference.expected, difference.got
                ),
            };
            output::print(&text)?;
        }
    }
    if args.json {
        output::print_json(&records)?;
    }
    if !mistakes.is_empty() {
        return Err(Failure::usage(mistakes.join("\n"), None));
    }
    Ok(if has_failed { End::Failed } else { End::Done })
}

fn verdict_json(path: &Path, verdict: &Verdict) -> Value {
    let script = path.display().to_string();
    match verdict {
        Verdict::Passes => json!({ "script": script, "verdict": "passes" }),
        Verdict::Unsupported(features) => json!({ "script": script, "verdict": "unsupported", "features": features }),
        Verdict::Fails(difference) => json!({
            "script": script, "verdict": "fails", "line": difference.line,
            "expected": difference.expected, "got": difference.got,
        }),
    }
}

fn conformance(args: &Script) -> Result<End, Failure> {
    let [root] = &args.files[..] else {
        return Err(Failure::usage("--expect needs exactly one folder", None));
    };
    if !root.is_dir() {
        return Err(Failure::usage(format!("{}: expected a folder of scripts", root.display()), None));
    }
    let expectations = expectations(root, &args.expect)?;
    let mut tally = Tally::default();
    let mut records = Vec::new();
    for path in scripts(root)? {
        let relative = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let outcome = expectations.judge(&relative, &read(&path)?, &mut tally);
        let (word, detail) = match &outcome {
            Outcome::Passes => ("passes", String::new()),
            Outcome::Allowed => ("allowed", String::new()),
            Outcome::Mistaken => ("mistaken", String::new()),
            Outcome::Unsupported(features) => ("unsupported", features.join(", ")),
            Outcome::Unexpected(what) => ("unexpected", what.clone()),
        };
        records.push(json!({ "script": relative, "outcome": word, "detail": detail }));
    }
    let (supported, percent) = tally.supported();
    if args.json {
        output::print_json(&json!({
            "tree": expectations.tree, "passes": tally.passes, "allowed": tally.allowed,
            "unsupported": tally.unsupported, "features": tally.features, "mistaken": tally.mistaken,
            "unexpected": tally.unexpected.len(), "supported": supported, "percent": percent,
            "notes": tally.notes, "scripts": records,
        }))?;
    } else {
        output::print(&summary(&expectations, &tally))?;
    }
    Ok(if tally.unexpected.is_empty() { End::Done } else { End::Failed })
}

/// The first expectation file that matches the folder; a single file matches any folder.
fn expectations(root: &Path, files: &[PathBuf]) -> Result<Expectations, Failure> {
    for file in files {
        let refused = |error| Failure::usage(format!("{}: {error}", file.display()), None);
        let expectations = Expectations::parse(&read(file)?).map_err(refused)?;
        if files.len() == 1 || root.join(&expectations.marker).exists() {
            return Ok(expectations);
        }
    }
    let help = "name the one to use: bentpipe script --expect FILE FOLDER".to_owned();
    Err(Failure::usage(format!("{}: no expectation file matches this folder", root.display()), Some(help)))
}

fn summary(expectations: &Expectations, tally: &Tally) -> String {
    let (supported, percent) = tally.supported();
    let mut text = String::new();
    for (path, what) in &tally.unexpected {
        let _ = writeln!(text, "unexpected  {path}: {what}");
    }
    let _ = writeln!(text, "{}: {} scripts", expectations.tree, tally.scripts);
    let _ = writeln!(text, "  {:>5} pass, {percent:.1} % of the {supported} supported", tally.passes);
    let _ = writeln!(text, "  {:>5} fail as an RFC allows", tally.allowed);
    let _ = writeln!(text, "  {:>5} differ from the expectation", tally.unexpected.len());
    let _ = writeln!(text, "  {:>5} are themselves wrong", tally.mistaken);
    let _ = writeln!(text, "  {:>5} unsupported; a script may need several features:", tally.unsupported);
    let mut features: Vec<_> = tally.features.iter().collect();
    features.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), (*name).clone()));
    for (feature, count) in features {
        let _ = writeln!(text, "        {count:>5} {feature}");
    }
    for (note, count) in &tally.notes {
        let _ = writeln!(text, "  {count:>5} where {note}");
    }
    text
}
