//! The documents: the reference equals what the code generates, and links lead somewhere.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

#[test]
fn the_reference_is_the_generated_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let command = ["reference", "--out"];
    let status = Command::new(env!("CARGO_BIN_EXE_bentpipe")).args(command).arg(folder.path()).status();
    assert!(status.expect("the binary starts").success());
    let mut seen = 0;
    for entry in std::fs::read_dir(folder.path()).expect("readable") {
        let path = entry.expect("readable").path();
        let name = path.file_name().expect("a name").to_owned();
        // It has the help of `bentpipe gateway`.
        if cfg!(not(target_os = "linux")) && name == "cli.md" {
            seen += 1;
            continue;
        }
        let generated = std::fs::read_to_string(&path).expect("text");
        let kept = std::fs::read_to_string(root().join("docs/reference").join(&name)).unwrap_or_default();
        let differs = generated.lines().zip(kept.lines()).position(|(a, b)| a != b);
        assert!(
            generated == kept,
            "docs/reference/{} differs (line {:?}); write it with `bentpipe reference --out docs/reference`",
            name.display(),
            differs.map(|line| line + 1)
        );
        seen += 1;
    }
    // The pages of the gateway come from its code, which needs Linux.
    assert_eq!(seen, if cfg!(target_os = "linux") { 6 } else { 4 });
}

/// Files of the repository with one of these endings.
fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_ours = !name.starts_with('.') && !["target", "out", "node_modules"].contains(&name.as_str());
        if path.is_dir() && is_ours {
            files(&path, endings, found);
        } else if path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known)) {
            found.push(path);
        }
    }
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading.trim().to_lowercase().chars().filter(is_kept).collect::<String>().replace(' ', "-")
}

fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if !is_code && line.starts_with('#') {
            found.insert(anchor(line.trim_start_matches('#')));
        }
    }
    found
}

/// The targets of the links in a line: `](TARGET)`.
fn targets(line: &str) -> Vec<&str> {
    line.match_indices("](").filter_map(|(at, _)| line[at + 2..].split_once(')').map(|(target, _)| target)).collect()
}

/// The error of a relative link in the document `from`, if it leads nowhere.
fn mistake(from: &Path, target: &str) -> Option<String> {
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let file = if path.is_empty() { from.to_owned() } else { from.parent()?.join(path) };
    if !file.exists() {
        return Some(format!("no file {}", plain(&file).display()));
    }
    if heading.is_empty() {
        return None;
    }
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    (!anchors(&text).contains(heading)).then(|| format!("no heading #{heading} in {}", plain(&file).display()))
}

/// The path without `..`, below the root.
fn plain(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.strip_prefix(root()).map(Path::to_owned).unwrap_or(parts)
}

#[test]
fn links_of_documents_lead_somewhere() {
    let (mut documents, mut mistakes, mut seen) = (Vec::new(), Vec::new(), 0);
    files(&root(), &["md"], &mut documents);
    for document in documents {
        let text = std::fs::read_to_string(&document).expect("text");
        for (number, line) in text.lines().enumerate() {
            for target in targets(line).into_iter().filter(|target| !target.contains("://") && !target.contains(' ')) {
                seen += 1;
                if let Some(mistake) = mistake(&document, target) {
                    mistakes.push(format!("{}:{}: ({target}): {mistake}", plain(&document).display(), number + 1));
                }
            }
        }
    }
    assert!(seen > 50, "{seen} links");
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

/// Code and settings name documents by their paths from the root: `docs/specs/ns2.md`.
#[test]
fn documents_that_are_named_exist() {
    let (mut all, mut mistakes, mut seen) = (Vec::new(), Vec::new(), 0);
    files(&root(), &["md", "rs", "toml", "pkt", "service", "yml", "py"], &mut all);
    all.extend(["Makefile", ".ci/run", "scripts/setup"].map(|name| root().join(name)));
    for file in all.into_iter().filter(|file| !file.ends_with("CHANGELOG.md")) {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        for (number, line) in text.lines().enumerate() {
            for (at, _) in line.match_indices("docs/") {
                let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_');
                let rest = &line[at..];
                let path = &rest[..rest.find(|c: char| !is_word(c)).unwrap_or(rest.len())];
                // A placeholder such as docs/specs/rfcN.md is not a name.
                let Some(end) = path.find(".md").filter(|_| !path.contains("rfcN")) else { continue };
                let before = line[..at].chars().next_back();
                if before.is_some_and(|c| is_word(c) && c != '/') {
                    continue;
                }
                seen += 1;
                if !root().join(&path[..end + 3]).exists() {
                    mistakes.push(format!("{}:{}: {path}", plain(&file).display(), number + 1));
                }
            }
        }
    }
    assert!(seen > 20, "{seen} names");
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

/// Documents name files of the code by their paths below `crates`: `bentpipe-engine/src/machine.rs`.
#[test]
fn code_that_documents_name_exists() {
    let (mut documents, mut mistakes, mut seen) = (Vec::new(), Vec::new(), 0);
    files(&root().join("docs"), &["md"], &mut documents);
    documents.extend(["README.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    for document in documents {
        let text = std::fs::read_to_string(&document).expect("text");
        for (number, line) in text.lines().enumerate() {
            for code in line.split('`').skip(1).step_by(2) {
                let path = code.strip_prefix("crates/").unwrap_or(code);
                if path.starts_with("bentpipe-") && path.contains('/') && !path.contains(' ') {
                    seen += 1;
                    if !root().join("crates").join(path).exists() {
                        mistakes.push(format!("{}:{}: {code}", plain(&document).display(), number + 1));
                    }
                }
            }
        }
    }
    assert!(seen > 20, "{seen} names");
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

/// A plain value in YAML may contain no `: ` and not end with `:`: GitHub refuses the whole workflow.
#[test]
fn values_in_workflows_are_plain_or_quoted() {
    let (mut values, mut wrong) = (0, Vec::new());
    let mut workflows = vec![root().join("action.yml")];
    files(&root().join(".github/workflows"), &["yml"], &mut workflows);
    for path in workflows {
        // The indentation of a key whose value is a block (`run: |`).
        let mut block = None;
        for (number, line) in std::fs::read_to_string(&path).expect("text").lines().enumerate() {
            let indent = line.len() - line.trim_start().len();
            if line.trim().is_empty() || block.is_some_and(|block| indent > block) {
                continue;
            }
            let text = line.trim_start().trim_start_matches("- ");
            let Some((_, value)) = text.split_once(": ").filter(|(key, _)| !key.starts_with(['#', '{'])) else {
                continue;
            };
            block = value.starts_with(['|', '>']).then_some(indent);
            values += 1;
            let plain = value.split(" #").next().unwrap_or_default().trim_end();
            if !value.starts_with(['"', '\'', '{', '[', '|', '>']) && (plain.contains(": ") || plain.ends_with(':')) {
                wrong.push(format!("{}:{}: {plain}", path.display(), number + 1));
            }
        }
    }
    assert!(values > 50, "{values}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// An editor shows the description of the key under the cursor, so each key has one.
#[test]
fn every_key_of_the_schemas_is_described() {
    fn undescribed(path: &str, schema: &Value, found: &mut Vec<String>) -> usize {
        let mut seen = 0;
        if let Some(properties) = schema["properties"].as_object() {
            for (key, value) in properties {
                let path = format!("{path}.{key}");
                if value["description"].as_str().is_none_or(|text| !text.ends_with('.')) {
                    found.push(path.clone());
                }
                seen += 1 + undescribed(&path, value, found);
            }
        }
        let list = schema["anyOf"].as_array().into_iter().flatten();
        let below = list.chain(schema.get("items")).chain(schema.get("additionalProperties"));
        seen + below.map(|inner| undescribed(path, inner, found)).sum::<usize>()
    }
    for (language, at_least) in [("scenario", 50), ("gateway", 50), ("sweep", 15)] {
        if language == "gateway" && cfg!(not(target_os = "linux")) {
            continue;
        }
        let output = Command::new(env!("CARGO_BIN_EXE_bentpipe")).args(["schema", language]).output();
        let schema = serde_json::from_slice(&output.expect("the binary starts").stdout).expect("JSON");
        let mut found = Vec::new();
        let seen = undescribed("", &schema, &mut found);
        // The gateway's file has 70 keys, the sweep's 20.
        assert!(seen > at_least, "{language}: {seen} keys");
        assert_eq!(found, Vec::<String>::new(), "{language}: {} of {seen}", found.len());
    }
}

/// Variables that the code reads or sets are in the reference, by their fixed part.
#[test]
fn every_variable_is_described() {
    let (mut sources, mut seen) = (Vec::new(), BTreeSet::new());
    files(&root().join("crates/bentpipe-cli/src"), &["rs"], &mut sources);
    for source in sources.into_iter().filter(|path| !path.ends_with("commands/reference.rs")) {
        let text = std::fs::read_to_string(source).expect("text");
        for (at, _) in text.match_indices("\"BENTPIPE_") {
            let rest = &text[at + 1..];
            let end =
                rest.find(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_').unwrap_or(rest.len());
            seen.insert(rest[..end].to_owned());
        }
    }
    let page = std::fs::read_to_string(root().join("docs/reference/cli.md")).expect("text");
    assert!(seen.len() >= 6, "{seen:?}");
    assert_eq!(
        seen.iter().filter(|name| !page.contains(&format!("`{name}"))).collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
}
