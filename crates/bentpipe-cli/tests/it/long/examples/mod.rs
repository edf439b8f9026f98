//! Runs the commands in README, tutorials and how-tos, and compares their output with the output shown.

mod document;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use document::{Step, steps};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

fn documents() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md")];
    for folder in ["docs/tutorial", "docs/howto"] {
        let entries = std::fs::read_dir(root().join(folder)).expect("readable");
        found.extend(
            entries
                .map(|entry| entry.expect("readable").path())
                .filter(|path| path.extension().is_some_and(|end| end == "md")),
        );
    }
    found.sort();
    found
}

/// The output of a shell, including standard error, and its exit code.
fn shell(folder: &Path, command: &str) -> (String, Option<i32>) {
    let binary = Path::new(env!("CARGO_BIN_EXE_bentpipe"));
    let path =
        format!("{}:{}", binary.parent().expect("a folder").display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec 2>&1; {command}")]).current_dir(folder).env("PATH", path).env("HOME", folder);
    let output = shell.output().expect("there is a shell");
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
}

/// A line without indentation and table rules, with one space between columns.
fn plain(line: &str) -> String {
    line.split_whitespace().filter(|word| !word.starts_with('─')).collect::<Vec<_>>().join(" ")
}

/// The first expected line that the output lacks after the lines before it.
fn missing<'a>(expected: &'a [String], output: &str) -> Option<&'a str> {
    let mut said = output.lines().map(plain);
    let wanted = expected.iter().filter(|line| !matches!(plain(line).as_str(), "" | "..."));
    wanted.into_iter().find(|line| !said.any(|said| said == plain(line))).map(String::as_str)
}

/// The results of a document's commands.
#[derive(Default)]
struct Followed {
    ran: usize,
    mistakes: Vec<String>,
    /// The commands that were not run, with the reasons.
    left: Vec<String>,
}

/// Follows a document's instructions in a new folder.
fn follow(document: &Path) -> Followed {
    let folder = tempfile::tempdir().expect("a folder");
    let Followed { mut ran, mut mistakes, mut left } = Followed::default();
    let name = document.strip_prefix(root()).expect("below the root").display();
    for step in steps(&std::fs::read_to_string(document).expect("text")) {
        match step {
            Step::Save { name, text } => std::fs::write(folder.path().join(name), text).expect("writable"),
            Step::First(command) => {
                let (said, code) = shell(folder.path(), &command);
                assert_eq!(code, Some(0), "{name}: first: {command}\n{said}");
            }
            Step::Run { line, command, output, exit } => {
                ran += 1;
                let (said, code) = shell(folder.path(), &command);
                if code != Some(exit) {
                    mistakes.push(format!("{name}:{line}: {command}\nexit code {code:?}, not {exit}\n{said}"));
                } else if let Some(missing) = missing(&output, &said) {
                    mistakes.push(format!("{name}:{line}: {command}\nprints no line like\n{missing}\nbut\n{said}"));
                }
            }
            Step::Leave { line, command, why } => {
                mistakes.extend(misspelt(&command).map(|said| format!("{name}:{line}: {command}\n{said}")));
                left.push(format!("{name}:{line}: {command} ({why})"));
            }
        }
    }
    Followed { ran, mistakes, left }
}

/// The error for the command's options, if there is one. The command after `--` is not checked.
fn misspelt(command: &str) -> Option<String> {
    let words = shlex::split(command).unwrap_or_default();
    let is_operator = |word: &String| ["&&", "|", ">", ";", "&", "||"].contains(&word.as_str());
    // A word in capitals is a placeholder.
    let stands_for_another =
        |word: &String| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase() || !c.is_alphanumeric());
    words.split(is_operator).find_map(|command| {
        let arguments = command.iter().skip_while(|word| *word != "bentpipe").skip(1);
        let known = arguments.take_while(|word| *word != "--" && !word.contains('|') && !stands_for_another(word));
        let output =
            Command::new(env!("CARGO_BIN_EXE_bentpipe")).args(known).arg("--help").output().expect("it starts");
        (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
    })
}

/// One document at a time on each processor.
#[test]
fn the_commands_of_the_documents_run() {
    let (documents, next) = (documents(), AtomicUsize::new(0));
    let follow_some = || {
        let mine = std::iter::from_fn(|| documents.get(next.fetch_add(1, Ordering::Relaxed)));
        mine.map(|document| follow(document)).collect::<Vec<_>>()
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let followed = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..processors).map(|_| scope.spawn(follow_some)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect::<Vec<_>>()
    });
    let ran: usize = followed.iter().map(|document| document.ran).sum();
    let all = |of: fn(&Followed) -> &Vec<String>| followed.iter().flat_map(of).cloned().collect::<Vec<_>>();
    let (mistakes, left) = (all(|document| &document.mistakes), all(|document| &document.left));
    println!("{ran} commands were run, {} were not:\n{}", left.len(), left.join("\n"));
    assert!(mistakes.is_empty(), "{} mistakes\n\n{}", mistakes.len(), mistakes.join("\n"));
    assert!(ran > 40, "{ran} commands");
}

/// Commands within sentences and tables.
#[test]
fn the_options_that_documents_name_exist() {
    let (mut seen, mut mistakes) = (0, Vec::new());
    for document in documents() {
        let text = std::fs::read_to_string(&document).expect("text");
        for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.starts_with("    ")) {
            for command in line.split('`').skip(1).step_by(2).filter(|code| code.starts_with("bentpipe ")) {
                seen += 1;
                mistakes.extend(
                    misspelt(command).map(|said| format!("{}:{number}: {command}\n{said}", document.display())),
                );
            }
        }
    }
    assert!(seen > 30, "{seen} commands");
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

#[test]
fn an_option_that_is_not_there_is_found() {
    assert!(misspelt("bentpipe run geo --sed 3 > file").is_some_and(|said| said.contains("--sed")));
    assert_eq!(misspelt("bentpipe shell geo --pcap both.pcapng -- curl --no-such-option"), None);
    assert_eq!(misspelt("bentpipe completions SHELL"), None);
    let table = ["sat  1.5".to_owned(), "...".to_owned(), "end".to_owned()];
    assert_eq!(missing(&table, " a\n sat 1.5\n more\n end\n"), None);
    assert_eq!(missing(&table, " end\n sat 1.5\n"), Some("end"));
}
