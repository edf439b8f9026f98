//! bentpipe's own scripts: each `*.pkt` below this folder is a test of its own name. `docs/reference/packet-scripts.md` describes the
//! language; the profile is `rfc`, in which every packet and every instant counts.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bentpipe_script::host::Profile;
use bentpipe_script::{Options, Verdict, run};
use libtest_mimic::{Arguments, Failed, Trial};

fn scripts(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of scripts") {
        let path = entry.expect("a folder of scripts").path();
        if path.is_dir() {
            scripts(&path, found);
        } else if path.extension().is_some_and(|end| end == "pkt") {
            found.push(path);
        }
    }
}

fn play(path: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(path)?;
    let played = run(&text, &Options::new(Profile::Rfc)).map_err(|mistake| mistake.to_string())?;
    match played.verdict {
        Verdict::Passes => Ok(()),
        Verdict::Unsupported(features) => Err(format!("unsupported: {}", features.join(", ")).into()),
        Verdict::Fails(difference) => {
            let line = text.lines().nth(difference.line as usize - 1).unwrap_or_default();
            let packets = played.packets.iter().rev().take(24).rev().cloned().collect::<Vec<_>>().join("\n  ");
            Err(format!(
                "line {}: {line}\n  expected: {}\n  got:      {}\npackets so far:\n  {packets}",
                difference.line, difference.expected, difference.got
            )
            .into())
        }
    }
}

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut found = Vec::new();
    scripts(&root, &mut found);
    found.sort();
    let trials = found
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&root).expect("below the folder").with_extension("").display().to_string();
            Trial::test(name, move || play(&path))
        })
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
