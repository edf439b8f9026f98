//! Behaviour of a connection as packets on a clock: each `*.pkt` below this folder is a test of its own.
//!
//! The language is a subset of packetdrill's (Cardwell et al. 2013), in virtual time, so instants are exact:
//!
//! ```text
//! // The sentence of the RFC that the script is about.
//! --variant=reno --mss=1000 --iw=4        settings of the connection under test, first
//! +0 connect                              or: listen
//! +0 > S 0:0(0) <mss 1000,sackOK,wscale 10>
//! +.1 < S. 0:0(0) ack 1 win 65535 <mss 1000>
//! * > . 1:1(0) ack 1                      whenever it comes
//! +0 write(1000)
//! +0 %{ cwnd == 4*mss, state == established }%
//! ```
//!
//! `+t` counts seconds from the line before, a bare `t` from the start. `>` is expected from the connection, `<` comes
//! from the peer. Sequence numbers count from the SYN at 0; windows are in bytes, unscaled. Where a `>` names no
//! window any will do; where it names no options there must be none but timestamps; `<...>` takes any. A segment that
//! no line expects fails the script. Further commands: `write(n)`, `read(n)`, `close`, `abort`, `successor` (a new
//! connection that inherits, RFC 9040), and `establish(rtt=.1, win=n) <options>`, which is the three segments of an
//! active opening. `check.rs` lists the names that `%{ }%` knows, `settings.rs` the settings.

mod check;
mod grammar;
mod play;
mod settings;

use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};

fn scripts_below(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a readable folder").map(|e| e.expect("an entry").path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            scripts_below(&entry, found);
        } else if entry.extension().is_some_and(|ext| ext == "pkt") {
            found.push(entry);
        }
    }
}

fn run(path: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    if !["// RFC", "// ns-2", "// 4.3BSD", "// minei"].iter().any(|source| text.starts_with(source)) {
        return Err("a script begins with the sentence that it is about: // RFC ...".into());
    }
    let script = grammar::parse(&text)?;
    Ok(play::play(&script)?)
}

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut paths = Vec::new();
    scripts_below(&root, &mut paths);
    let trials = paths
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&root).expect("below the root").with_extension("");
            Trial::test(name.to_string_lossy().replace('\\', "/"), move || run(&path))
        })
        .chain([Trial::test("language/refuses_what_it_does_not_know", || Ok(grammar::self_test()?))])
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
