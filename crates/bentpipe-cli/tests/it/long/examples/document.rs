//! A document as a list of steps: files to save, commands to run, output to expect.
//!
//! An indented block whose line begins with `bentpipe` is commands; what follows a command in the block is its output, of which `...`
//! leaves lines out. A fenced block after a line that ends with a colon and names a file in backquotes is that file. Comments before a
//! block change this:
//!
//! - `<!-- not run: REASON -->`: only the options are checked;
//! - `<!-- first: COMMAND -->`: creates what the reader is assumed to have;
//! - `<!-- exit: CODE -->`: what its commands end with;
//! - `<!-- output varies: REASON -->`: the output is an example.

/// A step of a reader.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Saves a file.
    Save { name: String, text: String },
    /// Something that the document assumes to exist.
    First(String),
    /// Runs a command.
    Run { line: usize, command: String, output: Vec<String>, exit: i32 },
    /// A command that is not run here, with the reason.
    Leave { line: usize, command: String, why: String },
}

/// The contents of the comments before a block.
#[derive(Default)]
struct Notes {
    not_run: Option<String>,
    exit: i32,
    varies: bool,
}

/// The steps of a document, in order.
pub(super) fn steps(text: &str) -> Vec<Step> {
    let lines: Vec<_> = text.lines().collect();
    let (mut steps, mut notes, mut at) = (Vec::new(), Notes::default(), 0);
    while at < lines.len() {
        let line = lines[at];
        let begin = at;
        at += 1;
        if line.starts_with("```") {
            let end = (at..lines.len()).find(|n| lines[*n].starts_with("```")).unwrap_or(lines.len());
            if let Some(name) = lines[..begin].iter().rev().find(|line| !line.is_empty()).and_then(|line| named(line)) {
                steps.push(Step::Save { name, text: lines[at..end].join("\n") + "\n" });
            }
            at = end + 1;
        } else if let Some((key, value)) = comment(line) {
            match key {
                "first" => steps.push(Step::First(value.to_owned())),
                "not run" => notes.not_run = Some(value.to_owned()),
                "exit" => notes.exit = value.parse().expect("a number"),
                "output varies" => notes.varies = true,
                _ => panic!("line {}: unknown comment `{key}`", begin + 1),
            }
        } else if line.starts_with("    ") {
            while lines.get(at).is_some_and(|line| line.is_empty() || line.starts_with("    ")) {
                at += 1;
            }
            block(&lines[begin..at], begin + 1, &notes, &mut steps);
            notes = Notes::default();
        }
    }
    steps
}

/// `<!-- KEY: VALUE -->`.
fn comment(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("<!-- ")?.strip_suffix(" -->")?.split_once(": ")
}

/// The file that a line introduces: "Save this as `my.toml`:".
fn named(line: &str) -> Option<String> {
    let names = line.strip_suffix(':')?.split('`').skip(1).step_by(2);
    let is_file = |name: &&str| {
        [".toml", ".sh", ".txt", ".csv", ".pkt"].iter().any(|end| name.ends_with(end)) && !name.contains('/')
    };
    names.filter(is_file).last().map(str::to_owned)
}

fn block(lines: &[&str], first: usize, notes: &Notes, steps: &mut Vec<Step>) {
    let mut lines = lines.iter().map(|line| line.trim_end()).zip(first..).peekable();
    let begins = |line: &str| line.trim_start().trim_start_matches("$ ").starts_with("bentpipe ");
    while let Some((line, number)) = lines.next() {
        if !begins(line) {
            continue;
        }
        let mut command = line.trim().trim_start_matches("$ ").to_owned();
        while command.ends_with('\\') {
            command.pop();
            command.push_str(lines.next().map_or("", |(line, _)| line.trim()));
        }
        let mut output = Vec::new();
        while let Some((line, _)) = lines.next_if(|(line, _)| !begins(line)) {
            output.push(line.to_owned());
        }
        steps.push(match &notes.not_run {
            Some(why) => Step::Leave { line: number, command, why: why.clone() },
            None if notes.varies => Step::Run { line: number, command, output: Vec::new(), exit: notes.exit },
            None => Step::Run { line: number, command, output, exit: notes.exit },
        });
    }
}

#[test]
fn a_document_is_read_as_its_reader_does() {
    let text = "Save this as `my.toml`:\n\n```toml\na = 1\n```\n\n    bentpipe run my.toml\n\n      flow   time\n\n<!-- not run: root -->\n\n    \
                $ bentpipe shell geo -- \\\n        sh    # far away\n    bentpipe doctor\n\n<!-- exit: 1 -->\n    bentpipe run x\n";
    let run = |line, command: &str, output: &[&str], exit| {
        let output = output.iter().map(|&line| line.to_owned()).collect();
        Step::Run { line, command: command.into(), output, exit }
    };
    let leave = |line, command: &str| Step::Leave { line, command: command.into(), why: "root".into() };
    let expected = [
        Step::Save { name: "my.toml".into(), text: "a = 1\n".into() },
        run(7, "bentpipe run my.toml", &["", "      flow   time", ""], 0),
        leave(13, "bentpipe shell geo -- sh    # far away"),
        leave(15, "bentpipe doctor"),
        run(18, "bentpipe run x", &[], 1),
    ];
    assert_eq!(steps(text), expected);
}
